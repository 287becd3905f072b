// SPDX-License-Identifier: MIT
// Optimisers: from a gradient to a step.
//
// SGD with momentum b, where d is the gradient plus weight decay times x, and
// m = b m + d (m = d at the first step):
//
//     no         x -= rate * m
//     torch      x -= rate * (d + b m)     the Nesterov form of PyTorch
//     powersgd   x -= rate * (d + m)       that of the code of PowerSGD
//
// Quasi-global momentum (Lin et al., arXiv:2102.04761) is for models that
// gossip: m is not the mean of local gradients, which differ where data do, but
// of the steps that the gossiped model x makes:
//
//     l = b m + d, in the place of m above, and not stored
//     m = 0.9 m + 0.1 (x before - x after gossip and step) / rate
//
// Adam (Kingma and Ba, arXiv:1412.6980) has b1 = 0.9, b2 = 0.999, epsilon 1e-8,
// and weight decay in d as in PyTorch. Parameters of batch norms, whose names
// have a component that begins with "bn", do not decay.
#ifndef LACONIC_TRAIN_OPTIMISER_H
#define LACONIC_TRAIN_OPTIMISER_H

#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

typedef enum train_rule { TRAIN_SGD, TRAIN_ADAM } train_rule;

typedef enum train_nesterov {
    TRAIN_NESTEROV_TORCH,
    TRAIN_NESTEROV_POWERSGD,
    TRAIN_NESTEROV_NO,
} train_nesterov;

typedef enum train_momentum_kind {
    TRAIN_MOMENTUM_LOCAL,
    TRAIN_MOMENTUM_QUASI_GLOBAL,
} train_momentum_kind;

typedef struct train_optimiser_options {
    train_rule rule;
    train_nesterov nesterov;  // of SGD with momentum above 0
    double momentum;          // of SGD
    train_momentum_kind kind; // of that momentum
    double weight_decay;
    const lac_layout *layout; // must outlive the optimiser
} train_optimiser_options;

typedef struct train_optimiser train_optimiser;

// train_optimiser_open allocates the state, which is 0 at first.
// Fails with LAC_ERR_NOMEM; `*out` is then NULL.
lac_status train_optimiser_open(
    train_optimiser **out, const train_optimiser_options *options);
void train_optimiser_close(train_optimiser *o);

// train_optimiser_begin is called before a step, with the parameters from which
// gossip and step begin, and train_optimiser_end with those that both have
// given. Only quasi-global momentum needs these calls.
void train_optimiser_begin(train_optimiser *o, const float *x);
void train_optimiser_end(train_optimiser *o, double rate, const float *x);

// train_optimiser_step replaces the gradient at the parameters x by the step,
// which the caller adds to x.
void train_optimiser_step(
    train_optimiser *o, double rate, const float *x, float *gradient_inout);

// The state of an optimiser, for a checkpoint: the number of steps, and `count`
// vectors of the layout's size ("momentum"; "first" and "second" of Adam).
typedef struct train_optimiser_state {
    uint64_t *steps;
    size_t count;
    const char *name[2];
    float *vector[2];
    size_t working; // vectors that are not saved
} train_optimiser_state;

// train_optimiser_get_state returns pointers to the state itself.
train_optimiser_state train_optimiser_get_state(train_optimiser *o);

// train_optimiser_penalty returns the function of x whose gradient the weight
// decay adds: half the decay times the sum of squares.
double train_optimiser_penalty(const train_optimiser *o, const float *x);

// train_clip scales a gradient with a norm above `limit` to that norm, and
// returns the norm before. 0 means no limit.
double train_clip(float *gradient, size_t n, double limit);

#endif
