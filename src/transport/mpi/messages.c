// SPDX-License-Identifier: MIT
// Messages of an MPI session: sending, receiving, and matching with receives.
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

// Returns a free message or a new one, NULL without memory.
static laci_mpi_message *message_obtain(laci_mpi_session *s)
{
    laci_mpi_message *message = s->free;
    if (message == NULL) {
        message = s->services->zalloc(sizeof(*message));
        if (message != NULL) {
            message->allocated = s->allocated;
            s->allocated = message;
        }
        return message;
    }
    s->free = message->next;
    message->next = NULL;
    message->receiving = NULL;
    message->claimed = false;
    message->request_count = 0;
    return message;
}

void laci_mpi_recycle(laci_mpi_session *s, laci_mpi_message *message)
{
    message->next = s->free;
    s->free = message;
}

static lac_status message_no_memory(const laci_mpi_session *s, size_t len)
{
    return s->services->fail(
        LAC_ERR_NOMEM, "mpi: no memory for a message of %zu bytes", len);
}

// Makes room for a long message, where possible by swapping memory with a free
// message that has enough.
static bool reserve_bulk(laci_mpi_session *s, laci_mpi_message *message)
{
    if (message->bulk_cap >= message->len) {
        return true;
    }
    for (laci_mpi_message *other = s->free; other; other = other->next) {
        if (other->bulk_cap >= message->len) {
            uint8_t *const bulk = other->bulk;
            const size_t cap = other->bulk_cap;
            other->bulk = message->bulk;
            other->bulk_cap = message->bulk_cap;
            message->bulk = bulk;
            message->bulk_cap = cap;
            return true;
        }
    }
    uint8_t *const bulk = s->services->zalloc(message->len);
    if (bulk == NULL) {
        return false;
    }
    s->services->free(message->bulk);
    message->bulk = bulk;
    message->bulk_cap = message->len;
    return true;
}

// Returns the bytes of the piece that begins at `at`.
static int message_piece_size(const laci_mpi_message *message, size_t at)
{
    const size_t left = message->len - at;
    const size_t eager = message->eager;
    const size_t most =
        at < eager * LACI_MPI_EAGER_PIECES ? eager : LACI_MPI_PIECE;
    return (int)(left < most ? left : most);
}

static lac_status send_pieces(
    laci_mpi_session *s, laci_mpi_message *message, const uint8_t *data)
{
    for (size_t sent = 0; sent < message->len;) {
        const int size = message_piece_size(message, sent);
        const int code = MPI_Isend(
            data + sent, size, MPI_BYTE, (int)message->peer, LACI_MPI_BULK_TAG,
            s->comm, &message->requests[message->request_count]);
        LAC_TRY(laci_mpi_check(s, code, "send to", message->peer));
        message->request_count++;
        sent += (size_t)size;
    }
    return LAC_OK;
}

lac_status laci_mpi_send(
    laci_mpi_session *s, laci_mpi_kind kind, const lac_send *send)
{
    if (send->len > (size_t)LACI_MPI_PIECE * LACI_MPI_PIECES) {
        return s->services->fail(
            LAC_ERR_INVALID,
            "mpi: a message of %zu bytes to worker %u, at most 64 GiB fit",
            send->len, send->peer);
    }
    laci_mpi_message *const message = message_obtain(s);
    if (message == NULL) {
        return message_no_memory(s, send->len);
    }
    message->peer = send->peer;
    message->len = send->len;
    message->next = s->sent[s->parity];
    s->sent[s->parity] = message;
    size_t size = LACI_MPI_HEADER;
    if (send->len > LACI_MPI_INLINE) {
        kind = LACI_MPI_BULK;
        message->eager = s->peers[send->peer].eager;
        laci_put_u32(message->block + LACI_MPI_HEADER, message->eager);
        size += sizeof(message->eager);
    } else if (send->len > 0) {
        memcpy(message->block + LACI_MPI_HEADER, send->data, send->len);
        size += send->len;
    }
    laci_put_u32(message->block, kind);
    laci_put_u32(message->block + 4, send->tag);
    laci_put_u64(message->block + 8, send->len);
    const int code = MPI_Isend(
        message->block, (int)size, MPI_BYTE, (int)send->peer,
        LACI_MPI_HEADER_TAG, s->comm, &message->requests[0]);
    LAC_TRY(laci_mpi_check(s, code, "send to", send->peer));
    message->request_count = 1;
    return kind == LACI_MPI_BULK ? send_pieces(s, message, send->data) : LAC_OK;
}

