// SPDX-License-Identifier: MIT
// Every algorithm that sums floats over all workers. A worker that sends a
// value in such a sum that is not finite is named by all, whichever message it
// is in, and no state changes. A sum of finite values that overflows has the
// result of the policy on all workers, and accuses nobody. The linker shows
// which messages belong to sums.
#include "cases.h"

#include <float.h>

#include "collective/group.h"
#include "liar.h"
#include "state_reader.h"

enum {
    WORLD = 3,
    ROUNDS = 3,
    LARGE = 90 * 70, // enough values for shares
    SHORT = 13,
    STATE_MAX = 1 << 18,
};

static const lac_tensor shapes[] = {
    {.name = "large", .shape = {90, 70}},
    {.name = "short", .shape = {SHORT, 1}}};
enum { SHAPES = sizeof(shapes) / sizeof(*shapes) };

// The values of a worker. Those of the second tensor are doubles.
typedef struct values {
    float large[LARGE];
    double rest[SHORT];
} values;

// What all workers put in a sum.
typedef enum fault { NO_FAULT, HUGE_VALUES, ONE_NAN } fault;

// One run of an algorithm by all workers.
typedef struct job {
    const algorithm_case *subject;
    const char *topology; // NULL for gradients
    lac_nonfinite policy;
    algorithm_body *body;
    fault fault;
    size_t faulty;        // the number of the sum that has it
    bool found[WORLD];    // whether there was such a sum
    char why[WORLD][256]; // the message of an overflow
    uint8_t states[WORLD][2][STATE_MAX];
} job;

static job shared;

// Of this worker: its rank, whether it may lie, whether its sums may have a
// fault, and how many it has made since then.
static _Thread_local uint32_t self;
static _Thread_local bool may_lie;
static _Thread_local bool has_faults;
static _Thread_local size_t sums;

// Returns what replaces the value in the middle of the n values of the next
// sum; 0: nothing does.
static double fault_of(size_t n, double most)
{
    if (n == 0 || !has_faults || sums++ != shared.faulty) {
        return 0;
    }
    shared.found[self] = true;
    return shared.fault == HUGE_VALUES            ? most
           : shared.fault == ONE_NAN && self == 1 ? (double)NAN
                                                  : 0;
}

lac_status __real_laci_group_sum(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes);
lac_status __wrap_laci_group_sum(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes);
lac_status __real_laci_group_max(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes);
lac_status __wrap_laci_group_max(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes);
lac_status __real_laci_group_sum_f64(
    laci_group *g, uint64_t round, uint32_t phase, double *x, size_t n);
lac_status __wrap_laci_group_sum_f64(
    laci_group *g, uint64_t round, uint32_t phase, double *x, size_t n);

lac_status __wrap_laci_group_sum(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes)
{
    const double value = fault_of(n, (double)FLT_MAX);
    if (value != 0) {
        x[n / 2] = (float)value;
    }
    lie_size = may_lie ? sizeof(*x) : 0;
    const lac_status status =
        __real_laci_group_sum(g, round, phase, x, n, notes);
    lie_size = 0;
    return status;
}

// The largest of huge values is not infinite.
lac_status __wrap_laci_group_max(
    laci_group *g, uint64_t round, uint32_t phase, float *x, size_t n,
    size_t notes)
{
    if (shared.fault == ONE_NAN && isnan(fault_of(n, 0))) {
        x[n / 2] = NAN;
    }
    lie_size = may_lie ? sizeof(*x) : 0;
    const lac_status status =
        __real_laci_group_max(g, round, phase, x, n, notes);
    lie_size = 0;
    return status;
}

lac_status __wrap_laci_group_sum_f64(
    laci_group *g, uint64_t round, uint32_t phase, double *x, size_t n)
{
    const double value = fault_of(n, DBL_MAX);
    if (value != 0) {
        x[n / 2] = value;
    }
    lie_size = may_lie ? sizeof(*x) : 0;
    const lac_status status = __real_laci_group_sum_f64(g, round, phase, x, n);
    lie_size = 0;
    return status;
}

