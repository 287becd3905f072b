// SPDX-License-Identifier: MIT
// Messages between threads: with neighbours, with everybody, from one to all.
#include "groups.h"

#include <stdlib.h>

#include "collective/frame.h"
#include "exchanges.h"

enum { ROUNDS = 5, LENGTH = 8 };

// The payload that `from` writes for `to` in a round: its length and bytes
// distinguish them.
static size_t fill(uint32_t from, uint32_t to, uint64_t round, uint8_t *out)
{
    const size_t len = (size_t)round + (size_t)40 * from + (size_t)3 * to;
    for (size_t i = 0; i < len; i++) {
        out[i] = (uint8_t)(i + round * 3 + (size_t)31 * from + (size_t)7 * to);
    }
    return len;
}

static void write_payload(
    laci_writer *m, uint32_t from, uint32_t to, uint64_t round)
{
    laci_writer_commit(m, fill(from, to, round, laci_writer_room(m, 500)));
}

static lac_status expect_payload(
    laci_reader *r, uint32_t from, uint32_t to, uint64_t round)
{
    uint8_t expected[500];
    const size_t len = fill(from, to, round, expected);
    const uint8_t *payload;
    size_t found;
    LAC_TRY(laci_reader_next(r, &payload, &found));
    EXPECT(found == len);
    EXPECT(found == len && memcmp(payload, expected, len) == 0);
    EXPECT(r->peer == from);
    return LAC_OK;
}

// The message of send_to_ring.
static lac_status expect_news(laci_reader *r, uint64_t round)
{
    const uint8_t *bytes;
    size_t len;
    LAC_TRY(expect_payload(r, r->peer, 0, round));
    LAC_TRY(laci_reader_next(r, &bytes, &len));
    EXPECT(len == 1 && bytes[0] == 5);
    LAC_TRY(laci_reader_next(r, &bytes, &len));
    EXPECT(len == 0);
    return laci_reader_done(r);
}

static lac_status expect_pair(laci_reader *r, uint64_t round)
{
    LAC_TRY(expect_payload(r, r->peer, 0, round));
    LAC_TRY(expect_payload(r, r->peer, 1, round));
    return laci_reader_done(r);
}

static lac_status send_to_ring(test_worker *w)
{
    lac_edge peers[2];
    laci_reader readers[2];
    const uint32_t count = ring_peers(w, peers);
    uint64_t payload = 0;
    uint64_t wire = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint8_t unused[500];
        laci_writer *const m = laci_group_message(w->group, 0);
        write_payload(m, w->rank, 0, round);
        laci_writer_note(m, "\x05", 1);
        laci_writer_commit(m, 0);
        LAC_TRY(laci_group_exchange(
            w->group, round, 3, peers, count, true, readers));
        for (uint32_t i = 0; i < count; i++) {
            EXPECT(readers[i].peer == peers[i].peer);
            EXPECT(expect_news(&readers[i], round) == LAC_OK);
        }
        const size_t len = fill(w->rank, 0, round, unused);
        payload += count * len;
        wire += count * (LACI_FRAME_SIZE + 3 * LENGTH + len + 1);
    }
    const laci_counts *const counts = laci_group_counts(w->group);
    EXPECT(counts->payload == payload);
    EXPECT(counts->wire == wire);
    EXPECT(counts->messages == (uint64_t)ROUNDS * count);
    return LAC_OK;
}

static void neighbours_hear_the_same_message(void **state)
{
    (void)state;
    for (size_t i = 0; i < WORLD_COUNT; i++) {
        run_all(worlds[i], send_to_ring, NULL);
    }
}

static lac_status send_to_each(test_worker *w)
{
    lac_edge peers[2];
    laci_reader readers[2];
    const uint32_t count = ring_peers(w, peers);
    uint64_t payload = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < count; i++) {
            uint8_t unused[500];
            laci_writer *const m = laci_group_message(w->group, i);
            write_payload(m, w->rank, peers[i].peer, round);
            payload += fill(w->rank, peers[i].peer, round, unused);
        }
        LAC_TRY(laci_group_exchange(
            w->group, round, 0, peers, count, false, readers));
        for (uint32_t i = 0; i < count; i++) {
            laci_reader *const r = &readers[i];
            const uint32_t from = peers[i].peer;
            EXPECT(expect_payload(r, from, w->rank, round) == LAC_OK);
            EXPECT(laci_reader_done(r) == LAC_OK);
        }
    }
    EXPECT(laci_group_counts(w->group)->payload == payload);
    EXPECT(laci_group_counts(w->group)->messages == (uint64_t)ROUNDS * count);
    return LAC_OK;
}

