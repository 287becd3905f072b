// SPDX-License-Identifier: MIT
// Small integers: every set of kernels gives the same bits, for every size and
// alignment, and no integer exceeds its levels.
#include "kernels_test.h"

#include <string.h>

#include "kernels/integer.h"

enum { VALUES = 300, SHIFTS = 8, ROOM = VALUES + SHIFTS, LEVELS = 31 };

static const lac_key key = {1, 2, LAC_SCOPE_SHARED};

// The integers and floats that a set of kernels makes of the values from
// `shift` on.
typedef struct made {
    int8_t bytes[2][ROOM];
    int16_t words[2][ROOM];
    float decoded[2][ROOM], rest[2][ROOM];
} made;

static void run(
    const laci_integer_kernels *k, const float *x, size_t shift, size_t n,
    made *out)
{
    const laci_integers small = {1, LEVELS, 2.5f}, large = {2, 10922, 2.5f};
    const laci_stream stream = laci_stream_of(&key);
    const double scale = 2.5 / LEVELS;
    for (int drawn = 0; drawn < 2; drawn++) {
        const laci_stream *const draws = drawn ? &stream : NULL;
        int8_t *const bytes = out->bytes[drawn] + shift;
        int16_t *const words = out->words[drawn] + shift;
        k->encode(&small, draws, 1000, x + shift, bytes, n);
        k->encode(&large, draws, 1000, x + shift, words, n);
        k->decode(&small, scale, bytes, out->decoded[0] + shift, n);
        k->decode(&large, scale, words, out->decoded[1] + shift, n);
        memcpy(out->rest[0], x, sizeof(out->rest[0]));
        memcpy(out->rest[1], x, sizeof(out->rest[1]));
        k->subtract(&small, scale, bytes, out->rest[0] + shift, n);
        k->subtract(&large, scale, words, out->rest[1] + shift, n);
    }
}

static void every_set_equals_portable(void **state)
{
    (void)state;
    static made left, right;
    const laci_kernels *const fast = fast_or_skip();
    float x[ROOM];
    for (uint32_t i = 0; i < ROOM; i++) {
        x[i] = lac_key_normal(&key, i); // some exceed 2.5
    }
    x[5] = 0;
    x[6] = -2.5f;
    x[7] = 2.5f;
    x[9] = -1e-42f;
    for (size_t n = 0; n <= VALUES; n++) {
        memset(&left, 0, sizeof(left));
        memset(&right, 0, sizeof(right));
        run(fast->integer, x, n % SHIFTS, n, &left);
        run(&laci_integer_portable, x, n % SHIFTS, n, &right);
        assert_memory_equal(&left, &right, sizeof(left));
    }
}

// A scale that a peer made smaller, huge values and zeros stay in range.
static void integers_stay_within_their_levels(void **state)
{
    (void)state;
    const float x[] = {3e38f, -3e38f, 1, -1, 0, 1e-45f, 2, -2};
    const float scales[] = {0, 1e-45f, 0.5f, 3e38f};
    const laci_stream stream = laci_stream_of(&key);
    for (size_t k = 0; k < 4; k++) {
        const laci_integers type = {1, LEVELS, scales[k]};
        int8_t q[8];
        laci_kernels_best()->integer->encode(
            &type, k % 2 == 0 ? NULL : &stream, 0, x, q, 8);
        for (size_t i = 0; i < 8; i++) {
            assert_true(q[i] >= -LEVELS && q[i] <= LEVELS);
            assert_true(scales[k] != 0 || q[i] == 0);
        }
        assert_true(scales[k] == 0 || (q[0] == LEVELS && q[1] == -LEVELS));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_equals_portable),
        cmocka_unit_test(integers_stay_within_their_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
