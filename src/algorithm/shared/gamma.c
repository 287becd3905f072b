// SPDX-License-Identifier: MIT
// How the step size is searched for. The rounds that agreement takes, seen as
// a function of gamma, fall like 1/gamma, and rise steeply where the workers
// begin to outrun their compressor; the two are close to each other. So:
//
// 1. lower gamma by factors of sqrt(2), from above any that works, until it is
//    twice slower than before in a row (once may be an accident: sign gets
//    stuck in cycles with some gammas);
// 2. walk from the best in steps of 2^(1/12) to both sides while it is not much
//    slower, and take the gamma whose slower neighbour is the fastest: it
//    stays good when the steep side is not where the copy has it.
//
// The best gamma is close to proportional to what the compressor keeps of a
// tensor, delta = 1 - |C(x) - x|^2 / |x|^2, so what is found for the copy is
// scaled by the delta of the layout's largest tensor over that of the copy.
//
// Work is bounded, by counts and not by clocks: the copy has few values, an
// evaluation few rounds (the rest is estimated), and all of them together have
// a limit too.
#include "algorithm/shared/gamma.h"

#include <math.h>
#include <string.h>

#include "algorithm/shared/rehearsal.h"
#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "kernels/gossip.h"
#include "kernels/vector.h"

enum {
    PHASE_GAMMA = 2, // of the broadcast; 0 and 1 are those of exchanges
    DESCENTS = 48,
    STEPS_MAX = 7, // of the walk, to each side
    VALUES = 500,  // of the copy's tensor
    VALUES_MIN = 100,
    ALL_VALUES = 1 << 17,  // of all workers of the copy
    EDGE_VALUES = 1 << 22, // that all of them hear in a round
    MEASURED_MAX = 1 << 22,
    MEASURED_MIN = 1 << 18,
    CODEC_WORK = 16,    // what compressing costs, in passes over a tensor
    CODEC_VALUES = 500, // and, whatever its size, in values
};

#define STEP_FIRST   1.4142135623730951 // the first gamma that is tried
#define STEP_SPACING 1.0594630943592953 // 2^(1/12)
#define STEP_LIMIT   2.0
#define PATIENCE     600.0 // seconds that the others wait for the search
#define WORK         1.5e9 // of an evaluation, in values read and written
#define WORK_MAX     6e9   // where that is not enough for ROUNDS_MIN
#define WORK_ALL     3e10
#define ROUNDS_MIN   6.0 // of an evaluation, in units of 1 / delta
#define SAFE_PART    0.3 // of delta, where nothing can be rehearsed
#define SAFE_MIN     1e-6
#define RIGHT_SLACK  1.2
#define LEFT_SLACK   1.1

typedef struct search {
    laci_rehearsal *copy;
    double limit; // rounds of one evaluation
    double left;  // rounds of all that are to come
    double gamma; // the best so far
    double rounds;
} search;

static size_t values_of(lac_shape shape)
{
    return shape.rows * shape.cols;
}

// A tensor like this one with at most `most` values.
static lac_shape shrink(lac_shape shape, size_t most)
{
    if (values_of(shape) <= most) {
        return shape;
    }
    const double scale = sqrt((double)most / (double)values_of(shape));
    size_t cols = (size_t)((double)shape.cols * scale);
    cols = cols == 0 ? 1 : cols < most ? cols : most;
    return (lac_shape){most / cols, cols};
}

