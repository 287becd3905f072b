// SPDX-License-Identifier: MIT
// Sums over threads: right, and the same bits on every worker.
#include "groups.h"

#include <math.h>
#include <stdlib.h>

#include "collective/frame.h"

// Below, at and above what goes by doubling, and more than one piece.
static const size_t sizes[] = {0, 1, 3, 1000, 4096, 4097, 20001, 600001};
enum { SIZE_COUNT = sizeof(sizes) / sizeof(sizes[0]), SIZE_MOST = 600001 };

// What all workers of a test write, each in its own row.
typedef struct table {
    float *rows[WORKERS_MAX];
    float (*value)(uint32_t rank, size_t i);
    size_t n;
} table;

static void table_init(table *t)
{
    *t = (table){0};
    for (int k = 0; k < WORKERS_MAX; k++) {
        t->rows[k] = calloc(SIZE_MOST, sizeof(float));
        assert_non_null(t->rows[k]);
    }
}

static void table_fini(const table *t)
{
    for (int k = 0; k < WORKERS_MAX; k++) {
        free(t->rows[k]);
    }
}

static lac_status sum_row(test_worker *w)
{
    const table *const t = w->context;
    float *const x = t->rows[w->rank];
    for (size_t i = 0; i < t->n; i++) {
        x[i] = t->value(w->rank, i);
    }
    LAC_TRY(laci_group_sum(w->group, 4, 1, t->n == 0 ? NULL : x, t->n, 0));
    const laci_counts *const counts = laci_group_counts(w->group);
    const uint64_t once = w->world > 1;
    EXPECT(counts->messages == once);
    EXPECT(counts->payload == once * 4 * t->n);
    EXPECT(counts->wire == once * (LACI_FRAME_SIZE + 4 * t->n));
    return LAC_OK;
}

// Sums of these are exact in any order.
static float whole(uint32_t rank, size_t i)
{
    return (float)((int)(i % 1000) - 500 + 1000 * (int)rank);
}

static void expect_whole(const table *t, uint32_t world, const float *sums)
{
    const int ranks = (int)(world * (world - 1) / 2);
    for (size_t i = 0; i < t->n; i++) {
        const int expected =
            (int)world * ((int)(i % 1000) - 500) + 1000 * ranks;
        if (sums[i] != (float)expected) {
            print_error(
                "world %u, n %zu, value %zu: %g, expected %d\n", world, t->n, i,
                (double)sums[i], expected);
            fail();
        }
    }
}

static void sums_of_whole_numbers_are_exact(void **state)
{
    (void)state;
    table t;
    table_init(&t);
    t.value = whole;
    for (size_t k = 0; k < (size_t)WORLD_COUNT * SIZE_COUNT; k++) {
        const uint32_t world = worlds[k / SIZE_COUNT];
        t.n = sizes[k % SIZE_COUNT];
        run_all(world, sum_row, &t);
        for (uint32_t rank = 0; rank < world; rank++) {
            expect_whole(&t, world, t.rows[rank]);
        }
    }
    table_fini(&t);
}

// Values of many magnitudes, so that another order gives other bits.
static float rough(uint32_t rank, size_t i)
{
    const uint32_t mix = (uint32_t)(i * 2654435761u) ^ (rank * 40503u);
    return ldexpf((float)(mix % 10007) - 5000, (int)(mix >> 13) % 20);
}

static void all_workers_get_the_same_bits(void **state)
{
    (void)state;
    table t;
    table_init(&t);
    t.value = rough;
    for (size_t k = 0; k < (size_t)WORLD_COUNT * SIZE_COUNT; k++) {
        const uint32_t world = worlds[k / SIZE_COUNT];
        t.n = sizes[k % SIZE_COUNT];
        run_all(world, sum_row, &t);
        for (uint32_t rank = 1; rank < world; rank++) {
            assert_memory_equal(t.rows[0], t.rows[rank], 4 * t.n);
        }
        for (size_t i = 0; i < t.n; i++) {
            double exact = 0;
            double magnitude = 0;
            for (uint32_t rank = 0; rank < world; rank++) {
                exact += (double)rough(rank, i);
                magnitude += fabs((double)rough(rank, i));
            }
            // Each of world - 1 additions rounds by at most 2^-24 of a sum
            // that is at most the sum of magnitudes (and a little more).
            const double bound = magnitude * (world - 1) * 0x1.01p-24;
            assert_true(fabs((double)t.rows[0][i] - exact) <= bound);
        }
    }
    table_fini(&t);
}

