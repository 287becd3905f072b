// SPDX-License-Identifier: MIT
#include "algorithm/powergossip_step.h"

#include <assert.h>
#include <string.h>

#include "algorithm/shared/subspace.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "kernels/matrix.h"
#include "kernels/vector.h"

enum {
    BATCH = 64,           // columns that are multiplied with a part of X
    PART_VALUES = 0x8000, // of X, to stay in cache
};

// An edge in a step.
typedef struct use {
    uint32_t peer;
    uint32_t slot; // index of the peer in worker->peers
    uint64_t number;
    bool odd;
} use;

// The factors of a matrix on an edge, in a step. Columns are contiguous.
typedef struct factors {
    size_t rank;
    size_t in_n; // values of a column
    size_t out_n;
    float *saved; // `out` of the last round
    float *in;
    float *out;
} factors;

size_t laci_powergossip_rank(const laci_powergossip *s, lac_shape shape)
{
    const size_t least = shape.rows < shape.cols ? shape.rows : shape.cols;
    return s->rank < least ? s->rank : least;
}

static size_t larger_side(lac_shape shape)
{
    return shape.rows > shape.cols ? shape.rows : shape.cols;
}

// The fields of a matrix are `saved` of each peer; then `in` and `out` of each,
// for every iteration, since corrections are added to the matrix at the end.
static size_t buffers_of(const laci_powergossip *s)
{
    return 2 * (size_t)s->iterations;
}

void laci_powergossip_plan(
    const laci_powergossip *s, const laci_worker *w, size_t tensor,
    laci_plan *plan)
{
    const lac_shape shape = laci_tensor_shape(w, tensor);
    const size_t n = laci_powergossip_rank(s, shape) * larger_side(shape);
    for (uint32_t k = 0; k < w->peer_count; k++) {
        laci_plan_peer(plan, "factor", w->peers[k], n);
    }
    for (size_t i = 0; i < w->peer_count * buffers_of(s); i++) {
        laci_plan_working(plan, n);
    }
}

static bool has_edge(const laci_worker *w, uint64_t round, uint32_t peer)
{
    const lac_edge *edges;
    const uint32_t count =
        lac_topology_edges(w->topology, w->rank, round, &edges);
    for (uint32_t k = 0; k < count; k++) {
        if (edges[k].peer == peer) {
            return true;
        }
    }
    return false;
}

// Counts the rounds before this one that used the edge.
static uint64_t earlier_rounds(
    const laci_worker *w, uint64_t round, uint32_t peer)
{
    const uint64_t period = lac_topology_period(w->topology);
    if (period <= 1) {
        return round;
    }
    uint64_t in_period = 0, in_rest = 0;
    for (uint64_t i = 0; i < period; i++) {
        const bool used = has_edge(w, i, peer);
        in_period += used;
        in_rest += used && i < round % period;
    }
    return round / period * in_period + in_rest;
}

uint64_t laci_powergossip_use(
    const laci_powergossip *s, const laci_worker *w, uint64_t round,
    uint32_t iteration, uint32_t peer)
{
    return earlier_rounds(w, round, peer) * s->iterations + iteration + 1;
}

size_t laci_powergossip_out(
    const laci_powergossip *s, lac_shape shape, uint64_t number)
{
    return laci_powergossip_rank(s, shape) *
           (number % 2 == 1 ? shape.rows : shape.cols);
}

static use use_of(const laci_powergossip_step *t, uint32_t k)
{
    use u = {.peer = t->round->edges[k].peer, .slot = k};
    while (t->round->worker->peers[u.slot] != u.peer) {
        u.slot++; // both are in the order of ranks
    }
    u.number = laci_powergossip_use(
        t->settings, t->round->worker, t->round->number, t->iteration, u.peer);
    u.odd = u.number % 2 == 1;
    return u;
}

static factors factors_of(
    const laci_powergossip_step *t, const laci_item *item, const use *u)
{
    const laci_field *const fields = item->fields;
    const size_t buffer = t->round->worker->peer_count +
                          u->slot * buffers_of(t->settings) +
                          2 * (size_t)t->iteration;
    return (factors){
        .rank = laci_powergossip_rank(t->settings, item->shape),
        .in_n = u->odd ? item->shape.cols : item->shape.rows,
        .out_n = u->odd ? item->shape.rows : item->shape.cols,
        .saved = fields[u->slot].values,
        .in = fields[buffer].values,
        .out = fields[buffer + 1].values,
    };
}

