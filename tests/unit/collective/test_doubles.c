// SPDX-License-Identifier: MIT
// Large sums of doubles: by shares, in pieces sent ahead, and of a stream. The
// linker lets the local transport ask for pieces.
#include "groups.h"

#include <math.h>
#include <stdlib.h>

#include "collective/frame.h"
#include "collective/wire.h"
#include "pieces.h"

enum {
    PIECE = 4096, // values
    VALUES_MAX = 4 * PIECE + 100,
    CHUNK = 2048, // the most values of a sum by recursive doubling
};

static const uint32_t all_worlds[] = {1, 2, 3, 4, 5, 7, 8};
enum { ALL_WORLDS = sizeof(all_worlds) / sizeof(all_worlds[0]) };

static struct {
    size_t n;
    double sums[WORKERS_MAX][VALUES_MAX];
    double expected[VALUES_MAX];
} table;

// Values of many magnitudes, with more bits than a float has, and NaN with
// other bits on every worker.
static double rough(uint32_t rank, size_t i)
{
    const uint32_t mix = (uint32_t)(i * 2654435761u) ^ (rank * 40503u);
    if (i % 97 == 96) {
        const uint64_t bits = 0x7ff8000000000001 + rank;
        double nan;
        memcpy(&nan, &bits, sizeof(nan));
        return nan;
    }
    return ldexp((double)mix / 3, (int)(mix >> 13) % 40 - 20);
}

static double *fill(uint32_t rank)
{
    for (size_t i = 0; i < VALUES_MAX; i++) {
        table.sums[rank][i] = rough(rank, i);
    }
    return table.sums[rank];
}

// Recursive doubling of so many values at a time has none of the code that is
// tested here.
static lac_status sum_chunks(test_worker *w)
{
    double *const x = fill(w->rank);
    for (size_t at = 0; at < VALUES_MAX; at += CHUNK) {
        const size_t left = VALUES_MAX - at;
        LAC_TRY(laci_group_sum_f64(
            w->group, 4, 1, x + at, left < CHUNK ? left : CHUNK));
    }
    if (w->rank == 0) {
        memcpy(table.expected, x, sizeof(table.expected));
    }
    return LAC_OK;
}

static lac_status expect_sums(const test_worker *w)
{
    const size_t n = table.n;
    const uint64_t once = w->world > 1;
    const laci_counts *const counts = laci_group_counts(w->group);
    EXPECT(
        memcmp(table.sums[w->rank], table.expected, n * sizeof(double)) == 0);
    EXPECT(counts->messages == once);
    EXPECT(counts->payload == once * 8 * n);
    EXPECT(counts->wire == once * (LACI_FRAME_SIZE + 8 * n));
    return LAC_OK;
}

static lac_status sum_row(test_worker *w)
{
    double *const x = fill(w->rank);
    LAC_TRY(laci_group_sum_f64(w->group, 4, 1, x, table.n));
    return expect_sums(w);
}

static void sums_have_the_bits_of_recursive_doubling(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        1,         CHUNK,         CHUNK + 1, PIECE,         PIECE + 1,
        2 * PIECE, 3 * PIECE - 1, 4 * PIECE, 4 * PIECE + 1, VALUES_MAX,
    };
    for (size_t k = 0; k < ALL_WORLDS; k++) {
        asked = 0;
        run_all(all_worlds[k], sum_chunks, NULL);
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            table.n = sizes[i];
            for (asked = 0; asked <= 8 * PIECE; asked += 8 * PIECE) {
                run_all(all_worlds[k], sum_row, NULL);
            }
        }
    }
}

static void load(void *context, size_t at, size_t n, void *x_out)
{
    memcpy(x_out, (double *)context + at, n * sizeof(double));
}

static void store(void *context, size_t at, size_t n, const void *sums)
{
    memcpy((double *)context + at, sums, n * sizeof(double));
}

static lac_status sum_stream(test_worker *w)
{
    double *const x = fill(w->rank);
    const laci_number_stream stream = {&laci_number_f64, x, load, store};
    EXPECT(!laci_group_streams(w->group, &laci_number_f64, PIECE));
    EXPECT(laci_group_streams(w->group, &laci_number_f64, table.n));
    LAC_TRY(laci_group_sum_stream(w->group, 4, 1, &stream, table.n, NULL));
    return expect_sums(w);
}

static void streams_have_the_same_bits(void **state)
{
    (void)state;
    static const size_t sizes[] = {PIECE + 1, 2 * PIECE, VALUES_MAX};
    for (size_t k = 1; k < ALL_WORLDS; k++) {
        asked = 0;
        run_all(all_worlds[k], sum_chunks, NULL);
        asked = 8 * PIECE;
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            table.n = sizes[i];
            run_all(all_worlds[k], sum_stream, NULL);
        }
    }
}

// Worker 1 has a note.
static lac_status expect_silence(test_worker *w)
{
    double *const x = fill(w->rank);
    const laci_number_stream stream = {&laci_number_f64, x, load, store};
    float note = w->rank == 1 ? 3 : 0;
    LAC_TRY(laci_group_sum_stream(w->group, 4, 1, &stream, table.n, &note));
    EXPECT(note == 3);
    for (size_t i = 0; i < table.n; i++) {
        const double value = rough(w->rank, i);
        EXPECT(memcmp(&x[i], &value, sizeof(value)) == 0);
    }
    return LAC_OK;
}

static void nothing_is_stored_after_a_note(void **state)
{
    (void)state;
    asked = 8 * PIECE;
    table.n = 3 * PIECE + 1;
    run_all(2, expect_silence, NULL);
    run_all(5, expect_silence, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_bits_of_recursive_doubling),
        cmocka_unit_test(streams_have_the_same_bits),
        cmocka_unit_test(nothing_is_stored_after_a_note),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
