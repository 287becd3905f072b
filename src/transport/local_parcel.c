// SPDX-License-Identifier: MIT
// The life of a parcel of "local": made or taken from the free ones, queued at
// its receiver, lent or copied, given back. A parcel that its receiver does
// not want yet can be detached from the sender's bytes by a copy, so that a
// worker never waits for a peer that waits for it.
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "transport/local.h"

static bool grow(laci_parcels *list, size_t count)
{
    if (count <= list->cap) {
        return true;
    }
    const size_t cap = count + count / 2 + 4;
    size_t size;
    if (!laci_mul(cap, sizeof(*list->items), &size)) {
        return false;
    }
    laci_parcel **const items = laci_zalloc(size);
    if (items == NULL) {
        return false;
    }
    if (list->count > 0) {
        memcpy(items, list->items, list->count * sizeof(*items));
    }
    laci_free(list->items);
    list->items = items;
    list->cap = cap;
    return true;
}

static void take_up_returned(laci_slot *slot)
{
    (void)pthread_mutex_lock(&slot->lock);
    laci_parcel *parcel = slot->returned;
    slot->returned = NULL;
    (void)pthread_mutex_unlock(&slot->lock);
    while (parcel != NULL) {
        laci_parcel *const next = parcel->next;
        parcel->next = slot->free;
        slot->free = parcel;
        parcel = next;
    }
}

static bool make_parcels(laci_slot *slot, size_t count)
{
    for (laci_parcel *p = slot->free; p != NULL && count > 0; p = p->next) {
        count--;
    }
    for (; count > 0; count--) {
        if (!grow(&slot->made, slot->made.count + 1)) {
            return false;
        }
        laci_parcel *const parcel = laci_zalloc(sizeof(*parcel));
        if (parcel == NULL) {
            return false;
        }
        slot->made.items[slot->made.count++] = parcel;
        parcel->next = slot->free;
        slot->free = parcel;
    }
    return true;
}

lac_status laci_slot_reserve(
    laci_slot *slot, size_t send_count, size_t receive_count)
{
    take_up_returned(slot);
    if (!grow(&slot->sent[0], send_count) ||
        !grow(&slot->sent[1], send_count) ||
        !grow(&slot->held, receive_count) ||
        !grow(&slot->claims, receive_count) ||
        !make_parcels(slot, send_count)) {
        return lac_fail(
            LAC_ERR_NOMEM,
            "local: no memory for %zu sends and %zu receives of worker %u",
            send_count, receive_count, slot->rank);
    }
    return LAC_OK;
}

static void append(laci_queue *queue, laci_parcel *parcel)
{
    parcel->next = NULL;
    if (queue->first == NULL) {
        queue->first = parcel;
    } else {
        queue->last->next = parcel;
    }
    queue->last = parcel;
}

// Puts the parcel into its receiver's queue; false when that worker has left.
static bool enqueue(laci_slot *receiver, laci_parcel *parcel)
{
    (void)pthread_mutex_lock(&receiver->lock);
    const bool there = !atomic_load(&receiver->left);
    if (there) {
        parcel->queued = true;
        append(&receiver->queues[parcel->from], parcel);
        if (receiver->wanted > 0 && --receiver->wanted == 0) {
            (void)pthread_cond_signal(&receiver->wake);
        }
    }
    (void)pthread_mutex_unlock(&receiver->lock);
    return there;
}

static void count_lent(laci_slot *slot, laci_parcel *parcel)
{
    (void)pthread_mutex_lock(&slot->lock);
    parcel->out = true;
    slot->lent[parcel->parity]++;
    (void)pthread_mutex_unlock(&slot->lock);
}

// With the lock of its sender held.
static void uncount_lent(laci_slot *slot, laci_parcel *parcel)
{
    if (parcel->out) {
        parcel->out = false;
        if (--slot->lent[parcel->parity] == 0 && slot->waiting) {
            (void)pthread_cond_signal(&slot->wake);
        }
    }
}

