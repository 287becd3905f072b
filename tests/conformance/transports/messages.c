// SPDX-License-Identifier: MIT
// Duties that end well: what is sent arrives, whole, in order and unmixed.
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>
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

// One message to the right, one from the left; with a buffer when `cap` > 0.
static void pass_along(worker *w, uint8_t *memory, size_t len, bool lent)
{
    uint8_t *const buffer = memory + LARGE;
    const lac_send send = {right_of(w), 1, memory, len};
    lac_receive wish = {.peer = left_of(w), .tag = 1, .cap = LARGE};
    wish.buffer = lent ? NULL : buffer;
    fill(memory, len, len + w->rank);
    REQUIRE(
        w, lac_transport_exchange(
               w->t, &send, 1, &wish, 1, soon(w, LONG_SECONDS)) == LAC_OK);
    REQUIRE(w, wish.len == len);
    REQUIRE(w, wish.data != NULL && (lent || wish.data == buffer));
    REQUIRE(w, is_filled(wish.data, len, len + left_of(w)));
    // Now the bytes are the sender's again.
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

// Many tags to every peer, asked for in the opposite order.
static void keep_tags_apart(worker *w)
{
    lac_send sends[TAGS * WORLD_MAX];
    lac_receive wishes[TAGS * WORLD_MAX];
    uint64_t contents[TAGS * WORLD_MAX];
    size_t count = 0;
    for (uint32_t peer = 0; peer < w->world; peer++) {
        for (uint32_t i = 0; i < TAGS && peer != w->rank; i++) {
            const uint32_t tag = UINT32_MAX - i * 0x01000001u;
            const uint32_t back = UINT32_MAX - (TAGS - 1 - i) * 0x01000001u;
            contents[count] = (uint64_t)w->rank << 32 | tag;
            sends[count] = (lac_send){peer, tag, &contents[count], 8};
            wishes[count] = (lac_receive){.peer = peer, .tag = back};
            count++;
        }
    }
    REQUIRE(
        w, lac_transport_exchange(
               w->t, sends, count, wishes, count, soon(w, LONG_SECONDS)) ==
               LAC_OK);
    for (size_t i = 0; i < count; i++) {
        const uint64_t expected =
            (uint64_t)wishes[i].peer << 32 | wishes[i].tag;
        REQUIRE(w, wishes[i].len == 8);
        REQUIRE(w, memcmp(wishes[i].data, &expected, 8) == 0);
    }
    REQUIRE(
        w,
        lac_transport_exchange(w->t, NULL, 0, NULL, 0, soon(w, 9)) == LAC_OK);
}

// Messages of one tag, several in an exchange, long and short by turns.
static void keep_the_order(worker *w)
{
    enum { A_TIME = 6 };
    static _Thread_local uint8_t bytes[2][A_TIME][9000];
    if (w->world == 1) {
        return;
    }
    for (uint32_t round = 0; round < 50; round++) {
        lac_send sends[A_TIME];
        lac_receive wishes[A_TIME];
        for (uint32_t i = 0; i < A_TIME; i++) {
            const size_t len = i % 2 == 0 ? 9000 : 5;
            uint8_t *const data = bytes[round % 2][i];
            fill(data, len, 100 * round + i);
            sends[i] = (lac_send){right_of(w), 9, data, len};
            wishes[i] = (lac_receive){.peer = left_of(w), .tag = 9};
        }
        REQUIRE(
            w, lac_transport_exchange(
                   w->t, sends, A_TIME, wishes, A_TIME,
                   soon(w, LONG_SECONDS)) == LAC_OK);
        for (uint32_t i = 0; i < A_TIME; i++) {
            REQUIRE(w, wishes[i].len == (i % 2 == 0 ? 9000 : 5));
            REQUIRE(
                w, is_filled(wishes[i].data, wishes[i].len, 100 * round + i));
        }
    }
    REQUIRE(
        w,
        lac_transport_exchange(w->t, NULL, 0, NULL, 0, soon(w, 9)) == LAC_OK);
}

// Sends first, receives many exchanges later: nobody waits for a peer that
// waits for it, and the bytes are free after the next exchange all the same.
static void deliver_late(worker *w)
{
    enum { AHEAD = 5, LEN = 70000 };
    if (w->world == 1) {
        return;
    }
    uint8_t *const bytes = calloc(2, LEN);
    for (uint32_t i = 0; i < 2 * AHEAD && w->failure[0] == '\0'; i++) {
        uint8_t *const data = bytes + i % 2 * LEN;
        const lac_send send = {right_of(w), 4, data, LEN};
        lac_receive wish = {.peer = left_of(w), .tag = 4};
        const bool sends = i < AHEAD;
        if (sends) {
            fill(data, LEN, i + w->rank);
        }
        const lac_status status = lac_transport_exchange(
            w->t, &send, sends, &wish, !sends, soon(w, LONG_SECONDS));
        if (status != LAC_OK ||
            (!sends &&
             !is_filled(wish.data, wish.len, i - AHEAD + left_of(w)))) {
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

// What `from` sends `to` in a round: all workers know the whole plan.
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

static bool has_hash(const lac_receive *wish, const plan *p, uint8_t *spare)
{
    fill(spare, p->len, p->seed);
    return wish->len == p->len &&
           XXH3_64bits(wish->data, wish->len) == XXH3_64bits(spare, p->len);
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
            sends[count++] = (lac_send){peer, p.tag, data, p.len};
        }
    }
    return count;
}

static void random_round(worker *w, uint32_t round, uint8_t *memory)
{
    lac_send sends[WORLD_MAX];
    lac_receive wishes[WORLD_MAX];
    plan plans[WORLD_MAX];
    size_t count = 0;
    const size_t send_count = prepare(w, round, memory, sends);
    for (uint32_t peer = 0; peer < w->world; peer++) {
        plans[count] = plan_of(round, peer, w->rank);
        if (plans[count].there) {
            wishes[count] = (lac_receive){
                .peer = peer, .tag = plans[count].tag, .cap = MESSAGE_MAX};
            wishes[count].buffer =
                plans[count].seed >> 60 & 1
                    ? memory + (2 * WORLD_MAX + peer) * MESSAGE_MAX
                    : NULL;
            count++;
        }
    }
    REQUIRE(
        w, lac_transport_exchange(
               w->t, sends, send_count, wishes, count, soon(w, LONG_SECONDS)) ==
               LAC_OK);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(
            w,
            has_hash(
                &wishes[i], &plans[i], memory + 3 * WORLD_MAX * MESSAGE_MAX));
    }
}

static void survive_random_traffic(worker *w)
{
    uint8_t *const memory = calloc(3 * WORLD_MAX + 1, MESSAGE_MAX);
    for (uint32_t i = 0; i < ROUNDS && w->failure[0] == '\0'; i++) {
        random_round(w, i, memory);
    }
    if (w->failure[0] == '\0' &&
        lac_transport_exchange(w->t, NULL, 0, NULL, 0, soon(w, 9)) != LAC_OK) {
        (void)snprintf(w->failure, sizeof(w->failure), "the last exchange");
    }
    free(memory);
}

static void meet(const worker *w)
{
    if (w->barrier != NULL) {
        (void)pthread_barrier_wait(w->barrier);
    }
}

static lac_status talk_to_neighbours(worker *w, uint8_t *bytes, size_t len)
{
    const lac_send sends[] = {
        {right_of(w), 1, bytes, len}, {left_of(w), 2, bytes, len}};
    lac_receive wishes[] = {
        {.peer = left_of(w), .tag = 1}, {.peer = right_of(w), .tag = 2}};
    return lac_transport_exchange(
        w->t, sends, 2, wishes, 2, soon(w, LONG_SECONDS));
}

// Exchanges of a batch, and how many requests for memory they made. Threads
// count together.
static size_t count_batch(worker *w, uint8_t *bytes, lac_status *status)
{
    meet(w);
    const size_t before = allocations();
    meet(w);
    for (int i = 0; i < 50 && *status == LAC_OK; i++) {
        *status = talk_to_neighbours(w, bytes, i % 2 == 0 ? 50000 : 10);
    }
    meet(w);
    const size_t after = allocations();
    meet(w);
    return after - before;
}

// The first exchanges need nearly all the memory there will be. How many
// messages are under way at once, or read late, is chance: the supply then
// grows a few times more, and in most batches it does not.
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
    lac_receive wishes[WORLD_MAX];
    size_t count = 0;
    // Sums of small whole numbers are exact; thirds show any other order.
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
            sends[count] = (lac_send){peer, 3, &hashes[WORLD_MAX], 8};
            wishes[count] = (lac_receive){
                .peer = peer, .tag = 3, .buffer = &hashes[count], .cap = 8};
            count++;
        }
    }
    REQUIRE(
        w, lac_transport_exchange(
               w->t, sends, count, wishes, count, soon(w, LONG_SECONDS)) ==
               LAC_OK);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(w, hashes[i] == hashes[WORLD_MAX]);
    }
    REQUIRE(
        w,
        lac_transport_exchange(w->t, NULL, 0, NULL, 0, soon(w, 9)) == LAC_OK);
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

const duty steady_duties[] = {
    {"carry_every_length", carry_every_length},
    {"keep_tags_apart", keep_tags_apart},
    {"keep_the_order", keep_the_order},
    {"deliver_late", deliver_late},
    {"survive_random_traffic", survive_random_traffic},
    {"allocate_nothing_once_warm", allocate_nothing_once_warm},
    {"sum_to_the_same_bits", sum_to_the_same_bits},
    {NULL, NULL},
};
