// SPDX-License-Identifier: MIT
// Duties that end well: messages arrive complete and in order.
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "transport/transport.h"
#include "worker.h"

enum { LARGE = 5000001, TAGS = 40, ROUNDS = 2000, MESSAGE_MAX = 20000 };

void fill(uint8_t *out, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i += 8) {
        const uint64_t word = scramble(seed + i);
        memcpy(out + i, &word, len - i < 8 ? len - i : 8);
    }
}

bool is_filled(const uint8_t *in, size_t len, uint64_t seed)
{
    for (size_t i = 0; i < len; i += 8) {
        const uint64_t word = scramble(seed + i);
        if (memcmp(in + i, &word, len - i < 8 ? len - i : 8) != 0) {
            return false;
        }
    }
    return true;
}

static uint32_t right_of(const worker *w)
{
    return (w->rank + 1) % w->world;
}

static uint32_t left_of(const worker *w)
{
    return (w->rank + w->world - 1) % w->world;
}

// Sends one message to the right and receives one from the left, with a buffer
// unless it is `lent`.
static void pass_along(worker *w, uint8_t *memory, size_t len, bool lent)
{
    uint8_t *const buffer = memory + LARGE;
    const lac_send send = {
        .peer = right_of(w), .tag = 1, .data = memory, .len = len};
    lac_receive receive = {.peer = left_of(w), .tag = 1, .cap = LARGE};
    receive.buffer = lent ? NULL : buffer;
    fill(memory, len, len + w->rank);
    REQUIRE(
        w, lac_transport_exchange(
               w->t, &send, 1, &receive, 1, soon(w, LONG_SECONDS)) == LAC_OK);
    REQUIRE(w, receive.len == len);
    REQUIRE(w, receive.data != NULL && (lent || receive.data == buffer));
    REQUIRE(w, is_filled(receive.data, len, len + left_of(w)));
    // After this the sender may overwrite the bytes.
    REQUIRE(
        w, lac_transport_exchange(
               w->t, NULL, 0, NULL, 0, soon(w, LONG_SECONDS)) == LAC_OK);
}

static void carry_every_length(worker *w)
{
    static const size_t lengths[] = {0,    1,    7,    3071,  3072,
                                     3073, 4096, 4097, 65537, LARGE};
    if (w->world == 1) {
        return;
    }
    uint8_t *const memory = calloc(2, LARGE);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        for (int lent = 0; lent < 2 && w->failure[0] == '\0'; lent++) {
            pass_along(w, memory, lengths[i], lent == 1);
        }
    }
    free(memory);
}

// Tags that differ in each of their bytes, or in the highest bit only.
static uint32_t spread_tag(uint32_t i)
{
    return (UINT32_MAX - i / 2 * 0x01000001u) ^ i % 2 << 31;
}

// Sends many tags to every peer, which receives them in the opposite order.
static void keep_tags_apart(worker *w)
{
    lac_send sends[TAGS * WORLD_MAX];
    lac_receive receives[TAGS * WORLD_MAX];
    uint64_t contents[TAGS * WORLD_MAX];
    size_t count = 0;
    for (uint32_t peer = 0; peer < w->world; peer++) {
        for (uint32_t i = 0; i < TAGS && peer != w->rank; i++) {
            const uint32_t tag = spread_tag(i);
            const uint32_t back = spread_tag(TAGS - 1 - i);
            contents[count] = (uint64_t)w->rank << 32 | tag;
            sends[count] = (lac_send){
                .peer = peer, .tag = tag, .data = &contents[count], .len = 8};
            receives[count] = (lac_receive){.peer = peer, .tag = back};
            count++;
        }
    }
    REQUIRE(
        w, lac_transport_exchange(
               w->t, sends, count, receives, count, soon(w, LONG_SECONDS)) ==
               LAC_OK);
    for (size_t i = 0; i < count; i++) {
        const uint64_t expected =
            (uint64_t)receives[i].peer << 32 | receives[i].tag;
        REQUIRE(w, receives[i].len == 8);
        REQUIRE(w, memcmp(receives[i].data, &expected, 8) == 0);
    }
    REQUIRE(
        w, lac_transport_exchange(
               w->t, NULL, 0, NULL, 0, soon(w, LONG_SECONDS)) == LAC_OK);
}

