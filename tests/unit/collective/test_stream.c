// SPDX-License-Identifier: MIT
// Sums of a stream, and the size of their pieces. The linker lets the local
// transport ask for pieces, counts its exchanges, and replaces the clock that
// measures sums.
#include "groups.h"

#include "collective/frame.h"
#include "collective/wire.h"
#include "exchanges.h"
#include "pieces.h"

enum {
    PIECE = 8192, // values
    VALUES_MAX = 4 * PIECE + 100,
    LONG = 600 * 1000, // values: two pieces of 2 MiB, or three of 1 MiB
    IN_ONE = 5,        // exchanges
    IN_LARGE = 6,
    IN_SMALL = 7,
};

static const uint32_t stream_worlds[] = {2, 3, 4, 5, 7, 8};
enum { STREAM_WORLDS = sizeof(stream_worlds) / sizeof(stream_worlds[0]) };

// A clock that is ahead of all deadlines, and runs only where it is let.
static _Thread_local double clock_now = 1e9;
static _Thread_local double clock_step;

double __wrap_lac_transport_now(const lac_transport *t);

double __wrap_lac_transport_now(const lac_transport *t)
{
    (void)t;
    clock_now += clock_step;
    return clock_now;
}

// A worker's stream: its values, where sums go, and how often load and store
// had each value.
typedef struct record {
    float *x;
    float *out;
    uint8_t *loads;
    uint8_t *stores;
    bool stored_unread; // a sum was stored before its value was loaded
} record;

static void record_load(void *context, size_t at, size_t n, void *x_out)
{
    record *const r = context;
    float *const x = x_out;
    for (size_t i = at; i < at + n; i++) {
        x[i - at] = r->x[i];
        r->loads[i]++;
    }
}

static void record_store(void *context, size_t at, size_t n, const void *sums)
{
    record *const r = context;
    const float *const x = sums;
    for (size_t i = at; i < at + n; i++) {
        r->stored_unread |= r->loads[i] == 0;
        r->out[i] = x[i - at];
        r->stores[i]++;
    }
}

typedef struct tables {
    size_t n;
    float in[WORKERS_MAX][VALUES_MAX];
    float out[WORKERS_MAX][VALUES_MAX];
    float expected[VALUES_MAX];
    uint8_t loads[WORKERS_MAX][VALUES_MAX];
    uint8_t stores[WORKERS_MAX][VALUES_MAX];
    bool in_place;
    uint32_t noted; // which worker has a note
} tables;

static tables table;

static bool all_are(const uint8_t *counts, size_t n, uint8_t expected)
{
    size_t i = 0;
    while (i < n && counts[i] == expected) {
        i++;
    }
    return i == n;
}

// Fills the rows of this worker.
static record begin_row(const test_worker *w)
{
    const size_t n = table.n;
    record r = {
        .x = table.in[w->rank],
        .out = table.in_place ? table.in[w->rank] : table.out[w->rank],
        .loads = table.loads[w->rank],
        .stores = table.stores[w->rank],
    };
    for (size_t i = 0; i < n; i++) {
        r.x[i] = rough_with_nan(w->rank, i);
        table.out[w->rank][i] = -1;
    }
    memset(r.loads, 0, n);
    memset(r.stores, 0, n);
    return r;
}

// Worker `noted` has a note.
static lac_status sum_row(
    test_worker *w, record *r, uint32_t noted, float *note)
{
    const laci_number_stream stream = {
        &laci_number_f32, r, record_load, record_store};
    *note = w->rank == noted ? 3 : 0;
    return laci_group_sum_stream(w->group, 4, 1, &stream, table.n, note);
}

static lac_status expect_sums(test_worker *w)
{
    const size_t n = table.n;
    record r = begin_row(w);
    float note;
    EXPECT(laci_group_streams(w->group, &laci_number_f32, n));
    LAC_TRY(sum_row(w, &r, LAC_RANK_ANY, &note));
    EXPECT(note == 0);
    EXPECT(all_are(r.loads, n, 1));
    EXPECT(all_are(r.stores, n, 1));
    EXPECT(!r.stored_unread);
    EXPECT(memcmp(r.out, table.expected, n * sizeof(float)) == 0);
    const laci_counts *const counts = laci_group_counts(w->group);
    EXPECT(counts->messages == 1);
    EXPECT(counts->payload == 4 * n);
    EXPECT(counts->wire == LACI_FRAME_SIZE + 4 * (n + 1));
    return LAC_OK;
}

