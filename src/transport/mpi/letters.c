// SPDX-License-Identifier: MIT
// Letters of an MPI session: sending, taking in, and finding their receive.
#include <string.h>

#include "base/bytes.h"
#include "base/fail.h"
#include "transport/mpi/session.h"

lac_status laci_mpi_check(
    const laci_mpi_session *s, int code, const char *what, uint32_t peer)
{
    if (code == MPI_SUCCESS) {
        return LAC_OK;
    }
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    int length = 0;
    (void)MPI_Error_string(code, text, &length);
    return s->services->fail(
        LAC_ERR_PEER, "worker %u cannot %s worker %u: %.200s", s->rank, what,
        peer, text);
}

// A free letter, or a new one; NULL without memory.
static laci_mpi_letter *obtain(laci_mpi_session *s)
{
    laci_mpi_letter *letter = s->free;
    if (letter == NULL) {
        return s->services->zalloc(sizeof(*letter));
    }
    s->free = letter->next;
    letter->next = NULL;
    letter->arriving = NULL;
    letter->claimed = false;
    letter->request_count = 0;
    return letter;
}

void laci_mpi_recycle(laci_mpi_session *s, laci_mpi_letter *letter)
{
    letter->next = s->free;
    s->free = letter;
}

static lac_status no_memory(const laci_mpi_session *s, size_t len)
{
    return s->services->fail(
        LAC_ERR_NOMEM, "mpi: no memory for a message of %zu bytes", len);
}

// Makes room for a long message, if need be by trading memory with a free
// letter that has enough of it.
static bool reserve_bulk(laci_mpi_session *s, laci_mpi_letter *letter)
{
    if (letter->bulk_cap >= letter->len) {
        return true;
    }
    for (laci_mpi_letter *other = s->free; other; other = other->next) {
        if (other->bulk_cap >= letter->len) {
            uint8_t *const bulk = other->bulk;
            const size_t cap = other->bulk_cap;
            other->bulk = letter->bulk;
            other->bulk_cap = letter->bulk_cap;
            letter->bulk = bulk;
            letter->bulk_cap = cap;
            return true;
        }
    }
    uint8_t *const bulk = s->services->zalloc(letter->len);
    if (bulk == NULL) {
        return false;
    }
    s->services->free(letter->bulk);
    letter->bulk = bulk;
    letter->bulk_cap = letter->len;
    return true;
}

static int piece_size(size_t left)
{
    return (int)(left < LACI_MPI_PIECE ? left : LACI_MPI_PIECE);
}

static lac_status send_pieces(
    laci_mpi_session *s, laci_mpi_letter *letter, const uint8_t *data)
{
    for (size_t sent = 0; sent < letter->len; sent += LACI_MPI_PIECE) {
        const int code = MPI_Isend(
            data + sent, piece_size(letter->len - sent), MPI_BYTE,
            (int)letter->peer, LACI_MPI_BULK_TAG, s->comm,
            &letter->requests[letter->request_count]);
        LAC_TRY(laci_mpi_check(s, code, "send to", letter->peer));
        letter->request_count++;
    }
    return LAC_OK;
}

lac_status laci_mpi_post(
    laci_mpi_session *s, laci_mpi_kind kind, const lac_send *send)
{
    if (send->len > (size_t)LACI_MPI_PIECE * LACI_MPI_PIECES) {
        return s->services->fail(
            LAC_ERR_INVALID,
            "mpi: a message of %zu bytes to worker %u, at most 64 GiB fit",
            send->len, send->peer);
    }
    laci_mpi_letter *const letter = obtain(s);
    if (letter == NULL) {
        return no_memory(s, send->len);
    }
    letter->peer = send->peer;
    letter->len = send->len;
    letter->next = s->sent[s->parity];
    s->sent[s->parity] = letter;
    size_t size = LACI_MPI_HEAD;
    if (send->len > LACI_MPI_INLINE) {
        kind = LACI_MPI_BULK;
    } else if (send->len > 0) {
        memcpy(letter->block + LACI_MPI_HEAD, send->data, send->len);
        size += send->len;
    }
    laci_put_u32(letter->block, kind);
    laci_put_u32(letter->block + 4, send->tag);
    laci_put_u64(letter->block + 8, send->len);
    const int code = MPI_Isend(
        letter->block, (int)size, MPI_BYTE, (int)send->peer, LACI_MPI_HEAD_TAG,
        s->comm, &letter->requests[0]);
    LAC_TRY(laci_mpi_check(s, code, "send to", send->peer));
    letter->request_count = 1;
    return kind == LACI_MPI_BULK ? send_pieces(s, letter, send->data) : LAC_OK;
}