static lac_shape largest_shape(const lac_layout *layout)
{
    lac_shape largest = {0, 0};
    for (size_t t = 0; t < lac_layout_count(layout); t++) {
        const lac_shape shape = lac_layout_tensor(layout, t)->shape;
        largest = values_of(shape) > values_of(largest) ? shape : largest;
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

// The rest of measure_delta, with memory for x, y and a payload.
static double mean_delta(
    lac_compressor *c, lac_shape shape, float *x, float *y, uint8_t *payload)
{
    const size_t n = values_of(shape);
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
        // The shape was reserved: neither can fail.
        (void)!lac_compressor_encode(c, &key, shape, x, payload, bound, &len);
        (void)!lac_compressor_decode(c, &key, shape, payload, len, y);
        const double square = kernels->vector->sum_squares(x, n);
        kernels->gossip->subtract(x, y, y, n);
        all += square;
        kept += square - kernels->vector->sum_squares(y, n);
    }
    return kept / all;
}

// Measures delta on normal values.
static lac_status measure_delta(
    const char *compressor, lac_shape shape, double *delta_out)
{
    const size_t n = values_of(shape);
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

// Looks at one more gamma, no longer than `slack` times the best took.
static double try_gamma(search *s, double gamma, double slack)
{
    if (gamma > STEP_LIMIT || s->left < s->limit) {
        return (double)INFINITY;
    }
    double done;
    const double limit = fmin(s->limit, s->rounds * slack);
    const double rounds = laci_rehearsal_rounds(s->copy, gamma, limit, &done);
    s->left -= done;
    if (rounds < s->rounds) {
        s->gamma = gamma;
        s->rounds = rounds;
    }
    return rounds;
}

static void descend(search *s)
{
    double gamma = STEP_FIRST;
    int slower = 0;
    for (int i = 0; i < DESCENTS && slower < 2; i++, gamma /= sqrt(2)) {
        const double before = s->rounds;
        const double rounds = try_gamma(s, gamma, RIGHT_SLACK);
        slower = isfinite(before) && rounds > before ? slower + 1 : 0;
    }
}

// Walks to one side of rounds[STEPS_MAX + 1], the middle, while it pays.
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

// The gamma whose neighbours are the best in the worse case.
static double settle(search *s)
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

// Finds the gamma of the copy, 0 if none makes workers agree.
static double search_copy(search *s)
{
    s->rounds = (double)INFINITY;
    descend(s);
    return isfinite(s->rounds) ? settle(s) : 0;
}

// What a round of the copy costs.
static double round_work(const lac_topology *topology, size_t n)
{
    const double edges = 2 * (double)lac_topology_edge_count(topology);
    const double workers = (double)lac_topology_workers(topology);
    return CODEC_WORK * workers * (double)(n + CODEC_VALUES) +
           edges * (double)n;
}

static lac_status find(
    const laci_worker *w, laci_gamma_kind kind, double *gamma_out)
{
    const lac_shape whole = shrink(largest_shape(w->layout), MEASURED_MAX);
    if (w->world == 1 || values_of(whole) == 0) {
        *gamma_out = 1;
        return LAC_OK;
    }
    const lac_shape shape = copy_shape(whole, w->topology);
    double delta, small_delta;
    LAC_TRY(measure_delta(w->compressor_spec, whole, &delta));
    LAC_TRY(measure_delta(w->compressor_spec, shape, &small_delta));
    *gamma_out = fmax(fmin(SAFE_PART * delta, 1), SAFE_MIN);
    const double work = round_work(w->topology, values_of(shape));
    const double least = ROUNDS_MIN / small_delta;
    if (!(delta > 0 && least <= WORK_MAX / work)) {
        return LAC_OK;
    }
    search s = {.limit = fmax(WORK / work, least), .left = WORK_ALL / work};
    LAC_TRY(laci_rehearsal_open(
        &s.copy, kind, w->compressor_spec, w->topology, shape));
    const double found = search_copy(&s) * fmin(delta / small_delta, 1);
    laci_rehearsal_close(s.copy);
    *gamma_out = found > 0 ? found : *gamma_out;
    return LAC_OK;
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

static lac_status search_and_share(
    const laci_round *round, laci_gamma_kind kind, double *gamma_out)
{
    const laci_worker *const w = round->worker;
    double gamma = 0;
    if (w->rank == 0) {
        LAC_TRY(
            laci_group_abort_on_failure(round->group, find(w, kind, &gamma)));
        gamma = w->training ? gamma / 2 : gamma;
    }
    uint64_t bits;
    uint8_t bytes[sizeof(bits)];
    memcpy(&bits, &gamma, sizeof(bits));
    laci_put_u64(bytes, bits);
    // The others wait as long as the search takes.
    const double timeout = laci_group_set_timeout(round->group, PATIENCE);
    const lac_status status = laci_group_broadcast(
        round->group, 0, PHASE_GAMMA, 0, bytes, sizeof(bytes));
    (void)laci_group_set_timeout(round->group, timeout);
    LAC_TRY(status);
    bits = laci_get_u64(bytes);
    memcpy(gamma_out, &bits, sizeof(bits));
    return LAC_OK;
}

lac_status laci_gamma_find(
    laci_step_size *gamma, const laci_round *round, laci_gamma_kind kind)
{
    if (gamma->value > 0) {
        return LAC_OK;
    }
    double found = 0;
    LAC_TRY(search_and_share(round, kind, &found));
    if (!(found > 0 && found <= STEP_LIMIT)) {
        return laci_group_abort_on_failure(
            round->group,
            lac_fail(
                LAC_ERR_CORRUPT,
                "gamma: worker 0 found %g, expected above 0 and at most %g",
                found, STEP_LIMIT));
    }
    gamma->value = found;
    return LAC_OK;
}
