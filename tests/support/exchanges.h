// SPDX-License-Identifier: MIT
// Counts the exchanges of every worker and what the transport allocates in
// them, and lets one fail. Tests that include this are linked with
// --wrap=lac_transport_exchange.
#ifndef LACONIC_TESTS_EXCHANGES_H
#define LACONIC_TESTS_EXCHANGES_H

#include <laconic/transport.h>

#include "lac_test.h"

// Worker 1 aborts in this exchange.
static size_t abort_at;
static _Thread_local size_t exchanges;
static _Thread_local size_t transport_allocations;

lac_status __real_lac_transport_exchange(
    lac_transport *t, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline);
lac_status __wrap_lac_transport_exchange(
    lac_transport *t, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline);

lac_status __wrap_lac_transport_exchange(
    lac_transport *t, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline)
{
    if (++exchanges == abort_at && lac_transport_rank(t) == 1) {
        lac_transport_abort(t, "test: no more");
    }
    const size_t before = test_thread_allocations;
    const lac_status status = __real_lac_transport_exchange(
        t, sends, send_count, receives, receive_count, deadline);
    transport_allocations += test_thread_allocations - before;
    return status;
}

#endif