static void each_neighbour_hears_its_own_message(void **state)
{
    (void)state;
    for (size_t i = 0; i < WORLD_COUNT; i++) {
        run_all(worlds[i], send_to_each, NULL);
    }
}

// What is still to be read must survive the writing of the next message.
static lac_status read_late(test_worker *w)
{
    lac_edge peers[2];
    laci_reader readers[2];
    const uint32_t count = ring_peers(w, peers);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        if (round == 0) {
            write_payload(laci_group_message(w->group, 0), w->rank, 0, 0);
        }
        LAC_TRY(laci_group_exchange(
            w->group, round, 0, peers, count, true, readers));
        write_payload(laci_group_message(w->group, 0), w->rank, 0, round + 1);
        for (uint32_t i = 0; i < count; i++) {
            const uint32_t from = peers[i].peer;
            EXPECT(expect_payload(&readers[i], from, 0, round) == LAC_OK);
        }
    }
    return LAC_OK;
}

static void the_next_message_does_not_touch_the_last(void **state)
{
    (void)state;
    for (size_t i = 0; i < WORLD_COUNT; i++) {
        run_all(worlds[i], read_late, NULL);
    }
}

static lac_status send_nothing(test_worker *w)
{
    lac_edge peers[2];
    laci_reader readers[WORKERS_MAX];
    const uint32_t count = ring_peers(w, peers);
    write_payload(laci_group_message(w->group, 0), w->rank, 0, 0);
    (void)laci_group_message(w->group, 0); // begun again, so empty
    LAC_TRY(laci_group_exchange(w->group, 0, 0, peers, count, true, readers));
    for (uint32_t i = 0; i < count; i++) {
        LAC_TRY(laci_reader_done(&readers[i]));
    }
    LAC_TRY(laci_group_exchange(w->group, 0, 1, peers, 0, true, readers));
    LAC_TRY(laci_group_gather(w->group, 0, 2, readers)); // never asked for
    for (uint32_t i = 0; i < w->world; i++) {
        LAC_TRY(laci_reader_done(&readers[i]));
    }
    const laci_counts *const counts = laci_group_counts(w->group);
    EXPECT(counts->payload == 0);
    EXPECT(counts->messages == count + (w->world > 1));
    EXPECT(counts->wire == counts->messages * LACI_FRAME_SIZE);
    return LAC_OK;
}

static void messages_may_be_empty(void **state)
{
    (void)state;
    for (size_t i = 0; i < WORLD_COUNT; i++) {
        run_all(worlds[i], send_nothing, NULL);
    }
}

static lac_status gather_payloads(test_worker *w)
{
    laci_reader readers[WORKERS_MAX];
    uint64_t payload = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint8_t unused[500];
        laci_writer *const m = laci_group_message(w->group, 0);
        write_payload(m, w->rank, 0, round);
        write_payload(m, w->rank, 1, round);
        LAC_TRY(laci_group_gather(w->group, round, 0, readers));
        (void)laci_group_message(w->group, 0); // the own one is still there
        for (uint32_t i = 0; i < w->world; i++) {
            EXPECT(readers[i].peer == i);
            EXPECT(expect_pair(&readers[i], round) == LAC_OK);
        }
        payload += fill(w->rank, 0, round, unused);
        payload += fill(w->rank, 1, round, unused);
    }
    const laci_counts *const counts = laci_group_counts(w->group);
    const uint64_t times = w->world > 1 ? ROUNDS : 0;
    EXPECT(counts->payload == (times > 0 ? payload : 0));
    EXPECT(counts->messages == times);
    EXPECT(
        counts->wire ==
        counts->payload + times * (LACI_FRAME_SIZE + 2 * LENGTH));
    return LAC_OK;
}

static void all_hear_all_and_it_counts_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < WORLD_COUNT; i++) {
        run_all(worlds[i], gather_payloads, NULL);
    }
}

// Longer than what goes down the tree at once, too.
static lac_status broadcast_lengths(test_worker *w)
{
    static const size_t lengths[] = {0, 1, 1000, 3 * 1024 * 1024 + 5};
    uint8_t *const bytes = malloc(lengths[3]);
    lac_status status = bytes == NULL ? LAC_ERR_NOMEM : LAC_OK;
    uint64_t wire = 0;
    for (uint32_t root = 0; root < w->world && status == LAC_OK; root++) {
        for (uint32_t k = 0; k < 4 && status == LAC_OK; k++) {
            const size_t len = lengths[k];
            memset(bytes, w->rank == root ? (int)(root + 1) : 0, lengths[3]);
            status = laci_group_broadcast(
                w->group, root, k, root, len == 0 ? NULL : bytes, len);
            EXPECT(len == 0 || bytes[0] == root + 1);
            EXPECT(len == 0 || bytes[len / 2] == root + 1);
            EXPECT(len == 0 || bytes[len - 1] == root + 1);
            wire += w->rank == root ? LACI_FRAME_SIZE + len : 0;
        }
    }
    free(bytes);
    EXPECT(laci_group_counts(w->group)->payload == 0);
    EXPECT(laci_group_counts(w->group)->wire == (w->world == 1 ? 0 : wire));
    return status;
}