// Makes `in` of all edges of a matrix, and zeroes `out`.
static void start_factors(const laci_powergossip_step *t, const laci_item *item)
{
    const laci_worker *const w = t->round->worker;
    for (uint32_t k = 0; k < t->round->edge_count; k++) {
        const use u = use_of(t, k);
        const factors f = factors_of(t, item, &u);
        const lac_key key = lac_key_make(
            w->seed, LAC_PURPOSE_FACTOR, u.number,
            lac_scope_edge(w->rank, u.peer), item->name_hash);
        if (!t->settings->warm_start || u.number == 1) {
            laci_subspace_draw(&key, f.in, f.in_n, f.rank);
        } else {
            const float *last = f.saved;
            if (t->iteration > 0) {
                laci_powergossip_step before = *t;
                before.iteration--;
                last = factors_of(&before, item, &u).out;
            }
            memcpy(f.in, last, f.rank * f.in_n * sizeof(*last));
        }
        laci_subspace_orthonormalise(&key, f.in, f.in_n, f.rank);
        memset(f.out, 0, f.rank * f.out_n * sizeof(*f.out));
    }
}

// Some rows of a matrix.
typedef struct part {
    size_t first;
    lac_shape shape;
} part;

// The part from row `first` on. Cuts do not change the order of any sum.
static part part_of(lac_shape shape, size_t first)
{
    const size_t left = shape.rows - first;
    size_t rows = LACI_MATRIX_ROWS;
    while (rows < left && 2 * rows * shape.cols <= PART_VALUES) {
        rows *= 2;
    }
    return (part){first, {rows < left ? rows : left, shape.cols}};
}

static void multiply(
    const laci_worker *w, const part *p, const float *x, bool odd,
    const laci_column *columns, size_t count)
{
    if (odd) {
        w->kernels->matrix->multiply(x, p->shape, columns, count);
    } else {
        w->kernels->matrix->multiply_transposed(x, p->shape, columns, count);
    }
}

// Adds the contribution of part `p` of the matrix to `out` of all edges whose
// use is odd, or even.
static void multiply_part(
    const laci_powergossip_step *t, const laci_item *item, const part *p,
    const float *x, bool odd)
{
    laci_column columns[BATCH];
    size_t count = 0;
    for (uint32_t k = 0; k < t->round->edge_count; k++) {
        const use u = use_of(t, k);
        const factors f = factors_of(t, item, &u);
        for (size_t c = 0; u.odd == odd && c < f.rank; c++) {
            columns[count++] = (laci_column){
                f.in + c * f.in_n + (odd ? 0 : p->first),
                f.out + c * f.out_n + (odd ? p->first : 0),
            };
            if (count == BATCH) {
                multiply(t->round->worker, p, x, odd, columns, count);
                count = 0;
            }
        }
    }
    if (count > 0) {
        multiply(t->round->worker, p, x, odd, columns, count);
    }
}

// The outer product that step `t` adds to X for neighbour k and a column.
static laci_outer term_of(
    const laci_powergossip_step *t, const laci_item *item, uint32_t k,
    size_t column)
{
    const use u = use_of(t, k);
    const factors f = factors_of(t, item, &u);
    const float weight = (float)(t->settings->rate * t->round->edges[k].weight);
    const float *const in = f.in + column * f.in_n;
    const float *const out = f.out + column * f.out_n;
    return (laci_outer){
        .factor = t->round->worker->rank > u.peer ? -weight : weight,
        .left = u.odd ? out : in,
        .right = u.odd ? in : out,
    };
}

// The outer products of a round, numbered iteration by iteration.
typedef struct corrections {
    const laci_powergossip_step *t;
    const laci_item *item;
    size_t rank;
    size_t count; // of the iterations before `end`
} corrections;

static corrections corrections_of(
    const laci_powergossip_step *t, const laci_item *item, uint32_t end)
{
    const size_t rank = laci_powergossip_rank(t->settings, item->shape);
    return (corrections){t, item, rank, rank * t->round->edge_count * end};
}

