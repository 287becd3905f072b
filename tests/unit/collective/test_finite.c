// SPDX-License-Identifier: MIT
// Sums of groups that expect finite values. A worker that sends another one is
// named by all, whatever the message; an overflow is noticed by all and accuses
// nobody. The linker lets the local transport ask for pieces of sums, and lets
// it count as one that may alter messages.
#include "groups.h"

#include <float.h>

#include "hashed.h"
#include "liar.h"
#include "pieces.h"

enum {
    FEW = 100,        // numbers: recursive doubling
    MANY = 24 * 1024, // shares
    PIECE = 8 * 1024, // of MANY, if the transport asks for pieces
    MIDDLE = 60,
    ROUND = 4,
};

// How numbers are summed.
typedef struct sum_kind {
    const laci_number *type;
    size_t n;
    bool ahead;   // the transport asks for pieces
    bool streams; // the numbers are a stream
} sum_kind;

static const sum_kind kinds[] = {
    {&laci_number_f32, FEW, false, false},
    {&laci_number_f32, MANY, false, false},
    {&laci_number_f32, MANY, true, false},
    {&laci_number_f32, MANY, true, true},
    {&laci_number_f64, FEW, false, false},
    {&laci_number_f64, MANY, false, false},
    {&laci_number_f64, MANY, true, true},
    {&laci_number_max, FEW, false, false},
    {&laci_number_max, MANY, false, false},
};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

// What all workers sum: 1 + rank, except one number of each.
typedef struct job {
    const sum_kind *kind;
    bool expects_finite;
    size_t at; // of that number
    double special[WORKERS_MAX];
    double rows[WORKERS_MAX][MANY]; // numbers of the type
} job;

static job shared;

static void load_row(void *context, size_t at, size_t n, void *x_out)
{
    const size_t size = shared.kind->type->size;
    memcpy(x_out, (uint8_t *)context + at * size, n * size);
}

static void store_row(void *context, size_t at, size_t n, const void *sums)
{
    const size_t size = shared.kind->type->size;
    memcpy((uint8_t *)context + at * size, sums, n * size);
}

static void fill_row(uint32_t rank, bool special)
{
    const laci_number *const type = shared.kind->type;
    for (size_t i = 0; i < shared.kind->n; i++) {
        type->write(shared.rows[rank], i, 1 + rank);
    }
    if (special) {
        type->write(shared.rows[rank], shared.at, shared.special[rank]);
    }
}

static lac_status sum_row(test_worker *w)
{
    const sum_kind *const kind = shared.kind;
    void *const x = shared.rows[w->rank];
    const laci_number_stream stream = {kind->type, x, load_row, store_row};
    (void)laci_group_expect_finite(w->group, shared.expects_finite);
    lie_size = kind->type->size;
    float note = 0;
    const lac_status status =
        kind->streams
            ? laci_group_sum_stream(w->group, ROUND, 0, &stream, kind->n, &note)
        : kind->type == &laci_number_max
            ? laci_group_max(w->group, ROUND, 0, x, kind->n, 0)
            : laci_group_sum_numbers(
                  w->group, ROUND, 0, kind->type, x, kind->n);
    lie_size = 0;
    return status;
}

// A worker that is far from the lie may complete the sum; the failure reaches
// it in the next call.
static lac_status sum_until_it_fails(test_worker *w)
{
    laci_reader readers[WORKERS_MAX];
    fill_row(w->rank, false);
    LAC_TRY(sum_row(w));
    return laci_group_gather(w->group, ROUND + 1, 0, readers);
}

// Runs the kind and returns whether there was such a message.
static bool lie_in(uint32_t world, uint32_t rank, size_t message)
{
    test_worker workers[WORKERS_MAX];
    group_run run = {
        .world = world,
        .options = &default_options,
        .odd = LAC_RANK_ANY,
        .body = sum_until_it_fails,
    };
    char expected[100];
    (void)snprintf(
        expected, sizeof(expected),
        "worker %u sent a value in a sum that is not finite", rank);
    prepare_lie(rank, message);
    run_groups(&run, workers);
    for (uint32_t k = 0; k < world; k++) {
        const bool named = strstr(workers[k].message, expected) != NULL;
        if (lie_was_told() ? !named : workers[k].status != LAC_OK) {
            print_error(
                "world %u, message %zu of worker %u, worker %u: \"%s\"\n",
                world, message, rank, k, workers[k].message);
            fail();
        }
    }
    return lie_was_told();
}

