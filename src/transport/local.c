// SPDX-License-Identifier: MIT
// The transport "local": the workers are threads of one process.
//
// Messages are not copied. An exchange returns the messages that the previous
// one was lent and queues its own at their receivers. It then sleeps until each
// of its receives has a message and until all messages that it sent in the
// previous exchange were returned: from then on the caller may overwrite those
// bytes. Only then does it take its messages out of the queues.
//
// A worker that sleeps in an exchange has not read anything yet. A sender that
// would have to wait for it copies the bytes instead and continues. Borrowed
// memory therefore never makes workers wait in a circle.
//
// Nobody spins. A sleeping worker is woken once, when all messages that it
// waits for have arrived, which keeps a thousand workers on two cores fair and
// fast.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "transport/local.h"
#include "transport/transport.h"

// How often a worker checks whether a peer that holds its bytes sleeps.
#define FIRST_PAUSE 1e-3
#define LAST_PAUSE  64e-3

// Workers along a chain wait for one another and time out together. A worker
// waits this long for an abort of a silent peer that waits itself.
#define LISTEN_SECONDS 0.1

// Leave waits at least this long for a reader, however short the deadlines.
#define LEAST_TIMEOUT 1.0

typedef struct local_state {
    lac_hub *hub;
    laci_slot *slot;
} local_state;

static lac_status take_place(local_state *state, uint32_t rank)
{
    laci_slot *const slot = &state->hub->slots[rank];
    (void)pthread_mutex_lock(&slot->lock);
    const bool taken = slot->joined;
    slot->joined = true;
    (void)pthread_mutex_unlock(&slot->lock);
    if (taken) {
        return lac_fail(
            LAC_ERR_INVALID, "local: worker %u has joined this hub already",
            rank);
    }
    slot->timeout = LEAST_TIMEOUT;
    state->slot = slot;
    return LAC_OK;
}

static lac_status local_join(void *raw, laci_membership *membership)
{
    local_state *const state = raw;
    state->hub = membership->hub;
    if (state->hub == NULL) {
        return lac_fail(LAC_ERR_INVALID, "local: no hub, expected one");
    }
    if (membership->world == LAC_RANK_ANY) {
        membership->world = state->hub->world;
    }
    if (membership->world != state->hub->world) {
        return lac_fail(
            LAC_ERR_INVALID, "local: a world of %u, expected the hub's %u",
            membership->world, state->hub->world);
    }
    if (membership->rank >= membership->world) {
        return lac_fail(
            LAC_ERR_INVALID, "local: rank %u, expected one below %u",
            membership->rank, membership->world);
    }
    return take_place(state, membership->rank);
}

// Fails if this worker or another one aborted.
static lac_status local_check_causes(const local_state *state)
{
    const laci_slot *const slot = state->slot;
    if (atomic_load(&slot->aborted)) {
        return lac_fail(LAC_ERR_PEER, "%s", slot->why);
    }
    const unsigned cause = atomic_load(&state->hub->cause);
    if (cause != 0) {
        return lac_fail(
            LAC_ERR_PEER, "worker %u aborted: %s", cause - 1,
            state->hub->slots[cause - 1].why);
    }
    return LAC_OK;
}

// Claims the messages that have arrived. Writes the number of receives without
// one to `*missing_out` and the peer of the first to `*silent_out`. The caller
// holds the lock.
static lac_status claim_arrived(
    const local_state *state, const lac_receive *receives, size_t count,
    size_t *missing_out, uint32_t *silent_out)
{
    laci_slot *const slot = state->slot;
    *missing_out = 0;
    for (size_t i = 0; i < count; i++) {
        const lac_receive *const receive = &receives[i];
        if (slot->claims.items[i] != NULL) {
            continue;
        }
        // Read first: a worker that has left queues nothing more.
        const bool left = atomic_load(&state->hub->slots[receive->peer].left);
        laci_local_message *const message =
            laci_slot_find(&slot->queues[receive->peer], receive->tag);
        if (message != NULL && !laci_receive_fits(receive, message->len)) {
            return lac_fail(
                LAC_ERR_SPACE,
                "local: a message of worker %u has %zu bytes, the buffer of "
                "worker %u holds %zu",
                receive->peer, message->len, slot->rank, receive->cap);
        }
        if (message != NULL) {
            message->claimed = true;
            slot->claims.items[i] = message;
            continue;
        }
        if (left) {
            LAC_TRY(local_check_causes(state));
            return lac_fail(
                LAC_ERR_PEER,
                "worker %u has left, but worker %u waits for its message",
                receive->peer, slot->rank);
        }
        *silent_out = *missing_out == 0 ? receive->peer : *silent_out;
        *missing_out += 1;
    }
    return LAC_OK;
}

