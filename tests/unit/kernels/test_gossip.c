// SPDX-License-Identifier: MIT
// The arithmetic of gossip rounds: every set of kernels gives the same bits,
// for every size and alignment, in place too, and the values are right.
#include "kernels_test.h"

#include <math.h>
#include <string.h>

#include "kernels/gossip.h"

enum { VALUES = 300, SHIFTS = 8, ROOM = VALUES + SHIFTS, RESULTS = 9 };

static float x[ROOM], y[ROOM], z[ROOM], update[ROOM];

static int fill(void **state)
{
    (void)state;
    const lac_key key = {1, 2, LAC_SCOPE_SHARED};
    for (uint32_t i = 0; i < ROOM; i++) {
        x[i] = lac_key_normal(&key, i);
        y[i] = lac_key_normal(&key, i + 1000);
        z[i] = lac_key_normal(&key, i + 2000);
        update[i] = lac_key_normal(&key, i + 3000);
    }
    x[5] = INFINITY;
    x[7] = -0.0f;
    y[9] = 1e-42f;
    return 0;
}

// All that a set of kernels does with n values from `shift` on, one after the
// other in `out`.
static void run(
    const laci_gossip_kernels *k, size_t shift, size_t n,
    float out[RESULTS][ROOM])
{
    const float *const a = x + shift, *const b = y + shift;
    k->scale(0.3f, a, out[0] + shift, n);
    k->subtract(a, b, out[1] + shift, n);
    k->apply(a, NULL, out[2] + shift, n);
    k->apply(a, update + shift, out[3] + shift, n);
    k->pull(0.7f, a, z + shift, NULL, out[4] + shift, n);
    k->pull(0.7f, a, z + shift, update + shift, out[5] + shift, n);
    k->combine(0.3f, a, -1.5f, b, NULL, out[6] + shift, n);
    k->combine(0.3f, a, -1.5f, b, update + shift, out[7] + shift, n);
    memcpy(out[8], z, sizeof(out[8]));
    float *const place = out[8] + shift;
    k->scale(0.5f, place, place, n);
    k->subtract(place, b, place, n);
    k->apply(place, NULL, place, n);
    k->apply(place, update + shift, place, n);
    k->pull(0.7f, a, place, b, place, n);
}

static void fast_equals_portable(void **state)
{
    (void)state;
    static float left[RESULTS][ROOM], right[RESULTS][ROOM];
    const laci_kernels *const fast = fast_or_skip();
    for (size_t n = 0; n <= VALUES; n++) {
        memset(left, 0, sizeof(left));
        memset(right, 0, sizeof(right));
        run(fast->gossip, n % SHIFTS, n, left);
        run(&laci_gossip_portable, n % SHIFTS, n, right);
        assert_memory_equal(left, right, sizeof(left));
    }
}

// One rounding an operation, so the expected floats are exact.
static void values_are_right(void **state)
{
    (void)state;
    static float out[RESULTS][ROOM];
    run(laci_kernels_best()->gossip, 0, VALUES, out);
    for (size_t i = 0; i < VALUES; i++) {
        const float away = x[i] - y[i];
        const float combined = 0.3f * x[i] + -1.5f * y[i];
        const float pulled = z[i] + 0.7f * x[i];
        assert_true(out[0][i] == 0.3f * x[i]);
        assert_true(out[1][i] == away);
        assert_true(out[2][i] == x[i]);
        assert_true(out[3][i] == x[i] + update[i]);
        assert_true(out[4][i] == pulled);
        assert_true(out[5][i] == pulled + update[i]);
        assert_true(out[6][i] == combined);
        assert_true(out[7][i] == combined + update[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fast_equals_portable),
        cmocka_unit_test(values_are_right),
    };
    return cmocka_run_group_tests_name("gossip", tests, fill, NULL);
}
