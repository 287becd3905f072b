// SPDX-License-Identifier: MIT
// The turn is a mutex. A user-defined transport releases it around the
// exchanges of the local transport that it forwards to. It needs no abort: a
// worker that fails ends, and its launcher aborts the local transport.
#include "cli/bench/turns.h"

static lac_status turn_exchange(
    void *context, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline)
{
    const cli_turn *const turn = context;
    (void)pthread_mutex_unlock(turn->lock);
    const lac_status status = lac_transport_exchange(
        turn->inner, sends, send_count, receives, receive_count, deadline);
    (void)pthread_mutex_lock(turn->lock);
    return status;
}

lac_status cli_turn_join(
    cli_turn *turn, pthread_mutex_t *lock, lac_transport *inner)
{
    static const lac_transport_ops ops = {
        .size = sizeof(ops),
        .exchange = turn_exchange,
        .intact = 1,
    };
    *turn = (cli_turn){.lock = lock, .inner = inner};
    LAC_TRY(lac_transport_join_with(
        &turn->outer, &ops, turn, lac_transport_rank(inner),
        lac_transport_world(inner)));
    (void)pthread_mutex_lock(lock);
    return LAC_OK;
}

void cli_turn_end(const cli_turn *turn)
{
    (void)pthread_mutex_unlock(turn->lock);
}

void cli_turn_leave(cli_turn *turn)
{
    lac_transport_leave(turn->outer);
    *turn = (cli_turn){0};
}
