// SPDX-License-Identifier: MIT
// A worker that lies: one value in one of its messages is replaced by one that
// is not finite, and the frame is made again. Tests that include this are
// linked with --wrap=lac_transport_exchange.
#ifndef LACONIC_TESTS_LIAR_H
#define LACONIC_TESTS_LIAR_H

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/bytes.h"
#include "collective/frame.h"
#include "exchanges.h"
#include "kernels/hash.h"

enum {
    LIE_SENDS_MAX = 64,
    LIE_BYTES_MAX = 1 << 18, // of a message
    // Of a frame, see docs/format.md.
    LIE_BODY_HASH_AT = 52,
    LIE_HEADER_HASH_AT = 60,
};

// NaN, infinities, a signalling NaN, and NaN with all bits set: floats, and the
// upper halves of doubles.
static const uint32_t lie_values[][2] = {
    {0x7fc00000, 0x7ff80000}, {0x7f800000, 0x7ff00000},
    {0xff800000, 0xfff00000}, {0x7f800001, 0x7ff00001},
    {0xffffffff, 0xffffffff},
};
enum { LIE_VALUES = sizeof(lie_values) / sizeof(*lie_values) };

static struct {
    uint32_t rank;                // of the liar
    size_t message;               // among those that it counts
    size_t counted;               // so far
    uint8_t bytes[LIE_BYTES_MAX]; // peers read them until the liar leaves
} lie;

// The bytes of a value in the messages of this worker. 0: they do not count.
static _Thread_local size_t lie_size;

static inline bool lie_was_told(void)
{
    return lie.counted > lie.message;
}

// Replaces the value in the middle of the body.
static inline void tell_lie(lac_send *send)
{
    const size_t body = send->len - LACI_FRAME_SIZE;
    uint8_t *const value =
        lie.bytes + LACI_FRAME_SIZE + body / lie_size / 2 * lie_size;
    const uint32_t *const bits = lie_values[lie.message % LIE_VALUES];
    if (send->len > LIE_BYTES_MAX) {
        abort();
    }
    memcpy(lie.bytes, send->data, send->len);
    if (lie_size == sizeof(float)) {
        laci_put_u32(value, bits[0]);
    } else {
        laci_put_u64(value, (uint64_t)bits[1] << 32);
    }
    if (laci_get_u64(lie.bytes + LIE_BODY_HASH_AT) != 0) {
        laci_put_u64(
            lie.bytes + LIE_BODY_HASH_AT,
            laci_hash(lie.bytes + LACI_FRAME_SIZE, body));
    }
    laci_put_u32(
        lie.bytes + LIE_HEADER_HASH_AT,
        (uint32_t)XXH3_64bits(lie.bytes, LIE_HEADER_HASH_AT));
    send->data = lie.bytes;
}

static inline void lie_in_exchange(exchange *e)
{
    static _Thread_local lac_send sends[LIE_SENDS_MAX];
    if (e->rank != lie.rank || lie_size == 0) {
        return;
    }
    for (size_t i = 0; i < e->send_count && i < LIE_SENDS_MAX; i++) {
        sends[i] = e->sends[i];
        if (sends[i].len > LACI_FRAME_SIZE && lie.counted++ == lie.message) {
            tell_lie(&sends[i]);
        }
    }
    e->sends = sends;
}

// Worker `rank` will lie in this message.
static inline void prepare_lie(uint32_t rank, size_t message)
{
    before_exchange = lie_in_exchange;
    lie.rank = rank;
    lie.message = message;
    lie.counted = 0;
}

#endif
