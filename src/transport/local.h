// SPDX-License-Identifier: MIT
// The internals of "local": messages between the slots of a hub.
#ifndef LACONIC_TRANSPORT_LOCAL_H
#define LACONIC_TRANSPORT_LOCAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/status.h>
#include <laconic/transport.h>

enum { LACI_WHY_SIZE = 400 };

// One message. It belongs to its sender, which reuses it after the receiver has
// returned it. `next` links it in the receiver's queue, among the returned
// messages, or among the free ones.
typedef struct laci_local_message {
    struct laci_local_message *next;
    uint32_t from;
    uint32_t to;
    uint32_t tag;
    unsigned parity; // of the exchange that sent it
    size_t len;
    const void *data;
    void *copy; // memory of its own, for a message that outlives its bytes
    size_t copy_cap;
    // Protected by the receiver's lock:
    bool queued;
    bool claimed;  // by a receive of the running exchange
    bool detached; // data is the copy: the sender need not wait
    // Protected by the sender's lock:
    bool out; // counted in the sender's `lent`
} laci_local_message;

typedef struct laci_queue {
    laci_local_message *first;
    laci_local_message *last;
    size_t awaited; // the receiver sleeps until so many more arrive
} laci_queue;

typedef struct laci_local_list {
    laci_local_message **items;
    size_t count;
    size_t cap;
} laci_local_list;

// A worker's place in the hub. No thread ever holds two locks.
typedef struct laci_slot {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    // Protected by the lock:
    laci_queue *queues;           // incoming messages, one queue per sender
    size_t queued;                // incoming messages in all of them
    laci_local_message *returned; // outgoing messages that were returned
    size_t lent[2]; // outgoing messages not yet returned, by parity
    size_t awaited; // the sum over the queues
    bool joined;
    char why[LACI_WHY_SIZE]; // written once, before `aborted` is set
    // Written under the lock, read by all:
    atomic_bool waiting; // it sleeps, or checks whether it has to
    atomic_uint awaits;  // the only worker whose message it waits for; of
                         // several or before it knows, LAC_RANK_ANY; itself
                         // where it waits for none
    atomic_bool left;
    atomic_bool aborted;
    // Used by the worker's calls only, which do not overlap:
    uint32_t rank;
    unsigned parity;
    double timeout; // the longest that an exchange was allowed to wait
    double entered;
    laci_local_message *free;
    laci_local_list sent[2]; // by parity
    laci_local_list held;    // lent to this worker by the last exchange
    laci_local_list claims;  // by receive of the running exchange
    laci_local_list made;    // all messages, released by the hub
} laci_slot;

struct lac_hub {
    uint32_t world;
    atomic_uint cause;  // 1 + the first worker that aborted, or 0
    laci_queue *queues; // of all workers
    laci_slot slots[];
};

// laci_slot_wait waits for the condition until `until`. The caller holds the
// lock. It sets `waiting` before it checks whether there is something to wait
// for: whoever changes that first and reads `waiting` afterwards misses no
// sleeper. The same holds for `awaits`.
void laci_slot_wait(laci_slot *slot, double until);

// laci_hub_wake_all wakes every sleeping worker.
void laci_hub_wake_all(lac_hub *hub);

// laci_hub_wake_receivers wakes every worker that waits for a message of `rank`
// or may do so. To wake all others too when one of many workers leaves would
// take a time in proportion to the square of their number.
void laci_hub_wake_receivers(lac_hub *hub, uint32_t rank);

// laci_slot_reserve makes room for an exchange of so many messages, so that
// an exchange of no more messages than before allocates nothing.
lac_status laci_slot_reserve(
    laci_slot *slot, size_t send_count, size_t receive_count);

// laci_slot_post queues a message at its receiver. Returns false if that
// worker has left.
bool laci_slot_post(lac_hub *hub, laci_slot *slot, const lac_send *send);

// laci_slot_return returns a message to its sender.
void laci_slot_return(lac_hub *hub, laci_local_message *message);

// laci_slot_return_held returns all messages that the last exchange was lent.
void laci_slot_return_held(lac_hub *hub, laci_slot *slot);

// laci_slot_detach copies those messages of `parity` that nobody is reading and
// whose receiver sleeps (or all that nobody is reading, when `leaving`), so
// that their bytes are free. Fails with LAC_ERR_NOMEM; a message of a leaving
// worker is dropped instead.
lac_status laci_slot_detach(
    lac_hub *hub, laci_slot *slot, unsigned parity, bool leaving);

// laci_slot_find returns the first unclaimed message of `tag`, or NULL.
laci_local_message *laci_slot_find(const laci_queue *queue, uint32_t tag);

// laci_slot_unlink removes a message from its queue. The caller holds the
// receiver's lock.
void laci_slot_unlink(laci_slot *receiver, laci_local_message *message);

#endif
