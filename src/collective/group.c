// SPDX-License-Identifier: MIT
// Opening a group: one block holds the handle, the lists for the transport,
// the floats for sums and all sets of messages, each message at a multiple of
// 64 bytes so that its body is aligned too. Pages that no message reaches are
// never touched.
#include "collective/group.h"

#include <math.h>
#include <stdio.h>

#include <xxhash.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/fail.h"
#include "collective/wire.h"

// The offsets of the parts of the block, and its size.
typedef struct plan {
    uint32_t fan;
    uint32_t slots;
    size_t body; // room in a message
    laci_sum_rules rules;
    size_t sends_at;
    size_t receives_at;
    size_t steps_at;
    size_t partial_at;
    size_t inbox_at;
    size_t floats_at;
    size_t writers_at[LACI_SET_COUNT];
    size_t messages_at[LACI_SET_COUNT];
    size_t scratch_at[LACI_SET_COUNT];
    size_t total;
} plan;

// Adds `count` parts of `size` bytes, each aligned, to the plan. Returns false
// on overflow.
static bool take(plan *p, size_t count, size_t size, size_t *at_out)
{
    size_t bytes;
    *at_out = p->total;
    return size <= SIZE_MAX - LACI_ALIGNMENT &&
           laci_mul(count, laci_aligned(size), &bytes) &&
           laci_add(p->total, bytes, &p->total);
}

// The bytes of a piece that the transport asks for, or 0.
static size_t asked_piece(const laci_group_options *options)
{
    if (options->transport != NULL) {
        return laci_transport_sum_piece(options->transport);
    }
    return options->like == NULL ? 0 : options->like->sum_piece;
}

static bool has_allreduce(const laci_group_options *options)
{
    if (options->transport != NULL) {
        return laci_transport_has_allreduce(options->transport);
    }
    return options->like != NULL && options->like->allreduce_sum != NULL;
}

// The bytes of the largest piece of a sum. Pieces of whole cache lines leave
// every piece as aligned as the first.
static size_t largest_piece(const laci_group_options *options)
{
    const size_t asked = asked_piece(options);
    const size_t whole =
        asked == 0 ? LACI_SUM_PIECE : asked - asked % LACI_ALIGNMENT;
    const size_t most = whole / sizeof(float);
    const size_t n = options->sum_max < most ? options->sum_max : most;
    return n * sizeof(float);
}

laci_sum_rules laci_sum_rules_make(
    const laci_group_options *options, uint32_t world)
{
    const size_t piece = largest_piece(options);
    return (laci_sum_rules){
        .world = world,
        .piece = piece < LACI_SUM_SMALL ? LACI_SUM_SMALL : piece,
        .ahead = asked_piece(options) > 0,
        .native = options->native_sums && has_allreduce(options),
    };
}

// The blocks of partial sums that wait for their other half, and the next one.
static size_t stack_depth(uint32_t world)
{
    size_t depth = 1;
    for (; world > 1; world /= 2) {
        depth++;
    }
    return depth;
}

// The stack, and one block of this worker's values.
static size_t stack_size(uint32_t world)
{
    return (stack_depth(world) + 1) * LACI_SUM_BLOCK_SIZE;
}

// A whole piece in one message, or its shares in as many as there can be: with
// pieces sent ahead these are the shares of the others, and the sum of the own
// share of an earlier piece.
static size_t scratch_size(size_t piece)
{
    const size_t shares = piece / LACI_SUM_SHARE;
    return piece + shares * 2 * LACI_ALIGNMENT + LACI_FRAME_SIZE;
}

static bool needs_inbox(uint32_t world)
{
    return (world & (world - 1)) != 0;
}

static size_t inbox_size(const plan *p, uint32_t world)
{
    return needs_inbox(world) ? LACI_FRAME_SIZE + p->rules.piece : 0;
}

static bool make_plan(
    const laci_group_options *options, uint32_t world, plan *p)
{
    size_t lengths, floats;
    *p = (plan){.total = laci_aligned(sizeof(laci_group))};
    p->rules = laci_sum_rules_make(options, world);
    p->fan = p->rules.ahead ? 2 * world : world;
    p->fan = options->peers_max < p->fan ? p->fan : options->peers_max;
    p->slots =
        options->messages_max > 0 ? options->messages_max : options->peers_max;
    p->slots += p->slots == 0; // a gather needs one
    bool fits = laci_mul(options->tensors_max, LACI_LENGTH_SIZE, &lengths) &&
                laci_add(options->message_max, lengths, &p->body) &&
                p->body <= SIZE_MAX - LACI_FRAME_SIZE &&
                take(p, p->fan, sizeof(lac_send), &p->sends_at) &&
                take(p, p->fan, sizeof(lac_receive), &p->receives_at) &&
                take(p, 1, p->fan * sizeof(uint16_t), &p->steps_at) &&
                take(p, 1, stack_size(world), &p->partial_at) &&
                take(p, 1, inbox_size(p, world), &p->inbox_at) &&
                laci_mul(options->floats, sizeof(float), &floats) &&
                take(p, 1, floats, &p->floats_at);
    for (int i = 0; fits && i < LACI_SET_COUNT; i++) {
        fits =
            take(p, p->slots, sizeof(laci_writer), &p->writers_at[i]) &&
            take(p, p->slots, LACI_FRAME_SIZE + p->body, &p->messages_at[i]) &&
            take(
                p, 1,
                i == LACI_SET_AFTER_FAILURE ? 0 : scratch_size(p->rules.piece),
                &p->scratch_at[i]);
    }
    return fits;
}

