// SPDX-License-Identifier: MIT
// One exchange of frames. All messages of a group carry the same tag, so they
// arrive in the order they were sent: a worker that is in another round or call
// is detected by its next frame, not by a timeout.
#include "collective/wire.h"

#include <assert.h>
#include <inttypes.h>

#include "base/fail.h"

enum { TAG = 0 };

lac_status laci_wire_start(laci_group *g, uint64_t round, uint32_t phase)
{
    if (g->failure != LAC_OK) {
        return lac_fail(g->failure, "%s", g->why);
    }
    g->frame.round = round;
    g->frame.phase = phase;
    g->frame.step = 0;
    g->send_count = 0;
    g->receive_count = 0;
    return LAC_OK;
}

void laci_wire_frame(
    const laci_group *g, uint8_t *message, size_t len, uint32_t receiver)
{
    laci_frame frame = g->frame;
    frame.receiver = receiver;
    laci_frame_write(&frame, message, len);
}

void laci_wire_send(
    laci_group *g, uint32_t peer, const uint8_t *message, size_t len)
{
    assert(g->send_count < g->fan);
    g->sends[g->send_count++] = (lac_send){
        .peer = peer,
        .tag = TAG,
        .data = message,
        .len = LACI_FRAME_SIZE + len,
    };
}

void laci_wire_receive(laci_group *g, uint32_t peer)
{
    assert(g->receive_count < g->fan);
    g->steps[g->receive_count] = g->frame.step;
    g->receives[g->receive_count++] =
        (lac_receive){.peer = peer, .tag = TAG, .cap = g->longest};
}

static lac_status check_frames(const laci_group *g)
{
    laci_frame expected = g->frame;
    expected.receiver = g->rank;
    for (uint32_t i = 0; i < g->receive_count; i++) {
        const lac_receive *const r = &g->receives[i];
        const uint8_t *body;
        size_t len;
        expected.sender = r->peer;
        expected.step = g->steps[i];
        LAC_TRY(laci_frame_check(&expected, r->data, r->len, &body, &len));
    }
    return LAC_OK;
}

void laci_wire_flip(laci_group *g)
{
    if (g->current == LACI_SET_AFTER_FAILURE) {
        return;
    }
    g->current ^= 1;
    laci_set *const set = &g->sets[g->current];
    for (uint32_t i = 0; i < g->slots; i++) {
        set->writers[i].len = 0;
        set->writers[i].payload = 0;
    }
}

void laci_wire_waited(laci_group *g, double start)
{
    if (g->timing) {
        g->waited += lac_transport_now(g->transport) - start;
    }
}

lac_status laci_wire_run(laci_group *g)
{
    const double start = lac_transport_now(g->transport);
    laci_transport_lend(g->transport, &g->deferred);
    lac_status status = lac_transport_exchange(
        g->transport, g->sends, g->send_count, g->receives, g->receive_count,
        start + g->timeout);
    laci_wire_waited(g, start);
    if (status == LAC_OK) {
        status = check_frames(g);
    }
    LAC_TRY(laci_group_abort_on_failure(g, status));
    g->frame.step++;
    g->send_count = 0;
    g->receive_count = 0;
    laci_wire_flip(g);
    return LAC_OK;
}

size_t laci_wire_body(const laci_group *g, uint32_t i, const uint8_t **body_out)
{
    *body_out = (const uint8_t *)g->receives[i].data + LACI_FRAME_SIZE;
    return g->receives[i].len - LACI_FRAME_SIZE;
}

lac_status laci_wire_expect(
    laci_group *g, uint32_t i, size_t len, const uint8_t **body_out)
{
    const size_t found = laci_wire_body(g, i, body_out);
    if (found == len) {
        return LAC_OK;
    }
    return laci_group_abort_on_failure(
        g, lac_fail(
               LAC_ERR_PEER,
               "frame from worker %" PRIu32
               ": body has %zu bytes, worker %" PRIu32 " expected %zu",
               g->receives[i].peer, found, g->rank, len));
}

void laci_wire_count(laci_group *g, size_t payload, size_t body)
{
    g->counts.payload += payload;
    g->counts.wire += LACI_FRAME_SIZE + body;
    g->counts.messages++;
}
