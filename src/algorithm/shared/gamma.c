// SPDX-License-Identifier: MIT
// gamma=auto runs trials on a small copy of the problem: the same graph and
// compressor, fewer values. The rounds until the workers agree, as a function
// of gamma, fall like 1/gamma up to the best gamma, and rise steeply just above
// it, where the steps are too large for the compressor. So the search
//
// 1. lowers gamma by factors of sqrt(2), from above all that work, until two
//    consecutive results are worse (one may be an accident: sign runs into
//    cycles with some gammas);
// 2. walks from the best to both sides, in steps of 2^(1/12), while the result
//    is not much worse. It takes the gamma whose worse neighbour is the best:
//    this one is still good if the real problem's steep side begins at a
//    slightly different gamma.
//
// deepsqueeze does not converge to the mean. Its error after t rounds is the
// sum of a transient that decays like exp(-c gamma t) and a floor that grows
// like gamma^2. The fastest gamma leaves a high floor, so the search compares
// the errors after FLOOR_ROUNDS rounds. It begins with the least gamma whose
// transient vanishes within these rounds, since a larger one only raises the
// floor. In training the models move in every round, and speed matters more
// than the floor: the search then compares rounds, as for choco.
//
// The best gamma is nearly proportional to the part of a tensor that the
// compressor preserves, delta = 1 - |C(x) - x|^2 / |x|^2. The gamma of the copy
// is therefore multiplied by `scale`, the delta of the layout's largest tensor
// over the delta of the copy. The floor follows gamma / delta too, but the
// transient does not depend on delta: it is measured without compression, with
// the scaled gamma.
//
// Under an outer step with momentum, the differences of all later rounds are
// lr / (1 - momentum) times that of a round. The replicas follow slowly and
// notice little else, so outer over choco diverges where choco diverges with a
// gamma that is so many times larger. If the error of compression is white
// noise, C(e) = delta e + noise with |noise|^2 = delta (1 - delta) |e|^2, as
// for random-k, then a linear recursion shows this, exactly for delta -> 0:
// with random-k:0.1 on a ring the largest gamma times lr / (1 - momentum) is
// 0.158 without momentum and 0.136 with 0.9; simulated 0.147 and 0.117. But the
// errors of sign are no noise: with a momentum of 0.3, 0.6 and 0.9 that product
// is 1, 0.7 and 0.12, and above it lucky gammas converge between others that
// diverge. So trials decide, which make the outer step too. A gamma is refused
// unless the workers agree with it and with BOUND_RUN - 1 smaller ones, after
// at most BOUND_SLACK times the rounds without compression. gamma=auto divides
// the gamma for pure gossip by lr / (1 - momentum) and stays below this bound.
//
// Work is bounded by counts, not by clocks: the number of values of the copy,
// the rounds of a trial (the rest is estimated) and the rounds of all trials.
// With more than about 90 workers this leaves fewer than FLOOR_ROUNDS rounds
// for a trial of deepsqueeze.
#include "algorithm/shared/gamma.h"

#include <math.h>
#include <string.h>

#include "algorithm/shared/gamma_trial.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "compress/compressor.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

enum {
    PHASE_GAMMA = 2, // of the broadcast; exchanges use 0 and 1
    DESCENTS_MAX = 48,
    STEPS_MAX = 7, // of the walk, to each side
    VALUES = 500,  // of the copy's tensor
    VALUES_MIN = 100,
    ALL_VALUES = 1 << 17,  // of all workers of the copy
    EDGE_VALUES = 1 << 22, // that all of them receive in a round
    EXACT_VALUES = 16,     // of the trial without compression
    MEASURED_MAX = 1 << 22,
    MEASURED_MIN = 1 << 18,
    CODEC_WORK = 16,    // passes over a tensor that compression costs
    CODEC_VALUES = 500, // and its fixed cost, in values
    BOUND_RUN = 4,
    BOUND_TRIALS = 64,
    BOUND_ROUNDS = 1000, // at least, of a trial
};