// Sends several messages of one tag in an exchange, long and short in turn.
static void keep_the_order(worker *w)
{
    enum { A_TIME = 6 };
    static _Thread_local uint8_t bytes[2][A_TIME][9000];
    if (w->world == 1) {
        return;
    }
    for (uint32_t round = 0; round < 50; round++) {
        lac_send sends[A_TIME];
        lac_receive receives[A_TIME];
        for (uint32_t i = 0; i < A_TIME; i++) {
            const size_t len = i % 2 == 0 ? 9000 : 5;
            uint8_t *const data = bytes[round % 2][i];
            fill(data, len, 100 * round + i);
            sends[i] = (lac_send){
                .peer = right_of(w), .tag = 9, .data = data, .len = len};
            receives[i] = (lac_receive){.peer = left_of(w), .tag = 9};
        }
        REQUIRE(
            w, lac_transport_exchange(
                   w->t, sends, A_TIME, receives, A_TIME,
                   soon(w, LONG_SECONDS)) == LAC_OK);
        for (uint32_t i = 0; i < A_TIME; i++) {
            REQUIRE(w, receives[i].len == (i % 2 == 0 ? 9000 : 5));
            REQUIRE(
                w,
                is_filled(receives[i].data, receives[i].len, 100 * round + i));
        }
    }
    REQUIRE(
        w, lac_transport_exchange(
               w->t, NULL, 0, NULL, 0, soon(w, LONG_SECONDS)) == LAC_OK);
}

// Sends first and receives many exchanges later. Nobody waits for a peer that
// waits for it, and the bytes are still free after the next exchange.
static void deliver_late(worker *w)
{
    enum { AHEAD = 5, LEN = 70000 };
    if (w->world == 1) {
        return;
    }
    uint8_t *const bytes = calloc(2, LEN);
    for (uint32_t i = 0; i < 2 * AHEAD && w->failure[0] == '\0'; i++) {
        uint8_t *const data = bytes + i % 2 * LEN;
        const lac_send send = {
            .peer = right_of(w), .tag = 4, .data = data, .len = LEN};
        lac_receive receive = {.peer = left_of(w), .tag = 4};
        const bool sends = i < AHEAD;
        if (sends) {
            fill(data, LEN, i + w->rank);
        }
        const lac_status status = lac_transport_exchange(
            w->t, &send, sends, &receive, !sends, soon(w, LONG_SECONDS));
        if (status != LAC_OK ||
            (!sends &&
             !is_filled(receive.data, receive.len, i - AHEAD + left_of(w)))) {
            (void)snprintf(
                w->failure, sizeof(w->failure), "exchange %u: %s", i,
                lac_error_message());
        }
    }
    free(bytes);
}

typedef struct plan {
    bool there;
    uint32_t tag;
    size_t len;
    uint64_t seed;
} plan;

// Returns what `from` sends to `to` in a round. All workers compute all plans.
static plan plan_of(uint32_t round, uint32_t from, uint32_t to)
{
    const uint64_t dice = scramble(
        ((uint64_t)round << 16 | from << 8 | to) * 0x9e3779b97f4a7c15u);
    const size_t len = dice >> 8 & 0xff ? (size_t)(dice >> 16) % 300
                                        : (size_t)(dice >> 16) % MESSAGE_MAX;
    return (plan){
        .there = from != to && dice % 10 < 4,
        .tag = (uint32_t)(dice >> 40) % 4,
        .len = len,
        .seed = dice,
    };
}

static bool has_hash(const lac_receive *receive, const plan *p, uint8_t *spare)
{
    fill(spare, p->len, p->seed);
    return receive->len == p->len && XXH3_64bits(receive->data, receive->len) ==
                                         XXH3_64bits(spare, p->len);
}

static size_t prepare(
    const worker *w, uint32_t round, uint8_t *memory, lac_send *sends)
{
    size_t count = 0;
    for (uint32_t peer = 0; peer < w->world; peer++) {
        const plan p = plan_of(round, w->rank, peer);
        if (p.there) {
            uint8_t *const data =
                memory + (round % 2 * WORLD_MAX + peer) * MESSAGE_MAX;
            fill(data, p.len, p.seed);
            sends[count++] = (lac_send){
                .peer = peer, .tag = p.tag, .data = data, .len = p.len};
        }
    }
    return count;
}

static void random_round(worker *w, uint32_t round, uint8_t *memory)
{
    lac_send sends[WORLD_MAX];
    lac_receive receives[WORLD_MAX];
    plan plans[WORLD_MAX];
    size_t count = 0;
    const size_t send_count = prepare(w, round, memory, sends);
    for (uint32_t peer = 0; peer < w->world; peer++) {
        plans[count] = plan_of(round, peer, w->rank);
        if (plans[count].there) {
            receives[count] = (lac_receive){
                .peer = peer, .tag = plans[count].tag, .cap = MESSAGE_MAX};
            receives[count].buffer =
                plans[count].seed >> 60 & 1
                    ? memory + (2 * WORLD_MAX + peer) * MESSAGE_MAX
                    : NULL;
            count++;
        }
    }
    REQUIRE(
        w, lac_transport_exchange(
               w->t, sends, send_count, receives, count,
               soon(w, LONG_SECONDS)) == LAC_OK);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(
            w,
            has_hash(
                &receives[i], &plans[i], memory + 3 * WORLD_MAX * MESSAGE_MAX));
    }
}

