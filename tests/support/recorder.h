// SPDX-License-Identifier: MIT
// Records the messages of all workers and sorts them into exchanges, which can
// be compared with a list of lac_algorithm_exchanges. Tests that include this
// are linked with --wrap=lac_transport_exchange, laci_transport_has_allreduce
// and laci_transport_allreduce: they decide whether the transport has an
// all-reduce, which adds nothing.
#ifndef LACONIC_TESTS_RECORDER_H
#define LACONIC_TESTS_RECORDER_H

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <laconic/algorithm.h>

#include "base/bytes.h"
#include "exchanges.h"
#include "transport/transport.h"

enum {
    RECORDS_MAX = 1 << 17,
    RECORDED_MAX = 1 << 12,
    RECORD_WORKERS = 16,
    // Of a frame, see docs/format.md.
    RECORD_STEP_AT = 6,
    RECORD_ROUND_AT = 24,
    RECORD_PHASE_AT = 32,
};

// One message.
typedef struct record {
    uint64_t round;
    uint64_t order; // phase and step, or the number of the exchange
    uint32_t from;
    uint32_t to;
    uint64_t len;
} record;

static record records[RECORDS_MAX];
static size_t record_count;
static uint64_t native_bytes; // of all all-reduces
static pthread_mutex_t record_lock = PTHREAD_MUTEX_INITIALIZER;
static bool record_native;           // the transport has an all-reduce
static bool record_by_call;          // not by the step of a frame
static _Thread_local bool recording; // this worker

bool __wrap_laci_transport_has_allreduce(const lac_transport *t);
lac_status __wrap_laci_transport_allreduce(
    lac_transport *t, float *x, size_t n, double deadline);

static inline void add_record(record r)
{
    pthread_mutex_lock(&record_lock);
    if (record_count < RECORDS_MAX) {
        records[record_count++] = r;
    }
    pthread_mutex_unlock(&record_lock);
}

// Called before an exchange.
static inline void record_exchange(exchange *e)
{
    for (size_t i = 0; recording && i < e->send_count; i++) {
        const uint8_t *const frame = e->sends[i].data;
        const uint64_t phase = laci_get_u32(frame + RECORD_PHASE_AT);
        const uint64_t step = laci_get_u16(frame + RECORD_STEP_AT);
        add_record((record){
            .round = laci_get_u64(frame + RECORD_ROUND_AT),
            .order = record_by_call ? exchanges : phase << 16 | step,
            .from = e->rank,
            .to = e->sends[i].peer,
            .len = e->sends[i].len,
        });
    }
}

bool __wrap_laci_transport_has_allreduce(const lac_transport *t)
{
    (void)t;
    return record_native;
}

lac_status __wrap_laci_transport_allreduce(
    lac_transport *t, float *x, size_t n, double deadline)
{
    (void)x, (void)deadline;
    if (recording && lac_transport_rank(t) == 0) {
        native_bytes += n * sizeof(*x);
    }
    return LAC_OK;
}

static inline int compare_records(const void *a, const void *b)
{
    const record *const x = a, *const y = b;
    if (x->round != y->round) {
        return x->round < y->round ? -1 : 1;
    }
    return (x->order > y->order) - (x->order < y->order);
}

static inline uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// The exchange of messages[0..count).
static inline lac_exchange exchange_of(const record *messages, size_t count)
{
    uint64_t sent[RECORD_WORKERS] = {0}, received[RECORD_WORKERS] = {0};
    uint32_t out[RECORD_WORKERS] = {0}, in[RECORD_WORKERS] = {0};
    lac_exchange e = {.times = 1};
    for (size_t i = 0; i < count; i++) {
        const record *const m = &messages[i];
        sent[m->from] += m->len;
        received[m->to] += m->len;
        out[m->from]++;
        in[m->to]++;
        e.largest = larger(e.largest, m->len);
        e.total += m->len;
    }
    for (size_t k = 0; k < RECORD_WORKERS; k++) {
        e.bytes = larger(e.bytes, larger(sent[k], received[k]));
        e.messages = (uint32_t)larger(e.messages, larger(out[k], in[k]));
    }
    return e;
}

// Writes the exchanges of a round to out[RECORDED_MAX] and returns how many
// there were.
static inline size_t recorded_exchanges(uint64_t round, lac_exchange *out)
{
    size_t count = 0;
    assert_true(record_count < RECORDS_MAX);
    qsort(records, record_count, sizeof(*records), compare_records);
    for (size_t i = 0, next = 0; i < record_count; i = next) {
        while (next < record_count &&
               compare_records(&records[i], &records[next]) == 0) {
            next++;
        }
        if (records[i].round == round) {
            assert_true(count < RECORDED_MAX);
            out[count++] = exchange_of(&records[i], next - i);
        }
    }
    return count;
}

static inline void begin_records(void)
{
    before_exchange = record_exchange;
    record_count = 0;
    native_bytes = 0;
}

static inline int compare_exchanges(const void *a, const void *b)
{
    const lac_exchange *const x = a, *const y = b;
    if (x->total != y->total) {
        return x->total < y->total ? -1 : 1;
    }
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

// Repeats exchanges `times` times, without those that send nothing, and sorts
// them by size. The bytes of an all-reduce are added to `*native`.
static inline size_t expand_exchanges(
    const lac_exchange *list, size_t count, uint32_t round, lac_exchange *out,
    uint64_t *native)
{
    size_t expanded = 0;
    for (size_t i = 0; i < count; i++) {
        if (list[i].round != round) {
            continue;
        }
        if ((list[i].flags & LAC_EXCHANGE_ALLREDUCE) != 0) {
            *native += list[i].bytes;
            continue;
        }
        for (uint32_t t = 0; list[i].messages > 0 && t < list[i].times; t++) {
            assert_true(expanded < RECORDED_MAX);
            out[expanded++] = list[i];
        }
    }
    qsort(out, expanded, sizeof(*out), compare_exchanges);
    return expanded;
}

// Compares a list with what was recorded of a round.
static inline void assert_recorded(
    const lac_exchange *list, size_t count, uint32_t in_period, uint64_t round)
{
    static lac_exchange listed[RECORDED_MAX], seen[RECORDED_MAX];
    uint64_t native = 0;
    const size_t seen_count = recorded_exchanges(round, seen);
    qsort(seen, seen_count, sizeof(*seen), compare_exchanges);
    const size_t listed_count =
        expand_exchanges(list, count, in_period, listed, &native);
    assert_int_equal(seen_count, listed_count);
    for (size_t i = 0; i < seen_count; i++) {
        const lac_exchange *const l = &listed[i], *const s = &seen[i];
        assert_int_equal(s->messages, l->messages);
        if ((l->flags & LAC_EXCHANGE_BOUND) != 0) {
            assert_true(s->bytes <= l->bytes);
            assert_true(s->largest <= l->largest);
            assert_true(s->total <= l->total);
        } else {
            assert_int_equal(s->bytes, l->bytes);
            assert_int_equal(s->largest, l->largest);
            assert_int_equal(s->total, l->total);
        }
    }
}

#endif
