// SPDX-License-Identifier: MIT
// Checks the links of a peers file: connects with all who run the same check,
// and measures round trip and bandwidth with each of them.
//
// There is no coordinator and no common order. Every worker asks its peers, one
// after the other, and answers what it is asked meanwhile. It ends when it has
// asked all, and all have sent that they have finished too.
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "transport/tcp/session.h"

// Tags of the messages of a check.
enum { PING, PONG, BULK, BULK_TAKEN, FINISHED };

enum { PINGS = 8, BULK_FIRST = 64 * 1024, BULK_MOST = 16 << 20 };

// A bulk message that takes so long is long enough to measure.
#define BULK_SECONDS 0.2

// An answer that takes longer counts as none.
#define ANSWER_SECONDS 10.0

typedef struct measurement {
    double rtt;
    double mbit;
    bool finished; // the peer has asked all its questions
} measurement;

typedef struct check {
    laci_tcp_session *s;
    measurement *peers;
    uint8_t *bulk;
} check;

static void check_send(
    check *k, uint32_t peer, uint32_t tag, const void *data, size_t len)
{
    const laci_tcp_head head = {.kind = LACI_TCP_DATA, .tag = tag, .len = len};
    (void)!laci_tcp_post(k->s, peer, &head, data);
}

// A peer asks again when it has its answer. One that asks without taking
// answers gets no more: they would fill the memory of this worker.
static void send_answer(check *k, uint32_t peer, uint32_t tag)
{
    const laci_tcp_outgoing *out = k->s->peers[peer].first_out;
    for (; out != NULL; out = out->next) {
        const uint32_t pending = laci_get_u32(out->head + 4);
        if (pending == PONG || pending == BULK_TAKEN) {
            return;
        }
    }
    check_send(k, peer, tag, NULL, 0);
}

// Answers what peer asked. Returns whether a message with `awaited` came.
static bool answer(check *k, uint32_t peer, uint32_t awaited)
{
    laci_tcp_message *message;
    bool came = false;
    while ((message = laci_tcp_next(&k->s->peers[peer])) != NULL) {
        const uint32_t tag = message->head.tag;
        if (tag == PING) {
            send_answer(k, peer, PONG);
        } else if (tag == BULK) {
            send_answer(k, peer, BULK_TAKEN);
        } else if (tag == FINISHED) {
            k->peers[peer].finished = true;
        }
        came = came || tag == awaited;
        laci_tcp_recycle(k->s, message);
    }
    return came;
}

static bool answer_all(check *k, uint32_t peer, uint32_t awaited)
{
    bool came = false;
    for (uint32_t i = 0; i < k->s->world; i++) {
        const bool one = answer(k, i, i == peer ? awaited : UINT32_MAX);
        came = came || one;
    }
    return came;
}

// Sends a question and returns the seconds until its answer, negative if none
// comes.
static double ask(
    check *k, uint32_t peer, uint32_t tag, const void *data, size_t len)
{
    laci_tcp_session *const s = k->s;
    const double begun = s->services->now();
    check_send(k, peer, tag, data, len);
    for (;;) {
        const bool came = answer_all(k, peer, tag + 1);
        const double now = s->services->now();
        if (came) {
            return now - begun;
        }
        // A peer that waits for a third one answers when it has stopped
        // waiting.
        if (s->peers[peer].connection == NULL ||
            now - begun > fmax(ANSWER_SECONDS, s->settings.timeout)) {
            return -1;
        }
        laci_tcp_progress(s, 1);
    }
}

static void measure_peer(check *k, uint32_t peer)
{
    measurement *const m = &k->peers[peer];
    for (int i = 0; i < PINGS; i++) {
        const double seconds = ask(k, peer, PING, NULL, 0);
        if (seconds < 0) {
            return;
        }
        m->rtt = i == 0 || seconds < m->rtt ? seconds : m->rtt;
    }
    for (size_t len = BULK_FIRST; len <= BULK_MOST; len *= 4) {
        const double seconds = ask(k, peer, BULK, k->bulk, len);
        if (seconds < 0) {
            return;
        }
        const double moving =
            seconds > 2 * m->rtt ? seconds - m->rtt : seconds / 2;
        m->mbit = 8e-6 * (double)len / moving;
        if (seconds > BULK_SECONDS) {
            return;
        }
    }
}

