// SPDX-License-Identifier: MIT
// Frames: the bytes of a header, and the message of each refusal.
#include "lac_test.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include <laconic/transport.h>

#include "base/bytes.h"
#include "collective/frame.h"

enum { BODY = 37, MESSAGE = LACI_FRAME_SIZE + BODY };

// The one that worker 5 expects from worker 3.
static const laci_frame frame = {
    .session = 0x1112131415161718,
    .identity = 0x2122232425262728,
    .round = 6,
    .phase = 2,
    .sender = 3,
    .receiver = 5,
    .step = 9,
};

static void write_message(const laci_frame *as, uint8_t message[MESSAGE])
{
    for (int i = 0; i < BODY; i++) {
        message[LACI_FRAME_SIZE + i] = (uint8_t)(i * 7 + 1);
    }
    laci_frame_write(as, message, BODY);
}

// Checks bytes from a block of their size, so that a sanitizer sees a read
// beyond; a failure must leave the outputs alone.
static lac_status check_bytes(const uint8_t *bytes, size_t len)
{
    uint8_t *const copy = malloc(len + (len == 0));
    assert_non_null(copy);
    memcpy(copy, bytes, len);
    const uint8_t *body = NULL;
    size_t body_len = SIZE_MAX;
    const lac_status status =
        laci_frame_check(&frame, copy, len, &body, &body_len);
    if (status == LAC_OK) {
        assert_ptr_equal(body, copy + LACI_FRAME_SIZE);
        assert_int_equal(body_len, len - LACI_FRAME_SIZE);
    } else {
        assert_null(body);
        assert_true(body_len == SIZE_MAX);
    }
    free(copy);
    return status;
}

// Returns the result of the check of a message framed as `as`.
static lac_status check_as(const laci_frame *as)
{
    uint8_t message[MESSAGE];
    write_message(as, message);
    return check_bytes(message, MESSAGE);
}

// A frame that was not meant for the receiver, or not for now.
static void assert_astray(const laci_frame *other, const char *text)
{
    assert_fails(check_as(other), LAC_ERR_PEER, text);
}

static void headers_have_these_bytes(void **state)
{
    (void)state;
    static const uint8_t golden[LACI_FRAME_SIZE] = {
        'L',  'A',  'C',  'F',                          // magic
        0x01, 0x00,                                     // version
        0x09, 0x00,                                     // step
        0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11, // session
        0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21, // identity
        0x06, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // round
        0x02, 0x00, 0x00, 0x00,                         // phase
        0x03, 0x00, 0x00, 0x00,                         // sender
        0x05, 0x00, 0x00, 0x00,                         // receiver
        0x25, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, // length
        0xdb, 0x57, 0xba, 0x94, 0x3f, 0xd2, 0x03, 0x3c, // XXH3 of the body
        0x09, 0x7e, 0x12, 0x2c,                         // XXH3 of the header
    };
    uint8_t message[MESSAGE];
    write_message(&frame, message);
    assert_memory_equal(message, golden, LACI_FRAME_SIZE);
}

static void a_frame_is_read_as_it_was_written(void **state)
{
    (void)state;
    uint8_t message[MESSAGE];
    write_message(&frame, message);
    assert_ok(check_bytes(message, MESSAGE));
    laci_frame_write(&frame, message, 0);
    assert_ok(check_bytes(message, LACI_FRAME_SIZE));
}

static void a_frame_for_anyone_is_good_for_all(void **state)
{
    (void)state;
    laci_frame other = frame;
    other.receiver = LAC_RANK_ANY;
    assert_ok(check_as(&other));
}

static void every_altered_byte_is_refused(void **state)
{
    (void)state;
    uint8_t message[MESSAGE];
    write_message(&frame, message);
    for (size_t i = 0; i < MESSAGE; i++) {
        for (unsigned change = 1; change < 256; change++) {
            message[i] ^= (uint8_t)change;
            const lac_status status = check_bytes(message, MESSAGE);
            message[i] ^= (uint8_t)change;
            // Only the version may be another one on purpose.
            const bool version = i == 4 || i == 5;
            assert_int_equal(status, version ? LAC_ERR_PEER : LAC_ERR_CORRUPT);
        }
    }
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    uint8_t message[MESSAGE + 1] = {0};
    write_message(&frame, message);
    for (size_t len = 0; len < MESSAGE; len++) {
        assert_status(check_bytes(message, len), LAC_ERR_CORRUPT);
    }
    assert_fails(
        check_bytes(message, 12), LAC_ERR_CORRUPT,
        "frame from worker 3: 12 bytes, the header has 64");
    assert_fails(
        check_bytes(message, MESSAGE - 1), LAC_ERR_CORRUPT,
        "frame from worker 3: body has 36 bytes, its header states 37");
    assert_fails(
        check_bytes(message, MESSAGE + 1), LAC_ERR_CORRUPT,
        "frame from worker 3: body has 38 bytes, its header states 37");
}

