// SPDX-License-Identifier: MIT
// Finite values that overflow: gradients near the largest float must not poison
// an error memory, and an infinity that a peer sends must not reach a model.
#include "cost.h"
#include "workers.h"

#include <math.h>

#include "algorithm/framework/handle.h"

enum { WORLD = 2, VALUES = 64, HUGE_ROUNDS = 3, ROUNDS = 100 };

static const lac_tensor tensors[] = {
    {.name = "calm", .shape = {4, 4}},
    {.name = "wild", .shape = {8, 8}},
};

typedef struct run {
    const char *algorithm;
    const char *compressor;
    lac_nonfinite nonfinite;
    float scale; // of huge gradients
    bool summed; // payloads are summed: a sum of finite ones may overflow, and
                 // raw passes it on
    unsigned refused[WORLD]; // rounds
} run;

static lac_status open_algorithm(
    const test_worker *w, const lac_layout *layout,
    const lac_topology *topology, lac_algorithm **out)
{
    const run *const r = w->context;
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = r->algorithm;
    o.compressor = r->compressor;
    o.nonfinite = r->nonfinite;
    o.layout = layout;
    o.topology = topology;
    o.transport = w->transport;
    return lac_algorithm_open(out, &o);
}

// 3e38 sin(...) in the first rounds, magnitude 1 later.
static void fill_gradient(float *g, size_t n, uint64_t round, uint32_t rank)
{
    const double scale = round < HUGE_ROUNDS ? 3e38 : 1;
    for (size_t i = 0; i < n; i++) {
        const double angle = (double)(i + 1) + (double)round + 0.3 * rank;
        g[i] = (float)(scale * sin(angle));
    }
}

// A round that is refused names the tensor and can be repeated with zeros.
static lac_status reduce_or_skip(
    test_worker *w, lac_algorithm *a, uint64_t round, lac_slice *slices)
{
    run *const r = w->context;
    const lac_status status = lac_algorithm_reduce(a, round, slices, 2);
    if (status == LAC_OK) {
        return LAC_OK;
    }
    EXPECT(status == LAC_ERR_INVALID && r->nonfinite == LAC_NONFINITE_STOP);
    EXPECT(
        strstr(lac_error_message(), " has values in wild that overflow") ||
        (r->summed &&
         strstr(lac_error_message(), "the sum of wild over all workers")));
    r->refused[w->rank]++;
    memset(slices[1].out, 0, VALUES * sizeof(float));
    return lac_algorithm_reduce(a, round, slices, 2);
}

static lac_status expect_good_state(lac_algorithm *a, lac_algorithm *other)
{
    const size_t len = lac_algorithm_state_size(a);
    uint8_t *const bytes = malloc(len);
    lac_status status = lac_algorithm_save(a, bytes, len);
    if (status == LAC_OK) {
        status = lac_algorithm_load(other, bytes, len);
    }
    free(bytes);
    return status;
}

static lac_status reduce_huge(test_worker *w)
{
    const run *const r = w->context;
    float calm[16], wild[VALUES];
    lac_slice slices[] = {
        {0, LAC_F32, calm, calm},
        {1, LAC_F32, wild, wild},
    };
    lac_layout *layout = NULL;
    lac_algorithm *a = NULL, *other = NULL;
    LAC_TRY(lac_layout_open(&layout, tensors, 2));
    LAC_TRY(open_algorithm(w, layout, NULL, &a));
    LAC_TRY(open_algorithm(w, layout, NULL, &other));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        fill_gradient(calm, 16, HUGE_ROUNDS + round, w->rank);
        fill_gradient(wild, VALUES, round, w->rank);
        LAC_TRY(reduce_or_skip(w, a, round, slices));
        for (size_t i = 0; i < VALUES; i++) {
            EXPECT(
                round < HUGE_ROUNDS || isfinite(wild[i]) ||
                (r->summed && r->nonfinite >= LAC_NONFINITE_RAW));
        }
    }
    LAC_TRY(expect_good_state(a, other));
    lac_algorithm_close(a);
    lac_algorithm_close(other);
    lac_layout_close(layout);
    return LAC_OK;
}

