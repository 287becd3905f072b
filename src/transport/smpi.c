// SPDX-License-Identifier: MIT
// The transport "smpi": the ranks of a cluster that SimGrid simulates. It is
// part of a build with LAC_SMPI, whose command smpirun runs.
//
// All ranks are in one process, and none can die or be late. So an exchange
// blocks, without polls and deadlines: it takes exactly the time of the
// simulated network. Every send is eager (smpi/send-is-detached-thresh): SMPI
// copies the message and transmits it before its receive is posted, as TCP
// does. A message has no header: one for the length would cost a latency more.
// A receive therefore has room for the largest message.
//
// Each rank needs a thread of its own (contexts/factory:thread), because
// lac_error_message belongs to the thread. A worker that fails must end the
// process: nobody else is notified.
#define _GNU_SOURCE // for the header of SMPI
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <smpi/mpi.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "transport/transport.h"

enum { SLOT_SIZE = 1 << 28, MESSAGE_SIZE = 512 };

typedef struct smpi_state {
    uint32_t rank;
    bool aborted;
    char why[MESSAGE_SIZE];
    MPI_Comm comms[2];
    MPI_Request *requests; // receives, then sends
    MPI_Status *statuses;
    size_t room;     // of both
    uint8_t **slots; // one per receive; pages that no message reaches are not
                     // allocated
    size_t slot_count;
} smpi_state;

static _Thread_local bool has_rank;

static lac_status check_world(uint32_t given, int size)
{
    return given == LAC_RANK_ANY || given == (uint32_t)size
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "smpi: the group has %u workers, but the job has %d",
                     given, size);
}

static lac_status smpi_join(void *raw, laci_membership *m)
{
    smpi_state *const s = raw;
    int rank = 0, size = 0;
    if (has_rank) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "smpi: two ranks share a thread, expected smpirun with "
            "--cfg=contexts/factory:thread");
    }
    has_rank = true; // before another rank runs
    (void)MPI_Init(NULL, NULL);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)MPI_Comm_size(MPI_COMM_WORLD, &size);
    LAC_TRY(check_world(m->world, size));
    s->comms[0] = MPI_COMM_WORLD;
    (void)MPI_Comm_dup(MPI_COMM_WORLD, &s->comms[1]);
    s->rank = m->rank = (uint32_t)rank;
    m->world = (uint32_t)size;
    return LAC_OK;
}

static lac_status no_memory(const smpi_state *s)
{
    return lac_fail(
        LAC_ERR_NOMEM, "smpi: no memory for the messages of worker %u",
        s->rank);
}

static lac_status reserve_requests(smpi_state *s, size_t count)
{
    if (count <= s->room) {
        return LAC_OK;
    }
    laci_free(s->requests);
    laci_free(s->statuses);
    s->requests = laci_zalloc(count * sizeof(*s->requests));
    s->statuses = laci_zalloc(count * sizeof(*s->statuses));
    const bool good = s->requests != NULL && s->statuses != NULL;
    s->room = good ? count : 0;
    return good ? LAC_OK : no_memory(s);
}

static lac_status reserve_slots(smpi_state *s, size_t count)
{
    if (count <= s->slot_count) {
        return LAC_OK;
    }
    uint8_t **const slots = laci_zalloc(count * sizeof(*slots));
    if (slots == NULL) {
        return no_memory(s);
    }
    if (s->slots != NULL) {
        memcpy(slots, s->slots, s->slot_count * sizeof(*slots));
    }
    laci_free(s->slots);
    s->slots = slots;
    for (; s->slot_count < count; s->slot_count++) {
        slots[s->slot_count] = laci_zalloc(SLOT_SIZE);
        if (slots[s->slot_count] == NULL) {
            return no_memory(s);
        }
    }
    return LAC_OK;
}

static lac_status check_lengths(const lac_send *sends, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (sends[i].len > SLOT_SIZE) {
            return lac_fail(
                LAC_ERR_UNSUPPORTED,
                "smpi: a message to worker %u has %zu bytes, expected at most "
                "%d",
                sends[i].peer, sends[i].len, SLOT_SIZE);
        }
    }
    return LAC_OK;
}

static lac_status finish_receive(
    const smpi_state *s, size_t i, lac_receive *receive)
{
    int len = 0;
    (void)MPI_Get_count(&s->statuses[i], MPI_BYTE, &len);
    if (!laci_receive_fits(receive, (uint64_t)len)) {
        return lac_fail(
            LAC_ERR_SPACE,
            "smpi: a message from worker %u has %d bytes, worker %u expected "
            "at most %zu",
            receive->peer, len, s->rank, receive->cap);
    }
    receive->len = (size_t)len;
    receive->data = s->slots[i];
    if (receive->buffer != NULL) {
        memcpy(receive->buffer, s->slots[i], receive->len);
        receive->data = receive->buffer;
    }
    return LAC_OK;
}