#define TARGET         1e-4   // the relative error of agreement
#define FLOOR_TARGET   1e-9   // with a floor: rounding of floats leaves more
#define FLOOR_ROUNDS   2000.0 // of a trial
#define FLOOR_TRIALS   16     // for which WORK_ALL suffices
#define GAMMA_FIRST    1.4142135623730951 // of the descent
#define GAMMA_STABLE   0.5
#define GAMMA_MAX      2.0
#define STEP_SPACING   1.0594630943592953 // 2^(1/12)
#define SEARCH_TIMEOUT 600.0              // seconds that the other workers wait
#define WORK           1.5e9 // of a trial, in values read and written
#define WORK_MAX       6e9   // of a trial that needs it for ROUNDS_MIN
#define WORK_ALL       3e10
#define ROUNDS_MIN     6.0 // of a trial, in units of 1 / delta
#define SAFE_PART      0.3 // of delta, where no trial is possible
#define SAFE_MIN       1e-6
#define RIGHT_SLACK    1.2
#define LEFT_SLACK     1.1
#define BOUND_TARGET   1e-2
#define BOUND_SLACK    4.0
#define BOUND_STEP     1.25 // from one gamma to the next
#define BOUND_MARGIN   1.25 // of gamma=auto

typedef struct search {
    laci_gamma_trial *copy;  // NULL: no trial is possible
    laci_gamma_trial *exact; // without compression
    double safe;             // a gamma that needs no trial
    bool has_floor;          // compare errors, not only rounds
    double scale;            // delta of the tensor over delta of the copy
    double target;           // the relative error of agreement
    double limit;            // rounds of one trial
    double left;             // rounds that are left for all further trials
    double gamma;            // the best so far
    double cost;             // of the best
} search;

// Returns a similar shape with at most `most` values.
static lac_shape shrink(lac_shape shape, size_t most)
{
    if (lac_shape_values(shape) <= most) {
        return shape;
    }
    const double scale = sqrt((double)most / (double)lac_shape_values(shape));
    size_t cols = (size_t)((double)shape.cols * scale);
    cols = cols == 0 ? 1 : cols < most ? cols : most;
    return (lac_shape){most / cols, cols};
}

static lac_shape largest_shape(const lac_layout *layout)
{
    lac_shape largest = {0, 0};
    for (size_t t = 0; t < lac_layout_count(layout); t++) {
        const lac_shape shape = lac_layout_tensor(layout, t)->shape;
        largest = lac_shape_values(shape) > lac_shape_values(largest) ? shape
                                                                      : largest;
    }
    return largest;
}

// Returns the work of one round of a trial.
static double round_work(const lac_topology *topology, size_t n)
{
    const double edges = 2 * (double)lac_topology_edge_count(topology);
    const double workers = (double)lac_topology_workers(topology);
    return CODEC_WORK * workers * (double)(n + CODEC_VALUES) +
           edges * (double)n;
}

// Returns the number of values with which FLOOR_TRIALS trials fit into
// WORK_ALL. The work of a round is linear in it.
static size_t floor_values(const lac_topology *topology)
{
    const double fixed = round_work(topology, 0);
    const double each = round_work(topology, 1) - fixed;
    const double work = WORK_ALL / FLOOR_TRIALS / FLOOR_ROUNDS;
    return (size_t)fmax((work - fixed) / each, 0);
}

static lac_shape copy_shape(
    lac_shape shape, const lac_topology *topology, bool has_floor)
{
    const size_t received =
        EDGE_VALUES / (2 * lac_topology_edge_count(topology) + 1);
    const size_t floor = has_floor ? floor_values(topology) : VALUES;
    size_t most = ALL_VALUES / lac_topology_workers(topology);
    most = most > received ? received : most;
    most = most > floor ? floor : most;
    most = most > VALUES ? VALUES : most < VALUES_MIN ? VALUES_MIN : most;
    return shrink(shape, most);
}

// Returns the mean delta of tensors of normal values. x, y and payload are
// working memory.
static double mean_delta(
    lac_compressor *c, lac_shape shape, float *x, float *y, uint8_t *payload)
{
    const size_t n = lac_shape_values(shape);
    const laci_kernels *const kernels = laci_kernels_best();
    double kept = 0, all = 0;
    for (uint32_t k = 0; k == 0 || k * n < MEASURED_MIN; k++) {
        const lac_key key =
            lac_key_make(0, LAC_PURPOSE_DATA, k, lac_scope_worker(0), 0);
        for (size_t i = 0; i < n; i++) {
            x[i] = lac_key_normal(&key, (uint32_t)i);
        }
        const lac_call call = laci_call_make(c, &key, shape);
        const size_t len = laci_payload_encode(c, &call, x, payload);
        laci_payload_decode(c, &call, payload, len, y);
        const double square = kernels->vector->sum_squares(x, n);
        kernels->gossip->subtract(x, y, y, n);
        all += square;
        kept += square - kernels->vector->sum_squares(y, n);
    }
    return kept / all;
}

