// SPDX-License-Identifier: MIT
// User-defined transports: the functions of a program behind the table of a
// transport. What they return is checked, since everything above reads the
// messages that they deliver. An abort is recorded here, so that it ends the
// exchanges of this worker even if the program has no function for it.
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "transport/transport.h"

#define NAME "user-defined transport"

enum { WHY_SIZE = 512 };

// The states of an abort: `why` is written by the thread that was first.
enum { NOT_ABORTED, ABORTING, ABORTED };

typedef struct user_state {
    lac_transport_ops ops; // members that the program does not have are NULL
    void *context;
    uint32_t rank;
    atomic_int aborted;
    char why[WHY_SIZE];
} user_state;

// The arguments of lac_transport_join_with.
typedef struct prepared {
    const lac_transport_ops *ops;
    void *context;
} prepared;

static lac_status user_join(void *raw, laci_membership *membership)
{
    user_state *const state = raw;
    const prepared *const p = membership->prepared;
    // A table may end before, or after, the members of this version.
    const size_t size = p->ops->size - p->ops->size % sizeof(void *);
    memcpy(
        &state->ops, p->ops,
        size < sizeof(state->ops) ? size : sizeof(state->ops));
    state->context = p->context;
    state->rank = membership->rank;
    return LAC_OK;
}

static bool user_leave(void *raw)
{
    const user_state *const state = raw;
    if (state->ops.leave != NULL) {
        state->ops.leave(state->context);
    }
    return true;
}

static void user_abort(void *raw, const char *why)
{
    user_state *const state = raw;
    int expected = NOT_ABORTED;
    if (!atomic_compare_exchange_strong(&state->aborted, &expected, ABORTING)) {
        return;
    }
    (void)snprintf(state->why, sizeof(state->why), "%s", why);
    atomic_store(&state->aborted, ABORTED);
    if (state->ops.abort != NULL) {
        state->ops.abort(state->context, why);
    }
}

static lac_status user_check_abort(const user_state *state)
{
    return atomic_load(&state->aborted) == ABORTED
               ? lac_fail(LAC_ERR_PEER, "%s", state->why)
               : LAC_OK;
}

static bool is_status(lac_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, text) case name:
        LAC_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
        return true;
    }
    return false;
}

// Checks the failure that a function of the program returned. `failures` is the
// number of failures that this thread had reported before.
static lac_status check_status(
    const user_state *state, const char *function, lac_status status,
    uint64_t failures)
{
    if (status == LAC_OK) {
        return LAC_OK;
    }
    LAC_TRY(user_check_abort(state));
    if (!is_status(status)) {
        return lac_fail(
            LAC_ERR_INVALID,
            NAME ": %s of worker %u returned the status %d, expected a "
                 "lac_status",
            function, state->rank, (int)status);
    }
    if (laci_failure_count() == failures || lac_error_message()[0] == '\0') {
        return lac_fail(
            status, NAME ": %s of worker %u failed without a message: %s",
            function, state->rank, lac_status_text(status));
    }
    return status;
}

static lac_status check_message(const user_state *state, lac_receive *receive)
{
    if (receive->len == SIZE_MAX) {
        return lac_fail(
            LAC_ERR_INVALID,
            NAME ": exchange of worker %u returned without a message of worker "
                 "%u",
            state->rank, receive->peer);
    }
    if (!laci_receive_fits(receive, receive->len)) {
        return lac_fail(
            LAC_ERR_SPACE,
            NAME ": a message of worker %u has %zu bytes, the buffer of worker "
                 "%u holds %zu",
            receive->peer, receive->len, state->rank, receive->cap);
    }
    if (receive->buffer != NULL) {
        receive->data = receive->buffer;
    } else if (receive->data == NULL && receive->len > 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            NAME ": exchange of worker %u returned a message of worker %u with "
                 "%zu bytes and no data",
            state->rank, receive->peer, receive->len);
    } else if (receive->data == NULL) {
        receive->data = "";
    }
    return LAC_OK;
}