// Returns how many rounds were refused.
static unsigned reduce_all_huge(const char *algorithm)
{
    enum { FIRST_SUMMED = 7 };
    static const char *const compressors[] = {
        "sign",     "natural",        "low-rank:rank=2", "top-k:0.1",
        "half",     "bfloat16",       "dithering",       "random-k:0.1",
        "identity", "unbiased-rank:2"};
    static const lac_nonfinite policies[] = {
        LAC_NONFINITE_STOP, LAC_NONFINITE_SKIP, LAC_NONFINITE_RAW,
        LAC_NONFINITE_PROPAGATE};
    unsigned refused = 0;
    for (size_t i = 0; i < sizeof(compressors) / sizeof(*compressors); i++) {
        for (size_t k = 0; k < 4; k++) {
            run r = {
                .algorithm = algorithm,
                .compressor = compressors[i],
                .nonfinite = policies[k],
                .summed = i >= FIRST_SUMMED,
            };
            test_worker workers[WORLD];
            run_workers(WORLD, reduce_huge, &r, workers);
            assert_all_ok(workers, WORLD);
            assert_int_equal(r.refused[0], r.refused[1]);
            refused += r.refused[0];
        }
    }
    return refused;
}

static void huge_gradients_do_not_poison_error_feedback(void **state)
{
    (void)state;
    assert_true(reduce_all_huge("error-feedback") > 0);
    assert_true(reduce_all_huge("error-feedback:memory=no") > 0);
    assert_true(reduce_all_huge("error-feedback:decay=0.9") > 0);
    assert_true(reduce_all_huge("ef21") > 0);
    assert_true(reduce_all_huge("ef21:momentum=0.9") > 0);
}

static void huge_gradients_do_not_poison_integers(void **state)
{
    (void)state;
    static const char *const specs[] = {"integer", "integer:memory=no"};
    for (size_t i = 0; i < 2; i++) {
        for (int k = LAC_NONFINITE_STOP; k <= LAC_NONFINITE_PROPAGATE; k++) {
            run r = {.algorithm = specs[i], .nonfinite = (lac_nonfinite)k};
            test_worker workers[WORLD];
            run_workers(WORLD, reduce_huge, &r, workers);
            assert_all_ok(workers, WORLD);
        }
    }
}

// Worker 1 sends a valid message with an infinity by hand.
static lac_status send_infinity(lac_algorithm *a)
{
    laci_round *const round = &a->round;
    uint8_t *out;
    laci_writer *const message = laci_group_message(round->group, 0);
    float x[VALUES] = {0};
    x[5] = INFINITY;
    out = laci_writer_room(message, sizeof(x));
    memcpy(out, x, sizeof(x)); // little-endian, as payloads are
    laci_writer_commit(message, sizeof(x));
    return laci_group_exchange(
        round->group, 0, 0, round->edges, round->edge_count, true,
        round->readers);
}

// What worker 0 does: its round fails, and leaves its values and state.
static lac_status expect_no_trace(lac_algorithm *a, float *x)
{
    uint8_t before[4096], after[4096];
    float old[VALUES];
    const lac_slice slice = {0, LAC_F32, x, x};
    memcpy(old, x, sizeof(old));
    LAC_TRY(lac_algorithm_save(a, before, sizeof(before)));
    const lac_status status = lac_algorithm_mix(a, 0, &slice, NULL, 1);
    char message[256];
    (void)snprintf(message, sizeof(message), "%s", lac_error_message());
    LAC_TRY(lac_algorithm_save(a, after, sizeof(after)));
    EXPECT(memcmp(old, x, sizeof(old)) == 0);
    EXPECT(memcmp(before, after, lac_algorithm_state_size(a)) == 0);
    EXPECT(status == LAC_ERR_CORRUPT);
    return lac_fail(status, "%s", message);
}

static lac_status mix_with_infinity(test_worker *w)
{
    const lac_tensor tensor = {.name = "x", .shape = {VALUES, 1}};
    float x[VALUES];
    const lac_slice slice = {0, LAC_F32, x, x};
    lac_layout *layout = NULL;
    lac_topology *topology = NULL;
    lac_algorithm *a = NULL;
    fill_normal(x, VALUES, w->rank + 1);
    LAC_TRY(lac_layout_open(&layout, &tensor, 1));
    LAC_TRY(lac_topology_open(&topology, "complete", WORLD, 1));
    LAC_TRY(open_algorithm(w, layout, topology, &a));
    LAC_TRY(lac_algorithm_start(a, &slice, 1));
    const lac_status status =
        w->rank == 1 ? send_infinity(a) : expect_no_trace(a, x);
    lac_algorithm_close(a);
    lac_topology_close(topology);
    lac_layout_close(layout);
    return status;
}