// NaN with other bits on every worker.
static float poisoned(uint32_t rank, size_t i)
{
    const uint32_t bits = 0x7fc00000u + 16 * rank + 1;
    float x;
    memcpy(&x, &bits, sizeof(x));
    return i % 3 == 0 ? x : i % 3 == 1 ? (rank == 0 ? INFINITY : 1) : 1;
}

static void divergence_looks_the_same_to_all(void **state)
{
    (void)state;
    table t;
    table_init(&t);
    t.value = poisoned;
    for (size_t k = 1; k < WORLD_COUNT; k++) {
        for (t.n = 100; t.n <= 10000; t.n += 9900) {
            run_all(worlds[k], sum_row, &t);
            assert_true(isnan(t.rows[0][3]));
            assert_true(isinf(t.rows[0][4]));
            assert_true(t.rows[0][5] == (float)worlds[k]);
            for (uint32_t rank = 1; rank < worlds[k]; rank++) {
                assert_memory_equal(t.rows[0], t.rows[rank], 4 * t.n);
            }
        }
    }
    table_fini(&t);
}

static lac_status sum_doubles(test_worker *w)
{
    double x[3000];
    for (size_t n = 0; n <= 3000; n += 1500) {
        for (size_t i = 0; i < n; i++) {
            x[i] = 0x1p40 + (double)(3000 * (size_t)w->rank + i);
        }
        LAC_TRY(laci_group_sum_f64(w->group, n, 0, x, n));
        const uint32_t ranks = w->world * (w->world - 1) / 2;
        for (size_t i = 0; i < n; i++) {
            EXPECT(x[i] == w->world * (0x1p40 + (double)i) + ranks * 3000.0);
        }
    }
    const laci_counts *const counts = laci_group_counts(w->group);
    const uint64_t once = w->world > 1;
    EXPECT(counts->payload == once * 8 * 4500);
    EXPECT(counts->wire == once * (3 * LACI_FRAME_SIZE + 8 * 4500));
    EXPECT(counts->messages == once * 3);
    return LAC_OK;
}

static void doubles_keep_their_precision(void **state)
{
    (void)state;
    for (size_t i = 0; i < WORLD_COUNT; i++) {
        run_all(worlds[i], sum_doubles, NULL);
    }
}

// A group whose options have no sum_max uses small pieces.
static void sums_larger_than_planned_are_right(void **state)
{
    (void)state;
    table t;
    table_init(&t);
    t.value = whole;
    t.n = 30000;
    test_worker workers[5];
    laci_group_options options = default_options;
    options.sum_max = 0;
    group_run run = {
        .world = 5,
        .options = &options,
        .odd = LAC_RANK_ANY,
        .body = sum_row,
        .context = &t,
    };
    run_groups(&run, workers);
    assert_all_ok(workers, 5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(t.rows[i][29999] == 5 * 499 + 10000);
    }
    table_fini(&t);
}

static lac_status sum_twice(test_worker *w)
{
    const table *const t = w->context;
    float *const x = t->rows[w->rank];
    float few[100];
    for (size_t i = 0; i < t->n; i++) {
        x[i] = rough(w->rank, i);
    }
    memcpy(few, x, sizeof(few));
    LAC_TRY(laci_group_sum(w->group, 4, 1, x, t->n, 0));
    LAC_TRY(laci_group_sum(w->group, 5, 1, few, 100, 0));
    EXPECT(memcmp(few, x, sizeof(few)) == 0);
    return LAC_OK;
}

static void a_sum_does_not_depend_on_what_is_summed_with_it(void **state)
{
    (void)state;
    table t;
    table_init(&t);
    t.n = SIZE_MOST;
    for (size_t k = 0; k < WORLD_COUNT; k++) {
        run_all(worlds[k], sum_twice, &t);
    }
    table_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_whole_numbers_are_exact),
        cmocka_unit_test(all_workers_get_the_same_bits),
        cmocka_unit_test(a_sum_does_not_depend_on_what_is_summed_with_it),
        cmocka_unit_test(divergence_looks_the_same_to_all),
        cmocka_unit_test(doubles_keep_their_precision),
        cmocka_unit_test(sums_larger_than_planned_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
