// SPDX-License-Identifier: MIT
// The body of a message: each payload after its length of 8 bytes,
// little-endian, and nothing between or after them. Their number is not sent:
// both ends know it.
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/bytes.h"
#include "collective/wire.h"

laci_writer *laci_group_writer(laci_group *g, uint32_t slot)
{
    assert(slot < g->slots);
    return &g->sets[g->current].writers[slot];
}

laci_writer *laci_group_message(laci_group *g, uint32_t slot)
{
    laci_writer *const w = laci_group_writer(g, slot);
    w->len = 0;
    w->payload = 0;
    return w;
}

uint8_t *laci_writer_room(laci_writer *w, size_t bound)
{
    assert(bound <= w->cap && w->len + LACI_LENGTH_SIZE <= w->cap - bound);
    (void)bound;
    return w->message + LACI_FRAME_SIZE + w->len + LACI_LENGTH_SIZE;
}

static void append(laci_writer *w, size_t len)
{
    assert(len <= w->cap && w->len + LACI_LENGTH_SIZE <= w->cap - len);
    laci_put_u64(w->message + LACI_FRAME_SIZE + w->len, len);
    w->len += LACI_LENGTH_SIZE + len;
}

void laci_writer_commit(laci_writer *w, size_t len)
{
    append(w, len);
    w->payload += len;
}

void laci_writer_note(laci_writer *w, const void *bytes, size_t len)
{
    if (len > 0) {
        memcpy(laci_writer_room(w, len), bytes, len);
    }
    append(w, len);
}

lac_status laci_reader_next(
    laci_reader *r, const uint8_t **payload_out, size_t *len_out)
{
    const size_t left = (size_t)(r->end - r->next);
    if (left < LACI_LENGTH_SIZE) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "message from worker %" PRIu32 ": payload %" PRIu32
            " is missing, %zu bytes are left",
            r->peer, r->taken, left);
    }
    const uint64_t len = laci_get_u64(r->next);
    if (len > left - LACI_LENGTH_SIZE) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "message from worker %" PRIu32 ": payload %" PRIu32 " has %" PRIu64
            " bytes, %zu are left",
            r->peer, r->taken, len, left - LACI_LENGTH_SIZE);
    }
    *payload_out = r->next + LACI_LENGTH_SIZE;
    *len_out = (size_t)len;
    r->next += LACI_LENGTH_SIZE + len;
    r->taken++;
    return LAC_OK;
}

bool laci_reader_at_empty(const laci_reader *r)
{
    return (size_t)(r->end - r->next) >= LACI_LENGTH_SIZE &&
           laci_get_u64(r->next) == 0;
}

lac_status laci_reader_done(const laci_reader *r)
{
    if (r->next == r->end) {
        return LAC_OK;
    }
    return lac_fail(
        LAC_ERR_CORRUPT,
        "message from worker %" PRIu32 ": %zu bytes after the last of %" PRIu32
        " payloads",
        r->peer, (size_t)(r->end - r->next), r->taken);
}
