// SPDX-License-Identifier: MIT
// The life of a message of "local": allocated or reused, queued at its
// receiver, lent or copied, returned. A message that its receiver does not
// expect yet can be detached from the sender's bytes by a copy, so that a
// worker never waits for a peer that waits for it.
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "transport/local.h"

static bool list_grow(laci_local_list *list, size_t count)
{
    if (count <= list->cap) {
        return true;
    }
    const size_t cap = count + count / 2 + 4;
    size_t size;
    if (!laci_mul(cap, sizeof(*list->items), &size)) {
        return false;
    }
    laci_local_message **const items = laci_zalloc(size);
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

static void reuse_returned(laci_slot *slot)
{
    (void)pthread_mutex_lock(&slot->lock);
    laci_local_message *message = slot->returned;
    slot->returned = NULL;
    (void)pthread_mutex_unlock(&slot->lock);
    while (message != NULL) {
        laci_local_message *const next = message->next;
        message->next = slot->free;
        slot->free = message;
        message = next;
    }
}

static bool make_messages(laci_slot *slot, size_t count)
{
    for (laci_local_message *p = slot->free; p != NULL && count > 0;
         p = p->next) {
        count--;
    }
    for (; count > 0; count--) {
        if (!list_grow(&slot->made, slot->made.count + 1)) {
            return false;
        }
        laci_local_message *const message = laci_zalloc(sizeof(*message));
        if (message == NULL) {
            return false;
        }
        slot->made.items[slot->made.count++] = message;
        message->next = slot->free;
        slot->free = message;
    }
    return true;
}

lac_status laci_slot_reserve(
    laci_slot *slot, size_t send_count, size_t receive_count)
{
    reuse_returned(slot);
    if (!list_grow(&slot->sent[0], send_count) ||
        !list_grow(&slot->sent[1], send_count) ||
        !list_grow(&slot->held, receive_count) ||
        !list_grow(&slot->claims, receive_count) ||
        !make_messages(slot, send_count)) {
        return lac_fail(
            LAC_ERR_NOMEM,
            "local: no memory for %zu sends and %zu receives of worker %u",
            send_count, receive_count, slot->rank);
    }
    return LAC_OK;
}

static void queue_append(laci_queue *queue, laci_local_message *message)
{
    message->next = NULL;
    if (queue->first == NULL) {
        queue->first = message;
    } else {
        queue->last->next = message;
    }
    queue->last = message;
}

// Queues the message at its receiver. Returns false if that worker has left.
// The signal follows the unlock: a receiver that runs at once, in the place of
// this worker, would sleep again at a lock that is still held.
static bool enqueue(laci_slot *receiver, laci_local_message *message)
{
    bool complete = false;
    (void)pthread_mutex_lock(&receiver->lock);
    const bool joined = !atomic_load(&receiver->left);
    if (joined) {
        laci_queue *const queue = &receiver->queues[message->from];
        message->queued = true;
        receiver->queued++;
        queue_append(queue, message);
        if (queue->awaited > 0) {
            queue->awaited--;
            complete = --receiver->awaited == 0;
        }
    }
    (void)pthread_mutex_unlock(&receiver->lock);
    if (complete) {
        (void)pthread_cond_signal(&receiver->wake);
    }
    return joined;
}

static void count_lent(laci_slot *slot, laci_local_message *message)
{
    (void)pthread_mutex_lock(&slot->lock);
    message->out = true;
    slot->lent[message->parity]++;
    (void)pthread_mutex_unlock(&slot->lock);
}

// The caller holds the lock of the sender.
static void uncount_lent(laci_slot *slot, laci_local_message *message)
{
    if (message->out) {
        message->out = false;
        if (--slot->lent[message->parity] == 0 && slot->waiting) {
            (void)pthread_cond_signal(&slot->wake);
        }
    }
}

bool laci_slot_post(lac_hub *hub, laci_slot *slot, const lac_send *send)
{
    laci_local_message *const message = slot->free;
    laci_local_list *const sent = &slot->sent[slot->parity];
    slot->free = message->next;
    message->from = slot->rank;
    message->to = send->peer;
    message->tag = send->tag;
    message->parity = slot->parity;
    message->len = send->len;
    message->data = send->data;
    message->claimed = false;
    message->detached = false;
    count_lent(slot, message);
    if (!enqueue(&hub->slots[send->peer], message)) {
        laci_slot_return(hub, message);
        return false;
    }
    sent->items[sent->count++] = message;
    return true;
}

void laci_slot_return(lac_hub *hub, laci_local_message *message)
{
    laci_slot *const sender = &hub->slots[message->from];
    (void)pthread_mutex_lock(&sender->lock);
    uncount_lent(sender, message);
    message->next = sender->returned;
    sender->returned = message;
    (void)pthread_mutex_unlock(&sender->lock);
}

void laci_slot_return_held(lac_hub *hub, laci_slot *slot)
{
    for (size_t i = 0; i < slot->held.count; i++) {
        laci_slot_return(hub, slot->held.items[i]);
    }
    slot->held.count = 0;
}

static bool copy_bytes(laci_local_message *message)
{
    if (message->len > message->copy_cap) {
        void *const copy = laci_zalloc(message->len);
        if (copy == NULL) {
            return false;
        }
        laci_free(message->copy);
        message->copy = copy;
        message->copy_cap = message->len;
    }
    if (message->len > 0) {
        memcpy(message->copy, message->data, message->len);
    }
    message->data = message->copy;
    return true;
}

typedef enum outcome { KEPT, DETACHED, DROPPED, NO_MEMORY } outcome;

static outcome try_detach(
    laci_slot *receiver, laci_local_message *message, bool leaving)
{
    outcome result = KEPT;
    (void)pthread_mutex_lock(&receiver->lock);
    if (message->queued && !message->detached &&
        (leaving || receiver->waiting)) {
        if (copy_bytes(message)) {
            message->detached = true;
            result = DETACHED;
        } else if (leaving && !message->claimed) {
            laci_slot_unlink(receiver, message);
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
    const laci_local_list *const sent = &slot->sent[parity];
    for (size_t i = 0; i < sent->count; i++) {
        laci_local_message *const message = sent->items[i];
        if (message->parity != parity) {
            continue; // was returned, and reused in this exchange
        }
        const outcome result =
            try_detach(&hub->slots[message->to], message, leaving);
        if (result == NO_MEMORY && !leaving) {
            return lac_fail(
                LAC_ERR_NOMEM,
                "local: no memory for a copy of a message of %zu bytes from "
                "worker %u to worker %u",
                message->len, slot->rank, message->to);
        }
        if (result == DETACHED || result == DROPPED) {
            (void)pthread_mutex_lock(&slot->lock);
            uncount_lent(slot, message);
            (void)pthread_mutex_unlock(&slot->lock);
        }
    }
    return LAC_OK;
}

laci_local_message *laci_slot_find(const laci_queue *queue, uint32_t tag)
{
    laci_local_message *message = queue->first;
    while (message != NULL && (message->claimed || message->tag != tag)) {
        message = message->next;
    }
    return message;
}

void laci_slot_unlink(laci_slot *receiver, laci_local_message *message)
{
    laci_queue *const queue = &receiver->queues[message->from];
    laci_local_message *before = NULL;
    for (laci_local_message *p = queue->first; p != message; p = p->next) {
        before = p;
    }
    if (before == NULL) {
        queue->first = message->next;
    } else {
        before->next = message->next;
    }
    if (queue->last == message) {
        queue->last = before;
    }
    message->queued = false;
    receiver->queued--;
}