static void a_broadcast_reaches_all_from_any_root(void **state)
{
    (void)state;
    for (size_t i = 0; i < WORLD_COUNT; i++) {
        run_all(worlds[i], broadcast_lengths, NULL);
    }
}

static lac_status a_bit_of_everything(test_worker *w)
{
    static _Thread_local float x[6000];
    double y[2] = {0};
    laci_reader readers[WORKERS_MAX];
    const size_t before = test_thread_allocations;
    LAC_TRY(send_to_ring(w));
    for (uint64_t round = 10; round < 20; round++) {
        write_payload(laci_group_message(w->group, 0), w->rank, 0, round);
        LAC_TRY(laci_group_gather(w->group, round, 0, readers));
        LAC_TRY(laci_group_sum(w->group, round, 1, x, 6000, 0));
        LAC_TRY(laci_group_sum_f64(w->group, round, 2, y, 2));
        LAC_TRY(laci_group_broadcast(w->group, round, 3, 1, x, sizeof(x)));
    }
    EXPECT(test_thread_allocations - before == transport_allocations);
    return LAC_OK;
}

static void a_group_allocates_nothing_after_open(void **state)
{
    (void)state;
    run_all(5, a_bit_of_everything, NULL);
}

static void open_refuses_what_cannot_be(void **state)
{
    (void)state;
    lac_hub *hub;
    lac_transport *t;
    assert_ok(lac_hub_open(&hub, 1));
    assert_ok(lac_transport_join(&t, "local", hub, 0, 1));
    laci_group_options options = default_options;
    laci_group *g = (void *)&options;
    options.transport = t;
    options.timeout = 0;
    assert_fails(
        laci_group_open(&g, &options), LAC_ERR_INVALID,
        "group: the timeout is 0 s, expected more than 0");
    assert_null(g);
    options.timeout = 1;
    options.message_max = SIZE_MAX - 100;
    assert_status(laci_group_open(&g, &options), LAC_ERR_NOMEM);
    options.message_max = SIZE_MAX / 4;
    assert_status(laci_group_open(&g, &options), LAC_ERR_NOMEM);
    options = default_options;
    options.transport = t;
    test_allocations_left = 0;
    assert_status(laci_group_open(&g, &options), LAC_ERR_NOMEM);
    test_allocations_left = -1;
    lac_transport_leave(t);
    laci_group_close(NULL);
    lac_hub_close(hub);
}

static void a_message_that_does_not_add_up_is_corrupt(void **state)
{
    (void)state;
    static const uint8_t body[] = {2, 0, 0, 0, 0, 0, 0, 0, 7, 9,
                                   3, 0, 0, 0, 0, 0, 0, 0, 1, 2};
    laci_reader r = {.next = body, .end = body + sizeof(body), .peer = 4};
    const uint8_t *payload = NULL;
    size_t len = 0;
    assert_ok(laci_reader_next(&r, &payload, &len));
    assert_int_equal(len, 2);
    assert_ptr_equal(payload, body + 8);
    assert_fails(
        laci_reader_done(&r), LAC_ERR_CORRUPT,
        "message from worker 4: 10 bytes after the last of 1 payloads");
    assert_fails(
        laci_reader_next(&r, &payload, &len), LAC_ERR_CORRUPT,
        "message from worker 4: payload 1 has 3 bytes, 2 are left");
    r.end -= 3;
    assert_fails(
        laci_reader_next(&r, &payload, &len), LAC_ERR_CORRUPT,
        "message from worker 4: payload 1 is missing, 7 bytes are left");
    assert_int_equal(len, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_hear_the_same_message),
        cmocka_unit_test(each_neighbour_hears_its_own_message),
        cmocka_unit_test(the_next_message_does_not_touch_the_last),
        cmocka_unit_test(messages_may_be_empty),
        cmocka_unit_test(all_hear_all_and_it_counts_once),
        cmocka_unit_test(a_broadcast_reaches_all_from_any_root),
        cmocka_unit_test(a_group_allocates_nothing_after_open),
        cmocka_unit_test(open_refuses_what_cannot_be),
        cmocka_unit_test(a_message_that_does_not_add_up_is_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