// One piece after the other, which test_shares.c compares with recursive
// doubling.
static lac_status sum_plainly(test_worker *w)
{
    const record r = begin_row(w);
    LAC_TRY(laci_group_sum(w->group, 4, 1, r.x, VALUES_MAX, 0));
    if (w->rank == 0) {
        memcpy(table.expected, r.x, sizeof(table.expected));
    }
    return LAC_OK;
}

static void expect_of(uint32_t world)
{
    asked = 0;
    table.n = VALUES_MAX;
    run_all(world, sum_plainly, NULL);
    asked = sizeof(float) * PIECE;
}

static void streams_have_the_bits_of_other_sums(void **state)
{
    (void)state;
    static const size_t sizes[] = {PIECE + 1, PIECE + 7,     2 * PIECE - 1,
                                   2 * PIECE, 2 * PIECE + 1, 3 * PIECE,
                                   4 * PIECE, VALUES_MAX};
    for (size_t k = 0; k < STREAM_WORLDS; k++) {
        expect_of(stream_worlds[k]);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            table.n = sizes[i];
            table.in_place = i % 2 == 0;
            run_all(stream_worlds[k], expect_sums, NULL);
            table.in_place = !table.in_place;
            run_all(stream_worlds[k], expect_sums, NULL);
        }
    }
}

static lac_status expect_silence(test_worker *w)
{
    record r = begin_row(w);
    float note;
    LAC_TRY(sum_row(w, &r, table.noted, &note));
    EXPECT(note == 3);
    EXPECT(all_are(r.stores, table.n, 0));
    // The group can still be used.
    r = begin_row(w);
    LAC_TRY(sum_row(w, &r, LAC_RANK_ANY, &note));
    EXPECT(note == 0);
    EXPECT(memcmp(r.out, table.expected, table.n * sizeof(float)) == 0);
    return LAC_OK;
}

static void nothing_is_stored_after_a_note(void **state)
{
    (void)state;
    for (size_t k = 0; k < STREAM_WORLDS; k++) {
        const uint32_t world = stream_worlds[k];
        expect_of(world);
        table.n = 3 * PIECE + 1;
        table.in_place = true;
        for (uint32_t noted = 0; noted < world; noted += world - 1) {
            table.noted = noted;
            run_all(world, expect_silence, NULL);
        }
    }
}

static lac_status expect_choice(test_worker *w)
{
    EXPECT(!laci_group_streams(w->group, &laci_number_f32, 0));
    EXPECT(!laci_group_streams(w->group, &laci_number_f32, PIECE));
    EXPECT(
        laci_group_streams(w->group, &laci_number_f32, PIECE + 1) ==
        (w->world > 1));
    return LAC_OK;
}

static lac_status expect_none(test_worker *w)
{
    EXPECT(!laci_group_streams(w->group, &laci_number_f32, 1 << 20));
    return LAC_OK;
}

static void only_sums_of_several_pieces_are_streamed(void **state)
{
    (void)state;
    asked = sizeof(float) * PIECE;
    run_all(1, expect_choice, NULL);
    run_all(3, expect_choice, NULL);
    asked = 0;
    run_all(3, expect_none, NULL);
}

static void the_most_floats_that_are_copied_are_a_piece(void **state)
{
    (void)state;
    laci_group_options options = default_options;
    asked = sizeof(float) * PIECE;
    options.native_sums = false;
    assert_int_equal(laci_group_copied(&options, 3), 1 << 20); // no transport
    options.transport = (void *)&options;                      // not read
    assert_int_equal(laci_group_copied(&options, 3), PIECE);
    assert_int_equal(laci_group_copied(&options, 1), 1 << 20);
    assert_int_equal(laci_group_copied(&options, 17), 1 << 20); // tiny shares
    options.sum_max = PIECE - 1;
    assert_int_equal(laci_group_copied(&options, 3), PIECE - 1);
    options.sum_max = 1 << 20;
    asked = 0;
    assert_int_equal(laci_group_copied(&options, 3), 1 << 20);
}

// Returns the failure of a sum that worker 1 ends.
static lac_status sum_until_it_fails(test_worker *w)
{
    laci_reader readers[WORKERS_MAX];
    record r = begin_row(w);
    float note;
    exchanges = 0;
    LAC_TRY(sum_row(w, &r, LAC_RANK_ANY, &note));
    return laci_group_gather(w->group, 5, 0, readers);
}

static void a_failure_between_pieces_reaches_all(void **state)
{
    (void)state;
    enum { WORLD = 3 };
    expect_of(WORLD);
    table.n = 3 * PIECE;
    for (abort_at = 1; abort_at <= 7; abort_at++) {
        test_worker workers[WORLD];
        group_run run = {
            .world = WORLD,
            .options = &default_options,
            .odd = LAC_RANK_ANY,
            .body = sum_until_it_fails,
        };
        run_groups(&run, workers);
        for (uint32_t i = 0; i < WORLD; i++) {
            assert_int_not_equal(workers[i].status, LAC_OK);
            assert_non_null(strstr(workers[i].message, "test: no more"));
        }
    }
    abort_at = 0;
}

