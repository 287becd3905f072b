// SPDX-License-Identifier: MIT
// Gradient algorithms that treat values one by one give the same bits for a
// large tensor, which they reduce in parts, and for many small ones.
#include "workers.h"

#include <math.h>

enum {
    WORLD = 3,
    ROUNDS = 3,
    SMALL = 500,
    PIECES = 7,
    VALUES = SMALL * PIECES,
};

typedef struct run {
    const char *algorithm;
    const char *compressor;
    bool small;                     // PIECES tensors, not one
    float x[WORLD][ROUNDS][VALUES]; // the results of the rounds
} run;

static size_t pieces_of(const run *r)
{
    return r->small ? PIECES : 1;
}

static size_t values_of(const run *r)
{
    return r->small ? SMALL : VALUES;
}

static lac_status reduce_rounds(test_worker *w, lac_algorithm *a)
{
    run *const r = w->context;
    float(*const x)[VALUES] = r->x[w->rank];
    const size_t n = values_of(r);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        lac_slice slices[PIECES];
        for (size_t i = 0; i < VALUES; i++) {
            x[round][i] =
                (float)sin(2.0 * w->rank + 0.7 * (double)i + (double)round);
        }
        for (size_t t = 0; t < pieces_of(r); t++) {
            float *const values = x[round] + t * n;
            slices[t] = (lac_slice){t, LAC_F32, values, values};
        }
        LAC_TRY(lac_algorithm_reduce(a, round, slices, pieces_of(r)));
    }
    return LAC_OK;
}

static lac_status reduce_as_worker(test_worker *w)
{
    const run *const r = w->context;
    static const char *const names[PIECES] = {"a", "b", "c", "d",
                                              "e", "f", "g"};
    lac_tensor tensors[PIECES] = {0};
    for (size_t t = 0; t < pieces_of(r); t++) {
        tensors[t] = (lac_tensor){.name = names[t], .shape = {values_of(r), 1}};
    }
    return with_algorithm(
        w, options_for(r->algorithm, r->compressor), NULL, tensors,
        pieces_of(r), reduce_rounds);
}

static void a_large_tensor_has_the_bits_of_small_ones(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"signum", NULL},
        {"signum:tie=zero,momentum=0.5", NULL},
        {"error-feedback", "half"},
        {"error-feedback:memory=no", "identity"},
        {"error-feedback:decay=0.9", "bfloat16"},
        {"compressed", "half"},
        {"ef21", "bfloat16"},
    };
    static run large, small;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        test_worker workers[WORLD];
        print_message("%s\n", cases[i][0]);
        large = (run){cases[i][0], cases[i][1], .small = false};
        small = (run){cases[i][0], cases[i][1], .small = true};
        run_workers(WORLD, reduce_as_worker, &large, workers);
        assert_all_ok(workers, WORLD);
        run_workers(WORLD, reduce_as_worker, &small, workers);
        assert_all_ok(workers, WORLD);
        assert_memory_equal(large.x, small.x, sizeof(large.x));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_tensor_has_the_bits_of_small_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
