// SPDX-License-Identifier: MIT
// Sums in shares, over a transport that asks for pieces sent ahead. The linker
// lets the local transport ask for small ones, and shows its exchanges to this
// file.
#include "groups.h"

#include <xxhash.h>

#include "base/bytes.h"
#include "collective/frame.h"
#include "collective/wire.h"
#include "exchanges.h"
#include "hashed.h"
#include "pieces.h"

enum {
    PIECE = 8192, // values
    PIECES_MAX = 5,
    VALUES_MAX = PIECES_MAX * PIECE + 100,
    CHUNK = 4096, // the most values of a sum by recursive doubling
    SENDS_MAX = 2 * WORKERS_MAX,
    EXCHANGES_MAX = 64,
    STEP_AT = 6,
    BODY_HASH_AT = 52,
};

static const uint32_t all_worlds[] = {1, 2, 3, 4, 5, 7, 8};
enum { ALL_WORLDS = sizeof(all_worlds) / sizeof(all_worlds[0]) };

static pthread_barrier_t barrier;

// A message that is lent: its bytes, and the header they had.
typedef struct lent {
    const uint8_t *data;
    size_t len;
    uint8_t header[LACI_FRAME_SIZE];
} lent;

// The steps of the messages of an exchange.
typedef struct entry {
    unsigned sends[SENDS_MAX];
    unsigned receives[SENDS_MAX];
    size_t send_count;
    size_t receive_count;
} entry;

static _Thread_local entry entries[EXCHANGES_MAX];
static _Thread_local lent lents[SENDS_MAX];
static _Thread_local size_t lent_count;
static _Thread_local bool lent_bytes_changed;

static void check_lent(void)
{
    for (size_t i = 0; i < lent_count; i++) {
        const lent *const l = &lents[i];
        const uint64_t hash =
            XXH3_64bits(l->data + LACI_FRAME_SIZE, l->len - LACI_FRAME_SIZE);
        if (memcmp(l->data, l->header, LACI_FRAME_SIZE) != 0 ||
            hash != laci_get_u64(l->header + BODY_HASH_AT)) {
            lent_bytes_changed = true;
        }
    }
}

static void record_sends(entry *e, const lac_send *sends, size_t count)
{
    e->send_count = count;
    lent_count = count;
    for (size_t i = 0; i < count; i++) {
        lents[i] = (lent){.data = sends[i].data, .len = sends[i].len};
        memcpy(lents[i].header, sends[i].data, LACI_FRAME_SIZE);
        e->sends[i] = laci_get_u16(lents[i].header + STEP_AT);
    }
}

static void record_receives(entry *e, const lac_receive *receives, size_t count)
{
    e->receive_count = count;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *const message = receives[i].data;
        e->receives[i] = laci_get_u16(message + STEP_AT);
    }
}

static void record_exchange(const exchange *e)
{
    entry *const recorded = &entries[(exchanges - 1) % EXCHANGES_MAX];
    if (e->send_count <= SENDS_MAX) {
        check_lent();
        record_sends(recorded, e->sends, e->send_count);
        record_receives(recorded, e->receives, e->receive_count);
    }
}

// Worker 2 sends one value less in its first gather: replaces the messages of
// step 1 by a shorter one with a right frame.
static void shorten_gather(exchange *e)
{
    static _Thread_local uint8_t message[LACI_FRAME_SIZE + 4 * PIECE];
    static _Thread_local lac_send sends[SENDS_MAX];
    const laci_frame frame = {
        .session = default_options.session,
        .identity = default_options.identity,
        .round = 4,
        .phase = 1,
        .sender = 2,
        .receiver = LAC_RANK_ANY,
        .step = 1,
    };
    if (e->rank != 2) {
        return;
    }
    for (size_t i = 0; i < e->send_count; i++) {
        const uint8_t *const data = e->sends[i].data;
        sends[i] = e->sends[i];
        if (laci_get_u16(data + STEP_AT) == 1) {
            sends[i].len -= sizeof(float);
            laci_frame_write(&frame, message, sends[i].len - LACI_FRAME_SIZE);
            sends[i].data = message;
        }
    }
    e->sends = sends;
}

