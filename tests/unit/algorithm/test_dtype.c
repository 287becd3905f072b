// SPDX-License-Identifier: MIT
// Slices of all dtypes: the sums of allreduce, in one piece and streamed, the
// memory of conversions, and kernels. The linker lets the local transport ask
// for pieces.
#include "workers.h"

#include <float.h>
#include <math.h>

#include "exchanges.h"
#include "kernels/convert.h"
#include "pieces.h"

enum {
    WORLD_MAX = 5,
    PIECE = 32 * 1024, // bytes
    HALF = 0,
    DOUBLE,
    EMPTY,
    UPPER,
    SMALL,
    FLOAT,
    TENSORS,
    LARGEST = 17011,
};

static const lac_tensor tensors[TENSORS] = {
    {.name = "half", .shape = {17011, 1}},
    {.name = "double", .shape = {9001, 1}},
    {.name = "empty", .shape = {0, 1}},
    {.name = "upper", .shape = {9973, 1}},
    {.name = "small", .shape = {7, 1}},
    {.name = "float", .shape = {8191, 1}},
};
static const lac_dtype dtypes[TENSORS] = {LAC_F16,  LAC_F64, LAC_F64,
                                          LAC_BF16, LAC_F64, LAC_F32};
static const size_t sizes[TENSORS] = {17011, 9001, 0, 9973, 7, 8191};

// The values of a worker.
typedef union typed {
    uint16_t halves[LARGEST];
    float floats[LARGEST];
    double doubles[LARGEST];
} typed;

static struct {
    typed in[WORLD_MAX][TENSORS];
    typed out[WORLD_MAX][TENSORS];
    bool in_place;
    bool as_floats; // the same values, all in float32
    const char *kernels;
    lac_nonfinite policy;
    double fault; // the first double of worker 0, if not 0
} shared;

static lac_layout *layout;

static int open_layout(void **state)
{
    (void)state;
    return lac_layout_open(&layout, tensors, TENSORS) == LAC_OK ? 0 : -1;
}

static int close_layout(void **state)
{
    (void)state;
    lac_layout_close(layout);
    return 0;
}

// Positive values with more bits than a float has. Halves are up to 60000, so
// that the sum of two of them is beyond their range.
static double value_of(uint32_t rank, size_t tensor, size_t i)
{
    const uint32_t mix = (uint32_t)(i * 2654435761u) ^ (rank * 40503u);
    const double most = tensor == HALF ? 60000 : 3;
    return most * (1 + (double)mix) / 4294967296.0;
}

static const laci_float16_kernels *kernels_of(lac_dtype dtype)
{
    return dtype == LAC_F16    ? &laci_convert_portable.half
           : dtype == LAC_BF16 ? &laci_convert_portable.bfloat16
                               : NULL;
}

static float rounded(lac_dtype dtype, float x)
{
    uint16_t half;
    if (kernels_of(dtype) != NULL) {
        kernels_of(dtype)->store(&x, &half, 1);
        kernels_of(dtype)->load(&half, &x, 1);
    }
    return x;
}

static void store_value(lac_dtype dtype, double x, typed *out, size_t i)
{
    const float narrow = (float)x;
    if (dtype == LAC_F64) {
        out->doubles[i] = x;
    } else if (dtype == LAC_F32) {
        out->floats[i] = narrow;
    } else {
        kernels_of(dtype)->store(&narrow, &out->halves[i], 1);
    }
}

// Of a dtype other than double.
static float load_value(lac_dtype dtype, const typed *in, size_t i)
{
    float x;
    if (dtype == LAC_F32) {
        return in->floats[i];
    }
    kernels_of(dtype)->load(&in->halves[i], &x, 1);
    return x;
}

static lac_dtype dtype_of(size_t t)
{
    return shared.as_floats && dtypes[t] != LAC_F64 ? LAC_F32 : dtypes[t];
}

static void fill_tensor(uint32_t rank, size_t t)
{
    for (size_t i = 0; i < sizes[t]; i++) {
        const double value = value_of(rank, t, i);
        store_value(
            dtype_of(t),
            dtypes[t] == LAC_F64 ? value
                                 : (double)rounded(dtypes[t], (float)value),
            &shared.in[rank][t], i);
    }
}

static typed *results_of(uint32_t rank)
{
    return shared.in_place ? shared.in[rank] : shared.out[rank];
}