static void survive_random_traffic(worker *w)
{
    uint8_t *const memory = calloc(3 * WORLD_MAX + 1, MESSAGE_MAX);
    for (uint32_t i = 0; i < ROUNDS && w->failure[0] == '\0'; i++) {
        random_round(w, i, memory);
    }
    if (w->failure[0] == '\0' &&
        lac_transport_exchange(w->t, NULL, 0, NULL, 0, soon(w, LONG_SECONDS)) !=
            LAC_OK) {
        (void)snprintf(w->failure, sizeof(w->failure), "the last exchange");
    }
    free(memory);
}

static void barrier(const worker *w)
{
    if (w->barrier != NULL) {
        (void)pthread_barrier_wait(w->barrier);
    }
}

// The rest of a long message leaves while its sender does not use the
// transport. Threads have a barrier to wait at; processes have none.
static void send_while_away(worker *w)
{
    enum { LEN = 32 << 20 }; // more than sockets hold
    if (w->world == 1 || w->barrier == NULL) {
        return;
    }
    uint8_t *const bytes = w->rank == 0 ? calloc(LEN, 1) : NULL;
    const lac_send send = {.peer = 1, .tag = 6, .data = bytes, .len = LEN};
    lac_receive receive = {.peer = 0, .tag = 6};
    const lac_status status = lac_transport_exchange(
        w->t, &send, w->rank == 0, &receive, w->rank == 1,
        soon(w, LONG_SECONDS));
    barrier(w); // worker 1 has the message
    REQUIRE(w, status == LAC_OK);
    REQUIRE(w, w->rank != 1 || receive.len == LEN);
    REQUIRE(
        w, lac_transport_exchange(
               w->t, NULL, 0, NULL, 0, soon(w, LONG_SECONDS)) == LAC_OK);
    free(bytes);
}

static lac_status exchange_with_neighbours(
    worker *w, uint8_t *bytes, size_t len)
{
    const lac_send sends[] = {
        {.peer = right_of(w), .tag = 1, .data = bytes, .len = len},
        {.peer = left_of(w), .tag = 2, .data = bytes, .len = len}};
    lac_receive receives[] = {
        {.peer = left_of(w), .tag = 1}, {.peer = right_of(w), .tag = 2}};
    return lac_transport_exchange(
        w->t, sends, 2, receives, 2, soon(w, LONG_SECONDS));
}

// Runs the exchanges of a batch and returns the number of allocations, of all
// threads together.
static size_t count_batch(worker *w, uint8_t *bytes, lac_status *status)
{
    barrier(w);
    const size_t before = allocations();
    barrier(w);
    for (int i = 0; i < 50 && *status == LAC_OK; i++) {
        *status = exchange_with_neighbours(w, bytes, i % 2 == 0 ? 50000 : 10);
    }
    barrier(w);
    const size_t after = allocations();
    barrier(w);
    return after - before;
}

// The first exchanges allocate nearly all memory. The number of messages that
// are in flight or read late varies, so a few later batches allocate more. Most
// batches allocate nothing.
static void allocate_nothing_once_warm(worker *w)
{
    static uint8_t bytes[50000];
    enum { BATCHES = 20 };
    size_t quiet = 0;
    lac_status status = LAC_OK;
    if (w->world == 1) {
        return;
    }
    (void)count_batch(w, bytes, &status);
    for (int i = 0; i < BATCHES; i++) {
        quiet += count_batch(w, bytes, &status) == 0;
    }
    REQUIRE(w, status == LAC_OK);
    REQUIRE(w, quiet >= BATCHES / 2);
}