// The values, their sums, and the sums that they are compared with.
typedef struct rows {
    float sums[WORKERS_MAX][VALUES_MAX];
    float expected[VALUES_MAX];
    size_t n;
    size_t more; // values that worker 2 sums beyond n
    size_t exchanges[WORKERS_MAX];
} rows;

static rows table;

static void fill(float *x, uint32_t rank, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = rough_with_nan(rank, i);
    }
}

static lac_status sum_row(test_worker *w)
{
    rows *const r = w->context;
    float *const x = r->sums[w->rank];
    fill(x, w->rank, r->n);
    LAC_TRY(laci_group_sum(w->group, 4, 1, r->n == 0 ? NULL : x, r->n, 0));
    const laci_counts *const counts = laci_group_counts(w->group);
    const uint64_t once = w->world > 1;
    EXPECT(counts->messages == once);
    EXPECT(counts->payload == once * 4 * r->n);
    EXPECT(counts->wire == once * (LACI_FRAME_SIZE + 4 * r->n));
    EXPECT(!lent_bytes_changed);
    return LAC_OK;
}

// Recursive doubling of so many values at a time has none of the code that is
// tested here.
static lac_status sum_chunks(test_worker *w)
{
    rows *const r = w->context;
    float *const x = r->sums[w->rank];
    fill(x, w->rank, VALUES_MAX);
    for (size_t at = 0; at < VALUES_MAX; at += CHUNK) {
        const size_t left = VALUES_MAX - at;
        LAC_TRY(laci_group_sum(
            w->group, 4, 1, x + at, left < CHUNK ? left : CHUNK, 0));
    }
    if (w->rank == 0) {
        memcpy(r->expected, x, sizeof(r->expected));
    }
    return LAC_OK;
}

static void compare(uint32_t world)
{
    for (uint32_t rank = 0; rank < world; rank++) {
        for (size_t i = 0; i < table.n; i++) {
            const uint32_t found = laci_bits_of(table.sums[rank][i]);
            const uint32_t expected = laci_bits_of(table.expected[i]);
            if (found != expected) {
                print_error(
                    "world %u, pieces of %zu bytes, %zu values: value %zu of "
                    "worker %u is %08x, expected %08x\n",
                    world, asked, table.n, i, rank, found, expected);
                fail();
            }
        }
    }
}

// Around one piece and five of them: tails of no, one and a few values, and of
// less than two values for each worker.
static void sums_have_the_bits_of_recursive_doubling(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        0,
        1,
        7,
        CHUNK,
        CHUNK + 1,
        PIECE - 1,
        PIECE,
        PIECE + 1,
        PIECE + 7,
        2 * PIECE,
        2 * PIECE + 100,
        3 * PIECE - 1,
        5 * PIECE - 1,
        5 * PIECE,
        5 * PIECE + 1,
        5 * PIECE + 100,
    };
    for (size_t k = 0; k < ALL_WORLDS; k++) {
        asked = 0;
        run_all(all_worlds[k], sum_chunks, &table);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            table.n = sizes[i];
            for (asked = 0; asked <= 4 * PIECE; asked += 4 * PIECE) {
                run_all(all_worlds[k], sum_row, &table);
                compare(all_worlds[k]);
            }
        }
    }
}

// Pieces that are no whole number of cache lines.
static void any_size_of_a_piece_is_right(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 16385, 20000, 50001, 100000};
    asked = 0;
    run_all(5, sum_chunks, &table);
    table.n = VALUES_MAX;
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        asked = pieces[i];
        run_all(5, sum_row, &table);
        compare(5);
    }
}

static size_t count_step(const unsigned *steps, size_t count, unsigned step)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += steps[i] == step;
    }
    return found;
}

