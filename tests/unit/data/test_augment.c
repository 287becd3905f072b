// SPDX-License-Identifier: MIT
// Crop and flip move pixels and change none.
#include <stdbool.h>

#include "data/augment.h"
#include "lac_test.h"

enum { SIDE = 12, CHANNELS = 2, AREA = SIDE * SIDE };

static const data_info info = {
    .channels = CHANNELS, .height = SIDE, .width = SIDE, .blank = {-1, -2}};

// Whether `out` is `in` shifted by (down, right), mirrored or not.
static bool is_moved(
    const float *in, const float *out, int down, int right, bool mirrored)
{
    for (int i = 0; i < CHANNELS * AREA; i++) {
        const int c = i / AREA, y = i % AREA / SIDE + down;
        const int x = i % SIDE;
        const int from = (mirrored ? SIDE - 1 - x : x) + right;
        const bool inside = y >= 0 && y < SIDE && from >= 0 && from < SIDE;
        const float expected =
            inside ? in[c * AREA + y * SIDE + from] : info.blank[c];
        if (out[i] != expected) {
            return false;
        }
    }
    return true;
}

// Of 81 places, each mirrored or not, n = 8100 draws take one 50 times on the
// average, with a deviation of 7; six of them are allowed for 162 counts.
static void all_places_are_equally_likely(void **state)
{
    enum { DRAWS = 8100 };
    static int counts[2][9][9];
    float in[CHANNELS * AREA], out[CHANNELS * AREA];
    (void)state;
    for (int i = 0; i < CHANNELS * AREA; i++) {
        in[i] = (float)i;
    }
    const lac_key key = data_augment_key(1, 2);
    for (uint32_t example = 0; example < DRAWS; example++) {
        int found = 0;
        data_augment(&info, &key, example, in, out);
        for (int k = 0; k < 162; k++) {
            const int m = k / 81, down = k / 9 % 9, right = k % 9;
            // The middle pixel differs for most offsets, which saves time.
            const int x = m ? SIDE - 1 - SIDE / 2 : SIDE / 2;
            const int at = (SIDE / 2 + down - 4) * SIDE + x + right - 4;
            if (out[SIDE / 2 * SIDE + SIDE / 2] == in[at] &&
                is_moved(in, out, down - 4, right - 4, m == 1)) {
                counts[m][down][right]++;
                found++;
            }
        }
        assert_int_equal(found, 1);
    }
    for (int k = 0; k < 162; k++) {
        assert_between(counts[k / 81][k / 9 % 9][k % 9], 8, 92);
    }
}

static void key_and_example_decide(void **state)
{
    float in[CHANNELS * AREA], a[CHANNELS * AREA], b[CHANNELS * AREA];
    (void)state;
    for (int i = 0; i < CHANNELS * AREA; i++) {
        in[i] = (float)i;
    }
    const lac_key key = data_augment_key(1, 2), later = data_augment_key(1, 3);
    data_augment(&info, &key, 7, in, a);
    data_augment(&info, &key, 7, in, b);
    assert_memory_equal(a, b, sizeof(a));
    data_augment(&info, &later, 7, in, b);
    assert_memory_not_equal(a, b, sizeof(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_places_are_equally_likely),
        cmocka_unit_test(key_and_example_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