// The size of pieces.

static float long_rows[2][LONG];

// Sums `count` times, each in so many exchanges. A slow worker's clock runs.
static lac_status sum_long(
    test_worker *w, size_t count, size_t expected, bool slow)
{
    for (size_t i = 0; i < count; i++) {
        clock_step = slow ? 1 : 0;
        exchanges = 0;
        LAC_TRY(laci_group_sum(w->group, 4, 1, long_rows[w->rank], LONG, 0));
        EXPECT(exchanges == expected);
    }
    return LAC_OK;
}

// Each sum reports how long the one before it took.
static lac_status expect_small_pieces(test_worker *w)
{
    const bool odd = w->rank == 1;
    LAC_TRY(sum_long(w, 2, IN_LARGE, false));
    LAC_TRY(sum_long(w, 3, IN_SMALL, false));
    LAC_TRY(sum_long(w, 1, IN_SMALL, odd)); // only one worker is slow
    LAC_TRY(sum_long(w, 1, IN_SMALL, false));
    LAC_TRY(sum_long(w, LACI_PACE_WAIT + 1, IN_LARGE, false));
    return sum_long(w, 2, IN_SMALL, false);
}

static void pieces_are_small_where_sums_are_fast(void **state)
{
    (void)state;
    asked = 2 << 20;
    run_all(2, expect_small_pieces, NULL);
}

static lac_status expect_large_pieces(test_worker *w)
{
    LAC_TRY(sum_long(w, 5, IN_LARGE, w->rank == 0));
    LAC_TRY(sum_long(w, 2, IN_LARGE, false));
    return sum_long(w, 1, IN_SMALL, false);
}

static void pieces_stay_large_where_sums_are_slow(void **state)
{
    (void)state;
    asked = 2 << 20;
    run_all(2, expect_large_pieces, NULL);
}

// A sum that fits a large piece is measured as well.
static lac_status expect_pieces_of_one(test_worker *w)
{
    LAC_TRY(sum_long(w, 2, IN_ONE, false));
    LAC_TRY(sum_long(w, 2, IN_SMALL, w->rank == 0));
    return sum_long(w, 2, IN_ONE, false);
}

static void one_large_piece_becomes_small_ones(void **state)
{
    (void)state;
    asked = 4 << 20;
    run_all(2, expect_pieces_of_one, NULL);
}

// The room for sums that are copied must hold every sum that is not streamed.
static void sums_that_are_not_streamed_are_copied(void **state)
{
    (void)state;
    const uint32_t large_worlds[] = {2, 3, 511, 512, 513, 600, 1024, 3000};
    const size_t sizes[] = {1000, 5000, 262144, 290000, 500000, 2000000};
    asked = 4 << 20;
    for (size_t i = 0; i < sizeof(large_worlds) / sizeof(large_worlds[0]);
         i++) {
        lac_hub *hub = NULL;
        lac_transport *t = NULL;
        assert_int_equal(lac_hub_open(&hub, large_worlds[i]), LAC_OK);
        assert_int_equal(
            lac_transport_join(&t, "local", hub, 0, large_worlds[i]), LAC_OK);
        for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
            laci_group_options options = default_options;
            options.transport = t;
            options.sum_max = sizes[k];
            laci_group *g = NULL;
            assert_int_equal(laci_group_open(&g, &options), LAC_OK);
            const size_t copied = laci_group_copied(&options, large_worlds[i]);
            assert_true(
                copied == sizes[k] ||
                (copied < sizes[k] &&
                 laci_group_streams(g, &laci_number_f32, copied + 1)));
            laci_group_close(g);
        }
        lac_transport_leave(t);
        lac_hub_close(hub);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_have_the_bits_of_other_sums),
        cmocka_unit_test(nothing_is_stored_after_a_note),
        cmocka_unit_test(only_sums_of_several_pieces_are_streamed),
        cmocka_unit_test(the_most_floats_that_are_copied_are_a_piece),
        cmocka_unit_test(a_failure_between_pieces_reaches_all),
        cmocka_unit_test(pieces_are_small_where_sums_are_fast),
        cmocka_unit_test(pieces_stay_large_where_sums_are_slow),
        cmocka_unit_test(one_large_piece_becomes_small_ones),
        cmocka_unit_test(sums_that_are_not_streamed_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
