// SPDX-License-Identifier: MIT
// gamma=auto runs trials on a small copy of the problem: the same graph and
// compressor, fewer values. The rounds until the workers agree, as a function
// of gamma, fall like 1/gamma up to the best gamma, and rise steeply just above
// it, where the steps are too large for the compressor. So the search
//
// 1. lowers gamma by factors of sqrt(2), from above all that work, until two
//    consecutive results are slower (one may be an accident: sign runs into
//    cycles with some gammas);
// 2. walks from the best to both sides, in steps of 2^(1/12), while the result
//    is not much slower. It takes the gamma whose slower neighbour is the
//    fastest: this one is still good if the real problem's steep side begins
//    at a slightly different gamma.
//
// The best gamma is nearly proportional to the part of a tensor that the
// compressor preserves, delta = 1 - |C(x) - x|^2 / |x|^2. The gamma of the copy
// is therefore multiplied by the delta of the layout's largest tensor over the
// delta of the copy.
//
// Work is bounded by counts, not by clocks: the number of values of the copy,
// the rounds of a trial (the rest is estimated) and the rounds of all trials.
#include "algorithm/gamma.h"

#include <math.h>
#include <string.h>

#include "algorithm/gamma_trial.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
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
    MEASURED_MAX = 1 << 22,
    MEASURED_MIN = 1 << 18,
    CODEC_WORK = 16,    // passes over a tensor that compression costs
    CODEC_VALUES = 500, // and its fixed cost, in values
};

#define TARGET         1e-4               // the relative error of agreement
#define GAMMA_FIRST    1.4142135623730951 // of the descent
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