static lac_status measure_delta(
    const char *compressor, lac_shape shape, double *delta_out)
{
    const size_t n = lac_shape_values(shape);
    lac_compressor *c = NULL;
    uint8_t *payload = NULL;
    float *x = NULL;
    lac_status status =
        lac_compressor_open(&c, compressor, LAC_FORM_CONTRACTIVE);
    if (status == LAC_OK) {
        status = lac_compressor_reserve(c, shape);
    }
    if (status == LAC_OK) {
        payload =
            laci_zalloc(lac_compressor_bound(c, shape, LAC_SCOPE_WORKER) + 1);
        x = laci_zalloc_aligned(2 * n * sizeof(*x));
        status = payload != NULL && x != NULL
                     ? LAC_OK
                     : lac_fail(
                           LAC_ERR_NOMEM,
                           "gamma: no memory for a tensor of %zu values", n);
    }
    if (status == LAC_OK) {
        *delta_out = mean_delta(c, shape, x, x + n, payload);
    }
    laci_free_aligned(x);
    laci_free(payload);
    lac_compressor_close(c);
    return status;
}

// Returns the error that is left after a trial without compression.
static double transient(const search *s, double gamma)
{
    return laci_gamma_trial_run(s->exact, gamma, s->target, s->limit).error;
}

// Runs one trial, for at most `slack` times the rounds of the best, and returns
// its cost: the rounds until the target, or, if a floor prevents it, a number
// above the limit that is proportional to the error.
static double try_gamma(search *s, double gamma, double slack)
{
    if (gamma > GAMMA_MAX || s->left < s->limit) {
        return (double)INFINITY;
    }
    const laci_gamma_result result = laci_gamma_trial_run(
        s->copy, gamma, s->target, fmin(s->limit, s->cost * slack));
    double cost = result.rounds;
    if (s->has_floor && result.error > s->target) {
        const double slow = s->scale < 1 ? transient(s, gamma * s->scale) : 0;
        cost = s->limit * fmax(result.error, slow) / s->target;
    }
    s->left -= result.done;
    if (cost < s->cost) {
        s->gamma = gamma;
        s->cost = cost;
    }
    return cost;
}

static void descend(search *s, double gamma)
{
    int worse = 0;
    s->cost = (double)INFINITY;
    for (int i = 0; i < DESCENTS_MAX && worse < 2; i++, gamma /= sqrt(2)) {
        const double before = s->cost;
        const double cost = try_gamma(s, gamma, RIGHT_SLACK);
        worse = isfinite(before) && cost > before ? worse + 1 : 0;
    }
}

// Walks from the middle to one side until the cost is more than `slack` times
// the best. The middle is at costs[STEPS_MAX + 1].
static void gamma_walk(
    search *s, double middle, int side, double slack, double *costs)
{
    for (int i = 1; i <= STEPS_MAX; i++) {
        const double gamma = middle * pow(STEP_SPACING, side * i);
        const int at = STEPS_MAX + 1 + side * i;
        costs[at] = try_gamma(s, gamma, RIGHT_SLACK);
        if (costs[at] > s->cost * slack) {
            return;
        }
    }
}

// Returns the gamma near the best whose worse neighbour is the best.
static double refine(search *s)
{
    enum { MIDDLE = STEPS_MAX + 1, COUNT = 2 * MIDDLE + 1 };
    const double middle = s->gamma;
    double costs[COUNT];
    for (int i = 0; i < COUNT; i++) {
        costs[i] = (double)INFINITY;
    }
    costs[MIDDLE] = s->cost;
    gamma_walk(s, middle, 1, RIGHT_SLACK, costs);
    gamma_walk(s, middle, -1, LEFT_SLACK, costs);
    double best = (double)INFINITY, gamma = s->gamma;
    for (int i = 1; i + 1 < COUNT; i++) {
        const double worst = fmax(costs[i], fmax(costs[i - 1], costs[i + 1]));
        if (worst < best) {
            best = worst;
            gamma = middle * pow(STEP_SPACING, i - MIDDLE);
        }
    }
    return gamma;
}

// Returns the least gamma of the descent whose transient vanishes within a
// trial, or GAMMA_FIRST if there is none. Above GAMMA_STABLE gossip may
// diverge; below it a smaller gamma is always slower.
static double least_sufficient(const search *s)
{
    double least = GAMMA_FIRST;
    bool found = false;
    for (double gamma = least; found || gamma > GAMMA_STABLE;
         gamma /= sqrt(2)) {
        if (transient(s, gamma) <= s->target) {
            least = gamma;
            found = true;
        } else if (found) {
            break;
        }
    }
    return least;
}

