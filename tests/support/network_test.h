// SPDX-License-Identifier: MIT
// A network for tests, with vectors, synthetic examples and labels.
#ifndef LACONIC_TESTS_NETWORK_TEST_H
#define LACONIC_TESTS_NETWORK_TEST_H

#include "lac_test.h"

#include "full_network.h"
#include "nn/engine.h"
#include "nn/feedforward.h"

// With synthetic examples and labels.
typedef full_network test_network;

static inline void *test_values(size_t count, size_t size)
{
    void *const values = __real_calloc(count + 1, size);
    assert_non_null(values);
    return values;
}

// Allocates the vectors and a batch of an open network: uniform values in [-2,
// 2], labels 0, 1, 2, ... in turn.
static inline test_network fill_test_network(
    nn_network *net, const nn_options *options, uint64_t seed)
{
    test_network t;
    assert_ok(fill_full_network(&t, net, options));
    nn_network_initialise(net, seed, t.parameters, t.statistics);
    nn_fill_uniform(seed, "examples", 2, t.x, options->batch * t.size);
    for (uint32_t i = 0; i < options->batch; i++) {
        t.labels[i] = i % options->sample.classes;
    }
    return t;
}

static inline test_network open_test_network(
    const char *model, nn_sample sample, uint32_t batch, bool training)
{
    const nn_options options = {
        .model = model, .sample = sample, .batch = batch, .training = training};
    nn_network *net = NULL;
    assert_ok(nn_network_open(&net, &options));
    return fill_test_network(net, &options, 1);
}

// A network of layers that the test describes.
static inline test_network open_described(
    void (*describe)(nn_graph *g, const void *shape), nn_sample sample,
    uint32_t batch, bool training)
{
    const nn_model model = {.plugin.name = "test", .describe = describe};
    const nn_options options = {
        .sample = sample, .batch = batch, .training = training};
    nn_network *net = NULL;
    assert_ok(nn_feedforward_open(&net, &model, NULL, &options));
    return fill_test_network(net, &options, 1);
}

static inline lac_status test_gradient(test_network *t)
{
    const nn_state state = {t->parameters, t->statistics, NULL};
    const lac_key noise = {0};
    return nn_network_gradient(
        t->net, &state, &t->batch, &noise, t->gradient, &t->score);
}

static inline lac_status test_evaluate(test_network *t)
{
    const nn_state state = {t->parameters, t->statistics, NULL};
    return nn_network_evaluate(t->net, &state, &t->batch, &t->score);
}

static inline float *test_tensor(test_network *t, const char *name)
{
    const lac_tensor *const found =
        lac_layout_find(nn_network_layout(t->net), name);
    assert_non_null(found);
    return t->parameters + found->offset;
}

#endif
