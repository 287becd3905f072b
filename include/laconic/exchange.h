// SPDX-License-Identifier: MIT
#ifndef LACONIC_EXCHANGE_H
#define LACONIC_EXCHANGE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Flags of an exchange.
enum {
    LAC_EXCHANGE_HIDDEN = 1,    ///< Part of lac_algorithm_begin, so that the
                                ///< computation of gradients can hide it.
    LAC_EXCHANGE_ALLREDUCE = 2, ///< The transport's own all-reduce of `bytes`.
    LAC_EXCHANGE_AHEAD = 4,     ///< Waits for the messages of the exchange
                                ///< before it, not for its own.
    LAC_EXCHANGE_BOUND = 8,     ///< Bytes are a bound: values decide.
};

/// One exchange of a round: workers send messages at the same time and wait for
/// those of the others.
typedef struct lac_exchange {
    uint32_t round;       ///< In the period, from 0.
    uint32_t flags;       ///< LAC_EXCHANGE_*.
    uint32_t times;       ///< How often in a row, at least 1.
    uint32_t messages;    ///< The most that a worker sends or receives; 0 for
                          ///< the transport's own all-reduce.
    uint64_t bytes;       ///< Of the busiest port: the most that a worker sends
                          ///< or receives, with frames.
    uint64_t largest;     ///< Of the largest message.
    uint64_t total;       ///< Of all messages of all workers.
    uint64_t reserved[2]; ///< 0. Room to grow.
} lac_exchange;

#ifdef __cplusplus
}
#endif

#endif