// Returns the gamma that the descent starts from. If the floor of the least
// sufficient gamma is below the target, a larger gamma may be faster.
static double first_gamma(search *s)
{
    if (!s->has_floor) {
        return GAMMA_FIRST;
    }
    const double gamma = fmin(least_sufficient(s) / s->scale, GAMMA_FIRST);
    return try_gamma(s, gamma, 1) <= s->limit ? GAMMA_FIRST : gamma;
}

// Returns the gamma of the copy, or 0 if the workers agree with none.
static double search_copy(search *s)
{
    descend(s, first_gamma(s));
    return isfinite(s->cost) ? refine(s) : 0;
}

// Returns the rounds of one trial whose rounds take `work` each.
static double trial_rounds(double work, double least, bool has_floor)
{
    if (!has_floor) {
        return fmax(WORK / work, least);
    }
    return fmin(FLOOR_ROUNDS, fmax(WORK_ALL / work / FLOOR_TRIALS, least));
}

static lac_status open_trials(
    search *s, const laci_gamma_problem *p, lac_shape shape,
    const laci_outer_step *outer)
{
    LAC_TRY(laci_gamma_trial_open(
        &s->copy, p->kind, p->compressor, p->topology, shape, outer));
    return laci_gamma_trial_open(
        &s->exact, p->kind, "identity", p->topology,
        (lac_shape){EXACT_VALUES, 1}, outer);
}

// Prepares trials with the outer step, or without one. Close it in either case.
static lac_status search_open(
    search *s, const laci_gamma_problem *p, bool has_floor,
    const laci_outer_step *outer)
{
    const lac_shape whole = shrink(largest_shape(p->layout), MEASURED_MAX);
    *s = (search){.safe = 1, .has_floor = has_floor, .cost = (double)INFINITY};
    if (lac_topology_workers(p->topology) == 1 ||
        lac_shape_values(whole) == 0) {
        return LAC_OK;
    }
    const lac_shape shape = copy_shape(whole, p->topology, has_floor);
    double delta, small_delta;
    LAC_TRY(measure_delta(p->compressor, whole, &delta));
    LAC_TRY(measure_delta(p->compressor, shape, &small_delta));
    s->safe = fmax(fmin(SAFE_PART * delta, 1), SAFE_MIN);
    const double work = round_work(p->topology, lac_shape_values(shape));
    const double least = ROUNDS_MIN / small_delta;
    if (!(delta > 0 && least <= WORK_MAX / work)) {
        return LAC_OK;
    }
    s->scale = fmin(delta / small_delta, 1);
    s->target = has_floor ? FLOOR_TARGET : TARGET;
    s->limit = trial_rounds(work, least, has_floor);
    s->left = WORK_ALL / work;
    return open_trials(s, p, shape, outer);
}

static void search_close(search *s)
{
    laci_gamma_trial_close(s->exact);
    laci_gamma_trial_close(s->copy);
}

// Whether the workers agree with the gamma of the real tensor, and stay so: an
// error may fall at first and grow later.
static bool agrees(const search *s, double gamma)
{
    const double rounds =
        laci_gamma_trial_run(s->exact, gamma, BOUND_TARGET, s->limit).rounds;
    const double limit =
        fmin(fmax(BOUND_SLACK * rounds, BOUND_ROUNDS), s->limit);
    const double exact = laci_gamma_trial_run(s->exact, gamma, 0, limit).error;
    const double left =
        laci_gamma_trial_run(s->copy, gamma / s->scale, 0, limit).error;
    return isfinite(exact) && left <= fmax(BOUND_TARGET, BOUND_SLACK * exact);
}

// Returns the largest gamma, of those from `gamma` down, that is followed by a
// run of gammas with which the workers agree.
static double find_bound(const search *s, double gamma)
{
    double bound = gamma;
    int run = 0;
    for (int i = 0; i < BOUND_TRIALS && run < BOUND_RUN; i++) {
        run = agrees(s, gamma) ? run + 1 : 0;
        gamma /= BOUND_STEP;
        bound = run == 0 ? gamma : bound;
    }
    return bound;
}

lac_status laci_gamma_bound(
    const laci_gamma_problem *p, double gamma, double *bound_out)
{
    search s;
    const lac_status status = search_open(&s, p, false, &p->outer);
    if (status == LAC_OK) {
        *bound_out = s.copy == NULL ? gamma : find_bound(&s, gamma);
    }
    search_close(&s);
    return status;
}

// Whether an outer step can make a gamma unstable that is stable without it.
static bool amplifies(const laci_outer_step *outer)
{
    return outer->momentum > 0 || outer->lr > 1;
}

