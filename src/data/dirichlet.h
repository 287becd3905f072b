// SPDX-License-Identifier: MIT
// Shares drawn from a Dirichlet distribution, the same on every machine.
#ifndef LACONIC_DATA_DIRICHLET_H
#define LACONIC_DATA_DIRICHLET_H

#include <stddef.h>

#include <laconic/laconic.h>

// data_log and data_exp compute the natural logarithm of x > 0 and the
// exponential of x <= 0 to about fifteen digits. They use only + - * /, because
// the functions of libm differ between machines.
double data_log(double x);
double data_exp(double x);

// data_dirichlet writes n >= 1 shares that sum to 1, drawn with `key` from the
// symmetric Dirichlet distribution with parameter `alpha` > 0. A small alpha
// gives nearly everything to one share, a large one gives equal shares.
void data_dirichlet(
    const lac_key *key, double alpha, size_t n, double *shares_out);

// data_log_dirichlet writes the natural logarithms of the same shares. A small
// alpha gives shares below the smallest double; their logarithms are finite.
void data_log_dirichlet(
    const lac_key *key, double alpha, size_t n, double *logs_out);

#endif
