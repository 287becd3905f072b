// SPDX-License-Identifier: MIT
// A network with its vectors and room for a batch, for tests and benchmarks.
#ifndef LACONIC_TESTS_FULL_NETWORK_H
#define LACONIC_TESTS_FULL_NETWORK_H

#include <stdlib.h>

#include "nn/network.h"

typedef struct full_network {
    nn_network *net;
    size_t n;       // parameters
    size_t running; // statistics
    size_t size;    // values of an example; of a text 0
    size_t targets; // labels of a batch; of a text also its tokens
    float *parameters, *gradient, *statistics, *carry, *x;
    uint32_t *tokens, *labels;
    nn_batch batch; // what is in x or tokens, and in labels
    nn_score score; // of the last call
} full_network;

// fill_full_network allocates the vectors of an open network, all zeros.
// open_full_network opens the network first. Close it even after a failure.
static inline lac_status fill_full_network(
    full_network *f, nn_network *net, const nn_options *options)
{
    const nn_sample *const s = &options->sample;
    const bool text = options->steps > 0;
    *f = (full_network){
        .net = net,
        .n = lac_layout_values(nn_network_layout(net)),
        .running = lac_layout_values(nn_network_statistics(net)),
        .size = (size_t)s->channels * s->height * s->width,
        .targets = (size_t)options->batch * (text ? options->steps : 1)};
    f->parameters = calloc(f->n, sizeof(float));
    f->gradient = calloc(f->n, sizeof(float));
    f->statistics = calloc(f->running + 1, sizeof(float));
    f->carry = calloc(nn_network_carry(net) + 1, sizeof(float));
    f->x = calloc(options->batch * f->size + 1, sizeof(float));
    f->tokens = calloc(f->targets, sizeof(uint32_t));
    f->labels = calloc(f->targets, sizeof(uint32_t));
    if (f->parameters == NULL || f->gradient == NULL || f->statistics == NULL ||
        f->carry == NULL || f->x == NULL || f->tokens == NULL ||
        f->labels == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for a batch");
    }
    f->batch = (nn_batch){
        .count = options->batch,
        .x = text ? NULL : f->x,
        .tokens = text ? f->tokens : NULL,
        .labels = f->labels};
    return LAC_OK;
}

static inline lac_status open_full_network(
    full_network *f, const nn_options *options)
{
    *f = (full_network){0};
    const lac_status status = nn_network_open(&f->net, options);
    return status == LAC_OK ? fill_full_network(f, f->net, options) : status;
}

static inline void close_full_network(full_network *f)
{
    nn_network_close(f->net);
    free(f->parameters);
    free(f->gradient);
    free(f->statistics);
    free(f->carry);
    free(f->x);
    free(f->tokens);
    free(f->labels);
}

#endif