static laci_outer correction(const corrections *c, size_t number)
{
    const size_t in_step = c->rank * c->t->round->edge_count;
    laci_powergossip_step t = *c->t;
    assert(number < c->count && in_step > 0);
    t.iteration = (uint32_t)(number / in_step);
    return term_of(
        &t, c->item, (uint32_t)(number % in_step / c->rank), number % c->rank);
}

// Adds the contribution of a correction of X to `out` of all edges.
static void multiply_correction(
    const laci_powergossip_step *t, const laci_item *item,
    const laci_outer *term)
{
    for (uint32_t k = 0; k < t->round->edge_count; k++) {
        const use u = use_of(t, k);
        const factors f = factors_of(t, item, &u);
        const lac_shape row = {1, f.in_n};
        const float *const inner = u.odd ? term->right : term->left;
        const float *const outer = u.odd ? term->left : term->right;
        for (size_t c = 0; c < f.rank; c++) {
            float product;
            const laci_column column = {f.in + c * f.in_n, &product};
            t->round->worker->kernels->matrix->multiply(inner, row, &column, 1);
            t->round->worker->kernels->vector->add_scaled(
                term->factor * product, outer, f.out + c * f.out_n, f.out_n);
        }
    }
}

void laci_powergossip_multiply(
    const laci_powergossip_step *t, const laci_item *item)
{
    start_factors(t, item);
    for (size_t i = 0; i < item->shape.rows;) {
        const part p = part_of(item->shape, i);
        const float *const x = item->in + i * item->shape.cols;
        multiply_part(t, item, &p, x, true);
        multiply_part(t, item, &p, x, false);
        i += p.shape.rows;
    }
    const corrections before = corrections_of(t, item, t->iteration);
    for (size_t i = 0; i < before.count; i++) {
        const laci_outer term = correction(&before, i);
        multiply_correction(t, item, &term);
    }
}

const float *laci_powergossip_product(
    const laci_powergossip_step *t, const laci_item *item, uint32_t k,
    size_t *n_out)
{
    const use u = use_of(t, k);
    const factors f = factors_of(t, item, &u);
    *n_out = laci_powergossip_out(t->settings, item->shape, u.number);
    return f.out;
}

lac_status laci_powergossip_receive(
    const laci_powergossip_step *t, const laci_item *item, uint32_t k,
    const uint8_t *bytes)
{
    const use u = use_of(t, k);
    const factors f = factors_of(t, item, &u);
    const size_t n = f.rank * f.out_n;
    for (size_t i = 0; i < n; i++) {
        const float theirs = laci_get_f32(bytes + sizeof(float) * i);
        f.out[i] = t->round->worker->rank > u.peer ? f.out[i] - theirs
                                                   : theirs - f.out[i];
    }
    if (!laci_all_finite(t->round->worker->kernels, f.out, n)) {
        const lac_scope ends = lac_scope_edge(t->round->worker->rank, u.peer);
        return lac_fail(
            LAC_ERR_INVALID,
            "powergossip: %s differs by more than a float holds between "
            "workers %u and %u",
            item->name, ends.low, ends.high);
    }
    return LAC_OK;
}

// Writes part `p` of X with all corrections and the update.
static void correct_part(const corrections *all, const part *p)
{
    const laci_item *const item = all->item;
    const laci_matrix_kernels *const matrix =
        all->t->round->worker->kernels->matrix;
    const size_t offset = p->first * p->shape.cols;
    const float *x = item->in + offset;
    float *const y = item->out + offset;
    laci_outer terms[BATCH];
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (count == BATCH) {
            matrix->add_outer(x, p->shape, terms, count, NULL, y);
            x = y;
            count = 0;
        }
        terms[count] = correction(all, i);
        terms[count].left += p->first;
        count++;
    }
    matrix->add_outer(
        x, p->shape, terms, count,
        item->update == NULL ? NULL : item->update + offset, y);
}

void laci_powergossip_finish(
    const laci_powergossip_step *t, const laci_item *item)
{
    const corrections all = corrections_of(t, item, t->iteration + 1);
    for (size_t i = 0; i < item->shape.rows;) {
        const part p = part_of(item->shape, i);
        correct_part(&all, &p);
        i += p.shape.rows;
    }
    for (uint32_t k = 0; k < t->round->edge_count; k++) {
        const use u = use_of(t, k);
        const factors f = factors_of(t, item, &u);
        memcpy(f.saved, f.out, f.rank * f.out_n * sizeof(*f.out));
    }
}