// Sleeps until all missing messages have arrived. A neighbour that is one
// exchange ahead may send its next message meanwhile, which does not count. The
// caller holds the lock.
static void sleep_until_complete(
    laci_slot *slot, const lac_receive *receives, size_t count, double deadline)
{
    for (size_t i = 0; i < count; i++) {
        if (slot->claims.items[i] == NULL) {
            slot->queues[receives[i].peer].awaited++;
            slot->awaited++;
        }
    }
    laci_slot_wait(slot, deadline);
    for (size_t i = 0; i < count; i++) {
        slot->queues[receives[i].peer].awaited = 0;
    }
    slot->awaited = 0;
}

static lac_status local_await_messages(
    const local_state *state, const lac_receive *receives, size_t count,
    double deadline)
{
    laci_slot *const slot = state->slot;
    lac_status status = LAC_OK;
    size_t missing = 0;
    uint32_t silent = 0;
    bool extended = false;
    (void)pthread_mutex_lock(&slot->lock);
    slot->waiting = true;
    for (;;) {
        atomic_store(&slot->awaits, LAC_RANK_ANY);
        status = claim_arrived(state, receives, count, &missing, &silent);
        if (status != LAC_OK || missing == 0) {
            break;
        }
        status = local_check_causes(state);
        const double now = laci_monotonic_now();
        if (status == LAC_OK && now >= deadline && !extended &&
            atomic_load(&state->hub->slots[silent].waiting)) {
            extended = true;
            deadline = now + LISTEN_SECONDS;
        } else if (status == LAC_OK && now >= deadline) {
            status = lac_fail(
                LAC_ERR_PEER,
                "worker %u was silent for %.1f seconds in an exchange of "
                "worker %u",
                silent, now - slot->entered, slot->rank);
        }
        if (status != LAC_OK) {
            break;
        }
        if (missing == 1) {
            atomic_store(&slot->awaits, silent);
        }
        sleep_until_complete(slot, receives, count, deadline);
    }
    atomic_store(&slot->awaits, slot->rank);
    slot->waiting = false;
    (void)pthread_mutex_unlock(&slot->lock);
    return status;
}

// Returns a worker that holds a message of the exchange `parity`. The caller
// holds the lock.
static uint32_t find_holder(const laci_slot *slot, unsigned parity)
{
    const laci_local_list *const sent = &slot->sent[parity];
    for (size_t i = 0; i < sent->count; i++) {
        if (sent->items[i]->parity == parity && sent->items[i]->out) {
            return sent->items[i]->to;
        }
    }
    return slot->rank;
}

static lac_status check_holders(
    const local_state *state, unsigned parity, double deadline)
{
    const laci_slot *const slot = state->slot;
    LAC_TRY(local_check_causes(state));
    const double now = laci_monotonic_now();
    if (now >= deadline) {
        return lac_fail(
            LAC_ERR_PEER,
            "worker %u did not return a message of worker %u for %.1f "
            "seconds",
            find_holder(slot, parity), slot->rank, now - slot->entered);
    }
    return LAC_OK;
}

// Waits until all messages of the previous exchange were returned or copied.
static lac_status await_returns(const local_state *state, double deadline)
{
    laci_slot *const slot = state->slot;
    const unsigned last = !slot->parity;
    double pause = FIRST_PAUSE;
    lac_status status = LAC_OK;
    (void)pthread_mutex_lock(&slot->lock);
    while (status == LAC_OK && slot->lent[last] > 0) {
        (void)pthread_mutex_unlock(&slot->lock);
        status = laci_slot_detach(state->hub, slot, last, false);
        (void)pthread_mutex_lock(&slot->lock);
        if (status != LAC_OK || slot->lent[last] == 0) {
            break;
        }
        slot->waiting = true;
        status = check_holders(state, last, deadline);
        if (status == LAC_OK) {
            laci_slot_wait(slot, fmin(deadline, laci_monotonic_now() + pause));
            pause = fmin(2 * pause, LAST_PAUSE);
        }
        slot->waiting = false;
    }
    (void)pthread_mutex_unlock(&slot->lock);
    return status;
}

// Takes the claimed messages: copies those with a buffer and lends the rest.
static void deliver_claimed(
    const local_state *state, lac_receive *receives, size_t count)
{
    laci_slot *const slot = state->slot;
    (void)pthread_mutex_lock(&slot->lock);
    for (size_t i = 0; i < count; i++) {
        laci_slot_unlink(slot, slot->claims.items[i]);
    }
    (void)pthread_mutex_unlock(&slot->lock);
    for (size_t i = 0; i < count; i++) {
        laci_local_message *const message = slot->claims.items[i];
        receives[i].len = message->len;
        if (receives[i].buffer == NULL) {
            receives[i].data = message->len > 0 ? message->data : "";
            slot->held.items[slot->held.count++] = message;
            continue;
        }
        if (message->len > 0) {
            memcpy(receives[i].buffer, message->data, message->len);
        }
        receives[i].data = receives[i].buffer;
        laci_slot_return(state->hub, message);
    }
}