// No worker of the group sends more than this one would. The reserve lets in
// the message of a worker that runs something else, so that its frame is
// checked and the worker is named with what differs.
static size_t longest_message(const plan *p)
{
    const size_t reserve = (size_t)64 << 20;
    const size_t piece = p->rules.piece;
    const size_t larger = p->body > piece ? p->body : piece;
    return larger > SIZE_MAX / 8 ? 0 : 4 * larger + reserve;
}

static void lay_out(laci_group *g, const plan *p)
{
    uint8_t *const block = (uint8_t *)g;
    const size_t stride = laci_aligned(LACI_FRAME_SIZE + p->body);
    g->fan = p->fan;
    g->slots = p->slots;
    g->longest = longest_message(p);
    g->rules = p->rules;
    g->sends = (void *)(block + p->sends_at);
    g->receives = (void *)(block + p->receives_at);
    g->steps = (void *)(block + p->steps_at);
    g->partial = block + p->partial_at;
    g->own =
        block + p->partial_at + stack_depth(g->world) * LACI_SUM_BLOCK_SIZE;
    g->inbox = needs_inbox(g->world) ? block + p->inbox_at : NULL;
    g->floats = (void *)(block + p->floats_at);
    for (int i = 0; i < LACI_SET_COUNT; i++) {
        laci_set *const set = &g->sets[i];
        set->writers = (void *)(block + p->writers_at[i]);
        set->scratch = block + p->scratch_at[i];
        for (uint32_t k = 0; k < p->slots; k++) {
            set->writers[k].message = block + p->messages_at[i] + k * stride;
            set->writers[k].cap = p->body;
        }
    }
}

lac_status laci_group_open(laci_group **out, const laci_group_options *options)
{
    *out = NULL;
    if (isnan(options->timeout) || options->timeout <= 0) {
        return lac_fail(
            LAC_ERR_INVALID, "group: the timeout is %g s, expected more than 0",
            options->timeout);
    }
    plan p;
    const uint32_t world = lac_transport_world(options->transport);
    laci_group *const g =
        make_plan(options, world, &p) ? laci_zalloc_aligned(p.total) : NULL;
    if (g == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM,
            "group: no memory for 3 sets of %u messages, each of %zu bytes and "
            "%zu payloads",
            p.slots, options->message_max, options->tensors_max);
    }
    g->transport = options->transport;
    g->kernels = laci_kernels_best();
    g->rank = lac_transport_rank(options->transport);
    g->world = world;
    g->timeout = options->timeout;
    g->timing = options->timing;
    g->nonfinite = SIZE_MAX;
    g->pace.slow = true; // until the first sum is measured
    g->frame = (laci_frame){
        .session = options->session,
        .identity = options->identity,
        .sender = g->rank,
        .intact = laci_transport_is_intact(options->transport),
    };
    lay_out(g, &p);
    g->identity = options->identity;
    laci_transport_expect_block(g->transport);
    *out = g;
    return LAC_OK;
}

void laci_group_subject(laci_group *g, uint64_t subject)
{
    uint8_t source[16];
    laci_put_u64(source, g->identity);
    laci_put_u64(source + 8, subject);
    g->frame.identity = XXH3_64bits(source, sizeof(source));
}

double laci_group_set_timeout(laci_group *g, double seconds)
{
    const double before = g->timeout;
    g->timeout = seconds;
    return before;
}

bool laci_group_expect_finite(laci_group *g, bool expected)
{
    const bool before = g->expects_finite;
    g->expects_finite = expected;
    return before;
}

size_t laci_group_nonfinite(const laci_group *g)
{
    return g->nonfinite;
}

void laci_group_close(laci_group *g)
{
    if (g != NULL) {
        laci_transport_release(g->transport, &g->deferred);
    }
}

float *laci_group_floats(laci_group *g)
{
    return g->floats;
}

// The scratch of two sets, and the stack of large sums.
size_t laci_group_sum_bytes(const laci_group_options *options, uint32_t world)
{
    const size_t size = largest_piece(options);
    const size_t stack = size <= LACI_SUM_SMALL ? 0 : stack_size(world);
    return world == 1 ? 0 : 2 * size + stack;
}

// As laci_group_streams, for floats.
size_t laci_group_copied(const laci_group_options *options, uint32_t world)
{
    const laci_sum_rules rules = laci_sum_rules_make(options, world);
    const bool streams = world > 1 && rules.ahead && !rules.native &&
                         laci_has_shares(&rules, rules.piece);
    const size_t most = laci_ahead_from(&rules) / sizeof(float);
    return streams && most < options->sum_max ? most : options->sum_max;
}

double laci_group_waited(const laci_group *g)
{
    return g->waited;
}

const laci_counts *laci_group_counts(const laci_group *g)
{
    return &g->counts;
}

lac_status laci_group_abort_on_failure(laci_group *g, lac_status status)
{
    if (status != LAC_OK && g->failure == LAC_OK) {
        g->failure = status;
        (void)snprintf(g->why, sizeof(g->why), "%s", lac_error_message());
        g->current = LACI_SET_AFTER_FAILURE;
        lac_transport_abort(g->transport, g->why);
    }
    return status;
}

void laci_group_abort(laci_group *g, const char *why)
{
    lac_transport_abort(g->transport, why);
}
