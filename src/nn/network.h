// SPDX-License-Identifier: MIT
// A neural network: from parameters and a batch of examples to the loss and its
// gradient.
//
//     const nn_options o = {.model = "lenet", .sample = {1, 28, 28, 10},
//                           .batch = 32, .training = true};
//     nn_network_open(&net, &o);
//     nn_network_initialise(net, seed, parameters, statistics);
//     nn_network_gradient(net, &state, &batch, &noise, gradient, &score);
//     nn_network_close(net);
//
// The state is kept by the caller in flat vectors: *parameters* in the order of
// nn_network_layout, *statistics* (the running means of batch norms, which are
// averaged but not trained) in that of nn_network_statistics, and *carry* (the
// hidden state of a recurrent network between batches).
//
// Memory: open plans and allocates all of it; calls allocate nothing. Threads:
// a network belongs to the thread that opened it, which from then on uses one
// thread of OpenMP. Equal arguments give equal bits.
#ifndef LACONIC_NN_NETWORK_H
#define LACONIC_NN_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

// The shape of an example.
typedef struct nn_sample {
    uint32_t channels, height, width; // of a table 1 x 1 x width, of a text 0
    uint32_t classes;                 // of a text, words of the vocabulary
} nn_sample;

typedef struct nn_options {
    const char *model; // as the user names it, "resnet20"
    nn_sample sample;
    uint32_t batch; // examples in a call; of a text, rows
    uint32_t steps; // of a text, words per row in a call
    bool training;  // compute gradients; otherwise evaluate
} nn_options;

typedef struct nn_network nn_network;

// nn_network_open plans a network for examples like `sample`.
// Fails with LAC_ERR_NOTFOUND or LAC_ERR_INVALID (no such model, a model that
// cannot be trained, or examples that do not fit it) or LAC_ERR_NOMEM; `*out`
// is then NULL.
lac_status nn_network_open(nn_network **out, const nn_options *options);
void nn_network_close(nn_network *net);

// nn_network_layout and nn_network_statistics return the layouts of the
// vectors.
const lac_layout *nn_network_layout(const nn_network *net);
const lac_layout *nn_network_statistics(const nn_network *net);

// nn_network_carry returns the number of floats of the carry; often 0.
size_t nn_network_carry(const nn_network *net);

// nn_network_dimensions writes the shape that PyTorch gives parameter `tensor`
// (out, in, height, width for a convolution) and returns the number of
// dimensions.
enum { NN_DIMENSIONS_MAX = 4 };
size_t nn_network_dimensions(
    const nn_network *net, size_t tensor, size_t out[NN_DIMENSIONS_MAX]);

// nn_network_memory returns the bytes of activations and working memory.
size_t nn_network_memory(const nn_network *net);

// nn_network_initialise writes the initial parameters and statistics, the same
// for equal seeds. The distributions are those of PyTorch and of the code of
// the papers.
void nn_network_initialise(
    const nn_network *net, uint64_t seed, float *parameters, float *statistics);

// The caller's vectors. If a network has no statistics or no carry, they may be
// NULL.
typedef struct nn_state {
    const float *parameters;
    float *statistics; // written by nn_network_gradient
    float *carry;      // written by both calls
} nn_state;

// The most probable class of an example.
typedef struct nn_guess {
    uint32_t label;
    double probability;
} nn_guess;

// A batch of examples, borrowed for a call.
typedef struct nn_batch {
    uint32_t count;         // examples or rows: at most `batch` of the
                            // options; exactly that for gradients
    const float *x;         // count x channels x height x width; or NULL
    const uint32_t *tokens; // of a text: steps x count words; or NULL
    const uint32_t *labels; // count classes; of a text the steps x count next
                            // words
    nn_guess *guesses;      // one for each label, written by
                            // nn_network_evaluate; or NULL
} nn_batch;

// Loss and accuracy of a batch.
typedef struct nn_score {
    double loss;      // sum of the cross entropies, natural logarithm
    uint64_t correct; // labels that were predicted
    uint64_t count;   // labels
} nn_score;

// nn_network_gradient writes the gradient of the mean loss of a batch to
// gradient_out[0..parameters). `noise` is the key of dropout, different for
// every step and worker. The network must have been opened for training.
// Fails with LAC_ERR_INVALID (opened to evaluate, wrong count, label out of
// range), LAC_ERR_NOMEM, or LAC_ERR_UNSUPPORTED if oneDNN fails.
lac_status nn_network_gradient(
    nn_network *net, const nn_state *state, const nn_batch *batch,
    const lac_key *noise, float *gradient_out, nn_score *out);

// nn_network_evaluate computes the score only: without dropout, and batch norms
// use `statistics`. The network must not have been opened for training.
// Fails like nn_network_gradient.
lac_status nn_network_evaluate(
    nn_network *net, const nn_state *state, const nn_batch *batch,
    nn_score *out);

#endif
