// SPDX-License-Identifier: MIT
// Arbitrary bytes as what a member of a group sends after its HELLO, read in
// parts of any length: the first byte is the length of the parts. Two receives
// wait, with and without a buffer. Nothing may be written beyond the buffer,
// messages are complete or absent, and reasons are plain text.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "transport/tcp/session.h"

enum { RANK = 0, PEER = 1, WORLD = 3, CAP = 24, RECEIVES = 3 };

// What a machine with little memory has.
static void *zalloc_little(size_t size)
{
    return size > (1 << 20) ? NULL : laci_transport_services.zalloc(size);
}

static laci_services services;

static laci_tcp_connection *open_connection(int socket)
{
    laci_tcp_connection *const c = services.zalloc(sizeof(*c));
    if (c == NULL) {
        abort();
    }
    c->services = &services;
    c->socket = socket;
    c->in = services.zalloc(LACI_TCP_BUFFER);
    c->out = services.zalloc(LACI_TCP_BUFFER);
    fuzz_require(c->in != NULL && c->out != NULL, "no memory");
    return c;
}

static void check_text(const char *text)
{
    for (; *text != '\0'; text++) {
        fuzz_require(
            *text >= ' ' && *text <= '~', "a reason has control characters");
    }
}

static void check_session(const laci_tcp_session *s)
{
    size_t missing = 0;
    for (size_t i = 0; i < s->receive_count; i++) {
        const laci_tcp_message *const m = s->claims[i];
        missing += m == NULL || m->got < m->head.len;
        fuzz_require(
            m == NULL || (m->head.tag == s->receives[i].tag &&
                          m->head.kind == LACI_TCP_DATA &&
                          laci_receive_fits(&s->receives[i], m->head.len)),
            "a receive has another message");
    }
    fuzz_require(missing == s->missing, "receives are miscounted");
    const laci_tcp_peer *const p = &s->peers[PEER];
    uint64_t early = 0, early_len = 0;
    for (const laci_tcp_message *m = p->first; m != NULL; m = m->next) {
        fuzz_require(m->got == m->head.len, "a message is not complete");
        early++;
        early_len += m->head.len;
    }
    fuzz_require(
        early == p->queued && early_len == p->queued_bytes,
        "messages are miscounted");
    check_text(p->word.text);
    fuzz_require(
        s->cause == (p->word.given ? &p->word : NULL), "a cause of nobody");
    check_text(s->problem_text);
    fuzz_require(
        (s->problem == LAC_OK) == (s->problem_text[0] == '\0'),
        "a problem without a text");
}

static void feed(
    laci_tcp_session *s, int socket, const uint8_t *data, size_t size,
    size_t part)
{
    laci_tcp_peer *const p = &s->peers[PEER];
    while (size > 0 && s->problem == LAC_OK) {
        const size_t n = part < size ? part : size;
        fuzz_require(
            send(socket, data, n, MSG_NOSIGNAL) == (ssize_t)n, "cannot send");
        laci_tcp_pull(s, p);
        check_session(s);
        data += n;
        size -= n;
    }
    (void)close(socket);
    if (p->connection != NULL) {
        laci_tcp_pull(s, p);
    }
    fuzz_require(
        s->problem != LAC_OK || p->connection == NULL, "the end is not seen");
    fuzz_require(
        s->problem != LAC_OK || p->left || p->aborted || p->lost,
        "the end has no reason");
    check_session(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int sockets[2];
    if (size == 0) {
        return 0;
    }
    services = laci_transport_services;
    services.zalloc = zalloc_little;
    uint8_t *const buffer = fuzz_alloc(CAP);
    lac_receive receives[RECEIVES] = {
        {.peer = PEER, .tag = 1},
        {.peer = PEER, .tag = 2, .buffer = buffer, .cap = CAP},
        {.peer = PEER, .tag = 1}};
    laci_tcp_session *const s = services.zalloc(sizeof(*s));
    if (s == NULL ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets) != 0) {
        abort();
    }
    s->services = &services;
    s->rank = RANK;
    s->world = WORLD;
    s->epoll = s->kick = -1;
    s->receives = receives;
    s->receive_count = s->missing = RECEIVES;
    s->claims = services.zalloc(RECEIVES * sizeof(*s->claims));
    s->peers = services.zalloc(WORLD * sizeof(*s->peers));
    if (s->claims == NULL || s->peers == NULL) {
        abort();
    }
    s->peers[PEER].connection = open_connection(sockets[0]);
    feed(s, sockets[1], data + 1, size - 1, data[0] + 1U);
    laci_tcp_session_release(s);
    services.free(s);
    free(buffer);
    return 0;
}