static void fill(values *v, uint32_t rank, uint64_t round)
{
    const lac_key key =
        lac_key_make(11, LAC_PURPOSE_DATA, round, lac_scope_worker(rank), 0);
    for (uint32_t i = 0; i < LARGE; i++) {
        v->large[i] = lac_key_normal(&key, i);
    }
    for (uint32_t i = 0; i < SHORT; i++) {
        v->rest[i] = (double)lac_key_normal(&key, LARGE + i);
    }
}

static bool all_are(const values *v, bool (*expected)(double x))
{
    bool all = true;
    for (size_t i = 0; i < LARGE; i++) {
        all = all && expected((double)v->large[i]);
    }
    for (size_t i = 0; i < SHORT; i++) {
        all = all && expected(v->rest[i]);
    }
    return all;
}

static bool is_zero(double x)
{
    return x == 0;
}

static bool is_nan(double x)
{
    return isnan(x) != 0;
}

static bool is_finite(double x)
{
    return isfinite(x) != 0;
}

static lac_status run_round(
    lac_algorithm *a, uint64_t round, const values *in, values *out)
{
    const lac_slice slices[SHAPES] = {
        {0, LAC_F32, in->large, out->large}, {1, LAC_F64, in->rest, out->rest}};
    return shared.topology == NULL
               ? lac_algorithm_reduce(a, round, slices, SHAPES)
               : lac_algorithm_mix(a, round, slices, NULL, SHAPES);
}

static lac_status save(const test_worker *w, const lac_algorithm *a, bool after)
{
    const size_t len = lac_algorithm_state_size(a);
    EXPECT(len <= STATE_MAX);
    return lac_algorithm_save(a, shared.states[w->rank][after], len);
}

// The round is done, and all fields are as they were.
static lac_status expect_same_fields(const test_worker *w)
{
    saved_state before = saved_state_open(shared.states[w->rank][false]);
    saved_state after = saved_state_open(shared.states[w->rank][true]);
    saved_field old, now;
    while (saved_state_next(&before, &old)) {
        EXPECT(saved_state_next(&after, &now));
        EXPECT(old.count == now.count && old.next_round + 1 == now.next_round);
        EXPECT(memcmp(old.values, now.values, old.count * sizeof(float)) == 0);
    }
    return LAC_OK;
}

// Fields are as they were, except that the undelivered values are in error
// memories.
static lac_status expect_old_state(const test_worker *w, const values *g)
{
    saved_state before = saved_state_open(shared.states[w->rank][false]);
    saved_state after = saved_state_open(shared.states[w->rank][true]);
    saved_field old, now;
    while (saved_state_next(&before, &old)) {
        EXPECT(saved_state_next(&after, &now));
        EXPECT(old.count == now.count && old.next_round == now.next_round);
        if (memcmp(old.values, now.values, old.count * sizeof(float)) == 0) {
            continue;
        }
        const bool large = strcmp(now.tensor, "large") == 0;
        EXPECT(strstr(now.name, "error") != NULL);
        for (size_t i = 0; i < now.count; i++) {
            const float x = large ? g->large[i] : (float)g->rest[i];
            EXPECT(saved_value(&now, i) == saved_value(&old, i) + x);
        }
    }
    return LAC_OK;
}

// A round that may fail, and then leaves values and state.
static lac_status lie_in_round(test_worker *w, lac_algorithm *a, uint64_t round)
{
    static _Thread_local values in, out, old;
    char why[256];
    fill(&in, w->rank, round);
    fill(&out, w->rank, round);
    old = out;
    LAC_TRY(save(w, a, false));
    const lac_status status = run_round(a, round, &in, &out);
    if (status == LAC_OK) {
        return LAC_OK;
    }
    (void)snprintf(why, sizeof(why), "%s", lac_error_message());
    EXPECT(memcmp(&old, &out, sizeof(out)) == 0);
    LAC_TRY(save(w, a, true));
    LAC_TRY(expect_old_state(w, &in));
    return lac_fail(status, "%s", why);
}

static lac_status start(const test_worker *w, lac_algorithm *a)
{
    static _Thread_local values x;
    fill(&x, w->rank, ROUNDS);
    const lac_slice slices[SHAPES] = {
        {0, LAC_F32, x.large, x.large}, {1, LAC_F64, x.rest, x.rest}};
    return lac_algorithm_start(a, slices, SHAPES);
}

