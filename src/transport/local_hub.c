// SPDX-License-Identifier: MIT
// The hub of "local": the slots of all workers, and how they sleep and wake.
#define _POSIX_C_SOURCE 200809L
#include <assert.h>
#include <math.h>
#include <time.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "transport/local.h"
#include "transport/transport.h"

// Deadlines further away than this count as none.
#define FAR_SECONDS 1e8

static bool slot_init(laci_slot *slot)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return false;
    }
    bool good = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                pthread_mutex_init(&slot->lock, NULL) == 0;
    if (good && pthread_cond_init(&slot->wake, &attributes) != 0) {
        (void)pthread_mutex_destroy(&slot->lock);
        good = false;
    }
    (void)pthread_condattr_destroy(&attributes);
    return good;
}

static void slot_fini(laci_slot *slot)
{
    assert(!slot->joined || atomic_load(&slot->left));
    for (size_t i = 0; i < slot->made.count; i++) {
        laci_free(slot->made.items[i]->copy);
        laci_free(slot->made.items[i]);
    }
    laci_free(slot->sent[0].items);
    laci_free(slot->sent[1].items);
    laci_free(slot->held.items);
    laci_free(slot->claims.items);
    laci_free(slot->made.items);
    (void)pthread_cond_destroy(&slot->wake);
    (void)pthread_mutex_destroy(&slot->lock);
}

// One block holds the hub and its slots, another a row of queues for each
// worker. Most of a row is never touched, so a sparse graph uses little real
// memory; large pages would use all of it, so that block has none.
static lac_hub *hub_allocate(uint32_t world)
{
    size_t slots, row, queues;
    if (!laci_mul(world, sizeof(laci_slot), &slots) ||
        !laci_mul(world, sizeof(laci_queue), &row) ||
        !laci_mul(world, row, &queues)) {
        return NULL;
    }
    lac_hub *const hub = laci_zalloc_aligned(sizeof(lac_hub) + slots);
    laci_queue *const rows = laci_zalloc(queues);
    if (hub == NULL || rows == NULL) {
        laci_free(rows);
        laci_free_aligned(hub);
        return NULL;
    }
    hub->world = world;
    hub->queues = rows;
    for (size_t i = 0; i < world; i++) {
        hub->slots[i].queues = rows + i * world;
        hub->slots[i].rank = (uint32_t)i;
        atomic_init(&hub->slots[i].awaits, (unsigned)i);
    }
    return hub;
}

static void hub_free(lac_hub *hub)
{
    laci_free(hub->queues);
    laci_free_aligned(hub);
}

lac_status lac_hub_open(lac_hub **out, uint32_t world)
{
    *out = NULL;
    if (world == 0) {
        return lac_fail(
            LAC_ERR_INVALID, "local: a hub of 0 workers, expected 1 or more");
    }
    lac_hub *const hub = hub_allocate(world);
    uint32_t made = 0;
    while (hub != NULL && made < world && slot_init(&hub->slots[made])) {
        made++;
    }
    if (made < world) {
        while (made > 0) {
            slot_fini(&hub->slots[--made]);
        }
        if (hub != NULL) {
            hub_free(hub);
        }
        return lac_fail(
            LAC_ERR_NOMEM, "local: no memory for a hub of %u workers", world);
    }
    *out = hub;
    return LAC_OK;
}

void lac_hub_close(lac_hub *hub)
{
    if (hub == NULL) {
        return;
    }
    for (uint32_t i = 0; i < hub->world; i++) {
        slot_fini(&hub->slots[i]);
    }
    hub_free(hub);
}

void laci_slot_wait(laci_slot *slot, double until)
{
    if (until - laci_monotonic_now() > FAR_SECONDS) {
        (void)pthread_cond_wait(&slot->wake, &slot->lock);
    } else {
        const double seconds = floor(fmax(until, 0));
        const struct timespec when = {
            .tv_sec = (time_t)seconds,
            .tv_nsec = (long)(1e9 * (fmax(until, 0) - seconds)),
        };
        (void)pthread_cond_timedwait(&slot->wake, &slot->lock, &when);
    }
}

static void slot_wake(laci_slot *slot)
{
    (void)pthread_mutex_lock(&slot->lock);
    if (slot->waiting) {
        (void)pthread_cond_signal(&slot->wake);
    }
    (void)pthread_mutex_unlock(&slot->lock);
}

void laci_hub_wake_all(lac_hub *hub)
{
    for (uint32_t i = 0; i < hub->world; i++) {
        if (atomic_load(&hub->slots[i].waiting)) {
            slot_wake(&hub->slots[i]);
        }
    }
}

void laci_hub_wake_receivers(lac_hub *hub, uint32_t rank)
{
    for (uint32_t i = 0; i < hub->world; i++) {
        const unsigned awaits = atomic_load(&hub->slots[i].awaits);
        if (awaits == rank || awaits == LAC_RANK_ANY) {
            slot_wake(&hub->slots[i]);
        }
    }
}
