// SPDX-License-Identifier: MIT
// The inside of "local": parcels that travel between the slots of a hub.
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

// One message under way. It belongs to its sender, who takes it up again after
// the receiver gave it back. `next` links it in the receiver's queue, among
// the parcels given back, or among the free ones.
typedef struct laci_parcel {
    struct laci_parcel *next;
    uint32_t from;
    uint32_t to;
    uint32_t tag;
    unsigned parity; // of the exchange that sent it
    size_t len;
    const void *data;
    void *copy; // memory of its own, for a parcel that outlives its bytes
    size_t copy_cap;
    // Under the receiver's lock:
    bool queued;
    bool claimed;  // a receive of the running exchange will take it
    bool detached; // data is the copy: the sender waits no more
    // Under the sender's lock:
    bool out; // counted in the sender's `lent`
} laci_parcel;

typedef struct laci_queue {
    laci_parcel *first;
    laci_parcel *last;
} laci_queue;

typedef struct laci_parcels {
    laci_parcel **items;
    size_t count;
    size_t cap;
} laci_parcels;

// A worker's place in the hub. No thread ever holds two locks.
typedef struct laci_slot {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    // Under the lock:
    laci_queue *queues;    // parcels for this worker, one queue a sender
    laci_parcel *returned; // this worker's parcels that came back
    size_t lent[2];        // its parcels still out, by parity
    size_t wanted;         // it sleeps until so many more parcels came
    bool joined;
    char why[LACI_WHY_SIZE]; // written once, before `aborted` is set
    // Written under the lock, read by all:
    atomic_bool waiting; // it is inside an exchange and sleeps
    atomic_bool left;
    atomic_bool aborted;
    // Of the worker's own thread:
    uint32_t rank;
    unsigned parity;
    double patience; // the longest wait an exchange was given
    double entered;
    laci_parcel *free;
    laci_parcels sent[2]; // by parity
    laci_parcels held;    // lent to this worker by the last exchange
    laci_parcels claims;  // by receive of the running exchange
    laci_parcels made;    // all it ever made, for the hub to release
} laci_slot;

struct lac_hub {
    uint32_t world;
    atomic_uint cause; // 1 + the first worker that gave up, or 0
    laci_slot slots[];
};

// laci_slot_wait sleeps with the lock held until it is woken or `until`.
void laci_slot_wait(laci_slot *slot, double until);

// laci_hub_wake_all wakes every worker that sleeps.
void laci_hub_wake_all(lac_hub *hub);

// laci_slot_reserve makes room for an exchange of so many messages, so that
// nothing is allocated once the numbers have been seen before.
lac_status laci_slot_reserve(
    laci_slot *slot, size_t send_count, size_t receive_count);

// laci_slot_post puts a message into the queue of its receiver, and returns
// false when that worker has left.
bool laci_slot_post(lac_hub *hub, laci_slot *slot, const lac_send *send);

// laci_slot_give_back returns a parcel to its sender.
void laci_slot_give_back(lac_hub *hub, laci_parcel *parcel);

// laci_slot_give_back_held returns all that the last exchange was lent.
void laci_slot_give_back_held(lac_hub *hub, laci_slot *slot);

// laci_slot_detach copies those parcels of `parity` that nobody is reading and
// whose receiver sleeps (or all that nobody is reading, when `leaving`), so
// that their bytes are free. Fails with LAC_ERR_NOMEM; a parcel of a leaving
// worker is dropped instead.
lac_status laci_slot_detach(
    lac_hub *hub, laci_slot *slot, unsigned parity, bool leaving);

// laci_slot_find returns the first unclaimed parcel of `tag`, or NULL.
laci_parcel *laci_slot_find(const laci_queue *queue, uint32_t tag);

// laci_slot_unlink takes a parcel out of its queue, under the receiver's lock.
void laci_slot_unlink(laci_slot *receiver, laci_parcel *parcel);

#endif
