// SPDX-License-Identifier: MIT
// Workers that are threads and compute one at a time. So a measured worker has
// the caches and the memory to itself, however many others it talks to. A
// worker has the turn from its join on, except while it is in an exchange.
#ifndef LACONIC_CLI_BENCH_TURNS_H
#define LACONIC_CLI_BENCH_TURNS_H

#include <pthread.h>

#include <laconic/laconic.h>

// One worker. It must live until its transport `outer` is left.
typedef struct cli_turn {
    pthread_mutex_t *lock; // held by the worker that has the turn
    lac_transport *inner;  // carries the messages
    lac_transport *outer;  // the same, for the algorithm; NULL before the join
} cli_turn;

// cli_turn_join waits for the turn and sets `outer`, a transport over `inner`.
// Fails with LAC_ERR_NOMEM, without the turn.
lac_status cli_turn_join(
    cli_turn *turn, pthread_mutex_t *lock, lac_transport *inner);

// cli_turn_end passes the turn on for good. No exchange may follow.
void cli_turn_end(const cli_turn *turn);

// cli_turn_leave releases `outer`, after `inner` was left.
void cli_turn_leave(cli_turn *turn);

#endif
