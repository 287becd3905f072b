// SPDX-License-Identifier: MIT
// The header of a message, 64 bytes, little-endian:
//
//      0  4  "LACF"
//      4  2  version
//      6  2  step
//      8  8  session
//     16  8  identity
//     24  8  round
//     32  4  phase
//     36  4  sender
//     40  4  receiver, 0xffffffff for any
//     44  8  length of the body
//     52  8  XXH3 (64 bits) of the body, or 0 where the transport is intact
//     60  4  low half of XXH3 of bytes 0 to 59
//
// Magic and version keep their place in every later version. The header has its
// own hash, so that an error message names a field only if it has the value
// that the sender wrote.
#include "collective/frame.h"

#include <inttypes.h>
#include <string.h>

#include <xxhash.h>

#include <laconic/transport.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "kernels/hash.h"

enum {
    VERSION_AT = 4,
    STEP_AT = 6,
    SESSION_AT = 8,
    IDENTITY_AT = 16,
    ROUND_AT = 24,
    PHASE_AT = 32,
    SENDER_AT = 36,
    RECEIVER_AT = 40,
    LENGTH_AT = 44,
    BODY_HASH_AT = 52,
    HEADER_HASH_AT = 60,
};

static const uint8_t magic[4] = {'L', 'A', 'C', 'F'};

static uint64_t body_hash(const uint8_t *message, size_t len)
{
    return laci_hash(message + LACI_FRAME_SIZE, len);
}

static uint32_t header_hash(const uint8_t *message)
{
    return (uint32_t)XXH3_64bits(message, HEADER_HASH_AT);
}

void laci_frame_write(const laci_frame *frame, uint8_t *message, size_t len)
{
    memcpy(message, magic, sizeof(magic));
    laci_put_u16(message + VERSION_AT, LACI_FRAME_VERSION);
    laci_put_u16(message + STEP_AT, frame->step);
    laci_put_u64(message + SESSION_AT, frame->session);
    laci_put_u64(message + IDENTITY_AT, frame->identity);
    laci_put_u64(message + ROUND_AT, frame->round);
    laci_put_u32(message + PHASE_AT, frame->phase);
    laci_put_u32(message + SENDER_AT, frame->sender);
    laci_put_u32(message + RECEIVER_AT, frame->receiver);
    laci_put_u64(message + LENGTH_AT, len);
    laci_put_u64(
        message + BODY_HASH_AT, frame->intact ? 0 : body_hash(message, len));
    laci_put_u32(message + HEADER_HASH_AT, header_hash(message));
}

// Checks that this is a complete, unaltered frame of our version.
static lac_status check_header(
    uint32_t sender, const uint8_t *message, size_t len)
{
    if (len < LACI_FRAME_SIZE) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "frame from worker %" PRIu32 ": %zu bytes, the header has %d",
            sender, len, LACI_FRAME_SIZE);
    }
    if (memcmp(message, magic, sizeof(magic)) != 0) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "frame from worker %" PRIu32 ": begins with %02x %02x %02x %02x, "
            "expected %02x %02x %02x %02x",
            sender, message[0], message[1], message[2], message[3], magic[0],
            magic[1], magic[2], magic[3]);
    }
    if (laci_get_u16(message + VERSION_AT) != LACI_FRAME_VERSION) {
        return lac_fail(
            LAC_ERR_PEER,
            "frame from worker %" PRIu32 ": version is %u, expected %d", sender,
            laci_get_u16(message + VERSION_AT), LACI_FRAME_VERSION);
    }
    if (laci_get_u32(message + HEADER_HASH_AT) != header_hash(message)) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "frame from worker %" PRIu32 ": the header was altered on the way",
            sender);
    }
    const uint64_t stated = laci_get_u64(message + LENGTH_AT);
    if (stated != len - LACI_FRAME_SIZE) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "frame from worker %" PRIu32 ": body has %zu bytes, its header "
            "states %" PRIu64,
            sender, len - LACI_FRAME_SIZE, stated);
    }
    return LAC_OK;
}

static lac_status differs(
    uint32_t sender, const char *what, uint64_t found, uint64_t expected)
{
    return lac_fail(
        LAC_ERR_PEER,
        "frame from worker %" PRIu32 ": %s is %" PRIu64 ", expected %" PRIu64,
        sender, what, found, expected);
}

// Checks that sender and receiver belong to one run with equal settings.
static lac_status check_run(const laci_frame *expected, const uint8_t *message)
{
    const uint64_t session = laci_get_u64(message + SESSION_AT);
    if (session != expected->session) {
        return lac_fail(
            LAC_ERR_PEER,
            "frame from worker %" PRIu32 ": session is %016" PRIx64
            ", expected %016" PRIx64,
            expected->sender, session, expected->session);
    }
    if (laci_get_u64(message + IDENTITY_AT) != expected->identity) {
        return lac_fail(
            LAC_ERR_PEER,
            "worker %" PRIu32
            " runs another layout, topology, algorithm, compressor or seed "
            "than worker %" PRIu32 ", or gives other tensors or dtypes",
            expected->sender, expected->receiver);
    }
    return LAC_OK;
}

// Checks that it is the next message from this sender.
static lac_status check_exchange(
    const laci_frame *expected, const uint8_t *message)
{
    const uint32_t from = expected->sender;
    const uint32_t sender = laci_get_u32(message + SENDER_AT);
    const uint32_t receiver = laci_get_u32(message + RECEIVER_AT);
    const uint64_t round = laci_get_u64(message + ROUND_AT);
    const uint32_t phase = laci_get_u32(message + PHASE_AT);
    const uint32_t step = laci_get_u16(message + STEP_AT);
    if (sender != expected->sender) {
        return differs(from, "sender", sender, expected->sender);
    }
    if (receiver != expected->receiver && receiver != LAC_RANK_ANY) {
        return differs(from, "receiver", receiver, expected->receiver);
    }
    if (round != expected->round) {
        return differs(from, "round", round, expected->round);
    }
    if (phase != expected->phase) {
        return differs(from, "phase", phase, expected->phase);
    }
    if (step != expected->step) {
        return differs(from, "step", step, expected->step);
    }
    return LAC_OK;
}

lac_status laci_frame_check(
    const laci_frame *expected, const uint8_t *message, size_t len,
    const uint8_t **body_out, size_t *body_len_out)
{
    LAC_TRY(check_header(expected->sender, message, len));
    LAC_TRY(check_run(expected, message));
    LAC_TRY(check_exchange(expected, message));
    const uint8_t *const body = message + LACI_FRAME_SIZE;
    const size_t body_len = len - LACI_FRAME_SIZE;
    if (!expected->intact &&
        laci_get_u64(message + BODY_HASH_AT) != body_hash(message, body_len)) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "frame from worker %" PRIu32 ": the body was altered on the way",
            expected->sender);
    }
    *body_out = body;
    *body_len_out = body_len;
    return LAC_OK;
}