// Whether an algorithm sends the floats of a vector, and not codes of them.
static bool sends_floats(const run *r)
{
    const lac_tensor tensor = {.name = "x", .shape = {VALUES, 1}};
    lac_layout *layout = NULL;
    assert_ok(lac_layout_open(&layout, &tensor, 1));
    return cost_for(r->algorithm, r->compressor, WORLD, layout).payload_bytes >=
           (double)(VALUES * sizeof(float));
}

static void an_infinity_of_a_peer_is_refused_by_name(void **state)
{
    (void)state;
    size_t count, models = 0;
    const lac_plugin *const *const all = lac_algorithms(&count);
    for (size_t i = 0; i < count; i++) {
        const laci_algorithm_ops *const ops = (const void *)all[i];
        if (ops->family != LAC_FAMILY_MODEL || ops->inner != NULL) {
            continue; // an inner algorithm is tried by itself
        }
        run r = {
            .algorithm = ops->plugin.name,
            .compressor = ops->takes_compressor ? "identity" : NULL,
        };
        if (!sends_floats(&r)) {
            continue;
        }
        test_worker workers[WORLD];
        char expected[256];
        (void)snprintf(
            expected, sizeof(expected),
            "%s: worker 1 sent a value for x that is not finite", r.algorithm);
        run_workers(WORLD, mix_with_infinity, &r, workers);
        assert_int_equal(workers[0].status, LAC_ERR_CORRUPT);
        assert_string_equal(workers[0].message, expected);
        models++;
    }
    assert_true(models > 0);
}

// Gradients that powersgd refuses, by the policy, leave a state that later ones
// of ordinary size can use.
static lac_status powersgd_huge(test_worker *w)
{
    float x[VALUES];
    const lac_tensor tensor = {.name = "wild", .shape = {8, 8}};
    const lac_slice slice = {0, LAC_F32, x, x};
    run *const r = w->context;
    lac_layout *layout = NULL;
    lac_algorithm *a = NULL;
    LAC_TRY(lac_layout_open(&layout, &tensor, 1));
    LAC_TRY(open_algorithm(w, layout, NULL, &a));
    for (uint64_t round = 0, call = 0; round < ROUNDS; call++) {
        fill_gradient(x, VALUES, call, w->rank);
        for (size_t i = 0; call < HUGE_ROUNDS && i < VALUES; i++) {
            x[i] *= r->scale;
        }
        const lac_status status = lac_algorithm_reduce(a, round, &slice, 1);
        EXPECT(
            status == LAC_OK ||
            (call < HUGE_ROUNDS && r->nonfinite == LAC_NONFINITE_STOP &&
             status == LAC_ERR_INVALID));
        r->refused[w->rank] += status != LAC_OK;
        round += status == LAC_OK;
        for (size_t i = 0; call >= HUGE_ROUNDS && i < VALUES; i++) {
            EXPECT(isfinite(x[i]));
        }
    }
    lac_algorithm_close(a);
    lac_layout_close(layout);
    return LAC_OK;
}

static void huge_gradients_do_not_poison_powersgd(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "powersgd", "powersgd:rank=2,alternating=yes",
        "powersgd:error-feedback=no", "powersgd:warm-start=no"};
    static const float scales[] = {1, 0.3f, 0.1f, 0.01f};
    unsigned refused = 0;
    for (size_t i = 0; i < 4 * 4 * 4; i++) {
        run r = {
            .algorithm = specs[i % 4],
            .scale = scales[i / 4 % 4],
            .nonfinite = (lac_nonfinite)(i / 16),
        };
        test_worker workers[WORLD];
        run_workers(WORLD, powersgd_huge, &r, workers);
        assert_all_ok(workers, WORLD);
        refused += r.refused[0];
    }
    assert_true(refused > 0);
}