// An exchange receives from each peer what that one sent in the last exchange,
// as this worker did: both ends have the same steps.
static lac_status expect_ahead(test_worker *w)
{
    const size_t peers = w->world - 1;
    exchanges = 0;
    LAC_TRY(sum_row(w));
    EXPECT(exchanges == PIECES_MAX + 4);
    EXPECT(entries[0].receive_count == 0);
    for (size_t t = 0; t < PIECES_MAX + 2; t++) {
        const entry *const sent = &entries[t];
        const entry *const next = &entries[t + 1];
        const unsigned scatter = 2 * (unsigned)t;
        const unsigned gather = 2 * ((unsigned)t - 2) + 1;
        const size_t scatters = t < PIECES_MAX ? peers : 0;
        const size_t gathers = t >= 2 ? peers : 0;
        EXPECT(sent->send_count == scatters + gathers);
        EXPECT(count_step(sent->sends, sent->send_count, scatter) == scatters);
        EXPECT(count_step(sent->sends, sent->send_count, gather) == gathers);
        EXPECT(next->receive_count == sent->send_count);
        for (size_t i = 0; i < next->receive_count; i++) {
            const unsigned step = next->receives[i];
            EXPECT(count_step(sent->sends, sent->send_count, step) == peers);
        }
    }
    EXPECT(entries[PIECES_MAX + 2].send_count == 0);
    EXPECT(entries[PIECES_MAX + 3].send_count == 0);
    EXPECT(entries[PIECES_MAX + 3].receive_count == 0);
    return LAC_OK;
}

static void sends_are_one_exchange_ahead_of_receives(void **state)
{
    (void)state;
    asked = 4 * PIECE;
    table.n = (PIECES_MAX - 1) * PIECE + 9;
    for (size_t k = 1; k < ALL_WORLDS; k++) {
        run_all(all_worlds[k], expect_ahead, &table);
    }
}

// One piece has nothing to be ahead of.
static lac_status expect_two_exchanges(test_worker *w)
{
    exchanges = 0;
    LAC_TRY(sum_row(w));
    EXPECT(exchanges == 2);
    EXPECT(entries[0].receive_count == w->world - 1);
    EXPECT(entries[1].receive_count == w->world - 1);
    return LAC_OK;
}

static void one_piece_takes_two_exchanges(void **state)
{
    (void)state;
    asked = 4 * PIECE;
    table.n = PIECE;
    run_all(3, expect_two_exchanges, &table);
}

// No worker is left waiting for the next call, or for a worker to leave.
static lac_status sum_and_synchronise(test_worker *w)
{
    const lac_status status = sum_row(w);
    (void)pthread_barrier_wait(&barrier);
    return status;
}

static void a_sum_ends_without_further_exchanges(void **state)
{
    (void)state;
    asked = 4 * PIECE;
    table.n = 3 * PIECE;
    for (size_t k = 0; k < ALL_WORLDS; k++) {
        assert_int_equal(
            pthread_barrier_init(&barrier, NULL, all_worlds[k]), 0);
        run_all(all_worlds[k], sum_and_synchronise, &table);
        (void)pthread_barrier_destroy(&barrier);
    }
}

static lac_status sum_and_count(test_worker *w)
{
    const size_t before = test_thread_allocations - transport_allocations;
    for (uint64_t round = 0; round < 3; round++) {
        LAC_TRY(laci_group_sum(
            w->group, round, 0, table.sums[w->rank], table.n, 0));
    }
    EXPECT(test_thread_allocations - transport_allocations == before);
    return LAC_OK;
}

static void sums_allocate_nothing(void **state)
{
    (void)state;
    asked = 4 * PIECE;
    table.n = VALUES_MAX;
    run_all(5, sum_and_count, &table);
}

// A worker that is far from the odd one may complete the sum; the failure
// reaches it in the next call.
static lac_status sum_until_it_fails(test_worker *w)
{
    rows *const r = w->context;
    laci_reader readers[WORKERS_MAX];
    const size_t n = r->n + (w->rank == 2 ? r->more : 0);
    const lac_status status =
        laci_group_sum(w->group, 4, 1, r->sums[w->rank], n, 0);
    r->exchanges[w->rank] = exchanges;
    LAC_TRY(status);
    return laci_group_gather(w->group, 5, 0, readers);
}

