// SPDX-License-Identifier: MIT
// A small language model and a text, for its tests.
#ifndef LACONIC_TESTS_LSTM_TEST_H
#define LACONIC_TESTS_LSTM_TEST_H

#include "lac_test.h"

#include <math.h>
#include <string.h>

#include "nn/lstm.h"

enum { WORDS = 11, HIDDEN = 5, LAYERS = 2, BATCH = 3, STEPS = 4 };
enum { SEED = 7, CARRY = 2 * LAYERS * BATCH * HIDDEN, LINES = BATCH * STEPS };

typedef struct model {
    nn_network *net;
    size_t n;
    float *parameters, *gradient;
    float carry[CARRY];
    uint32_t tokens[2 * LINES], labels[2 * LINES];
    lac_key noise;
} model;

static inline nn_options options_of(const char *spec, uint32_t steps)
{
    return (nn_options){
        .model = spec,
        .sample = {.classes = WORDS},
        .batch = BATCH,
        .steps = steps,
        .training = true};
}

static inline float *floats(size_t n)
{
    float *const x = malloc((n + 1) * sizeof(*x));
    assert_non_null(x);
    return x;
}

static inline lac_key key_of(uint64_t round)
{
    return lac_key_make(
        SEED, LAC_PURPOSE_DROPOUT, round, lac_scope_worker(0), 0);
}

static inline void fill_carry(float *carry)
{
    const lac_key key = key_of(99);
    for (uint32_t i = 0; i < CARRY; i++) {
        carry[i] = (float)(lac_key_draw(&key, i) * 0x1p-32) - 0.5F;
    }
}

static inline void open_model(model *m, const char *spec, uint32_t steps)
{
    const nn_options o = options_of(spec, steps);
    const lac_key key = key_of(98);
    assert_ok(nn_network_open(&m->net, &o));
    assert_int_equal(nn_network_carry(m->net), CARRY);
    m->n = lac_layout_values(nn_network_layout(m->net));
    m->parameters = floats(m->n);
    m->gradient = floats(m->n);
    nn_network_initialise(m->net, SEED, m->parameters, NULL);
    fill_carry(m->carry);
    for (uint32_t i = 0; i < 2 * LINES; i++) {
        m->tokens[i] = lac_key_draw(&key, i) % WORDS;
        m->labels[i] = lac_key_draw(&key, i + 1000) % WORDS;
    }
    m->noise = key_of(1);
}

static inline void close_model(model *m)
{
    nn_network_close(m->net);
    free(m->parameters);
    free(m->gradient);
}

static inline nn_score gradient_of(model *m, float *gradient_out)
{
    float carry[CARRY];
    memcpy(carry, m->carry, sizeof(carry));
    const nn_state state = {.parameters = m->parameters, .carry = carry};
    const nn_batch batch = {
        .count = BATCH, .tokens = m->tokens, .labels = m->labels};
    nn_score score;
    assert_ok(nn_network_gradient(
        m->net, &state, &batch, &m->noise, gradient_out, &score));
    return score;
}

// The model keeps the carry of the evaluation.
static inline nn_score evaluate(model *m, size_t from)
{
    const nn_state state = {.parameters = m->parameters, .carry = m->carry};
    const nn_batch batch = {
        .count = BATCH, .tokens = m->tokens + from, .labels = m->labels + from};
    nn_score score;
    assert_ok(nn_network_evaluate(m->net, &state, &batch, &score));
    return score;
}

#endif