static void check_sum(worker *w, float *x, size_t n)
{
    uint64_t hashes[WORLD_MAX + 1];
    lac_send sends[WORLD_MAX];
    lac_receive receives[WORLD_MAX];
    size_t count = 0;
    // Sums of small integers are exact; the fractions depend on the order.
    const float total = (float)(w->world * (w->world + 1) / 2);
    for (size_t i = 0; i < n; i++) {
        x[i] = i % 2 == 0 ? (float)(w->rank + 1) * (float)(i % 1000)
                          : 1 / (3.0F + (float)i * (float)(w->rank + 1));
    }
    REQUIRE(
        w,
        laci_transport_allreduce(w->t, x, n, soon(w, LONG_SECONDS)) == LAC_OK);
    for (size_t i = 0; i < n; i += 2) {
        REQUIRE(w, x[i] == total * (float)(i % 1000));
    }
    hashes[WORLD_MAX] = XXH3_64bits(x, n * sizeof(*x));
    for (uint32_t peer = 0; peer < w->world; peer++) {
        if (peer != w->rank) {
            sends[count] = (lac_send){
                .peer = peer, .tag = 3, .data = &hashes[WORLD_MAX], .len = 8};
            receives[count] = (lac_receive){
                .peer = peer, .tag = 3, .buffer = &hashes[count], .cap = 8};
            count++;
        }
    }
    REQUIRE(
        w, lac_transport_exchange(
               w->t, sends, count, receives, count, soon(w, LONG_SECONDS)) ==
               LAC_OK);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(w, hashes[i] == hashes[WORLD_MAX]);
    }
    REQUIRE(
        w, lac_transport_exchange(
               w->t, NULL, 0, NULL, 0, soon(w, LONG_SECONDS)) == LAC_OK);
}

static void sum_to_the_same_bits(worker *w)
{
    static const size_t sizes[] = {1, 3, 256, 4096, 4097, 100000, 1000003};
    if (!laci_transport_has_allreduce(w->t)) {
        return;
    }
    float *const x = calloc(1000003, sizeof(*x));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (w->failure[0] == '\0') {
            check_sum(w, x, sizes[i]);
        }
    }
    free(x);
}

// Longer than 32 bits can count. The sender's bytes are mostly pages that
// nobody has written, which take no memory.
static void carry_a_long_message(worker *w)
{
    const size_t len = ((size_t)5 << 30) + 3;
    lac_receive receive = {.peer = 0, .tag = 1};
    lac_send send = {.peer = 1, .tag = 1, .len = len};
    uint8_t *const bytes = w->rank == 0 ? calloc(len, 1) : NULL;
    REQUIRE(w, w->rank != 0 || bytes != NULL);
    if (w->rank == 0) {
        bytes[0] = 1;
        bytes[(size_t)1 << 32] = 2;
        bytes[len - 1] = 3;
    }
    send.data = bytes;
    const lac_status status = lac_transport_exchange(
        w->t, &send, w->rank == 0, &receive, w->rank == 1,
        soon(w, LONG_SECONDS));
    const uint8_t *const got = receive.data;
    REQUIRE(w, status == LAC_OK);
    REQUIRE(
        w, w->rank != 1 || (receive.len == len && got[0] == 1 &&
                            got[(size_t)1 << 32] == 2 && got[len - 1] == 3));
    // The bytes are lent until the next exchange returns.
    REQUIRE(
        w, lac_transport_exchange(
               w->t, NULL, 0, NULL, 0, soon(w, LONG_SECONDS)) == LAC_OK);
    free(bytes);
}

// A transport has a socket for each peer, or none that it knows of.
static bool has_sockets(const worker *w)
{
    int found[WORLD_MAX] = {0}, first = -1;
    const size_t count = lac_transport_sockets(w->t, found, WORLD_MAX);
    bool good = (count == 0 || count == w->world - 1) &&
                lac_transport_sockets(w->t, NULL, 0) == count &&
                lac_transport_sockets(w->t, &first, 1) == count &&
                first == (count == 0 ? -1 : found[0]);
    for (size_t i = 0; i < count && good; i++) {
        struct stat about;
        good = fstat(found[i], &about) == 0 && S_ISSOCK(about.st_mode);
        for (size_t k = 0; k < i; k++) {
            good = good && found[i] != found[k];
        }
    }
    return good;
}

static void list_its_sockets(worker *w)
{
    const bool good = has_sockets(w);
    barrier(w); // nobody has left before all have listed theirs
    REQUIRE(w, good);
}

const duty long_message = {"carry_a_long_message", carry_a_long_message};

const duty steady_duties[] = {
    {"carry_every_length", carry_every_length},
    {"keep_tags_apart", keep_tags_apart},
    {"keep_the_order", keep_the_order},
    {"deliver_late", deliver_late},
    {"survive_random_traffic", survive_random_traffic},
    {"send_while_away", send_while_away},
    {"allocate_nothing_once_warm", allocate_nothing_once_warm},
    {"sum_to_the_same_bits", sum_to_the_same_bits},
    {"list_its_sockets", list_its_sockets},
    {NULL, NULL},
};
