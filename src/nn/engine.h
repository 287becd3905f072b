// SPDX-License-Identifier: MIT
// The interface that a kind of network implements; network.h documents the
// functions. The struct of an engine begins with a nn_network, which its open
// fills.
#ifndef LACONIC_NN_ENGINE_H
#define LACONIC_NN_ENGINE_H

#include "nn/network.h"

typedef struct nn_engine {
    void (*close)(nn_network *net); // frees all except the layouts
    size_t (*dimensions)(
        const nn_network *net, size_t tensor, size_t out[NN_DIMENSIONS_MAX]);
    void (*initialise)(
        const nn_network *net, uint64_t seed, float *parameters,
        float *statistics);
    lac_status (*gradient)(
        nn_network *net, const nn_state *state, const nn_batch *batch,
        const lac_key *noise, float *gradient_out, nn_score *out);
    lac_status (*evaluate)(
        nn_network *net, const nn_state *state, const nn_batch *batch,
        nn_score *out);
} nn_engine;

struct nn_network {
    const nn_engine *engine;
    lac_layout *layout;
    lac_layout *statistics; // never NULL; may have no tensors
    size_t carry;
    size_t memory;
};

// nn_fill_uniform writes n uniform numbers between -bound and bound, drawn with
// the key of the tensor of this name.
void nn_fill_uniform(
    uint64_t seed, const char *name, double bound, float *out, size_t n);

// nn_fill_normal does so with normal numbers of this standard deviation.
void nn_fill_normal(
    uint64_t seed, const char *name, double deviation, float *out, size_t n);

#endif
