// SPDX-License-Identifier: MIT
// A crew as threads of this process. Threads wait at a gate until all of them
// exist: if one cannot be had, none begins.
#include "cli/launch/threads.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/command.h"

// A worker needs a few pages; a thousand of them should not need gigabytes.
enum { STACK_SIZE = 512 * 1024, SENTENCE_SIZE = 512 };

typedef enum gate { CLOSED, OPEN, CANCELLED } gate;

typedef struct crew_run {
    const cli_crew *crew;
    void *context;
    const char *spec;
    lac_hub *hub;
    uint32_t world;
    pthread_mutex_t lock; // of all below
    pthread_cond_t moved;
    gate gate;
    lac_status status; // of the worker that failed first
    char sentence[SENTENCE_SIZE];
} crew_run;

typedef struct member {
    crew_run *run;
    uint32_t rank;
    pthread_t thread;
} member;

static bool wait_at_gate(crew_run *run)
{
    (void)pthread_mutex_lock(&run->lock);
    while (run->gate == CLOSED) {
        (void)pthread_cond_wait(&run->moved, &run->lock);
    }
    const bool open = run->gate == OPEN;
    (void)pthread_mutex_unlock(&run->lock);
    return open;
}

static void move_gate(crew_run *run, gate to)
{
    (void)pthread_mutex_lock(&run->lock);
    run->gate = to;
    (void)pthread_cond_broadcast(&run->moved);
    (void)pthread_mutex_unlock(&run->lock);
}

// Who failed on its own knows more than those who waited for it.
static void keep_failure(crew_run *run, lac_status status)
{
    (void)pthread_mutex_lock(&run->lock);
    if (run->status == LAC_OK ||
        (run->status == LAC_ERR_PEER && status != LAC_ERR_PEER)) {
        run->status = status;
        (void)snprintf(
            run->sentence, sizeof(run->sentence), "%s", lac_error_message());
    }
    (void)pthread_mutex_unlock(&run->lock);
}

static void *run_member(void *argument)
{
    const member *const m = argument;
    crew_run *const run = m->run;
    lac_transport *t = NULL;
    if (!wait_at_gate(run)) {
        return NULL;
    }
    lac_status status =
        lac_transport_join(&t, run->spec, run->hub, m->rank, run->world);
    if (status != LAC_OK) {
        keep_failure(run, status);
        return NULL;
    }
    status = run->crew->work(run->context, t);
    if (status != LAC_OK) {
        keep_failure(run, status);
        lac_transport_abort(t, lac_error_message());
    }
    lac_transport_leave(t);
    run->crew->release(run->context, m->rank);
    return NULL;
}

// Starts all members; returns how many there are in the end.
static uint32_t start_members(crew_run *run, member *members)
{
    pthread_attr_t attributes;
    uint32_t count = 0;
    int problem = pthread_attr_init(&attributes);
    if (problem == 0) {
        const size_t stack = run->crew->stack;
        problem = pthread_attr_setstacksize(
            &attributes, stack == 0 ? STACK_SIZE : stack);
        while (problem == 0 && count < run->world) {
            members[count] = (member){.run = run, .rank = count};
            problem = pthread_create(
                &members[count].thread, &attributes, run_member,
                &members[count]);
            count += problem == 0;
        }
        (void)pthread_attr_destroy(&attributes);
    }
    if (problem != 0) {
        (void)snprintf(
            run->sentence, sizeof(run->sentence),
            "there is no room for worker %u of %u as a thread: %s", count,
            run->world, strerror(problem));
        run->status = LAC_ERR_NOMEM;
    }
    return count;
}

static void run_members(crew_run *run, member *members)
{
    const uint32_t count = start_members(run, members);
    move_gate(run, count == run->world ? OPEN : CANCELLED);
    for (uint32_t i = 0; i < count; i++) {
        (void)pthread_join(members[i].thread, NULL);
    }
}

lac_status cli_crew_threads(
    const cli_crew *crew, void *context, const char *spec, uint32_t world)
{
    crew_run run = {
        .crew = crew,
        .context = context,
        .spec = spec,
        .world = world,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .moved = PTHREAD_COND_INITIALIZER,
    };
    lac_status status = lac_hub_open(&run.hub, world);
    if (status != LAC_OK) {
        return status;
    }
    member *const members = calloc(world, sizeof(*members));
    if (members == NULL) {
        status = lac_fail(LAC_ERR_NOMEM, "no memory for %u workers", world);
    } else {
        run_members(&run, members);
    }
    if (run.status != LAC_OK) {
        status = lac_fail(run.status, "%s", run.sentence);
    }
    free(members);
    lac_hub_close(run.hub);
    return status;
}