// Tells whether all requests of a letter are done.
static lac_status test(
    const laci_mpi_session *s, laci_mpi_letter *letter, bool *done_out)
{
    int done = 0;
    const int code = MPI_Testall(
        letter->request_count, letter->requests, &done, MPI_STATUSES_IGNORE);
    LAC_TRY(laci_mpi_check(s, code, "talk to", letter->peer));
    *done_out = done != 0;
    letter->request_count = done != 0 ? 0 : letter->request_count;
    return LAC_OK;
}

lac_status laci_mpi_reap(laci_mpi_session *s, unsigned parity)
{
    laci_mpi_letter **link = &s->sent[parity];
    while (*link != NULL) {
        laci_mpi_letter *const letter = *link;
        bool done = false;
        LAC_TRY(test(s, letter, &done));
        if (done) {
            *link = letter->next;
            laci_mpi_recycle(s, letter);
        } else {
            link = &letter->next;
        }
    }
    return LAC_OK;
}

// Gives a letter to receive i. `*into_out` is where a long message should go.
static lac_status give(laci_mpi_session *s, laci_mpi_letter *letter, size_t i)
{
    const lac_receive *const wish = &s->receives[i];
    if (wish->buffer != NULL && letter->len > wish->cap) {
        return s->services->fail(
            LAC_ERR_SPACE,
            "mpi: a message of worker %u has %zu bytes, the buffer of worker "
            "%u holds %zu",
            wish->peer, letter->len, s->rank, wish->cap);
    }
    s->claims[i] = letter;
    letter->claimed = true;
    s->missing -= letter->request_count == 0;
    return LAC_OK;
}

lac_status laci_mpi_claim(laci_mpi_session *s, size_t i)
{
    const lac_receive *const wish = &s->receives[i];
    laci_mpi_peer *const peer = &s->peers[wish->peer];
    laci_mpi_letter *before = NULL, *letter = peer->first;
    while (letter != NULL && letter->tag != wish->tag) {
        before = letter;
        letter = letter->next;
    }
    if (letter == NULL) {
        return LAC_OK;
    }
    if (before == NULL) {
        peer->first = letter->next;
    } else {
        before->next = letter->next;
    }
    if (peer->last == letter) {
        peer->last = before;
    }
    return give(s, letter, i);
}

static void keep_for_later(laci_mpi_session *s, laci_mpi_letter *letter)
{
    laci_mpi_peer *const peer = &s->peers[letter->peer];
    letter->next = NULL;
    if (peer->first == NULL) {
        peer->first = letter;
    } else {
        peer->last->next = letter;
    }
    peer->last = letter;
}

// The receive that waits for such a letter, or receive_count.
static size_t find_receive(
    const laci_mpi_session *s, const laci_mpi_letter *letter)
{
    size_t i = 0;
    while (i < s->receive_count &&
           (s->claims[i] != NULL || s->receives[i].peer != letter->peer ||
            s->receives[i].tag != letter->tag)) {
        i++;
    }
    return i;
}

static lac_status receive_pieces(
    laci_mpi_session *s, laci_mpi_letter *letter, uint8_t *into)
{
    letter->payload = into;
    for (size_t got = 0; got < letter->len; got += LACI_MPI_PIECE) {
        const int code = MPI_Irecv(
            into + got, piece_size(letter->len - got), MPI_BYTE,
            (int)letter->peer, LACI_MPI_BULK_TAG, s->comm,
            &letter->requests[letter->request_count]);
        LAC_TRY(laci_mpi_check(s, code, "receive from", letter->peer));
        letter->request_count++;
    }
    letter->arriving = s->arriving;
    s->arriving = letter;
    return LAC_OK;
}