// The body of a message that the transport delivers as it was sent.
static void an_intact_body_is_not_hashed(void **state)
{
    (void)state;
    uint8_t message[MESSAGE];
    laci_frame intact = frame;
    const uint8_t *body;
    size_t len;
    intact.intact = true;
    write_message(&intact, message);
    for (size_t i = 52; i < 60; i++) {
        assert_int_equal(message[i], 0);
    }
    message[MESSAGE - 1] ^= 0x10;
    assert_ok(laci_frame_check(&intact, message, MESSAGE, &body, &len));
    assert_fails(
        check_bytes(message, MESSAGE), LAC_ERR_CORRUPT,
        "frame from worker 3: the body was altered on the way");
    message[24] ^= 1;
    assert_fails(
        laci_frame_check(&intact, message, MESSAGE, &body, &len),
        LAC_ERR_CORRUPT,
        "frame from worker 3: the header was altered on the way");
}

static void damage_is_located(void **state)
{
    (void)state;
    uint8_t message[MESSAGE];
    write_message(&frame, message);
    message[MESSAGE - 1] ^= 0x10;
    assert_fails(
        check_bytes(message, MESSAGE), LAC_ERR_CORRUPT,
        "frame from worker 3: the body was altered on the way");
    message[24] ^= 1; // the round: not believed, since the hash disagrees
    assert_fails(
        check_bytes(message, MESSAGE), LAC_ERR_CORRUPT,
        "frame from worker 3: the header was altered on the way");
    message[4] = 2;
    assert_fails(
        check_bytes(message, MESSAGE), LAC_ERR_PEER,
        "frame from worker 3: version is 2, expected 1");
    message[0] = 'l';
    assert_fails(
        check_bytes(message, MESSAGE), LAC_ERR_CORRUPT,
        "frame from worker 3: begins with 6c 41 43 46, expected 4c 41 43 46");
}

static void another_run_is_named(void **state)
{
    (void)state;
    laci_frame other = frame;
    other.session = 1;
    assert_astray(
        &other, "frame from worker 3: session is 0000000000000001, expected "
                "1112131415161718");
    other = frame;
    other.identity++;
    assert_astray(
        &other,
        "worker 3 runs another layout, topology, algorithm, compressor or seed "
        "than worker 5, or gives other tensors or dtypes");
}

static void another_moment_is_named(void **state)
{
    (void)state;
    laci_frame other = frame;
    other.sender = 4;
    assert_astray(&other, "frame from worker 3: sender is 4, expected 3");
    other = frame;
    other.receiver = 6;
    assert_astray(&other, "frame from worker 3: receiver is 6, expected 5");
    other = frame;
    other.round = 7;
    assert_astray(&other, "frame from worker 3: round is 7, expected 6");
    other = frame;
    other.phase = 1;
    assert_astray(&other, "frame from worker 3: phase is 1, expected 2");
    other = frame;
    other.step = 8;
    assert_astray(&other, "frame from worker 3: step is 8, expected 9");
}

// Whichever implementation of the hash this processor runs.
static void bodies_have_the_hash_of_the_format(void **state)
{
    (void)state;
    enum { HASH_AT = 52 };
    static const size_t lengths[] = {0, 1, 16, 240, 241, 1024, 1025, 100003};
    static uint8_t message[LACI_FRAME_SIZE + 100003];
    uint8_t *const body = message + LACI_FRAME_SIZE;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        memset(body, (int)i + 1, lengths[i]);
        laci_frame_write(&frame, message, lengths[i]);
        assert_true(
            laci_get_u64(message + HASH_AT) == XXH3_64bits(body, lengths[i]));
        assert_ok(check_bytes(message, LACI_FRAME_SIZE + lengths[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_have_these_bytes),
        cmocka_unit_test(bodies_have_the_hash_of_the_format),
        cmocka_unit_test(a_frame_is_read_as_it_was_written),
        cmocka_unit_test(a_frame_for_anyone_is_good_for_all),
        cmocka_unit_test(every_altered_byte_is_refused),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(an_intact_body_is_not_hashed),
        cmocka_unit_test(damage_is_located),
        cmocka_unit_test(another_run_is_named),
        cmocka_unit_test(another_moment_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
