// SPDX-License-Identifier: MIT
// Sums of small integers and the largest of floats: small, by shares, and in
// pieces sent ahead. The linker lets the local transport ask for pieces.
#include "groups.h"

#include "pieces.h"

enum {
    PIECE = 32 * 1024, // bytes
    VALUES_MAX = 4 * PIECE + 100,
};

static const size_t sizes[] = {0, 1, 1000, 16385, PIECE + 1, VALUES_MAX};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static size_t count;
static int16_t words[WORKERS_MAX][VALUES_MAX];
static int8_t bytes[WORKERS_MAX][VALUES_MAX];
static float floats[WORKERS_MAX][VALUES_MAX];

// Between -15 and 15, so that eight of them fit in a byte.
static int value_of(uint32_t rank, size_t i)
{
    const uint32_t mix = (uint32_t)i * 2654435761u + rank * 40503u;
    return (int)(mix >> 7) % 31 - 15;
}

static int sum_of(uint32_t world, size_t i)
{
    int sum = 0;
    for (uint32_t k = 0; k < world; k++) {
        sum += value_of(k, i);
    }
    return sum;
}

static lac_status sum_rows(test_worker *w)
{
    const uint64_t once = w->world > 1;
    for (size_t i = 0; i < count; i++) {
        bytes[w->rank][i] = (int8_t)value_of(w->rank, i);
        words[w->rank][i] = (int16_t)(100 * value_of(w->rank, i));
    }
    LAC_TRY(laci_group_sum_numbers(
        w->group, 4, 0, &laci_number_i8, bytes[w->rank], count));
    EXPECT(laci_group_counts(w->group)->payload == once * count);
    LAC_TRY(laci_group_sum_numbers(
        w->group, 4, 1, &laci_number_i16, words[w->rank], count));
    EXPECT(laci_group_counts(w->group)->payload == once * 3 * count);
    for (size_t i = 0; i < count; i++) {
        EXPECT(bytes[w->rank][i] == sum_of(w->world, i));
        EXPECT(words[w->rank][i] == 100 * sum_of(w->world, i));
    }
    return LAC_OK;
}

static lac_status max_rows(test_worker *w)
{
    float *const x = floats[w->rank];
    const size_t n = count == 0 ? 0 : count - 1;
    for (size_t i = 0; i < count; i++) {
        x[i] = (float)(value_of(w->rank, i) + 15);
    }
    LAC_TRY(laci_group_max(w->group, 4, 0, x, n, count - n));
    EXPECT(laci_group_counts(w->group)->payload == (w->world > 1 ? 4 * n : 0));
    for (size_t i = 0; i < count; i++) {
        int most = 0;
        for (uint32_t k = 0; k < w->world; k++) {
            const int value = value_of(k, i) + 15;
            most = value > most ? value : most;
        }
        EXPECT(x[i] == (float)most);
    }
    return LAC_OK;
}

static void run_everywhere(worker_body *body)
{
    for (size_t k = 0; k < WORLD_COUNT; k++) {
        for (size_t i = 0; i < SIZES; i++) {
            count = sizes[i];
            for (asked = 0; asked <= PIECE; asked += PIECE) {
                run_all(worlds[k], body, NULL);
            }
        }
    }
}

static void sums_are_exact(void **state)
{
    (void)state;
    run_everywhere(sum_rows);
}

static void the_largest_is_found(void **state)
{
    (void)state;
    run_everywhere(max_rows);
}

// Bytes of a peer may have any value: sums wrap, and are the same everywhere.
static lac_status wrap_around(test_worker *w)
{
    int8_t x[2] = {INT8_MAX, INT8_MIN};
    int16_t y[2] = {INT16_MAX, INT16_MIN};
    LAC_TRY(laci_group_sum_numbers(w->group, 4, 0, &laci_number_i8, x, 2));
    LAC_TRY(laci_group_sum_numbers(w->group, 4, 1, &laci_number_i16, y, 2));
    EXPECT(x[0] == -2 && x[1] == 0 && y[0] == -2 && y[1] == 0);
    return LAC_OK;
}

static void sums_that_are_too_large_wrap(void **state)
{
    (void)state;
    asked = 0;
    run_all(2, wrap_around, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_exact),
        cmocka_unit_test(the_largest_is_found),
        cmocka_unit_test(sums_that_are_too_large_wrap),
    };
    return cmocka_run_group_tests_name("integers", tests, NULL, NULL);
}
