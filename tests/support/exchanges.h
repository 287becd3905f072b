// SPDX-License-Identifier: MIT
// Counts the exchanges of every worker and what the transport allocates in
// them, shows them to the test, and can make one fail. Tests that include this
// are linked with --wrap=lac_transport_exchange.
#ifndef LACONIC_TESTS_EXCHANGES_H
#define LACONIC_TESTS_EXCHANGES_H

#include <laconic/transport.h>

#include "lac_test.h"

// The arguments of an exchange.
typedef struct exchange {
    uint32_t rank; // of this worker
    const lac_send *sends;
    size_t send_count;
    const lac_receive *receives;
    size_t receive_count;
} exchange;

// Optional, called by all workers: before an exchange, whose sends it may
// replace, and after one that succeeded.
static void (*before_exchange)(exchange *e);
static void (*after_exchange)(const exchange *e);

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
    exchange e = {
        lac_transport_rank(t), sends, send_count, receives, receive_count};
    if (++exchanges == abort_at && e.rank == 1) {
        lac_transport_abort(t, "test: no more");
    }
    if (before_exchange != NULL) {
        before_exchange(&e);
    }
    const size_t before = test_thread_allocations;
    const lac_status status = __real_lac_transport_exchange(
        t, e.sends, send_count, receives, receive_count, deadline);
    transport_allocations += test_thread_allocations - before;
    if (status == LAC_OK && after_exchange != NULL) {
        after_exchange(&e);
    }
    return status;
}

#endif
