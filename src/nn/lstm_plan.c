// SPDX-License-Identifier: MIT
// The memory of the language model: one block. All matrices are visited twice,
// first to sum their sizes, then to assign their addresses.
#include "nn/lstm.h"

#include <stdlib.h>

enum {
    ALIGNMENT = 64,          // bytes of a cache line
    LOGITS_BYTES = 32 << 20, // for a block of lines
    BLOCK_MIN = 64,          // lines; products of fewer are slow
    BLOCK_MAX = 512
};

typedef struct arena {
    uintptr_t base; // 0 while sizes are summed
    size_t used;
} arena;

static void *reserve(arena *a, size_t len)
{
    void *const place = a->base == 0 ? NULL : (void *)(a->base + a->used);
    a->used += (len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return place;
}

static float *reserve_floats(arena *a, size_t n)
{
    return reserve(a, n * sizeof(float));
}

static void place_layer(const nn_lstm *net, arena *a, nn_lstm_layer *out)
{
    const size_t width = net->hidden;
    const size_t lines = (size_t)net->steps * net->batch;
    out->gates = reserve_floats(a, lines * NN_LSTM_GATES * width);
    out->cells = reserve_floats(a, (lines + net->batch) * width);
    out->tanh_cells = reserve_floats(a, lines * width);
    out->hidden = reserve_floats(a, (lines + net->batch) * width);
}

static void place_all(nn_lstm *net, arena *a)
{
    const size_t width = net->hidden;
    const size_t n = (size_t)net->steps * net->batch * width;
    const bool noisy = net->training && net->dropout > 0;
    for (size_t k = 0; k <= net->layers; k++) {
        nn_lstm_layer *const layer = &net->layer[k];
        if (k == 0 || noisy) {
            layer->x = reserve_floats(a, n);
        }
        if (noisy) {
            layer->mask = reserve(a, n);
        }
        if (k == 0 || (net->training && k < net->layers)) {
            place_layer(net, a, layer);
        } else if (k < net->layers) {
            layer->gates = net->layer[0].gates;
            layer->cells = net->layer[0].cells;
            layer->tanh_cells = net->layer[0].tanh_cells;
            layer->hidden = net->layer[0].hidden;
        }
    }
    net->biases = reserve_floats(a, NN_LSTM_GATES * width);
    net->transposed = reserve_floats(a, NN_LSTM_GATES * width * width);
    net->logits = reserve_floats(a, net->block * net->vocabulary);
    if (net->training) {
        net->gradient = reserve_floats(a, n);
        net->gradient_cells = reserve_floats(a, net->batch * width);
    }
}

// As few blocks as fit, all of nearly the same size, because short ones are
// slow.
static size_t block_of(const nn_lstm *net)
{
    const size_t lines = (size_t)net->steps * net->batch;
    size_t most = LOGITS_BYTES / sizeof(float) / net->vocabulary;
    most = most < BLOCK_MIN ? BLOCK_MIN : most;
    most = most > BLOCK_MAX ? BLOCK_MAX : most;
    const size_t blocks = (lines + most - 1) / most;
    return (lines + blocks - 1) / blocks;
}

static lac_status lstm_no_memory(const nn_lstm *net)
{
    return lac_fail(
        LAC_ERR_NOMEM, "lstm: no memory for %u layers and %u rows of %u words",
        net->layers, net->batch, net->steps);
}

lac_status nn_lstm_plan(nn_lstm *net)
{
    arena sizes = {0};
    net->block = block_of(net);
    net->layer = calloc(net->layers + (size_t)1, sizeof(*net->layer));
    if (net->layer == NULL) {
        return lstm_no_memory(net);
    }
    place_all(net, &sizes);
    net->network.memory = sizes.used + ALIGNMENT;
    net->memory = calloc(1, net->network.memory);
    if (net->memory == NULL) {
        return lstm_no_memory(net);
    }
    const uintptr_t start = (uintptr_t)net->memory + ALIGNMENT - 1;
    arena places = {.base = start / ALIGNMENT * ALIGNMENT};
    place_all(net, &places);
    return LAC_OK;
}

void nn_lstm_release(nn_lstm *net)
{
    free(net->memory);
    free(net->layer);
}
