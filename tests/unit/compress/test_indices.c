// SPDX-License-Identifier: MIT
// The code for indices: bytes of each mode, the bound, and what is refused.
#include "lac_test.h"

#include <stdio.h>
#include <string.h>

#include "compress/indices.h"
#include "kernels/kernels.h"

enum { MOST = 4096, CAP = 4 * MOST + 64 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint8_t payload[CAP];

static lac_status get(
    const uint8_t *in, size_t len, size_t k, size_t n, uint32_t *indices_out,
    size_t *used_out)
{
    return laci_indices_get(
        "x", laci_kernels_best(), in, len, (laci_subset){k, n}, indices_out,
        used_out);
}

// Codes the indices, reads them back and returns the length of the code.
static size_t pass(const uint32_t *indices, size_t k, size_t n)
{
    static uint32_t back[MOST];
    const size_t bound = laci_indices_bound(n, k);
    memset(payload, 0x5a, sizeof(payload));
    const size_t len = laci_indices_put(
        laci_kernels_best(), indices, (laci_subset){k, n}, NULL, payload);
    assert_true(len <= bound);
    assert_int_equal(payload[len], 0x5a);
    size_t used = 0;
    assert_ok(get(payload, CAP, k, n, back, &used));
    assert_int_equal(used, len);
    assert_memory_equal(back, indices, k * sizeof(*indices));
    used = 0;
    assert_ok(get(payload, len, k, n, back, &used));
    assert_memory_equal(back, indices, k * sizeof(*indices));
    for (size_t cut = 0; cut < len && cut < 64; cut++) {
        assert_status(
            get(payload, len - 1 - cut, k, n, back, &used), LAC_ERR_CORRUPT);
    }
    return len;
}

static void assert_refused(
    const uint8_t *in, size_t len, size_t k, size_t n, const char *message)
{
    uint32_t indices[16];
    size_t used;
    assert_fails(get(in, len, k, n, indices, &used), LAC_ERR_CORRUPT, message);
}

static void all_indices_take_no_bytes(void **state)
{
    (void)state;
    const uint32_t indices[] = {0, 1, 2, 3};
    assert_int_equal(laci_indices_bound(4, 4), 0);
    assert_int_equal(pass(indices, 4, 4), 0);
    assert_int_equal(pass(indices, 1, 1), 0);
}

// Gaps 3, 0 and 9 with b = 2 are the bits 1 11, 1 00 and 001 10.
static void gaps_are_as_documented(void **state)
{
    (void)state;
    const uint32_t indices[] = {3, 4, 14};
    const uint8_t expected[] = {1, 2, 0x0f, 0x03};
    assert_int_equal(pass(indices, 3, 100), sizeof(expected));
    assert_memory_equal(payload, expected, sizeof(expected));
}

static void a_bitmap_is_as_documented(void **state)
{
    (void)state;
    const uint32_t indices[] = {0, 2, 4, 7, 8, 11};
    const uint8_t expected[] = {2, 0x95, 0x09};
    assert_int_equal(pass(indices, 6, 12), sizeof(expected));
    assert_memory_equal(payload, expected, sizeof(expected));
}

// One index far away: a gap code needs 30 low bits and a parameter.
static void a_list_is_as_documented(void **state)
{
    (void)state;
    const uint32_t indices[] = {0xfedcba98};
    const uint8_t expected[] = {0, 0x98, 0xba, 0xdc, 0xfe};
    assert_int_equal(pass(indices, 1, UINT32_MAX), sizeof(expected));
    assert_memory_equal(payload, expected, sizeof(expected));
}

// 22 bits of gap make the 5 bytes of a list, 2 bits the 3 bytes of a bitmap.
static void of_equal_lengths_the_first_mode_is_taken(void **state)
{
    (void)state;
    const uint32_t far[] = {1u << 20}, close[] = {0, 1};
    assert_int_equal(pass(far, 1, 1u << 24), 5);
    assert_int_equal(payload[0], 0);
    assert_int_equal(pass(close, 2, 16), 3);
    assert_int_equal(payload[0], 1);
}

static void long_runs_of_zeros_survive(void **state)
{
    (void)state;
    uint32_t indices[200];
    for (uint32_t i = 0; i < COUNT(indices); i++) {
        indices[i] = i;
    }
    for (uint32_t last = 300; last < 2000; last++) {
        indices[COUNT(indices) - 1] = last;
        pass(indices, COUNT(indices), 100000);
        assert_int_equal(payload[0], 1);
    }
}

static void any_indices_survive(void **state)
{
    (void)state;
    static uint32_t indices[MOST];
    const lac_key key =
        lac_key_make(2, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    for (uint32_t trial = 0; trial < 600; trial++) {
        const uint32_t n = 1 + lac_key_draw(&key, trial << 16) % MOST;
        const uint32_t part = 1 + lac_key_draw(&key, trial << 16 | 1) % 300;
        size_t k = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (lac_key_draw(&key, trial << 16 | (i + 2)) % part == 0) {
                indices[k++] = i;
            }
        }
        if (k > 0) {
            pass(indices, k, n);
        }
    }
}

// One in `part` of the values below `dense`, but now and then none for a while.
static size_t spread(uint32_t part, uint32_t dense, uint32_t *indices)
{
    const lac_key key =
        lac_key_make(part, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    size_t k = 0;
    for (uint32_t i = 0; i < dense; i++) {
        if (i / 1000 % 97 != 50 && lac_key_draw(&key, i) % part == 0) {
            indices[k++] = i;
        }
    }
    return k;
}

// How many codes lie in the first bits of those of the indices.
static size_t whole_codes(const uint32_t *indices, unsigned b, size_t bits)
{
    size_t i = 0, used = (indices[0] >> b) + 1 + b;
    while (used <= bits) {
        i++;
        used += ((indices[i] - indices[i - 1] - 1) >> b) + 1 + b;
    }
    return i;
}

// Short codes are read by a table when they are many. A parameter of 0 needs
// an empty end.
static void many_indices_survive(void **state)
{
    (void)state;
    enum { LARGE = 1000000 };
    static uint32_t indices[LARGE], back[LARGE];
    static uint8_t out[LARGE];
    static const uint32_t parts[] = {2, 3, 6, 11};
    for (uint32_t b = 0; b < COUNT(parts); b++) {
        const size_t n = LARGE, k = spread(parts[b], LARGE / 10 * 9, indices);
        size_t used = 0;
        const size_t len = laci_indices_put(
            laci_kernels_best(), indices, (laci_subset){k, n}, NULL, out);
        assert_true(k > 70000 && len <= laci_indices_bound(n, k));
        assert_int_equal(out[0], 1);
        assert_int_equal(out[1], b);
        assert_ok(get(out, len, k, n, back, &used));
        assert_int_equal(used, len);
        assert_memory_equal(back, indices, k * sizeof(*indices));
        assert_ok(get(out, len, k, indices[k - 1] + 1, back, &used));
        for (size_t i = 1; i < k; i += k / 7) {
            assert_status(
                get(out, len, k, indices[i], back, &used), LAC_ERR_CORRUPT);
        }
        for (size_t cut = 1; cut < len - 2; cut += len / 53) {
            char message[80];
            (void)snprintf(
                message, sizeof(message),
                "x: payload ends after %zu indices, expected %zu",
                whole_codes(indices, b, 8 * (len - 2 - cut)), k);
            assert_fails(
                get(out, len - cut, k, n, back, &used), LAC_ERR_CORRUPT,
                message);
        }
    }
}

// Indices spread at random have an entropy of n H(k/n) bits; a Rice code is
// known to stay within 4 % of it, plus half a bit at high densities.
static void the_code_is_near_the_entropy(void **state)
{
    (void)state;
    static uint32_t indices[MOST];
    const lac_key key =
        lac_key_make(3, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    size_t k = 0;
    for (uint32_t i = 0; i < 100 * 2000; i++) {
        if (lac_key_draw(&key, i) < UINT32_MAX / 100) {
            indices[k++] = i;
        }
    }
    assert_between(k, 1800, 2200);
    const double entropy = 200000 * 0.0808 / 8 * (double)k / 2000;
    const size_t len = pass(indices, k, 200000);
    assert_true((double)len < 1.05 * entropy);
}

static void the_bound_is_the_cheapest_worst_case(void **state)
{
    (void)state;
    assert_int_equal(laci_indices_bound(1000, 1), 2 + 2); // b = 9: 11 bits
    assert_int_equal(laci_indices_bound(UINT32_MAX, 1), 1 + 4);
    assert_int_equal(laci_indices_bound(1000, 999), 1 + 125);
    // b = 6: 255570 * 7 + (25301462 >> 6) = 2184325 bits
    assert_int_equal(laci_indices_bound(25557032, 255570), 2 + 273041);
}

static void bad_modes_and_lengths_are_refused(void **state)
{
    (void)state;
    const uint8_t mode[] = {3};
    const uint8_t list[] = {0, 1, 0, 0, 0, 2, 0, 0};
    const uint8_t bitmap[] = {2, 1};
    const uint8_t gaps[] = {1};
    assert_refused(
        mode, 1, 2, 9, "x: mode of the indices is 3, expected 0 to 2");
    assert_refused(
        mode, 0, 2, 9,
        "x: payload has 0 bytes, expected at least 1 for the indices");
    assert_refused(
        list, 8, 2, 9,
        "x: payload has 8 bytes, expected at least 9 for the indices");
    assert_refused(
        bitmap, 2, 2, 9,
        "x: payload has 2 bytes, expected at least 3 for the indices");
    assert_refused(
        gaps, 1, 2, 9,
        "x: payload has 1 bytes, expected at least 2 for the indices");
}

static void bad_lists_are_refused(void **state)
{
    (void)state;
    const uint8_t range[] = {0, 1, 0, 0, 0, 9, 0, 0, 0};
    const uint8_t order[] = {0, 5, 0, 0, 0, 5, 0, 0, 0};
    assert_refused(range, 9, 2, 9, "x: an index is 9, expected below 9");
    assert_refused(
        order, 9, 2, 9, "x: index 5 follows index 5, expected them ascending");
}

static void bad_bitmaps_are_refused(void **state)
{
    (void)state;
    const uint8_t few[] = {2, 0x10, 0};
    const uint8_t many[] = {2, 0xf0, 1};
    const uint8_t padding[] = {2, 0x10, 2};
    assert_refused(few, 3, 2, 9, "x: bitmap has 1 indices, expected 2");
    assert_refused(many, 3, 2, 9, "x: bitmap has 5 indices, expected 2");
    assert_refused(padding, 3, 2, 9, "x: padding of the indices is not zero");
}

static void bad_gaps_are_refused(void **state)
{
    (void)state;
    const uint8_t parameter[] = {1, 32, 1};
    const uint8_t range[] = {1, 0, 0x80, 0x02};
    const uint8_t far[] = {1,    31,   0xff, 0xff, 0xff, 0xff,
                           0xff, 0xff, 0xff, 0xff, 0xff};
    const uint8_t ends[] = {1, 0, 0x01};
    const uint8_t low_bits[] = {1, 9, 0x01};
    const uint8_t padding[] = {1, 0, 0x07};
    assert_refused(
        parameter, 3, 2, 9,
        "x: parameter of the gaps is 32, expected at most 31");
    assert_refused(range, 4, 2, 9, "x: an index is 9, expected below 9");
    assert_refused(
        far, 11, 2, 9, "x: an index is 2147483647, expected below 9");
    assert_refused(
        ends, 3, 2, 9, "x: payload ends after 1 indices, expected 2");
    assert_refused(
        low_bits, 3, 2, 9, "x: payload ends after 0 indices, expected 2");
    assert_refused(padding, 3, 2, 9, "x: padding of the indices is not zero");
}

static void endless_zeros_are_refused(void **state)
{
    (void)state;
    memset(payload, 0, sizeof(payload));
    payload[0] = 1;
    assert_refused(
        payload, CAP, 2, 9, "x: payload ends after 0 indices, expected 2");
    payload[CAP - 1] = 0x80;
    payload[1] = 31;
    assert_status(
        get(payload, CAP, 2, 9, (uint32_t[2]){0}, &(size_t){0}),
        LAC_ERR_CORRUPT);
}

// Whatever the bytes, what is read is valid or nothing.
static void noise_gives_valid_indices_or_none(void **state)
{
    (void)state;
    const lac_key key =
        lac_key_make(4, LAC_PURPOSE_DATA, 0, lac_scope_shared(), 0);
    for (uint32_t trial = 0; trial < 20000; trial++) {
        uint8_t in[24];
        uint32_t indices[8];
        for (uint32_t i = 0; i < sizeof(in); i++) {
            in[i] = (uint8_t)lac_key_draw(&key, 32 * trial + i);
        }
        in[0] %= 3;
        in[1] %= 8;
        const size_t len = trial % (sizeof(in) + 1), n = 9 + trial % 120;
        size_t used = 0;
        if (get(in, len, 8, n, indices, &used) != LAC_OK) {
            continue;
        }
        assert_true(used <= len);
        assert_true(indices[7] < n);
        for (size_t i = 1; i < 8; i++) {
            assert_true(indices[i] > indices[i - 1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_indices_take_no_bytes),
        cmocka_unit_test(gaps_are_as_documented),
        cmocka_unit_test(a_bitmap_is_as_documented),
        cmocka_unit_test(a_list_is_as_documented),
        cmocka_unit_test(of_equal_lengths_the_first_mode_is_taken),
        cmocka_unit_test(long_runs_of_zeros_survive),
        cmocka_unit_test(any_indices_survive),
        cmocka_unit_test(many_indices_survive),
        cmocka_unit_test(the_code_is_near_the_entropy),
        cmocka_unit_test(the_bound_is_the_cheapest_worst_case),
        cmocka_unit_test(bad_modes_and_lengths_are_refused),
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(bad_bitmaps_are_refused),
        cmocka_unit_test(bad_gaps_are_refused),
        cmocka_unit_test(endless_zeros_are_refused),
        cmocka_unit_test(noise_gives_valid_indices_or_none),
    };
    return cmocka_run_group_tests_name("compress/indices", tests, NULL, NULL);
}