static bool all_finished(const check *k)
{
    for (uint32_t peer = 0; peer < k->s->world; peer++) {
        if (k->s->peers[peer].connection != NULL && !k->peers[peer].finished) {
            return false;
        }
    }
    return true;
}

static void tcp_measure_all(check *k)
{
    laci_tcp_session *const s = k->s;
    for (uint32_t distance = 1; distance < s->world; distance++) {
        const uint32_t peer = (s->rank + distance) % s->world;
        if (s->peers[peer].connection != NULL) {
            measure_peer(k, peer);
        }
    }
    for (uint32_t peer = 0; peer < s->world; peer++) {
        check_send(k, peer, FINISHED, NULL, 0);
    }
    const double until = s->services->now() + s->settings.timeout;
    while (!all_finished(k) && s->services->now() < until) {
        (void)answer_all(k, s->rank, UINT32_MAX);
        laci_tcp_progress(s, 1);
    }
}

static void report_all(
    const check *k, char (*reasons)[LACI_TCP_REASON],
    void (*report)(void *context, const lac_peer_report *peer), void *context)
{
    const laci_tcp_session *const s = k->s;
    for (uint32_t rank = 0; rank < s->world; rank++) {
        const laci_tcp_entry *const entry = &s->roster.entries[rank];
        const measurement *const m = &k->peers[rank];
        const bool self = rank == s->rank;
        char address[LACI_TCP_ADDRESS_TEXT];
        laci_tcp_address_write(&entry->address, address, sizeof(address));
        const char *const missing =
            reasons[rank][0] == '\0' ? "it does not answer" : reasons[rank];
        const lac_peer_report line = {
            .name = entry->name,
            .address = address,
            .rank = rank,
            .status = self          ? "this machine"
                      : m->mbit > 0 ? "ok"
                                    : missing,
            .answered = self || m->mbit > 0,
            .rtt_seconds = m->rtt,
            .mbit = m->mbit,
        };
        report(context, &line);
    }
}

static lac_status check_links(
    check *k, int listener,
    void (*report)(void *context, const lac_peer_report *peer), void *context)
{
    laci_tcp_session *const s = k->s;
    char(*const reasons)[LACI_TCP_REASON] =
        s->services->zalloc(s->world * sizeof(*reasons));
    k->peers = s->services->zalloc(s->world * sizeof(*k->peers));
    k->bulk = s->services->zalloc(BULK_MOST);
    lac_status status = LAC_OK;
    if (reasons == NULL || k->peers == NULL || k->bulk == NULL) {
        (void)!s->services->fail(LAC_ERR_NOMEM, "tcp: no memory for a check");
        status = LAC_ERR_NOMEM;
    } else {
        status = laci_tcp_connect_all(
            s, listener, s->services->now() + s->settings.timeout, reasons);
    }
    if (status == LAC_OK) {
        status = laci_tcp_watch_all(s);
    }
    if (status == LAC_OK) {
        tcp_measure_all(k);
        report_all(k, reasons, report, context);
    }
    s->services->free(reasons);
    return status;
}

lac_status laci_tcp_check(
    const laci_services *services, const laci_tcp_settings *settings,
    void (*report)(void *context, const lac_peer_report *peer), void *context)
{
    laci_tcp_session *const s = services->zalloc(sizeof(*s));
    EVP_PKEY *key = NULL;
    int listener = -1;
    if (s == NULL) {
        return services->fail(LAC_ERR_NOMEM, "tcp: no memory for a check");
    }
    s->services = services;
    s->settings = *settings;
    s->partial = true;
    check k = {.s = s};
    lac_status status = laci_tcp_take_seat(s, &key, &listener);
    if (status == LAC_OK) {
        status = laci_tcp_session_prepare(s, key);
    }
    if (status == LAC_OK) {
        status = check_links(&k, listener, report, context);
    }
    if (status == LAC_OK) {
        laci_tcp_announce_leave(s);
        const double until = services->now() + 1;
        while (!laci_tcp_all_sent(s) && services->now() < until) {
            laci_tcp_progress(s, 1);
        }
    }
    if (listener >= 0) {
        (void)close(listener);
    }
    EVP_PKEY_free(key);
    laci_tcp_session_release(s);
    services->free(k.peers);
    services->free(k.bulk); // was sent from until now
    services->free(s);
    return status;
}