static lac_status lie_in_rounds(test_worker *w, lac_algorithm *a)
{
    may_lie = true;
    LAC_TRY(start(w, a));
    for (uint64_t round = 0; round <= ROUNDS; round++) {
        // Who is far from a lie in the last message of a round completes it
        // and fails in the next one.
        may_lie = round < ROUNDS;
        LAC_TRY(lie_in_round(w, a, round));
    }
    return LAC_OK;
}

static lac_status run_worker(test_worker *w)
{
    lac_algorithm_options o =
        options_for(shared.subject->spec, shared.subject->compressor);
    o.nonfinite = shared.policy;
    o.timeout = 600;
    self = w->rank;
    return with_algorithm(w, o, shared.topology, shapes, SHAPES, shared.body);
}

// Runs the job with a lie, and returns whether there was such a message.
static bool run_lie(uint32_t rank, size_t message)
{
    test_worker workers[WORLD];
    char expected[100];
    (void)snprintf(
        expected, sizeof(expected),
        "worker %u sent a value in a sum that is not finite", rank);
    prepare_lie(rank, message);
    run_workers(WORLD, run_worker, NULL, workers);
    before_exchange = NULL;
    for (uint32_t k = 0; k < WORLD; k++) {
        const bool named = strstr(workers[k].message, expected) != NULL;
        if (lie_was_told() ? !named : workers[k].status != LAC_OK) {
            print_error(
                "message %zu of worker %u, worker %u: \"%s\"\n", message, rank,
                k, workers[k].message);
            fail();
        }
    }
    return lie_was_told();
}

static size_t summing; // cases that sum

// With other settings than the base, the first messages of one worker.
static void lie_in_sums(const algorithm_case *c, const void *context)
{
    (void)context;
    print_message("%s, %s\n", c->spec, c->compressor ? c->compressor : "alone");
    const bool few = !c->plain || is_short();
    shared.subject = c;
    shared.body = lie_in_rounds;
    for (uint32_t rank = few ? 1 : 0; rank < (few ? 2 : WORLD); rank++) {
        size_t message = 0;
        do {
            shared.policy = message % 2 == 0 || shared.topology != NULL
                                ? LAC_NONFINITE_STOP
                                : LAC_NONFINITE_SKIP;
        } while (run_lie(rank, message) && (++message < 6 || !few));
        summing += message > 0;
    }
}

static bool passes_infinities(void)
{
    return shared.policy == LAC_NONFINITE_RAW &&
           claims_of(shared.subject->plugin)->infinite_sums;
}

static bool must_fail(void)
{
    return shared.policy == LAC_NONFINITE_STOP ||
           (shared.policy == LAC_NONFINITE_RAW && !passes_infinities());
}

// The result of a round in which a sum overflowed.
static lac_status expect_result(
    const test_worker *w, const lac_algorithm *a, const values *in,
    const values *out)
{
    const char *const why = shared.why[w->rank];
    if (must_fail()) {
        EXPECT(
            strstr(why, " overflows") != NULL ||
            strstr(why, "more than a float holds") != NULL);
        EXPECT(strstr(why, "sent") == NULL);
        EXPECT(memcmp(in, out, sizeof(*in)) == 0);
        return LAC_OK;
    }
    if (shared.policy == LAC_NONFINITE_PROPAGATE) {
        EXPECT(all_are(out, is_nan));
        LAC_TRY(save(w, a, true));
        return expect_same_fields(w);
    }
    EXPECT(
        passes_infinities() ? !all_are(out, is_finite) : all_are(out, is_zero));
    return LAC_OK;
}

