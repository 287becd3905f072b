// SPDX-License-Identifier: MIT
// How a group fails: aborting, announcing it to the others, and finding the
// first worker that failed.
//
// A worker that has waited too long gives up, and tells all others whom it
// waited for. That suspect may be alive, and wait for a third worker itself:
// then it tells all others so, and everybody follows the suspicions to a worker
// that does not answer. Every worker gives up once, and no one waits longer
// than ANSWER_SECONDS, so this ends whatever the workers claim.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "transport/tcp/session.h"

// Connections have no common order: the end of one that failed because of
// another may arrive before the abort of that other. A worker waits this long
// for a better reason.
#define LISTEN_SECONDS 0.1

// A suspect that waits itself answers within milliseconds, unless its machine
// is very busy.
#define ANSWER_SECONDS 0.5

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

static lac_status tcp_fail_with_word(
    const laci_tcp_session *s, const laci_tcp_word *word)
{
    return word->rank == s->rank
               ? s->services->fail(LAC_ERR_PEER, "%s", word->text)
               : s->services->fail(
                     LAC_ERR_PEER, "worker %u aborted: %s", word->rank,
                     word->text);
}

// Follows the suspicions from the first word that was given. A suspect that has
// given its word is alive, and its suspect is the next. Sets `*open_out` if the
// last one may still answer. In a circle all have answered, and nobody is worse
// than the one who was suspected first.
static const laci_tcp_word *find_cause(
    const laci_tcp_session *s, bool *open_out)
{
    const laci_tcp_word *word = s->cause;
    *open_out = false;
    for (uint32_t steps = 0; steps <= s->world; steps++) {
        if (word->suspect >= s->world) {
            return word;
        }
        const laci_tcp_peer *const p = &s->peers[word->suspect];
        if (!p->word.given) {
            *open_out = p->connection != NULL && !p->left;
            return word;
        }
        word = &p->word;
    }
    return s->cause;
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
    if (s->cause != NULL) {
        bool open;
        const laci_tcp_word *const word = find_cause(s, &open);
        return open && s->services->now() - s->heard < ANSWER_SECONDS
                   ? LAC_OK
                   : tcp_fail_with_word(s, word);
    }
    if (s->first_loss != 0 &&
        s->services->now() - s->first_loss >= LISTEN_SECONDS) {
        return fail_with_loss(s);
    }
    return LAC_OK;
}

lac_status laci_tcp_settle(laci_tcp_session *s)
{
    LAC_TRY(laci_tcp_check_causes(s));
    while (s->cause != NULL) {
        laci_tcp_progress(s, 5);
        LAC_TRY(laci_tcp_check_causes(s));
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
    if (s->cause != NULL) {
        bool open;
        const laci_tcp_word *const word = find_cause(s, &open);
        laci_put_u32(note, word->rank);
        laci_put_u32(note + 4, word->suspect);
        len = strlen(word->text);
        memcpy(note + LACI_TCP_NOTE, word->text, len);
        len += LACI_TCP_NOTE;
    }
    tcp_send_to_all(s, LACI_TCP_LEFT, note, len);
}

// Only the first word of a worker counts.
static void tcp_give_word(
    laci_tcp_session *s, laci_tcp_peer *p, uint32_t rank, uint32_t suspect,
    const void *text, size_t len)
{
    if (p->word.given) {
        return;
    }
    p->word.given = true;
    p->word.rank = rank;
    p->word.suspect = suspect;
    // The text goes to a terminal: control characters of a peer do not.
    laci_tcp_printable(text, len, p->word.text, sizeof(p->word.text));
    s->accused = s->accused || suspect == s->rank;
    if (s->cause == NULL) {
        s->cause = &p->word;
        s->heard = s->services->now();
    }
}

void laci_tcp_on_abort(
    laci_tcp_session *s, laci_tcp_peer *p, const laci_tcp_message *message)
{
    p->aborted = true;
    tcp_give_word(
        s, p, (uint32_t)(p - s->peers), message->head.tag, message->payload,
        (size_t)message->head.len);
}

void laci_tcp_on_leave(
    laci_tcp_session *s, laci_tcp_peer *p, const laci_tcp_message *message)
{
    p->left = true;
    if (message->head.len < LACI_TCP_NOTE) {
        return;
    }
    const uint32_t rank = laci_get_u32(message->payload);
    // The aborting worker itself knows the reason.
    if (rank < s->world && rank != s->rank) {
        tcp_give_word(
            s, p, rank, laci_get_u32(message->payload + 4),
            message->payload + LACI_TCP_NOTE,
            (size_t)message->head.len - LACI_TCP_NOTE);
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
        if (s->cause == NULL) {
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

void laci_tcp_accuse(laci_tcp_session *s, uint32_t peer, const char *reason)
{
    const size_t len = strlen(reason);
    s->suspect = peer;
    s->announced = true;
    tcp_give_word(s, &s->peers[s->rank], s->rank, peer, reason, len);
    tcp_send_to_all(s, LACI_TCP_ABORTED, reason, len);
}