// Tags of MPI have 31 bits; the communicator has the highest.
static MPI_Comm comm_of(const smpi_state *s, uint32_t tag)
{
    return s->comms[tag >> 31];
}

static int tag_of(uint32_t tag)
{
    return (int)(tag & INT_MAX);
}

static void post_messages(
    smpi_state *s, const lac_send *sends, size_t send_count,
    const lac_receive *receives, size_t receive_count)
{
    for (size_t i = 0; i < receive_count; i++) {
        const lac_receive *const r = &receives[i];
        (void)MPI_Irecv(
            s->slots[i], SLOT_SIZE, MPI_BYTE, (int)r->peer, tag_of(r->tag),
            comm_of(s, r->tag), &s->requests[i]);
    }
    for (size_t i = 0; i < send_count; i++) {
        const lac_send *const m = &sends[i];
        (void)MPI_Isend(
            m->data, (int)m->len, MPI_BYTE, (int)m->peer, tag_of(m->tag),
            comm_of(s, m->tag), &s->requests[receive_count + i]);
    }
}

static lac_status check_aborted(const smpi_state *s)
{
    return s->aborted ? lac_fail(LAC_ERR_PEER, "%s", s->why) : LAC_OK;
}

static lac_status smpi_exchange(
    void *raw, const lac_send *sends, size_t send_count, lac_receive *receives,
    size_t receive_count, double deadline)
{
    smpi_state *const s = raw;
    (void)deadline;
    LAC_TRY(check_aborted(s));
    LAC_TRY(check_lengths(sends, send_count));
    LAC_TRY(reserve_requests(s, send_count + receive_count));
    LAC_TRY(reserve_slots(s, receive_count));
    post_messages(s, sends, send_count, receives, receive_count);
    (void)MPI_Waitall(
        (int)(receive_count + send_count), s->requests, s->statuses);
    for (size_t i = 0; i < receive_count; i++) {
        LAC_TRY(finish_receive(s, i, &receives[i]));
    }
    return LAC_OK;
}

static lac_status smpi_allreduce(void *raw, float *x, size_t n, double deadline)
{
    smpi_state *const s = raw;
    (void)deadline;
    LAC_TRY(check_aborted(s));
    for (size_t done = 0; done < n;) {
        const size_t left = n - done;
        const int count = left < INT_MAX ? (int)left : INT_MAX;
        (void)MPI_Allreduce(
            MPI_IN_PLACE, x + done, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        done += (size_t)count;
    }
    return LAC_OK;
}

static void smpi_abort(void *raw, const char *why)
{
    smpi_state *const s = raw;
    if (!s->aborted) {
        (void)snprintf(s->why, sizeof(s->why), "%s", why);
        s->aborted = true;
    }
}

static bool smpi_leave(void *raw)
{
    smpi_state *const s = raw;
    for (size_t i = 0; i < s->slot_count; i++) {
        laci_free(s->slots[i]);
    }
    laci_free(s->slots);
    laci_free(s->requests);
    laci_free(s->statuses);
    if (!s->aborted) {
        (void)MPI_Comm_free(&s->comms[1]);
        (void)MPI_Finalize();
    }
    return true;
}

// "SMPI Version 3.32. Copyright ...": the part before the copyright.
static lac_status smpi_library(const void *state, char out[LAC_LIBRARY_SIZE])
{
    (void)state;
    char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
    int len = 0;
    (void)MPI_Get_library_version(text, &len);
    char *const copyright = strstr(text, ". Copyright");
    if (copyright != NULL) {
        *copyright = '\0';
    }
    (void)snprintf(out, LAC_LIBRARY_SIZE, "%s", text);
    return LAC_OK;
}

const laci_transport_ops laci_smpi_transport = {
    .plugin =
        {
            .size = sizeof(laci_transport_ops),
            .name = "smpi",
            .summary = "ranks of a cluster that SimGrid simulates",
            .state_size = sizeof(smpi_state),
        },
    .abi = LACI_TRANSPORT_ABI,
    .join = smpi_join,
    .leave = smpi_leave,
    .exchange = smpi_exchange,
    .abort = smpi_abort,
    .allreduce_sum = smpi_allreduce,
    .library = smpi_library,
};
