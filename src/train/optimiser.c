// SPDX-License-Identifier: MIT
// Momentum SGD and Adam. Each reads and writes every vector once per step,
// which bounds the time for models larger than the caches; the loops are simple
// so that compilers vectorise them.
//
// All forms of SGD are one loop: own * d + past * m is m, d + b m or d + m.
// Values are floats, as in PyTorch; scalars are computed in double and rounded
// once.
#include "train/optimiser.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "data/file.h"

struct train_optimiser {
    train_optimiser_options options;
    uint64_t steps;
    float *decay;     // the weight decay of every tensor
    float *vector[2]; // momentum, or both moments of Adam
    float *before;    // the model before a step, for quasi-global momentum
};

static const double adam_first = 0.9, adam_second = 0.999;
static const double adam_epsilon = 1e-8;
static const double quasi_global_part = 0.1; // of the last step in m

static size_t vector_count(const train_optimiser_options *o)
{
    if (o->rule == TRAIN_ADAM) {
        return 2;
    }
    return o->momentum > 0 ? 1 : 0;
}

static bool is_quasi_global(const train_optimiser_options *o)
{
    return o->rule == TRAIN_SGD && o->momentum > 0 &&
           o->kind == TRAIN_MOMENTUM_QUASI_GLOBAL;
}

// Whether a component of the name (between dots) begins with "bn". The norms in
// the shortcuts of residual networks are called "downsample.1" and do decay, as
// in the code of CHOCO-SGD, whose results we compare with.
static bool is_batch_norm(const char *name)
{
    for (const char *part = name; part != NULL; part = strchr(part, '.')) {
        part += *part == '.';
        if (strncmp(part, "bn", 2) == 0) {
            return true;
        }
    }
    return false;
}

lac_status train_optimiser_open(
    train_optimiser **out, const train_optimiser_options *options)
{
    *out = NULL;
    const size_t tensors = lac_layout_count(options->layout);
    const size_t n = lac_layout_values(options->layout);
    train_optimiser *const o = calloc(1, sizeof(*o));
    bool complete = o != NULL;
    if (complete) {
        o->options = *options;
        o->decay = calloc(tensors + 1, sizeof(*o->decay));
        complete = o->decay != NULL;
    }
    for (size_t i = 0; complete && i < vector_count(options); i++) {
        o->vector[i] = calloc(n + 1, sizeof(float));
        complete = o->vector[i] != NULL;
    }
    if (complete && is_quasi_global(options)) {
        o->before = calloc(n + 1, sizeof(float));
        complete = o->before != NULL;
    }
    if (!complete) {
        train_optimiser_close(o);
        return data_no_memory(
            "optimiser", vector_count(options) * n * sizeof(float));
    }
    for (size_t i = 0; i < tensors; i++) {
        const char *const name = lac_layout_tensor(options->layout, i)->name;
        o->decay[i] = is_batch_norm(name) ? 0 : (float)options->weight_decay;
    }
    *out = o;
    return LAC_OK;
}

void train_optimiser_close(train_optimiser *o)
{
    if (o != NULL) {
        free(o->before);
        free(o->vector[1]);
        free(o->vector[0]);
        free(o->decay);
        free(o);
    }
}

static void step_plain(
    float rate, float decay, size_t n, const float *restrict x,
    float *restrict g)
{
    for (size_t i = 0; i < n; i++) {
        g[i] = -rate * (g[i] + decay * x[i]);
    }
}

typedef struct sgd {
    float rate, momentum;
    float own, past; // the factors of d and m
} sgd;

static sgd sgd_of(const train_optimiser_options *o, double rate)
{
    sgd s = {(float)rate, (float)o->momentum, 0, 1};
    if (o->nesterov == TRAIN_NESTEROV_TORCH) {
        s.own = 1;
        s.past = s.momentum;
    } else if (o->nesterov == TRAIN_NESTEROV_POWERSGD) {
        s.own = 1;
    }
    return s;
}

static void step_momentum(
    sgd s, float decay, size_t n, const float *restrict x, float *restrict g,
    float *restrict m)
{
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] + decay * x[i];
        const float next = s.momentum * m[i] + d;
        m[i] = next;
        g[i] = -s.rate * (s.own * d + s.past * next);
    }
}

// The same without storing the new momentum.
static void step_quasi_global(
    sgd s, float decay, size_t n, const float *restrict x, float *restrict g,
    const float *restrict m)
{
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] + decay * x[i];
        const float next = s.momentum * m[i] + d;
        g[i] = -s.rate * (s.own * d + s.past * next);
    }
}

void train_optimiser_begin(train_optimiser *o, const float *x)
{
    if (o->before != NULL) {
        memcpy(
            o->before, x,
            lac_layout_values(o->options.layout) * sizeof(*o->before));
    }
}