// Makes the gamma for pure gossip one for the outer step.
static lac_status reduce_gamma(const laci_gamma_problem *p, double *gamma)
{
    const double factor = p->outer.lr / (1 - p->outer.momentum);
    const double most = BOUND_MARGIN * *gamma / fmax(factor, 1);
    double bound;
    LAC_TRY(laci_gamma_bound(p, most, &bound));
    *gamma = bound / BOUND_MARGIN;
    return LAC_OK;
}

lac_status laci_gamma_search(const laci_gamma_problem *p, double *gamma_out)
{
    const bool has_floor = p->kind == laci_gamma_deepsqueeze && !p->training;
    double gamma = 0;
    search s;
    lac_status status = search_open(&s, p, has_floor, NULL);
    if (status == LAC_OK) {
        const double found = s.copy == NULL ? 0 : search_copy(&s) * s.scale;
        gamma = found > 0 ? found : s.safe;
    }
    search_close(&s);
    if (status == LAC_OK && amplifies(&p->outer)) {
        status = reduce_gamma(p, &gamma);
    }
    if (status == LAC_OK) {
        *gamma_out = p->training ? gamma / 2 : gamma;
    }
    return status;
}

lac_status laci_gamma_configure(void *state, const laci_worker *w)
{
    laci_step_size *const gamma = state;
    (void)w;
    gamma->value = gamma->setting.word < 0 ? gamma->setting.value : 0;
    return LAC_OK;
}

laci_step_size *laci_gamma_step(void *state)
{
    return state;
}

// Searches for a gamma if the given one is 0, else for its bound.
static lac_status try_gammas(
    const laci_worker *w, laci_gamma_kind kind, double gamma, double *out)
{
    const laci_gamma_problem problem = {
        .kind = kind,
        .compressor = w->compressor_spec,
        .topology = w->topology,
        .layout = w->layout,
        .outer = w->outer,
        .training = w->training,
    };
    return gamma > 0 ? laci_gamma_bound(&problem, gamma, out)
                     : laci_gamma_search(&problem, out);
}

static lac_status try_and_broadcast(
    const laci_round *round, laci_gamma_kind kind, double given, double *out)
{
    const laci_worker *const w = round->worker;
    double gamma = 0;
    if (w->rank == 0) {
        LAC_TRY(laci_group_abort_on_failure(
            round->group, try_gammas(w, kind, given, &gamma)));
    }
    uint64_t bits;
    uint8_t bytes[sizeof(bits)];
    memcpy(&bits, &gamma, sizeof(bits));
    laci_put_u64(bytes, bits);
    // The search may take longer than a round may.
    const double timeout = laci_group_set_timeout(round->group, SEARCH_TIMEOUT);
    const lac_status status = laci_group_broadcast(
        round->group, 0, PHASE_GAMMA, 0, bytes, sizeof(bytes));
    (void)laci_group_set_timeout(round->group, timeout);
    LAC_TRY(status);
    bits = laci_get_u64(bytes);
    memcpy(out, &bits, sizeof(bits));
    if (!(*out > 0 && *out <= GAMMA_MAX)) {
        return laci_group_abort_on_failure(
            round->group,
            lac_fail(
                LAC_ERR_CORRUPT,
                "gamma: worker 0 found %g, expected above 0 and at most %g",
                *out, GAMMA_MAX));
    }
    return LAC_OK;
}

// All workers know the bound and fail alike. It is rounded down, to two digits.
static lac_status refuse_gamma(const laci_worker *w, double gamma, double bound)
{
    const laci_outer_step *const outer = &w->outer;
    const double unit = pow(10, floor(log10(bound)) - 1);
    return lac_fail(
        LAC_ERR_INVALID,
        "%s: gamma is %g, expected at most %.2g, or auto: with lr=%g, "
        "momentum=%g and nesterov=%s of outer, %u workers do not agree with "
        "larger ones",
        w->algorithm, gamma, floor(bound / unit) * unit, outer->lr,
        outer->momentum, outer->nesterov ? "yes" : "no", w->world);
}

lac_status laci_gamma_find(
    laci_step_size *gamma, const laci_round *round, laci_gamma_kind kind)
{
    const double given = gamma->value; // 0: none
    if (given > 0 && !amplifies(&round->worker->outer)) {
        return LAC_OK;
    }
    double found = 0;
    LAC_TRY(try_and_broadcast(round, kind, given, &found));
    if (found < given) {
        return refuse_gamma(round->worker, given, found);
    }
    gamma->value = given > 0 ? given : found;
    return LAC_OK;
}