static lac_status user_exchange(
    void *raw, const lac_send *sends, size_t send_count, lac_receive *receives,
    size_t receive_count, double deadline)
{
    const user_state *const state = raw;
    LAC_TRY(user_check_abort(state));
    for (size_t i = 0; i < receive_count; i++) {
        receives[i].data = NULL;
        receives[i].len = SIZE_MAX; // to see whether it is set
    }
    const uint64_t failures = laci_failure_count();
    const lac_status status = state->ops.exchange(
        state->context, sends, send_count, receives, receive_count, deadline);
    LAC_TRY(check_status(state, "exchange", status, failures));
    for (size_t i = 0; i < receive_count; i++) {
        LAC_TRY(check_message(state, &receives[i]));
    }
    return LAC_OK;
}

static lac_status user_allreduce(void *raw, float *x, size_t n, double deadline)
{
    const user_state *const state = raw;
    LAC_TRY(user_check_abort(state));
    const uint64_t failures = laci_failure_count();
    const lac_status status =
        state->ops.allreduce_sum(state->context, x, n, deadline);
    return check_status(state, "allreduce_sum", status, failures);
}

#define USER_TABLE                                                             \
    .plugin =                                                                  \
        {                                                                      \
            .size = sizeof(laci_transport_ops),                                \
            .name = NAME,                                                      \
            .summary = "functions of the program",                             \
            .param_size = sizeof(lac_param),                                   \
            .state_size = sizeof(user_state),                                  \
    },                                                                         \
    .abi = LACI_TRANSPORT_ABI, .join = user_join, .leave = user_leave,         \
    .exchange = user_exchange, .abort = user_abort

#define USER_SUM .allreduce_sum = user_allreduce

// By whether the program has a sum, and by whether its messages are intact.
static const laci_transport_ops user_tables[2][2] = {
    {{USER_TABLE}, {USER_TABLE, .intact = true}},
    {{USER_TABLE, USER_SUM}, {USER_TABLE, USER_SUM, .intact = true}},
};

static bool has_member(const lac_transport_ops *ops, size_t offset)
{
    return ops->size >= offset + sizeof(void *);
}

static lac_status check_table(const lac_transport_ops *ops)
{
    if (ops == NULL) {
        return lac_fail(LAC_ERR_INVALID, NAME ": ops is NULL");
    }
    if (!has_member(ops, offsetof(lac_transport_ops, exchange))) {
        return lac_fail(
            LAC_ERR_INVALID, NAME ": ops has %zu bytes, expected at least %zu",
            ops->size, offsetof(lac_transport_ops, abort));
    }
    if (ops->exchange == NULL) {
        return lac_fail(
            LAC_ERR_INVALID, NAME ": ops has no exchange, which is required");
    }
    return LAC_OK;
}

lac_status lac_transport_join_with(
    lac_transport **out, const lac_transport_ops *ops, void *context,
    uint32_t rank, uint32_t world)
{
    *out = NULL;
    LAC_TRY(check_table(ops));
    if (world == 0 || world == LAC_RANK_ANY) {
        return lac_fail(
            LAC_ERR_INVALID,
            NAME ": a world of %u workers, expected from 1 to %u", world,
            LAC_RANK_ANY - 1);
    }
    if (rank >= world) {
        return lac_fail(
            LAC_ERR_INVALID, NAME ": rank %u, expected one below %u", rank,
            world);
    }
    prepared p = {ops, context};
    laci_membership membership = {.rank = rank, .world = world, .prepared = &p};
    const bool sums =
        has_member(ops, offsetof(lac_transport_ops, allreduce_sum)) &&
        ops->allreduce_sum != NULL;
    const bool intact = has_member(ops, offsetof(lac_transport_ops, intact)) &&
                        ops->intact != 0;
    return laci_transport_join_ops(
        out, &user_tables[sums][intact], &membership);
}
