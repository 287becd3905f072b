// SPDX-License-Identifier: MIT
// A mix in place works on parts of tensors and in fewer passes. It has the bits
// of a mix into another array, and of begin and end, and a mix that fails
// leaves the values as they were.
#include "workers.h"

#include <math.h>

enum {
    WORLD = 4,
    ROUNDS = 3,
    TENSORS = 3,
    LONG = 60 * 50, // values: several parts and a rest
    SHORT = 5,
    WHOLE = 2 * LAC_PART, // values: parts without a rest
    VALUES = LONG + SHORT + WHOLE,
};

static const lac_tensor tensors[TENSORS] = {
    {.name = "long", .shape = {60, 50}},
    {.name = "short", .shape = {SHORT, 1}},
    {.name = "whole", .shape = {WHOLE, 1}},
};
static const size_t offsets[TENSORS] = {0, LONG, LONG + SHORT};

typedef enum manner { IN_PLACE, APART, IN_TWO, MANNERS } manner;

typedef struct run {
    const char *algorithm;
    const char *compressor;
    manner how;
    algorithm_body *body;
    float x[WORLD][VALUES];
} run;

static float *fill_values(const test_worker *w)
{
    float *const x = ((run *)w->context)->x[w->rank];
    for (size_t i = 0; i < VALUES; i++) {
        x[i] = (float)sin(3.0 * w->rank + 0.7 * (double)i);
    }
    return x;
}

// Only the second tensor has no update.
static lac_status mix_once(
    const run *r, lac_algorithm *a, uint64_t round, float *x)
{
    float update[VALUES], out[VALUES];
    const float *updates[TENSORS] = {update, NULL, update + offsets[2]};
    lac_slice slices[TENSORS];
    for (size_t t = 0; t < TENSORS; t++) {
        float *const target = r->how == APART ? out : x;
        slices[t] =
            (lac_slice){t, LAC_F32, x + offsets[t], target + offsets[t]};
    }
    for (size_t i = 0; i < VALUES; i++) {
        update[i] = (float)(0.1 * cos((double)(i + round)));
    }
    if (r->how == IN_TWO) {
        LAC_TRY(lac_algorithm_begin(a, round, slices, TENSORS));
        return lac_algorithm_end(a, round, slices, updates, TENSORS);
    }
    LAC_TRY(lac_algorithm_mix(a, round, slices, updates, TENSORS));
    if (r->how == APART) {
        memcpy(x, out, sizeof(out));
    }
    return LAC_OK;
}

static lac_status start(lac_algorithm *a, float *x)
{
    lac_slice slices[TENSORS];
    for (size_t t = 0; t < TENSORS; t++) {
        slices[t] = (lac_slice){t, LAC_F32, x + offsets[t], x + offsets[t]};
    }
    return lac_algorithm_start(a, slices, TENSORS);
}

static lac_status mix_rounds(test_worker *w, lac_algorithm *a)
{
    float *const x = fill_values(w);
    LAC_TRY(start(a, x));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(mix_once(w->context, a, round, x));
    }
    return LAC_OK;
}

// Opens the algorithm and runs the body of the run.
static lac_status run_as_worker(test_worker *w)
{
    const run *const r = w->context;
    return with_algorithm(
        w, options_for(r->algorithm, r->compressor), "ring", tensors, TENSORS,
        r->body);
}

static void compare_manners(const char *algorithm, const char *compressor)
{
    static run runs[MANNERS];
    for (manner how = IN_PLACE; how < MANNERS; how++) {
        test_worker workers[WORLD];
        run *const r = &runs[how];
        *r =
            (run){.algorithm = algorithm, .compressor = compressor, .how = how};
        r->body = mix_rounds;
        run_workers(WORLD, run_as_worker, r, workers);
        assert_all_ok(workers, WORLD);
        if (memcmp(r->x, runs[0].x, sizeof(r->x)) != 0) {
            print_error(
                "%s %s: manner %d has other bits than a mix in place\n",
                algorithm, compressor == NULL ? "" : compressor, (int)how);
            fail();
        }
    }
}

static void all_manners_have_the_same_bits(void **state)
{
    (void)state;
    static const char *const algorithms[] = {
        "choco:gamma=0.3", "choco:gamma=0.3,trigger=0.1", "dcd", "ecd",
        "deepsqueeze:gamma=0.2"};
    static const char *const compressors[] = {
        "identity",
        "half",
        "bfloat16",
        "sign",
        "natural",
        "natural:bits=8",
        "natural-dithering",
        "dithering:levels=127",
        "dithering:levels=7,bucket=300",
        "dithering:levels=1000",
        "top-k:0.1",
        "low-rank",
        "rotated:2"};
    compare_manners("dpsgd", NULL);
    compare_manners("dpsgd:rate=0.7", NULL);
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++) {
        for (size_t k = 0; k < sizeof(compressors) / sizeof(*compressors);
             k++) {
            compare_manners(algorithms[i], compressors[k]);
        }
    }
}

// With rate=2 on a ring of four a worker weighs its own values by -1/3 and
// those of its two neighbours by 2/3: huge values of the opposite sign
// overflow. The signs alternate in the last tensor, where the others are small.
static lac_status overflow(test_worker *w, lac_algorithm *a)
{
    float *const x = fill_values(w);
    float before[VALUES];
    x[VALUES - 1] = w->rank % 2 == 0 ? 3e38f : -3e38f;
    memcpy(before, x, sizeof(before));
    LAC_TRY(start(a, x));
    EXPECT(mix_once(w->context, a, 0, x) != LAC_OK);
    EXPECT(strstr(lac_error_message(), "has values in whole that overflow"));
    EXPECT(memcmp(before, x, sizeof(before)) == 0);
    return LAC_OK;
}

static void a_mix_that_fails_restores_the_values(void **state)
{
    (void)state;
    static run r = {.algorithm = "dpsgd:rate=2", .body = overflow};
    for (r.how = IN_PLACE; r.how < MANNERS; r.how++) {
        test_worker workers[WORLD];
        run_workers(WORLD, run_as_worker, &r, workers);
        assert_all_ok(workers, WORLD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_manners_have_the_same_bits),
        cmocka_unit_test(a_mix_that_fails_restores_the_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
