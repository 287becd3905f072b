// SPDX-License-Identifier: MIT
// The transport "local": the workers are threads of one process.
//
// A message is not copied. An exchange gives back what the one before was
// lent, queues its parcels at their receivers, and sleeps until a parcel is
// there for each of its receives and until all that it sent in the exchange
// before has come back: from then on the caller may write those bytes again.
// Only then does it take its parcels out of the queues.
//
// As long as a worker sleeps in an exchange it has read nothing yet, so a
// sender that would have to wait for it copies the bytes instead and goes on.
// Whatever the pattern, nobody waits in a circle because of borrowed memory.
//
// Nobody spins. A sleeping worker is woken once, when as many parcels came as
// it still wants, which keeps a thousand workers on two cores fair and quick.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "transport/local.h"
#include "transport/transport.h"

// How often a worker looks whether a peer that holds its bytes went to sleep.
#define FIRST_NAP 1e-3
#define LAST_NAP  64e-3

// Workers along a chain wait for one another and run out of time together. A
// peer that waits itself gets this long to say who keeps it.
#define LISTEN_SECONDS 0.1

// Leave gives a reader at least this long, however short the deadlines were.
#define LEAST_PATIENCE 1.0

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
    slot->patience = LEAST_PATIENCE;
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

// Why this worker cannot go on waiting: it was aborted, or somebody gave up.
static lac_status check_causes(const local_state *state)
{
    const laci_slot *const slot = state->slot;
    if (atomic_load(&slot->aborted)) {
        return lac_fail(LAC_ERR_PEER, "%s", slot->why);
    }
    const unsigned cause = atomic_load(&state->hub->cause);
    if (cause != 0) {
        return lac_fail(
            LAC_ERR_PEER, "worker %u gave up: %s", cause - 1,
            state->hub->slots[cause - 1].why);
    }
    return LAC_OK;
}

// Claims what has come. `*missing_out` receives are left, `*silent_out` is the
// peer of the first. With the lock held.
static lac_status claim(
    const local_state *state, const lac_receive *receives, size_t count,
    size_t *missing_out, uint32_t *silent_out)
{
    laci_slot *const slot = state->slot;
    *missing_out = 0;
    for (size_t i = 0; i < count; i++) {
        const lac_receive *const wish = &receives[i];
        if (slot->claims.items[i] != NULL) {
            continue;
        }
        // Asked first: whoever has left has queued all it ever will.
        const bool left = atomic_load(&state->hub->slots[wish->peer].left);
        laci_parcel *const parcel =
            laci_slot_find(&slot->queues[wish->peer], wish->tag);
        if (parcel != NULL && wish->buffer != NULL && parcel->len > wish->cap) {
            return lac_fail(
                LAC_ERR_SPACE,
                "local: a message of worker %u has %zu bytes, the buffer of "
                "worker %u holds %zu",
                wish->peer, parcel->len, slot->rank, wish->cap);
        }
        if (parcel != NULL) {
            parcel->claimed = true;
            slot->claims.items[i] = parcel;
            continue;
        }
        if (left) {
            LAC_TRY(check_causes(state));
            return lac_fail(
                LAC_ERR_PEER,
                "worker %u has left, but worker %u waits for its message",
                wish->peer, slot->rank);
        }
        *silent_out = *missing_out == 0 ? wish->peer : *silent_out;
        *missing_out += 1;
    }
    return LAC_OK;
}