// Sets `*done_out` to whether all requests of a message are done.
static lac_status test_requests(
    const laci_mpi_session *s, laci_mpi_message *message, bool *done_out)
{
    int done = 0;
    const int code = MPI_Testall(
        message->request_count, message->requests, &done, MPI_STATUSES_IGNORE);
    LAC_TRY(laci_mpi_check(s, code, "exchange with", message->peer));
    *done_out = done != 0;
    message->request_count = done != 0 ? 0 : message->request_count;
    return LAC_OK;
}

lac_status laci_mpi_collect_sent(laci_mpi_session *s, unsigned parity)
{
    laci_mpi_message **link = &s->sent[parity];
    while (*link != NULL) {
        laci_mpi_message *const message = *link;
        bool done = false;
        LAC_TRY(test_requests(s, message, &done));
        if (done) {
            *link = message->next;
            laci_mpi_recycle(s, message);
        } else {
            link = &message->next;
        }
    }
    return LAC_OK;
}

static lac_status message_check_room(
    const laci_mpi_session *s, const laci_mpi_message *message, size_t i)
{
    const lac_receive *const receive = &s->receives[i];
    if (!laci_receive_fits(receive, message->len)) {
        return s->services->fail(
            LAC_ERR_SPACE,
            "mpi: a message of worker %u has %zu bytes, the buffer of worker "
            "%u holds %zu",
            receive->peer, message->len, s->rank, receive->cap);
    }
    return LAC_OK;
}

// Assigns a message to receive i. It may still be arriving.
static void assign(laci_mpi_session *s, laci_mpi_message *message, size_t i)
{
    s->claims[i] = message;
    message->claimed = true;
    s->missing -= message->request_count == 0;
}

lac_status laci_mpi_claim(laci_mpi_session *s, size_t i)
{
    const lac_receive *const receive = &s->receives[i];
    laci_mpi_peer *const peer = &s->peers[receive->peer];
    laci_mpi_message *before = NULL, *message = peer->first;
    while (message != NULL && message->tag != receive->tag) {
        before = message;
        message = message->next;
    }
    if (message == NULL) {
        return LAC_OK;
    }
    if (before == NULL) {
        peer->first = message->next;
    } else {
        before->next = message->next;
    }
    if (peer->last == message) {
        peer->last = before;
    }
    LAC_TRY(message_check_room(s, message, i));
    assign(s, message, i);
    return LAC_OK;
}

static void enqueue_unclaimed(laci_mpi_session *s, laci_mpi_message *message)
{
    laci_mpi_peer *const peer = &s->peers[message->peer];
    message->next = NULL;
    if (peer->first == NULL) {
        peer->first = message;
    } else {
        peer->last->next = message;
    }
    peer->last = message;
}

// Returns the receive that waits for this message, or receive_count.
static size_t find_receive(
    const laci_mpi_session *s, const laci_mpi_message *message)
{
    size_t i = 0;
    while (i < s->receive_count &&
           (s->claims[i] != NULL || s->receives[i].peer != message->peer ||
            s->receives[i].tag != message->tag)) {
        i++;
    }
    return i;
}

static lac_status receive_pieces(laci_mpi_session *s, laci_mpi_message *message)
{
    message->payload = message->bulk;
    message->receiving = s->receiving;
    s->receiving = message;
    for (size_t got = 0; got < message->len;) {
        const int size = message_piece_size(message, got);
        const int code = MPI_Irecv(
            message->bulk + got, size, MPI_BYTE, (int)message->peer,
            LACI_MPI_BULK_TAG, s->comm,
            &message->requests[message->request_count]);
        LAC_TRY(laci_mpi_check(s, code, "receive from", message->peer));
        message->request_count++;
        got += (size_t)size;
    }
    return LAC_OK;
}