static void whoever_sends_a_nonfinite_value_is_named(void **state)
{
    (void)state;
    shared.expects_finite = true;
    for (size_t i = 0; i < KINDS; i++) {
        shared.kind = &kinds[i];
        asked = kinds[i].ahead ? PIECE * kinds[i].type->size : 0;
        for (uint32_t world = 2; world <= 5; world++) {
            for (uint32_t rank = 0; rank < world; rank++) {
                size_t message = 0;
                while (lie_in(world, rank, message)) {
                    message++;
                }
                assert_true(message > 0);
            }
        }
    }
    before_exchange = NULL;
}

// Sums with the special numbers, then without: the group is not closed.
static lac_status expect_overflow(test_worker *w)
{
    const sum_kind *const kind = shared.kind;
    const void *const x = shared.rows[w->rank];
    const double sum = w->world * (w->world + 1) / 2.0;
    for (int special = 1; special >= 0; special--) {
        fill_row(w->rank, special != 0);
        LAC_TRY(sum_row(w));
        EXPECT(
            laci_group_nonfinite(w->group) ==
            (special != 0 ? shared.at : SIZE_MAX));
        for (size_t i = 0; i < kind->n; i++) {
            const double found = kind->type->read(x, i);
            EXPECT(
                special != 0 && i == shared.at ? isnan(found) : found == sum);
        }
    }
    return LAC_OK;
}

static double largest_of(const laci_number *type)
{
    return type == &laci_number_f64 ? DBL_MAX : (double)FLT_MAX;
}

// In the first addition, in one of partial sums, in one that others would
// cancel, and in what a worker computed before.
static void set_special(uint32_t world, size_t what)
{
    const double most = largest_of(shared.kind->type);
    for (uint32_t k = 0; k < world; k++) {
        const double cancelled = k < world / 2 ? most : -most;
        shared.special[k] = what == 0   ? most
                            : what == 1 ? most / (world - 1)
                            : what == 2 ? (world < 4 ? most : cancelled)
                            : k == 1    ? (double)-INFINITY
                                        : 1;
    }
}

static void an_overflow_accuses_nobody(void **state)
{
    (void)state;
    shared.expects_finite = true;
    for (size_t i = 0; i < KINDS; i++) {
        shared.kind = &kinds[i];
        asked = kinds[i].ahead ? PIECE * kinds[i].type->size : 0;
        for (uint32_t world = 2;
             kinds[i].type != &laci_number_max && world <= 5; world++) {
            for (size_t what = 0; what < 4; what++) {
                shared.at = (what * kinds[i].n / 4) + MIDDLE / 3;
                set_special(world, what);
                run_all(world, expect_overflow, NULL);
                for (uint32_t k = 1; k < world; k++) {
                    assert_memory_equal(
                        shared.rows[0], shared.rows[k],
                        kinds[i].n * kinds[i].type->size);
                }
            }
        }
    }
}

// Without the expectation, sums are those of IEEE 754.
static lac_status expect_infinity(test_worker *w)
{
    const void *const x = shared.rows[w->rank];
    fill_row(w->rank, true);
    LAC_TRY(sum_row(w));
    EXPECT(laci_group_nonfinite(w->group) == shared.at);
    EXPECT(isinf(shared.kind->type->read(x, shared.at)));
    return LAC_OK;
}

static void infinities_pass_where_they_are_expected(void **state)
{
    (void)state;
    shared.expects_finite = false;
    shared.at = MIDDLE;
    for (size_t i = 0; i < KINDS; i++) {
        shared.kind = &kinds[i];
        asked = kinds[i].ahead ? PIECE * kinds[i].type->size : 0;
        for (uint32_t world = 2; world <= 5; world++) {
            for (uint32_t k = 0; k < world; k++) {
                shared.special[k] = k == 1 ? (double)INFINITY : 1;
            }
            run_all(world, expect_infinity, NULL);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_sends_a_nonfinite_value_is_named),
        cmocka_unit_test(an_overflow_accuses_nobody),
        cmocka_unit_test(infinities_pass_where_they_are_expected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