static lac_status await_messages(
    const local_state *state, const lac_receive *receives, size_t count,
    double deadline)
{
    laci_slot *const slot = state->slot;
    lac_status status = LAC_OK;
    size_t missing = 0;
    uint32_t silent = 0;
    bool heard = false;
    (void)pthread_mutex_lock(&slot->lock);
    for (;;) {
        status = claim(state, receives, count, &missing, &silent);
        if (status != LAC_OK || missing == 0) {
            break;
        }
        status = check_causes(state);
        const double now = laci_monotonic_now();
        if (status == LAC_OK && now >= deadline && !heard &&
            atomic_load(&state->hub->slots[silent].waiting)) {
            heard = true;
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
        slot->wanted = missing;
        laci_slot_wait(slot, deadline);
        slot->wanted = 0;
    }
    (void)pthread_mutex_unlock(&slot->lock);
    return status;
}

// Who still has a parcel of the exchange `parity`. With the lock held.
static uint32_t find_holder(const laci_slot *slot, unsigned parity)
{
    const laci_parcels *const sent = &slot->sent[parity];
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
    LAC_TRY(check_causes(state));
    const double now = laci_monotonic_now();
    if (now >= deadline) {
        return lac_fail(
            LAC_ERR_PEER,
            "worker %u did not come back for %.1f seconds while worker %u "
            "waited for it to let a message go",
            find_holder(slot, parity), now - slot->entered, slot->rank);
    }
    return LAC_OK;
}

// Waits until all that the last exchange sent has come back or been copied.
static lac_status await_returns(const local_state *state, double deadline)
{
    laci_slot *const slot = state->slot;
    const unsigned last = !slot->parity;
    double nap = FIRST_NAP;
    lac_status status = LAC_OK;
    (void)pthread_mutex_lock(&slot->lock);
    while (status == LAC_OK && slot->lent[last] > 0) {
        (void)pthread_mutex_unlock(&slot->lock);
        status = laci_slot_detach(state->hub, slot, last, false);
        (void)pthread_mutex_lock(&slot->lock);
        if (status != LAC_OK || slot->lent[last] == 0) {
            break;
        }
        status = check_holders(state, last, deadline);
        if (status == LAC_OK) {
            laci_slot_wait(slot, fmin(deadline, laci_monotonic_now() + nap));
            nap = fmin(2 * nap, LAST_NAP);
        }
    }
    (void)pthread_mutex_unlock(&slot->lock);
    return status;
}

// Takes what was claimed: copies it where there is a buffer, lends the rest.
static void deliver(
    const local_state *state, lac_receive *receives, size_t count)
{
    laci_slot *const slot = state->slot;
    (void)pthread_mutex_lock(&slot->lock);
    for (size_t i = 0; i < count; i++) {
        laci_slot_unlink(slot, slot->claims.items[i]);
    }
    (void)pthread_mutex_unlock(&slot->lock);
    for (size_t i = 0; i < count; i++) {
        laci_parcel *const parcel = slot->claims.items[i];
        receives[i].len = parcel->len;
        if (receives[i].buffer == NULL) {
            receives[i].data = parcel->len > 0 ? parcel->data : "";
            slot->held.items[slot->held.count++] = parcel;
            continue;
        }
        if (parcel->len > 0) {
            memcpy(receives[i].buffer, parcel->data, parcel->len);
        }
        receives[i].data = receives[i].buffer;
        laci_slot_give_back(state->hub, parcel);
    }
}

static lac_status local_exchange(
    void *raw, const lac_send *sends, size_t send_count, lac_receive *receives,
    size_t receive_count, double deadline)
{
    const local_state *const state = raw;
    laci_slot *const slot = state->slot;
    slot->entered = laci_monotonic_now();
    slot->patience = fmax(slot->patience, deadline - slot->entered);
    laci_slot_give_back_held(state->hub, slot);
    if (atomic_load(&slot->aborted)) {
        return check_causes(state);
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
            LAC_TRY(check_causes(state));
            return lac_fail(
                LAC_ERR_PEER, "worker %u has left, but worker %u sends to it",
                sends[i].peer, slot->rank);
        }
    }
    LAC_TRY(await_messages(state, receives, receive_count, deadline));
    LAC_TRY(await_returns(state, deadline));
    deliver(state, receives, receive_count);
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

// What nobody will receive any more goes back to those who sent it.
static void return_unread(const local_state *state)
{
    laci_slot *const slot = state->slot;
    for (uint32_t peer = 0; peer < state->hub->world; peer++) {
        for (;;) {
            (void)pthread_mutex_lock(&slot->lock);
            laci_parcel *const parcel = slot->queues[peer].first;
            if (parcel != NULL) {
                laci_slot_unlink(slot, parcel);
            }
            (void)pthread_mutex_unlock(&slot->lock);
            if (parcel == NULL) {
                break;
            }
            laci_slot_give_back(state->hub, parcel);
        }
    }
}

static void local_leave(void *raw)
{
    const local_state *const state = raw;
    laci_slot *const slot = state->slot;
    laci_slot_give_back_held(state->hub, slot);
    // Nothing fails here: a leaving worker's parcels are copied or dropped.
    (void)laci_slot_detach(state->hub, slot, 0, true);
    (void)laci_slot_detach(state->hub, slot, 1, true);
    (void)pthread_mutex_lock(&slot->lock);
    atomic_store(&slot->left, true);
    (void)pthread_mutex_unlock(&slot->lock);
    return_unread(state);
    laci_hub_wake_all(state->hub);
    const double until = laci_monotonic_now() + slot->patience;
    (void)pthread_mutex_lock(&slot->lock);
    while (slot->lent[0] + slot->lent[1] > 0 && laci_monotonic_now() < until) {
        laci_slot_wait(slot, until);
    }
    (void)pthread_mutex_unlock(&slot->lock);
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
    .abort = local_abort,
};