// A long message goes to memory of the transport, never straight into the
// buffer of a receive: MPI may write to it long after the exchange has failed,
// and the caller owns its buffer again after leave.
static lac_status accept_message(
    laci_mpi_session *s, laci_mpi_message *message, bool bulk)
{
    const size_t i = find_receive(s, message);
    message->payload = message->block + LACI_MPI_HEADER;
    if (i < s->receive_count) {
        LAC_TRY(message_check_room(s, message, i));
    }
    if (bulk) {
        if (!reserve_bulk(s, message)) {
            return message_no_memory(s, message->len);
        }
        LAC_TRY(receive_pieces(s, message));
    }
    if (i < s->receive_count) {
        assign(s, message, i);
    } else {
        enqueue_unclaimed(s, message);
    }
    return LAC_OK;
}

// Whether a header is one of ours, with `size` bytes in all.
static bool header_is_valid(
    const laci_mpi_message *message, uint32_t kind, size_t size)
{
    if (kind == LACI_MPI_BULK) {
        return size == LACI_MPI_HEADER + sizeof(message->eager) &&
               message->len <= (size_t)LACI_MPI_PIECE * LACI_MPI_PIECES &&
               message->eager <= LACI_MPI_PIECE;
    }
    return size >= LACI_MPI_HEADER && kind <= LACI_MPI_LEFT &&
           message->len == size - LACI_MPI_HEADER;
}

// Handles a message whose header, with `size` bytes in all, has arrived.
static lac_status handle_arrived(
    laci_mpi_session *s, laci_mpi_message *message, size_t size)
{
    const uint32_t kind = laci_get_u32(message->block);
    message->tag = laci_get_u32(message->block + 4);
    message->len = (size_t)laci_get_u64(message->block + 8);
    message->eager = laci_get_u32(message->block + LACI_MPI_HEADER);
    if (!header_is_valid(message, kind, size)) {
        return s->services->fail(
            LAC_ERR_CORRUPT,
            "mpi: worker %u sent a message of %zu bytes with an unknown header",
            message->peer, size);
    }
    if (kind != LACI_MPI_ABORTED && kind != LACI_MPI_LEFT) {
        return accept_message(s, message, kind == LACI_MPI_BULK);
    }
    if (kind == LACI_MPI_LEFT) {
        laci_mpi_on_leave(s, message);
    } else {
        laci_mpi_on_abort(s, message);
    }
    laci_mpi_recycle(s, message);
    return LAC_OK;
}

// Starts to receive the next header, if there is one.
static lac_status start_header(laci_mpi_session *s)
{
    int found = 0, size = 0;
    MPI_Message matched;
    MPI_Status status;
    int code = MPI_Improbe(
        MPI_ANY_SOURCE, LACI_MPI_HEADER_TAG, s->comm, &found, &matched,
        &status);
    LAC_TRY(laci_mpi_check(s, code, "probe", s->rank));
    if (found == 0) {
        return LAC_OK;
    }
    (void)MPI_Get_count(&status, MPI_BYTE, &size);
    laci_mpi_message *const message = message_obtain(s);
    if (message == NULL) {
        return message_no_memory(s, (size_t)size);
    }
    message->peer = (uint32_t)status.MPI_SOURCE;
    message->len = (size_t)size;
    code = MPI_Imrecv(
        message->block, (int)sizeof(message->block), MPI_BYTE, &matched,
        &message->requests[0]);
    LAC_TRY(laci_mpi_check(s, code, "receive from", message->peer));
    message->request_count = 1;
    s->header = message;
    return LAC_OK;
}

static lac_status advance_bulk(laci_mpi_session *s)
{
    laci_mpi_message **link = &s->receiving;
    while (*link != NULL) {
        laci_mpi_message *const message = *link;
        bool done = false;
        LAC_TRY(test_requests(s, message, &done));
        if (done) {
            *link = message->receiving;
            s->missing -= message->claimed;
            s->idle_since = 0;
        } else {
            link = &message->receiving;
        }
    }
    return LAC_OK;
}

lac_status laci_mpi_progress(laci_mpi_session *s)
{
    LAC_TRY(advance_bulk(s));
    for (;;) {
        if (s->header == NULL) {
            LAC_TRY(start_header(s));
        }
        laci_mpi_message *const message = s->header;
        bool done = false;
        if (message != NULL) {
            LAC_TRY(test_requests(s, message, &done));
        }
        if (!done) {
            return LAC_OK;
        }
        s->header = NULL;
        s->idle_since = 0;
        LAC_TRY(handle_arrived(s, message, message->len));
    }
}