static lac_status accept_message(
    laci_mpi_session *s, laci_mpi_letter *letter, bool bulk)
{
    const size_t i = find_receive(s, letter);
    const bool wanted = i < s->receive_count;
    letter->payload = letter->block + LACI_MPI_HEAD;
    if (bulk) {
        uint8_t *into = wanted ? s->receives[i].buffer : NULL;
        if (into == NULL || s->receives[i].cap < letter->len) {
            if (!reserve_bulk(s, letter)) {
                return no_memory(s, letter->len);
            }
            into = letter->bulk;
        }
        LAC_TRY(receive_pieces(s, letter, into));
    }
    if (wanted) {
        return give(s, letter, i);
    }
    keep_for_later(s, letter);
    return LAC_OK;
}

// Reads the head of a letter of `size` bytes and does what it says.
static lac_status open_letter(
    laci_mpi_session *s, laci_mpi_letter *letter, size_t size)
{
    const uint32_t kind = laci_get_u32(letter->block);
    const uint64_t len = laci_get_u64(letter->block + 8);
    letter->tag = laci_get_u32(letter->block + 4);
    letter->len = (size_t)len;
    const bool bulk = kind == LACI_MPI_BULK;
    if (size < LACI_MPI_HEAD || kind > LACI_MPI_LEFT ||
        (bulk ? len > (uint64_t)LACI_MPI_PIECE * LACI_MPI_PIECES
              : len != size - LACI_MPI_HEAD)) {
        return s->services->fail(
            LAC_ERR_CORRUPT,
            "mpi: worker %u sent a message of %zu bytes that is none of ours",
            letter->peer, size);
    }
    if (kind != LACI_MPI_GAVE_UP && kind != LACI_MPI_LEFT) {
        return accept_message(s, letter, bulk);
    }
    if (kind == LACI_MPI_LEFT) {
        laci_mpi_hear_goodbye(s, letter);
    } else {
        laci_mpi_hear_sentence(s, letter);
    }
    laci_mpi_recycle(s, letter);
    return LAC_OK;
}

// Begins to take in the next head that has come, if there is one.
static lac_status begin_opening(laci_mpi_session *s)
{
    int there = 0, size = 0;
    MPI_Message message;
    MPI_Status status;
    int code = MPI_Improbe(
        MPI_ANY_SOURCE, LACI_MPI_HEAD_TAG, s->comm, &there, &message, &status);
    LAC_TRY(laci_mpi_check(s, code, "hear", s->rank));
    if (there == 0) {
        return LAC_OK;
    }
    (void)MPI_Get_count(&status, MPI_BYTE, &size);
    laci_mpi_letter *const letter = obtain(s);
    if (letter == NULL) {
        return no_memory(s, (size_t)size);
    }
    letter->peer = (uint32_t)status.MPI_SOURCE;
    letter->len = (size_t)size;
    code = MPI_Imrecv(
        letter->block, (int)sizeof(letter->block), MPI_BYTE, &message,
        &letter->requests[0]);
    LAC_TRY(laci_mpi_check(s, code, "receive from", letter->peer));
    letter->request_count = 1;
    s->opening = letter;
    return LAC_OK;
}

static lac_status advance_arriving(laci_mpi_session *s)
{
    laci_mpi_letter **link = &s->arriving;
    while (*link != NULL) {
        laci_mpi_letter *const letter = *link;
        bool done = false;
        LAC_TRY(test(s, letter, &done));
        if (done) {
            *link = letter->arriving;
            s->missing -= letter->claimed;
            s->idle_since = 0;
        } else {
            link = &letter->arriving;
        }
    }
    return LAC_OK;
}

lac_status laci_mpi_progress(laci_mpi_session *s)
{
    LAC_TRY(advance_arriving(s));
    for (;;) {
        if (s->opening == NULL) {
            LAC_TRY(begin_opening(s));
        }
        laci_mpi_letter *const letter = s->opening;
        bool done = false;
        if (letter != NULL) {
            LAC_TRY(test(s, letter, &done));
        }
        if (!done) {
            return LAC_OK;
        }
        s->opening = NULL;
        s->idle_since = 0;
        LAC_TRY(open_letter(s, letter, letter->len));
    }
}
