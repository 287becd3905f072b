// SPDX-License-Identifier: MIT
// compressed on tensors that are split into parts: however they are grouped
// into calls, and whatever kernels and dtypes, the results are the same.
#include "workers.h"

#include <float.h>
#include <math.h>

enum { WORLD_MAX = 10, TENSORS = 4, ROUNDS = 2 };
enum { LARGE = 3000, SMALL = 35, ODD = 1025, VALUES = LARGE + SMALL + ODD };

static const lac_tensor tensors[TENSORS] = {
    {.name = "large", .shape = {60, 50}},
    {.name = "empty", .shape = {0, 3}},
    {.name = "small", .shape = {7, 5}},
    {.name = "odd", .shape = {ODD, 1}},
};

static const size_t offsets[TENSORS] = {0, LARGE, LARGE, LARGE + SMALL};

typedef struct run run;

struct run {
    const char *algorithm;
    const char *compressor;
    uint32_t world;
    lac_nonfinite nonfinite;
    const char *kernels; // or NULL
    lac_dtype dtype;     // LAC_F32 or LAC_F64
    bool separate;       // one tensor a call, the last first
    void (*fill)(uint32_t rank, uint64_t round, float *x_out);
    float results[WORLD_MAX][ROUNDS][VALUES];
};

static void fill_gradients(uint32_t rank, uint64_t round, float *x_out)
{
    fill_normal(x_out, VALUES, 1 + rank + WORLD_MAX * round);
}

static lac_status reduce_slices(
    const run *r, lac_algorithm *a, uint64_t round, const lac_slice *slices)
{
    if (!r->separate) {
        return lac_algorithm_reduce(a, round, slices, TENSORS);
    }
    for (size_t t = TENSORS; t-- > 0;) {
        LAC_TRY(lac_algorithm_reduce(a, round, &slices[t], 1));
    }
    return LAC_OK;
}

static lac_status reduce_rounds(test_worker *w, lac_algorithm *a)
{
    run *const r = w->context;
    const uint32_t rank = w->rank;
    if (r->kernels != NULL) {
        LAC_TRY(lac_algorithm_use_kernels(a, r->kernels));
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        float *const x = r->results[rank][round];
        double wide[VALUES];
        lac_slice slices[TENSORS];
        r->fill(rank, round, x);
        for (size_t i = 0; i < VALUES; i++) {
            wide[i] = (double)x[i];
        }
        for (size_t t = 0; t < TENSORS; t++) {
            void *const values = r->dtype == LAC_F64
                                     ? (void *)(wide + offsets[t])
                                     : (void *)(x + offsets[t]);
            slices[t] = (lac_slice){t, r->dtype, values, values};
        }
        LAC_TRY(reduce_slices(r, a, round, slices));
        for (size_t i = 0; r->dtype == LAC_F64 && i < VALUES; i++) {
            x[i] = (float)wide[i];
        }
    }
    return LAC_OK;
}

static lac_status run_body(test_worker *w)
{
    const run *const r = w->context;
    lac_algorithm_options o = options_for(r->algorithm, r->compressor);
    o.nonfinite = r->nonfinite;
    return with_algorithm(w, o, NULL, tensors, TENSORS, reduce_rounds);
}

// Runs all workers, which must have the same results.
static void run_all(run *r)
{
    test_worker workers[WORLD_MAX];
    run_workers(r->world, run_body, r, workers);
    assert_all_ok(workers, r->world);
    for (uint32_t rank = 1; rank < r->world; rank++) {
        assert_memory_equal(
            r->results[0], r->results[rank], sizeof(r->results[0]));
    }
}

static void assert_same_results(const run *r, run *other)
{
    run_all(other);
    assert_memory_equal(r->results[0], other->results[0], sizeof(*r->results));
}

static void results_do_not_depend_on_the_call(void **state)
{
    (void)state;
    static const char *const specs[][2] = {
        {"compressed", "natural"},
        {"compressed", "natural:bits=8"},
        {"compressed:server=(half)", "bfloat16"},
        {"compressed:server=(natural)", "identity"},
        {"compressed:server=(natural)", "dithering"},
        {"compressed", "random-k:0.3"},
    };
    static run r, other;
    for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
        for (uint32_t world = 1; world <= WORLD_MAX; world++) {
            r = (run){
                .algorithm = specs[i][0],
                .compressor = specs[i][1],
                .world = world,
                .fill = fill_gradients,
            };
            run_all(&r);
            other = r;
            other.separate = true;
            assert_same_results(&r, &other);
            other.kernels = "portable";
            assert_same_results(&r, &other);
            other.separate = false;
            other.dtype = LAC_F64;
            assert_same_results(&r, &other);
        }
    }
}

// The value of every part is in the place of that part.
static void exact_compressors_give_the_mean(void **state)
{
    (void)state;
    static run r;
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        r = (run){
            .algorithm = "compressed",
            .compressor = "identity",
            .world = world,
            .fill = fill_gradients,
        };
        run_all(&r);
        double sum[VALUES] = {0};
        for (uint32_t rank = 0; rank < world; rank++) {
            float x[VALUES];
            fill_gradients(rank, 1, x);
            for (size_t i = 0; i < VALUES; i++) {
                sum[i] += (double)x[i];
            }
        }
        // Values are below 6: the factor, each product and each sum round by
        // 2^-22 at most.
        for (size_t i = 0; i < VALUES; i++) {
            const double off = (double)r.results[0][1][i] - sum[i] / world;
            assert_true(fabs(off) <= 3 * world * 0x1p-22);
        }
    }
}