// One round has a fault; the group stays usable, and later ones are sound.
static lac_status fault_in_round(test_worker *w, lac_algorithm *a)
{
    static _Thread_local values in, out;
    LAC_TRY(start(w, a));
    fill(&in, w->rank, 0);
    fill(&out, w->rank, 0);
    LAC_TRY(save(w, a, false));
    has_faults = true;
    sums = 0;
    const lac_status status = run_round(a, 0, &in, &out);
    has_faults = false;
    (void)snprintf(
        shared.why[w->rank], sizeof(shared.why[w->rank]), "%s",
        status == LAC_OK ? "" : lac_error_message());
    if (!shared.found[w->rank]) {
        return status;
    }
    EXPECT(status == (must_fail() ? LAC_ERR_INVALID : LAC_OK));
    LAC_TRY(expect_result(w, a, &in, &out));
    for (uint64_t round = !must_fail(); round < ROUNDS; round++) {
        fill(&in, w->rank, round);
        LAC_TRY(run_round(a, round, &in, &out));
        EXPECT(all_are(&out, is_finite));
    }
    return LAC_OK;
}

// Runs the job with a fault in a sum of the first round, and returns whether
// there is such a sum.
static bool run_fault(size_t number)
{
    test_worker workers[WORLD];
    shared.faulty = number;
    memset(shared.found, 0, sizeof(shared.found));
    run_workers(WORLD, run_worker, NULL, workers);
    assert_all_ok(workers, WORLD);
    for (uint32_t rank = 1; rank < WORLD; rank++) {
        assert_string_equal(shared.why[rank], shared.why[0]);
        assert_true(shared.found[rank] == shared.found[0]);
    }
    return shared.found[0];
}

static void run_faults(const algorithm_case *c, fault what)
{
    shared.subject = c;
    shared.body = fault_in_round;
    shared.fault = what;
    size_t number = 0;
    while (run_fault(number) && (number < 3 || c->plain)) {
        number++;
    }
    shared.fault = NO_FAULT;
}

static void overflow_in_sums(const algorithm_case *c, const void *context)
{
    (void)context;
    const int last = shared.topology != NULL ? LAC_NONFINITE_STOP
                     : is_short()            ? LAC_NONFINITE_SKIP
                                             : LAC_NONFINITE_PROPAGATE;
    for (int policy = LAC_NONFINITE_STOP; policy <= last; policy++) {
        shared.policy = (lac_nonfinite)policy;
        run_faults(c, HUGE_VALUES);
    }
}

static void propagate_in_sums(const algorithm_case *c, const void *context)
{
    (void)context;
    shared.policy = LAC_NONFINITE_PROPAGATE;
    run_faults(c, ONE_NAN);
}

// With every compressor, and with every setting alone.
static void visit_settings_too(
    algorithm_case *c, visit_case *visit, const void *context)
{
    const bool takes_compressor = c->compressor != NULL;
    visit_base(c, visit, context);
    if (WORKERS_ARE_LOCAL) {
        c->compressor = takes_compressor ? "identity" : NULL;
        visit_settings(c, visit, context);
    }
}

// Algorithms with an inner one may sum at the start.
static void visit_outer(
    algorithm_case *c, visit_case *visit, const void *context)
{
    if (claims_of(c->plugin)->inner != NULL) {
        c->plain = true;
        set_base(c);
        write_spec(c);
        duty_begin(c->spec, "");
        visit(c, context);
        duty_end();
    }
}

static void visit_all(visit_case *visit)
{
    shared.topology = NULL;
    visit_algorithms(LAC_FAMILY_GRADIENT, visit_settings_too, visit, NULL);
    shared.topology = "complete";
    visit_algorithms(LAC_FAMILY_MODEL, visit_outer, visit, NULL);
    shared.topology = NULL;
}

static void whoever_sends_a_nonfinite_value_is_named(void **state)
{
    (void)state;
    summing = 0;
    visit_all(lie_in_sums);
    assert_true(summing > 0 || only_algorithm() != NULL);
}

static void an_overflow_has_the_result_of_the_policy(void **state)
{
    (void)state;
    visit_all(overflow_in_sums);
}

static void a_nan_of_one_worker_is_propagated(void **state)
{
    (void)state;
    visit_algorithms(
        LAC_FAMILY_GRADIENT, visit_settings_too, propagate_in_sums, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_sends_a_nonfinite_value_is_named),
        cmocka_unit_test(an_overflow_has_the_result_of_the_policy),
        cmocka_unit_test(a_nan_of_one_worker_is_propagated),
    };
    return cmocka_run_group_tests_name(
        "gradient_sums", tests, setup_workers, teardown_workers);
}