// A rate of 0, or one so small that the quotient overflows, makes no step to
// learn from.
void train_optimiser_end(train_optimiser *o, double rate, const float *x)
{
    const float part = (float)(quasi_global_part / rate);
    const float rest = (float)(1 - quasi_global_part);
    if (o->before == NULL || !isfinite(part)) {
        return;
    }
    const size_t n = lac_layout_values(o->options.layout);
    const float *const before = o->before;
    float *const m = o->vector[0];
    for (size_t i = 0; i < n; i++) {
        m[i] = rest * m[i] + part * (before[i] - x[i]);
    }
}

typedef struct adam {
    float rate;                 // divided by 1 - b1^t
    float correction;           // the root of 1 - b2^t
    float decay_first, first;   // b1, 1 - b1
    float decay_second, second; // b2, 1 - b2
    float epsilon;
} adam;

static adam adam_of(double rate, uint64_t steps)
{
    const double t = (double)steps;
    return (adam){
        .rate = (float)(rate / (1 - pow(adam_first, t))),
        .correction = (float)sqrt(1 - pow(adam_second, t)),
        .decay_first = (float)adam_first,
        .first = (float)(1 - adam_first),
        .decay_second = (float)adam_second,
        .second = (float)(1 - adam_second),
        .epsilon = (float)adam_epsilon,
    };
}

static void step_adam(
    adam a, float decay, size_t n, const float *restrict x, float *restrict g,
    float *restrict m, float *restrict v)
{
    for (size_t i = 0; i < n; i++) {
        const float d = g[i] + decay * x[i];
        const float first = a.decay_first * m[i] + a.first * d;
        const float second = a.decay_second * v[i] + a.second * d * d;
        m[i] = first;
        v[i] = second;
        g[i] = -a.rate * first / (sqrtf(second) / a.correction + a.epsilon);
    }
}

void train_optimiser_step(
    train_optimiser *o, double rate, const float *x, float *gradient_inout)
{
    o->steps++;
    const sgd s = sgd_of(&o->options, rate);
    const adam a = adam_of(rate, o->steps);
    for (size_t i = 0; i < lac_layout_count(o->options.layout); i++) {
        const lac_tensor *const tensor =
            lac_layout_tensor(o->options.layout, i);
        const size_t start = tensor->offset;
        const size_t n = lac_shape_values(tensor->shape);
        float *const g = gradient_inout + start;
        if (o->vector[0] == NULL) {
            step_plain(s.rate, o->decay[i], n, x + start, g);
        } else if (o->before != NULL) {
            step_quasi_global(
                s, o->decay[i], n, x + start, g, o->vector[0] + start);
        } else if (o->options.rule == TRAIN_SGD) {
            step_momentum(
                s, o->decay[i], n, x + start, g, o->vector[0] + start);
        } else {
            step_adam(
                a, o->decay[i], n, x + start, g, o->vector[0] + start,
                o->vector[1] + start);
        }
    }
}

train_optimiser_state train_optimiser_get_state(train_optimiser *o)
{
    const bool is_adam = o->options.rule == TRAIN_ADAM;
    return (train_optimiser_state){
        .steps = &o->steps,
        .count = vector_count(&o->options),
        .name = {is_adam ? "first" : "momentum", "second"},
        .vector = {o->vector[0], o->vector[1]},
        .working = o->before != NULL,
    };
}

enum { LANES = 8 };

double train_optimiser_penalty(const train_optimiser *o, const float *x)
{
    double penalty = 0;
    for (size_t t = 0; t < lac_layout_count(o->options.layout); t++) {
        const lac_tensor *const tensor =
            lac_layout_tensor(o->options.layout, t);
        const float *const values = x + tensor->offset;
        double squares = 0;
        for (size_t i = 0; i < lac_shape_values(tensor->shape); i++) {
            squares += (double)values[i] * (double)values[i];
        }
        penalty += (double)o->decay[t] * squares / 2;
    }
    return penalty;
}

// The sums of squares are in lanes, which vectorise and have a fixed order, and
// in double, where the square of a float does not overflow. So the norm is
// finite if all values are; a non-finite gradient stays unchanged, and the
// caller sees it in the norm.
double train_clip(float *gradient, size_t n, double limit)
{
    double sums[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t k = 0; k < LANES; k++) {
            const double value = (double)gradient[i + k];
            sums[k] += value * value;
        }
    }
    for (size_t k = 0; i < n; i++, k++) {
        sums[k] += (double)gradient[i] * (double)gradient[i];
    }
    double sum = 0;
    for (size_t k = 0; k < LANES; k++) {
        sum += sums[k];
    }
    const double norm = sqrt(sum);
    if (limit > 0 && isfinite(norm) && norm > limit) {
        const double scale = limit / norm;
        for (i = 0; i < n; i++) {
            gradient[i] = (float)((double)gradient[i] * scale);
        }
    }
    return norm;
}