static void fill_three_halves(uint32_t rank, uint64_t round, float *x_out)
{
    (void)rank, (void)round;
    for (size_t i = 0; i < VALUES; i++) {
        x_out[i] = 1.5F;
    }
}

static size_t equal_values(const float *a, const float *b, size_t n)
{
    size_t equal = 0;
    for (size_t i = 0; i < n; i++) {
        equal += a[i] == b[i];
    }
    return equal;
}

// 1.5 becomes 1 or 2. Of 952 coins, half are equal between two parts, with a
// standard deviation of 15.
static void parts_of_a_tensor_draw_independently(void **state)
{
    (void)state;
    static const char *const specs[][2] = {
        {"compressed:server=(identity)", "natural"},
        {"compressed:server=(natural)", "identity"},
    };
    enum { PART = 1024, COINS = LARGE - 2 * PART };
    static run r;
    for (size_t i = 0; i < 2; i++) {
        r = (run){
            .algorithm = specs[i][0],
            .compressor = specs[i][1],
            .world = 1,
            .fill = fill_three_halves,
        };
        run_all(&r);
        const float *const x = r.results[0][0];
        for (size_t a = 0; a < 3; a++) {
            const float *const next = x + (a + 1) % 3 * PART;
            const size_t equal = equal_values(x + a * PART, next, COINS);
            assert_between(equal, COINS / 2 - 90, COINS / 2 + 90);
        }
    }
}

static void fill_largest(uint32_t rank, uint64_t round, float *x_out)
{
    (void)rank;
    for (size_t i = 0; i < VALUES; i++) {
        x_out[i] = (i + round) % 3 == 0 ? -FLT_MAX : FLT_MAX;
    }
}

// Nothing of the largest floats is lost but what the compressor drops. Their
// plain sum overflows with two workers already, and with ten workers rounding
// takes the sum of their shares beyond the largest float.
static void the_mean_of_the_largest_floats_is_finite(void **state)
{
    (void)state;
    static const struct {
        const char *compressor;
        float least;
    } cases[] = {
        {"identity", 0x1.fffff0p127F},
        {"bfloat16", 0x1.fcp127F},
        {"natural", 0x1p126F},
        {"natural:bits=8", 0x1p126F},
        {"half", 65000.F},
        {"sign", 0x1p126F},
    };
    static run r;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (uint32_t world = 1; world <= WORLD_MAX; world++) {
            r = (run){
                .algorithm = "compressed",
                .compressor = cases[i].compressor,
                .world = world,
                .fill = fill_largest,
            };
            run_all(&r);
            for (size_t j = 0; j < (size_t)ROUNDS * VALUES; j++) {
                const size_t round = j / VALUES, at = j % VALUES;
                const float y = r.results[0][round][at];
                assert_true(isfinite(y) && fabsf(y) >= cases[i].least);
                assert_true((y < 0) == ((at + round) % 3 == 0));
            }
        }
    }
}

// Worker 1 has a NaN in the last part of the first tensor, in round 1.
static void fill_with_nan(uint32_t rank, uint64_t round, float *x_out)
{
    fill_gradients(rank, round, x_out);
    if (rank == 1 && round == 1) {
        x_out[LARGE - 1] = NAN;
    }
}

static void non_finite_values_have_the_result_of_the_policy(void **state)
{
    (void)state;
    static run finite, r;
    for (int policy = LAC_NONFINITE_SKIP; policy <= LAC_NONFINITE_PROPAGATE;
         policy++) {
        finite = (run){
            .algorithm = "compressed",
            .compressor = "natural",
            .world = 3,
            .nonfinite = (lac_nonfinite)policy,
            .fill = fill_gradients,
        };
        r = finite;
        r.fill = fill_with_nan;
        run_all(&finite);
        run_all(&r);
        const float *const x = r.results[0][1];
        const float *const rest = x + LARGE;
        assert_memory_equal(
            r.results[0][0], finite.results[0][0], sizeof(r.results[0][0]));
        if (policy == LAC_NONFINITE_RAW) {
            assert_memory_equal(
                rest, finite.results[0][1] + LARGE,
                (SMALL + ODD) * sizeof(*rest));
            assert_true(isnan(x[LARGE - 1]) && isfinite(x[0]));
        } else {
            const bool nan = policy == LAC_NONFINITE_PROPAGATE;
            assert_true(nan ? isnan(x[0]) : x[0] == 0);
            assert_true(nan ? isnan(rest[ODD]) : rest[ODD] == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_do_not_depend_on_the_call),
        cmocka_unit_test(exact_compressors_give_the_mean),
        cmocka_unit_test(parts_of_a_tensor_draw_independently),
        cmocka_unit_test(the_mean_of_the_largest_floats_is_finite),
        cmocka_unit_test(non_finite_values_have_the_result_of_the_policy),
    };
    return cmocka_run_group_tests_name("compressed_parts", tests, NULL, NULL);
}