static void fill(uint32_t rank, lac_slice *slices)
{
    memset(shared.in[rank], 0x5a, sizeof(shared.in[rank]));
    memset(shared.out[rank], 0x5a, sizeof(shared.out[rank]));
    for (size_t t = 0; t < TENSORS; t++) {
        fill_tensor(rank, t);
        slices[t] = (lac_slice){
            t, dtype_of(t), &shared.in[rank][t], &results_of(rank)[t]};
    }
    slices[EMPTY].in = slices[EMPTY].out = NULL;
    if (shared.fault != 0 && rank == 0) {
        shared.in[rank][DOUBLE].doubles[0] = shared.fault;
    }
}

static lac_status open_worker(
    const test_worker *w, const char *spec, lac_algorithm **out)
{
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = spec;
    o.layout = layout;
    o.transport = w->transport;
    o.nonfinite = shared.policy;
    LAC_TRY(lac_algorithm_open(out, &o));
    return lac_algorithm_use_kernels(
        *out, shared.kernels == NULL ? "best" : shared.kernels);
}

// Only the first call allocates.
static lac_status reduce_with(const test_worker *w, lac_algorithm *a)
{
    uint64_t payload = 0;
    for (uint64_t round = 0; round < 2; round++) {
        lac_slice slices[TENSORS];
        fill(w->rank, slices);
        const size_t before = test_thread_allocations - transport_allocations;
        LAC_TRY(lac_algorithm_reduce(a, round, slices, TENSORS));
        const size_t now = test_thread_allocations - transport_allocations;
        EXPECT(now - before <= (round == 0));
        for (size_t t = 0; t < TENSORS; t++) {
            payload += (dtypes[t] == LAC_F64 ? 8 : 4) * sizes[t];
        }
    }
    // A non-finite value costs more sums.
    EXPECT(
        shared.fault != 0 || w->world == 1 ||
        lac_algorithm_traffic(a).payload_bytes == payload);
    return LAC_OK;
}

static lac_status reduce_twice(test_worker *w)
{
    lac_algorithm *a = NULL;
    LAC_TRY(open_worker(w, w->context, &a));
    const lac_status status = reduce_with(w, a);
    lac_algorithm_close(a);
    return status;
}

static void reduce_all(uint32_t world)
{
    test_worker workers[WORLD_MAX];
    run_workers(world, reduce_twice, "allreduce", workers);
    assert_all_ok(workers, world);
    for (uint32_t rank = 1; rank < world; rank++) {
        assert_memory_equal(
            results_of(rank), results_of(0), TENSORS * sizeof(typed));
    }
}

// The sum of `world` positive doubles has at most 3 roundings one after the
// other, and the mean one more, each of half a unit in the last place. With two
// workers there is one, since a division by 2 is exact.
static void expect_double_means(uint32_t world, size_t tensor)
{
    for (size_t i = 0; i < sizes[tensor]; i++) {
        long double mean = 0;
        for (uint32_t rank = 0; rank < world; rank++) {
            mean += (long double)value_of(rank, tensor, i);
        }
        mean /= world;
        const double found = results_of(0)[tensor].doubles[i];
        if (world <= 2) {
            assert_true(found == (double)mean);
        } else {
            assert_true(
                fabsl((long double)found - mean) <=
                2 * (long double)DBL_EPSILON * mean);
        }
    }
}

static void means_of_doubles_are_exact(void **state)
{
    (void)state;
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        for (asked = 0; asked <= PIECE; asked += PIECE) {
            shared.in_place = world % 2 == 0;
            reduce_all(world);
            expect_double_means(world, DOUBLE);
            expect_double_means(world, SMALL);
        }
    }
}

static void expect_rounded(size_t t, const typed *means)
{
    for (size_t i = 0; i < sizes[t]; i++) {
        const float found = load_value(dtypes[t], &results_of(0)[t], i);
        assert_true(found == rounded(dtypes[t], means->floats[i]));
        assert_true(isfinite(found));
    }
}

static void means_of_halves_are_those_of_floats(void **state)
{
    (void)state;
    static typed means[TENSORS];
    for (uint32_t world = 1; world <= WORLD_MAX; world++) {
        asked = 0;
        shared.as_floats = true;
        reduce_all(world);
        memcpy(means, results_of(0), sizeof(means));
        shared.as_floats = false;
        for (asked = 0; asked <= PIECE; asked += PIECE) {
            shared.in_place = !shared.in_place;
            reduce_all(world);
            expect_rounded(HALF, &means[HALF]);
            expect_rounded(UPPER, &means[UPPER]);
            expect_rounded(FLOAT, &means[FLOAT]);
        }
    }
}