bool laci_slot_post(lac_hub *hub, laci_slot *slot, const lac_send *send)
{
    laci_parcel *const parcel = slot->free;
    laci_parcels *const sent = &slot->sent[slot->parity];
    slot->free = parcel->next;
    parcel->from = slot->rank;
    parcel->to = send->peer;
    parcel->tag = send->tag;
    parcel->parity = slot->parity;
    parcel->len = send->len;
    parcel->data = send->data;
    parcel->claimed = false;
    parcel->detached = false;
    count_lent(slot, parcel);
    if (!enqueue(&hub->slots[send->peer], parcel)) {
        laci_slot_give_back(hub, parcel);
        return false;
    }
    sent->items[sent->count++] = parcel;
    return true;
}

void laci_slot_give_back(lac_hub *hub, laci_parcel *parcel)
{
    laci_slot *const sender = &hub->slots[parcel->from];
    (void)pthread_mutex_lock(&sender->lock);
    uncount_lent(sender, parcel);
    parcel->next = sender->returned;
    sender->returned = parcel;
    (void)pthread_mutex_unlock(&sender->lock);
}

void laci_slot_give_back_held(lac_hub *hub, laci_slot *slot)
{
    for (size_t i = 0; i < slot->held.count; i++) {
        laci_slot_give_back(hub, slot->held.items[i]);
    }
    slot->held.count = 0;
}

static bool copy_bytes(laci_parcel *parcel)
{
    if (parcel->len > parcel->copy_cap) {
        void *const copy = laci_zalloc(parcel->len);
        if (copy == NULL) {
            return false;
        }
        laci_free(parcel->copy);
        parcel->copy = copy;
        parcel->copy_cap = parcel->len;
    }
    if (parcel->len > 0) {
        memcpy(parcel->copy, parcel->data, parcel->len);
    }
    parcel->data = parcel->copy;
    return true;
}

typedef enum outcome { KEPT, DETACHED, DROPPED, NO_MEMORY } outcome;

static outcome try_detach(
    laci_slot *receiver, laci_parcel *parcel, bool leaving)
{
    outcome result = KEPT;
    (void)pthread_mutex_lock(&receiver->lock);
    if (parcel->queued && !parcel->detached && (leaving || receiver->waiting)) {
        if (copy_bytes(parcel)) {
            parcel->detached = true;
            result = DETACHED;
        } else if (leaving && !parcel->claimed) {
            laci_slot_unlink(receiver, parcel);
            result = DROPPED;
        } else {
            result = NO_MEMORY;
        }
    }
    (void)pthread_mutex_unlock(&receiver->lock);
    return result;
}

lac_status laci_slot_detach(
    lac_hub *hub, laci_slot *slot, unsigned parity, bool leaving)
{
    const laci_parcels *const sent = &slot->sent[parity];
    for (size_t i = 0; i < sent->count; i++) {
        laci_parcel *const parcel = sent->items[i];
        if (parcel->parity != parity) {
            continue; // came back and was used again in this exchange
        }
        const outcome result =
            try_detach(&hub->slots[parcel->to], parcel, leaving);
        if (result == NO_MEMORY && !leaving) {
            return lac_fail(
                LAC_ERR_NOMEM,
                "local: no memory to keep a message of %zu bytes from worker "
                "%u to worker %u",
                parcel->len, slot->rank, parcel->to);
        }
        if (result == DETACHED || result == DROPPED) {
            (void)pthread_mutex_lock(&slot->lock);
            uncount_lent(slot, parcel);
            (void)pthread_mutex_unlock(&slot->lock);
        }
    }
    return LAC_OK;
}

laci_parcel *laci_slot_find(const laci_queue *queue, uint32_t tag)
{
    laci_parcel *parcel = queue->first;
    while (parcel != NULL && (parcel->claimed || parcel->tag != tag)) {
        parcel = parcel->next;
    }
    return parcel;
}

void laci_slot_unlink(laci_slot *receiver, laci_parcel *parcel)
{
    laci_queue *const queue = &receiver->queues[parcel->from];
    laci_parcel *before = NULL;
    for (laci_parcel *p = queue->first; p != parcel; p = p->next) {
        before = p;
    }
    if (before == NULL) {
        queue->first = parcel->next;
    } else {
        before->next = parcel->next;
    }
    if (queue->last == parcel) {
        queue->last = before;
    }
    parcel->queued = false;
}