enum { WORLD = 5 };

// The exchanges of the worker that noticed the last failure itself. Others
// learn of it whenever the abort reaches them.
static size_t detected;

static void expect_failure(const char *message)
{
    test_worker workers[WORLD];
    group_run run = {
        .world = WORLD,
        .options = &default_options,
        .odd = LAC_RANK_ANY,
        .body = sum_until_it_fails,
        .context = &table,
    };
    run_groups(&run, workers);
    for (uint32_t i = 0; i < WORLD; i++) {
        const test_worker *const w = &workers[i];
        if (w->status == LAC_OK || strstr(w->message, message) == NULL) {
            print_error(
                "worker %u: %d, \"%s\", expected \"%s\"\n", i, w->status,
                w->message, message);
            fail();
        }
        if (strstr(w->message, "aborted") == NULL) {
            detected = table.exchanges[i];
        }
    }
}

static void a_worker_with_other_values_is_named(void **state)
{
    (void)state;
    asked = 4 * PIECE;
    table.n = 4 * PIECE - 10;
    table.more = 1; // as many pieces: the last one differs
    expect_failure("worker 2");
    table.n = 4 * PIECE; // worker 2 has one piece more
    expect_failure(": step is ");
    table.n = PIECE; // only worker 2 sends ahead
    expect_failure("body has ");
    table.n = 100; // the others use recursive doubling
    table.more = 2 * PIECE;
    expect_failure("frame from worker ");
}

// The receiver of a share that is too short or too long does not add it: it
// fails in the exchange that brings the last piece, and not at the gather.
static void a_share_of_another_length_is_not_added(void **state)
{
    (void)state;
    asked = 4 * PIECE;
    table.n = 4 * PIECE - 10;
    table.more = 1;
    expect_failure(": body has ");
    assert_int_equal(detected, 5);
}

static void a_sum_of_another_length_is_refused(void **state)
{
    (void)state;
    asked = 4 * PIECE;
    table.more = 0;
    before_exchange = shorten_gather;
    for (table.n = PIECE; table.n <= 3 * PIECE; table.n += 2 * PIECE) {
        expect_failure("frame from worker 2: body has 65");
    }
    before_exchange = NULL;
}

static void a_failure_between_pieces_reaches_all(void **state)
{
    (void)state;
    asked = 4 * PIECE;
    table.n = VALUES_MAX;
    table.more = 0;
    for (abort_at = 1; abort_at <= PIECES_MAX + 4; abort_at += 2) {
        expect_failure("test: no more");
    }
    abort_at = 0;
}

static void reported_memory_is_that_of_the_pieces(void **state)
{
    (void)state;
    static const size_t stack = 4 * LACI_SUM_BLOCK_SIZE; // of 4 workers
    laci_group_options options = default_options;
    asked = 3 << 20;
    assert_int_equal(laci_group_sum_bytes(&options, 1), 0);
    assert_int_equal(laci_group_sum_bytes(&options, 4), (2 << 20) + stack);
    options.transport = (void *)&options; // not read
    assert_int_equal(laci_group_sum_bytes(&options, 4), (6 << 20) + stack);
    options.sum_max = 100;
    assert_int_equal(laci_group_sum_bytes(&options, 4), 800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_bits_of_recursive_doubling),
        cmocka_unit_test(any_size_of_a_piece_is_right),
        cmocka_unit_test(sends_are_one_exchange_ahead_of_receives),
        cmocka_unit_test(one_piece_takes_two_exchanges),
        cmocka_unit_test(a_sum_ends_without_further_exchanges),
        cmocka_unit_test(sums_allocate_nothing),
        cmocka_unit_test(a_worker_with_other_values_is_named),
        cmocka_unit_test(a_share_of_another_length_is_not_added),
        cmocka_unit_test(a_sum_of_another_length_is_refused),
        cmocka_unit_test(a_failure_between_pieces_reaches_all),
        cmocka_unit_test(reported_memory_is_that_of_the_pieces),
    };
    after_exchange = record_exchange;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