typedef struct search {
    laci_gamma_trial *copy;
    double limit;  // rounds of one trial
    double left;   // rounds that are left for all further trials
    double gamma;  // the best so far
    double rounds; // until agreement with it
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

static lac_shape copy_shape(lac_shape shape, const lac_topology *topology)
{
    const size_t heard =
        EDGE_VALUES / (2 * lac_topology_edge_count(topology) + 1);
    size_t most = ALL_VALUES / lac_topology_workers(topology);
    most = most > heard ? heard : most;
    most = most > VALUES ? VALUES : most < VALUES_MIN ? VALUES_MIN : most;
    return shrink(shape, most);
}

// Returns the mean delta of tensors of normal values. x, y and payload are
// working memory.
static double mean_delta(
    lac_compressor *c, lac_shape shape, float *x, float *y, uint8_t *payload)
{
    const size_t n = lac_shape_values(shape);
    const size_t bound = lac_compressor_bound(c, shape, LAC_SCOPE_WORKER);
    const laci_kernels *const kernels = laci_kernels_best();
    double kept = 0, all = 0;
    for (uint32_t k = 0; k == 0 || k * n < MEASURED_MIN; k++) {
        const lac_key key =
            lac_key_make(0, LAC_PURPOSE_DATA, k, lac_scope_worker(0), 0);
        size_t len = 0;
        for (size_t i = 0; i < n; i++) {
            x[i] = lac_key_normal(&key, (uint32_t)i);
        }
        // The shape is reserved, so neither call can fail.
        (void)!lac_compressor_encode(c, &key, shape, x, payload, bound, &len);
        (void)!lac_compressor_decode(c, &key, shape, payload, len, y);
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

// Runs one trial, for at most `slack` times the rounds of the best, and returns
// the rounds it takes.
static double try_gamma(search *s, double gamma, double slack)
{
    if (gamma > GAMMA_MAX || s->left < s->limit) {
        return (double)INFINITY;
    }
    const double limit = fmin(s->limit, s->rounds * slack);
    const laci_gamma_result result =
        laci_gamma_trial_run(s->copy, gamma, TARGET, limit);
    s->left -= result.done;
    if (result.rounds < s->rounds) {
        s->gamma = gamma;
        s->rounds = result.rounds;
    }
    return result.rounds;
}

static void descend(search *s)
{
    double gamma = GAMMA_FIRST;
    int slower = 0;
    for (int i = 0; i < DESCENTS_MAX && slower < 2; i++, gamma /= sqrt(2)) {
        const double before = s->rounds;
        const double rounds = try_gamma(s, gamma, RIGHT_SLACK);
        slower = isfinite(before) && rounds > before ? slower + 1 : 0;
    }
}

// Walks from the middle to one side until a result is more than `slack` times
// the best. The middle is at rounds[STEPS_MAX + 1].
static void walk(
    search *s, double middle, int side, double slack, double *rounds)
{
    for (int i = 1; i <= STEPS_MAX; i++) {
        const double gamma = middle * pow(STEP_SPACING, side * i);
        const int at = STEPS_MAX + 1 + side * i;
        rounds[at] = try_gamma(s, gamma, RIGHT_SLACK);
        if (rounds[at] > s->rounds * slack) {
            return;
        }
    }
}

// Returns the gamma near the best whose slower neighbour is the fastest.
static double refine(search *s)
{
    enum { MIDDLE = STEPS_MAX + 1, COUNT = 2 * MIDDLE + 1 };
    const double middle = s->gamma;
    double rounds[COUNT];
    for (int i = 0; i < COUNT; i++) {
        rounds[i] = (double)INFINITY;
    }
    rounds[MIDDLE] = s->rounds;
    walk(s, middle, 1, RIGHT_SLACK, rounds);
    walk(s, middle, -1, LEFT_SLACK, rounds);
    double best = (double)INFINITY, gamma = s->gamma;
    for (int i = 1; i + 1 < COUNT; i++) {
        const double worst =
            fmax(rounds[i], fmax(rounds[i - 1], rounds[i + 1]));
        if (worst < best) {
            best = worst;
            gamma = middle * pow(STEP_SPACING, i - MIDDLE);
        }
    }
    return gamma;
}

// Returns the gamma of the copy, or 0 if the workers agree with none.
static double search_copy(search *s)
{
    s->rounds = (double)INFINITY;
    descend(s);
    return isfinite(s->rounds) ? refine(s) : 0;
}

// Returns the work of one round of a trial.
static double round_work(const lac_topology *topology, size_t n)
{
    const double edges = 2 * (double)lac_topology_edge_count(topology);
    const double workers = (double)lac_topology_workers(topology);
    return CODEC_WORK * workers * (double)(n + CODEC_VALUES) +
           edges * (double)n;
}

lac_status laci_gamma_search(
    laci_gamma_kind kind, const char *compressor, const lac_topology *topology,
    const lac_layout *layout, double *gamma_out)
{
    const lac_shape whole = shrink(largest_shape(layout), MEASURED_MAX);
    if (lac_topology_workers(topology) == 1 || lac_shape_values(whole) == 0) {
        *gamma_out = 1;
        return LAC_OK;
    }
    const lac_shape shape = copy_shape(whole, topology);
    double delta, small_delta;
    LAC_TRY(measure_delta(compressor, whole, &delta));
    LAC_TRY(measure_delta(compressor, shape, &small_delta));
    *gamma_out = fmax(fmin(SAFE_PART * delta, 1), SAFE_MIN);
    const double work = round_work(topology, lac_shape_values(shape));
    const double least = ROUNDS_MIN / small_delta;
    if (!(delta > 0 && least <= WORK_MAX / work)) {
        return LAC_OK;
    }
    search s = {.limit = fmax(WORK / work, least), .left = WORK_ALL / work};
    LAC_TRY(laci_gamma_trial_open(&s.copy, kind, compressor, topology, shape));
    const double found = search_copy(&s) * fmin(delta / small_delta, 1);
    laci_gamma_trial_close(s.copy);
    *gamma_out = found > 0 ? found : *gamma_out;
    return LAC_OK;
}

lac_status laci_gamma_configure(void *state, const laci_worker *w)
{
    laci_gamma *const g = state;
    (void)w;
    g->step = g->gamma.word < 0 ? g->gamma.value : 0;
    return LAC_OK;
}

double *laci_gamma_step(void *state)
{
    laci_gamma *const g = state;
    return &g->step;
}

lac_status laci_gamma_find(
    laci_worker *w, laci_gamma_kind kind, double *gamma_out)
{
    double gamma = 0;
    if (w->rank == 0) {
        LAC_TRY(laci_group_abort_on_failure(
            w->group,
            laci_gamma_search(
                kind, w->compressor_spec, w->topology, w->layout, &gamma)));
        gamma = w->training ? gamma / 2 : gamma;
    }
    uint64_t bits;
    uint8_t bytes[sizeof(bits)];
    memcpy(&bits, &gamma, sizeof(bits));
    laci_put_u64(bytes, bits);
    // The search may take longer than a round may.
    const double timeout = laci_group_set_timeout(w->group, SEARCH_TIMEOUT);
    const lac_status status =
        laci_group_broadcast(w->group, 0, PHASE_GAMMA, 0, bytes, sizeof(bytes));
    (void)laci_group_set_timeout(w->group, timeout);
    LAC_TRY(status);
    bits = laci_get_u64(bytes);
    memcpy(&gamma, &bits, sizeof(bits));
    if (!(gamma > 0 && gamma <= GAMMA_MAX)) {
        return laci_group_abort_on_failure(
            w->group,
            lac_fail(
                LAC_ERR_CORRUPT,
                "gamma: worker 0 found %g, expected above 0 and at most %g",
                gamma, GAMMA_MAX));
    }
    *gamma_out = gamma;
    return LAC_OK;
}