static lac_status local_exchange(
    void *raw, const lac_send *sends, size_t send_count, lac_receive *receives,
    size_t receive_count, double deadline)
{
    const local_state *const state = raw;
    laci_slot *const slot = state->slot;
    slot->entered = laci_monotonic_now();
    slot->timeout = fmax(slot->timeout, deadline - slot->entered);
    laci_slot_return_held(state->hub, slot);
    if (atomic_load(&slot->aborted)) {
        return local_check_causes(state);
    }
    LAC_TRY(laci_slot_reserve(slot, send_count, receive_count));
    if (receive_count > 0) {
        memset(
            slot->claims.items, 0, receive_count * sizeof(*slot->claims.items));
    }
    slot->parity = !slot->parity;
    slot->sent[slot->parity].count = 0;
    for (size_t i = 0; i < send_count; i++) {
        if (!laci_slot_post(state->hub, slot, &sends[i])) {
            LAC_TRY(local_check_causes(state));
            return lac_fail(
                LAC_ERR_PEER, "worker %u has left, but worker %u sends to it",
                sends[i].peer, slot->rank);
        }
    }
    LAC_TRY(local_await_messages(state, receives, receive_count, deadline));
    LAC_TRY(await_returns(state, deadline));
    deliver_claimed(state, receives, receive_count);
    return LAC_OK;
}

static void local_abort(void *raw, const char *why)
{
    const local_state *const state = raw;
    laci_slot *const slot = state->slot;
    (void)pthread_mutex_lock(&slot->lock);
    const bool first = !atomic_load(&slot->aborted);
    if (first) {
        (void)snprintf(slot->why, sizeof(slot->why), "%s", why);
        atomic_store(&slot->aborted, true);
        if (slot->waiting) {
            (void)pthread_cond_signal(&slot->wake);
        }
    }
    (void)pthread_mutex_unlock(&slot->lock);
    unsigned nobody = 0;
    if (first && atomic_compare_exchange_strong(
                     &state->hub->cause, &nobody, slot->rank + 1)) {
        laci_hub_wake_all(state->hub);
    }
}

// Takes a message that this worker did not receive, or returns NULL. `*peer` is
// the first worker of which one may be left.
static laci_local_message *take_unread(laci_slot *slot, uint32_t *peer)
{
    laci_local_message *message = NULL;
    (void)pthread_mutex_lock(&slot->lock);
    if (slot->queued > 0) {
        while (slot->queues[*peer].first == NULL) {
            *peer += 1;
        }
        message = slot->queues[*peer].first;
        laci_slot_unlink(slot, message);
    }
    (void)pthread_mutex_unlock(&slot->lock);
    return message;
}

// Returns the messages that this worker did not receive to their senders.
static void return_unread(const local_state *state)
{
    uint32_t peer = 0;
    laci_local_message *message;
    while ((message = take_unread(state->slot, &peer)) != NULL) {
        laci_slot_return(state->hub, message);
    }
}

static bool local_leave(void *raw)
{
    const local_state *const state = raw;
    laci_slot *const slot = state->slot;
    laci_slot_return_held(state->hub, slot);
    // This cannot fail: messages of a leaving worker are copied or dropped.
    (void)laci_slot_detach(state->hub, slot, 0, true);
    (void)laci_slot_detach(state->hub, slot, 1, true);
    (void)pthread_mutex_lock(&slot->lock);
    atomic_store(&slot->left, true);
    (void)pthread_mutex_unlock(&slot->lock);
    return_unread(state);
    laci_hub_wake_receivers(state->hub, slot->rank);
    const double until = laci_monotonic_now() + slot->timeout;
    (void)pthread_mutex_lock(&slot->lock);
    slot->waiting = true;
    while (slot->lent[0] + slot->lent[1] > 0 && laci_monotonic_now() < until) {
        laci_slot_wait(slot, until);
    }
    slot->waiting = false;
    const bool idle = slot->lent[0] + slot->lent[1] == 0;
    (void)pthread_mutex_unlock(&slot->lock);
    return idle;
}

const laci_transport_ops laci_local_transport = {
    .plugin =
        {
            .size = sizeof(laci_transport_ops),
            .name = "local",
            .summary = "threads of one process, without copies",
            .param_size = sizeof(lac_param),
            .state_size = sizeof(local_state),
        },
    .abi = LACI_TRANSPORT_ABI,
    .join = local_join,
    .leave = local_leave,
    .exchange = local_exchange,
    .intact = true, // peers read the memory of the sender
    .abort = local_abort,
};
