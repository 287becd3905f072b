// SPDX-License-Identifier: MIT
// How a group fails: aborting, announcing it to the others, and finding the
// first worker that failed.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "transport/tcp/session.h"

// Connections have no common order: the end of one that failed because of
// another may arrive before the abort of that other. And workers along a chain
// time out together. A worker waits this long for a better reason.
#define LISTEN_SECONDS 0.1

void laci_tcp_problem(
    laci_tcp_session *s, lac_status status, const char *format, ...)
{
    if (s->problem != LAC_OK) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(
        s->problem_text, sizeof(s->problem_text), format, arguments);
    va_end(arguments);
    s->problem = status;
}

static lac_status tcp_fail_with_cause(const laci_tcp_session *s)
{
    return s->services->fail(
        LAC_ERR_PEER, "worker %u aborted: %s", s->cause_rank, s->cause);
}

static lac_status fail_with_loss(laci_tcp_session *s)
{
    for (uint32_t peer = 0; peer < s->world; peer++) {
        if (s->peers[peer].lost) {
            s->suspect = peer;
            return s->services->fail(
                LAC_ERR_PEER, "worker %u was lost: %s", peer,
                s->peers[peer].loss);
        }
    }
    return LAC_OK;
}

lac_status laci_tcp_check_causes(laci_tcp_session *s)
{
    if (atomic_load(&s->aborted)) {
        return s->services->fail(LAC_ERR_PEER, "%s", s->why);
    }
    if (s->problem != LAC_OK) {
        return s->services->fail(s->problem, "%s", s->problem_text);
    }
    if (s->cause_known) {
        return tcp_fail_with_cause(s);
    }
    if (s->first_loss != 0 &&
        s->services->now() - s->first_loss >= LISTEN_SECONDS) {
        return fail_with_loss(s);
    }
    return LAC_OK;
}

static void tcp_send_to_all(
    laci_tcp_session *s, laci_tcp_kind kind, const void *data, size_t len)
{
    const laci_tcp_head head = {.kind = kind, .tag = s->suspect, .len = len};
    for (uint32_t peer = 0; peer < s->world; peer++) {
        if (kind == LACI_TCP_ABORTED) {
            laci_tcp_discard_unsent(s, &s->peers[peer]);
        }
        // Errors are ignored: the peers also notice that the connection ends.
        if (peer != s->rank && laci_tcp_post(s, peer, &head, data) != LAC_OK) {
            return;
        }
    }
}

// A worker that leaves because another one aborted forwards the reason, which
// may arrive before the abort itself.
void laci_tcp_announce_leave(laci_tcp_session *s)
{
    uint8_t note[LACI_TCP_NOTE + LACI_TCP_WHY];
    size_t len = 0;
    if (s->cause_known) {
        laci_put_u32(note, s->cause_rank);
        laci_put_u32(note + 4, s->cause_suspect);
        len = strlen(s->cause);
        memcpy(note + LACI_TCP_NOTE, s->cause, len);
        len += LACI_TCP_NOTE;
    }
    tcp_send_to_all(s, LACI_TCP_LEFT, note, len);
}

static void tcp_set_cause(
    laci_tcp_session *s, uint32_t rank, uint32_t suspect, const uint8_t *text,
    uint64_t len)
{
    // The text goes to a terminal: control characters of a peer do not.
    laci_tcp_printable(
        (const char *)text, (size_t)len, s->cause, sizeof(s->cause));
    s->cause_known = true;
    s->cause_rank = rank;
    s->cause_suspect = suspect;
}

// The first abort is the cause. A later one replaces it if the worker that the
// first one suspects has aborted too, and so is alive.
void laci_tcp_on_abort(
    laci_tcp_session *s, laci_tcp_peer *p, const laci_tcp_message *message)
{
    const uint32_t suspect = message->head.tag;
    const bool doubtful = s->cause_known && s->cause_suspect < s->world &&
                          s->peers[s->cause_suspect].aborted;
    const bool sound = suspect >= s->world || !s->peers[suspect].aborted;
    p->aborted = true;
    if (!s->cause_known || (doubtful && sound)) {
        tcp_set_cause(
            s, (uint32_t)(p - s->peers), suspect, message->payload,
            message->head.len);
    }
}

void laci_tcp_on_leave(
    laci_tcp_session *s, laci_tcp_peer *p, const laci_tcp_message *message)
{
    p->left = true;
    if (message->head.len < LACI_TCP_NOTE || s->cause_known) {
        return;
    }
    const uint32_t rank = laci_get_u32(message->payload);
    // The aborting worker itself knows the reason.
    if (rank < s->world && rank != s->rank) {
        tcp_set_cause(
            s, rank, laci_get_u32(message->payload + 4),
            message->payload + LACI_TCP_NOTE,
            message->head.len - LACI_TCP_NOTE);
    }
}

void laci_tcp_on_end(laci_tcp_session *s, laci_tcp_peer *p)
{
    const int error = p->connection->error;
    laci_tcp_drop(s, p);
    s->moved++;
    if (p->left || p->aborted || p->lost) {
        return;
    }
    p->lost = true;
    (void)snprintf(
        p->loss, sizeof(p->loss), "its connection to worker %u ended%s%s",
        s->rank, error == 0 ? "" : ": ", error == 0 ? "" : strerror(error));
    s->first_loss = s->first_loss == 0 ? s->services->now() : s->first_loss;
}

// If another worker aborted first, all workers know already.
void laci_tcp_announce_abort(laci_tcp_session *s)
{
    if (!s->announced) {
        s->announced = true;
        if (!s->cause_known) {
            tcp_send_to_all(s, LACI_TCP_ABORTED, s->why, strlen(s->why));
        }
    }
}

// A thread that cannot have the engine at once leaves the announcement to the
// one that has it.
void laci_tcp_abort(void *state, const char *why)
{
    laci_tcp_session *const s = state;
    (void)pthread_mutex_lock(&s->lock);
    if (!atomic_load(&s->aborted)) {
        (void)snprintf(s->why, sizeof(s->why), "%s", why);
        atomic_store(&s->aborted, true);
    }
    (void)pthread_mutex_unlock(&s->lock);
    if (pthread_mutex_trylock(&s->engine) == 0) {
        laci_tcp_announce_abort(s);
        (void)pthread_mutex_unlock(&s->engine);
    } else {
        laci_tcp_kick(s);
    }
}

lac_status laci_tcp_suspect(
    laci_tcp_session *s, uint32_t peer, const char *reason)
{
    const double until = s->services->now() + LISTEN_SECONDS;
    s->suspect = peer;
    if (!s->cause_known) {
        s->announced = true;
        tcp_send_to_all(s, LACI_TCP_ABORTED, reason, strlen(reason));
    }
    while (!s->peers[peer].aborted && s->services->now() < until) {
        laci_tcp_progress(s, 5);
    }
    return s->peers[peer].aborted && s->cause_known
               ? tcp_fail_with_cause(s)
               : s->services->fail(LAC_ERR_PEER, "%s", reason);
}