// A value that random-k has not sent yet stays in the error memory of
// deepsqueeze. The round in which it would overflow fails.
static lac_status mix_huge(test_worker *w)
{
    const lac_tensor tensor = {.name = "x", .shape = {VALUES, 1}};
    float x[VALUES];
    const lac_slice slice = {0, LAC_F32, x, x};
    lac_layout *layout = NULL;
    lac_topology *topology = NULL;
    lac_algorithm *a = NULL;
    uint8_t bytes[4096];
    LAC_TRY(lac_layout_open(&layout, &tensor, 1));
    LAC_TRY(lac_topology_open(&topology, "complete", WORLD, 1));
    LAC_TRY(open_algorithm(w, layout, topology, &a));
    for (size_t i = 0; i < VALUES; i++) {
        x[i] = 2e38f;
    }
    LAC_TRY(lac_algorithm_start(a, &slice, 1));
    lac_status status = LAC_OK;
    for (uint64_t round = 0; status == LAC_OK && round < ROUNDS; round++) {
        LAC_TRY(lac_algorithm_save(a, bytes, sizeof(bytes)));
        status = lac_algorithm_mix(a, round, &slice, NULL, 1);
    }
    char message[256];
    (void)snprintf(message, sizeof(message), "%s", lac_error_message());
    LAC_TRY(lac_algorithm_save(a, bytes, sizeof(bytes)));
    lac_algorithm_close(a);
    lac_topology_close(topology);
    lac_layout_close(layout);
    return lac_fail(status, "%s", message);
}

static void deepsqueeze_stops_before_its_memory_overflows(void **state)
{
    (void)state;
    run r = {
        .algorithm = "deepsqueeze:gamma=0.01", .compressor = "random-k:0.05"};
    test_worker workers[WORLD];
    run_workers(WORLD, mix_huge, &r, workers);
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        assert_int_not_equal(workers[rank].status, LAC_OK);
        assert_non_null(strstr(
            workers[rank].message, "values in x that overflow its error"));
    }
}

// The values of every worker are finite, the sum of their products is not. All
// workers see that, and each policy has its result.
static lac_status overflow_in_sum(test_worker *w)
{
    const run *const r = w->context;
    const lac_tensor matrix = {.name = "x", .shape = {8, 8}};
    const bool goes_on = r->nonfinite != LAC_NONFINITE_STOP;
    float x[VALUES];
    const lac_slice slice = {.in = x, .out = x};
    lac_layout *layout = NULL;
    lac_algorithm *a = NULL;
    LAC_TRY(lac_layout_open(&layout, &matrix, 1));
    LAC_TRY(open_algorithm(w, layout, NULL, &a));
    for (size_t i = 0; i < VALUES; i++) {
        x[i] = 1e37F;
    }
    const lac_status status = lac_algorithm_reduce(a, 0, &slice, 1);
    EXPECT(status == (goes_on ? LAC_OK : LAC_ERR_INVALID));
    EXPECT(goes_on || strstr(lac_error_message(), "more than a float holds"));
    EXPECT(lac_algorithm_round(a, 0) == (goes_on ? 1 : 0));
    for (size_t i = 0; i < VALUES; i++) {
        EXPECT(
            r->nonfinite == LAC_NONFINITE_PROPAGATE ? isnan(x[i])
            : goes_on                               ? x[i] == 0
                                                    : x[i] == 1e37F);
        x[i] = 1;
    }
    LAC_TRY(lac_algorithm_reduce(a, goes_on, &slice, 1));
    EXPECT(fabsf(x[0] - 1) < 1e-5F);
    lac_algorithm_close(a);
    lac_layout_close(layout);
    return LAC_OK;
}

static void a_sum_that_overflows_has_the_result_of_the_policy(void **state)
{
    (void)state;
    enum { MANY = 16 };
    const lac_nonfinite policies[] = {
        LAC_NONFINITE_STOP, LAC_NONFINITE_SKIP, LAC_NONFINITE_PROPAGATE};
    for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
        run r = {.algorithm = "powersgd", .nonfinite = policies[p]};
        test_worker workers[MANY];
        run_workers(MANY, overflow_in_sum, &r, workers);
        assert_all_ok(workers, MANY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(huge_gradients_do_not_poison_error_feedback),
        cmocka_unit_test(huge_gradients_do_not_poison_integers),
        cmocka_unit_test(huge_gradients_do_not_poison_powersgd),
        cmocka_unit_test(deepsqueeze_stops_before_its_memory_overflows),
        cmocka_unit_test(an_infinity_of_a_peer_is_refused_by_name),
        cmocka_unit_test(a_sum_that_overflows_has_the_result_of_the_policy),
    };
    return cmocka_run_group_tests_name("overflow", tests, NULL, NULL);
}