static void all_kernels_give_the_same_bits(void **state)
{
    (void)state;
    static typed best[TENSORS];
    asked = PIECE;
    shared.in_place = true;
    reduce_all(3);
    memcpy(best, results_of(0), sizeof(best));
    shared.kernels = "portable";
    reduce_all(3);
    assert_memory_equal(results_of(0), best, sizeof(best));
    shared.kernels = NULL;
}

static void raw_sums_of_doubles_stay_double(void **state)
{
    (void)state;
    shared.in_place = false;
    for (asked = 0; asked <= PIECE; asked += PIECE) {
        reduce_all(2);
        const double second = results_of(0)[DOUBLE].doubles[1];
        shared.policy = LAC_NONFINITE_RAW;
        shared.fault = (double)INFINITY;
        reduce_all(2);
        assert_true(results_of(0)[DOUBLE].doubles[0] == (double)INFINITY);
        assert_true(results_of(0)[DOUBLE].doubles[1] == second);
        expect_double_means(2, SMALL);
        shared.policy = LAC_NONFINITE_STOP;
        shared.fault = 0;
    }
}

static void large_doubles_are_finite(void **state)
{
    (void)state;
    asked = 0;
    shared.in_place = false;
    shared.fault = 1e300;
    reduce_all(2);
    shared.fault = 0;
    assert_true(results_of(0)[DOUBLE].doubles[0] == 5e299);
}

// In every exchange of a round with both sums.
static void failures_leave_values(void **state)
{
    (void)state;
    static typed before[3][TENSORS];
    asked = 0;
    shared.in_place = true;
    for (uint32_t rank = 0; rank < 3; rank++) {
        lac_slice slices[TENSORS];
        fill(rank, slices);
        memcpy(before[rank], shared.in[rank], sizeof(before[rank]));
    }
    size_t failures = 0;
    for (abort_at = 1; abort_at <= 4; abort_at++) {
        test_worker workers[3];
        run_workers(3, reduce_twice, "allreduce", workers);
        for (uint32_t rank = 0; rank < 3; rank++) {
            failures += workers[rank].status != LAC_OK;
            assert_true(
                workers[rank].status == LAC_OK ||
                memcmp(shared.in[rank], before[rank], sizeof(before[rank])) ==
                    0);
        }
    }
    abort_at = 0;
    assert_true(failures >= 4);
}

// A call that finds no memory for its conversion fails and leaves the values;
// the next one succeeds.
static lac_status expect_no_memory(test_worker *w)
{
    lac_algorithm *a = NULL;
    lac_slice slices[TENSORS];
    typed before[2];
    LAC_TRY(open_worker(w, w->context, &a));
    fill(w->rank, slices);
    memcpy(before, shared.in[w->rank], sizeof(before));
    test_allocations_left = 0;
    const lac_status status = lac_algorithm_reduce(a, 0, slices, TENSORS);
    test_allocations_left = -1;
    EXPECT(status == LAC_ERR_NOMEM);
    EXPECT(strstr(lac_error_message(), "bytes of converted values") != NULL);
    EXPECT(memcmp(before, shared.in[w->rank], sizeof(before)) == 0);
    LAC_TRY(lac_algorithm_reduce(a, 0, slices, TENSORS));
    lac_algorithm_close(a);
    return LAC_OK;
}

static void a_lack_of_memory_is_reported(void **state)
{
    (void)state;
    static char *const specs[] = {"allreduce", "powersgd"};
    shared.in_place = true;
    for (size_t i = 0; i < 2; i++) {
        test_worker worker;
        run_workers(1, expect_no_memory, specs[i], &worker);
        assert_all_ok(&worker, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_of_doubles_are_exact),
        cmocka_unit_test(means_of_halves_are_those_of_floats),
        cmocka_unit_test(all_kernels_give_the_same_bits),
        cmocka_unit_test(raw_sums_of_doubles_stay_double),
        cmocka_unit_test(large_doubles_are_finite),
        cmocka_unit_test(failures_leave_values),
        cmocka_unit_test(a_lack_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, open_layout, close_layout);
}
