// SPDX-License-Identifier: MIT
// Bytes in and out of a connection. TLS records are made in the output buffer,
// 256 KiB at a time, and read from the input buffer. In the clear, long
// messages go straight between the socket and the caller's memory.
#define _GNU_SOURCE
#include "transport/tcp/connection.h"

#include <errno.h>
#include <linux/sockios.h>
#include <openssl/err.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fail.h"
#include "transport/tcp/address.h"

enum { MOST_REFILLS = 4 };

// A record is made while the buffer is not full.
enum { OUT_SIZE = LACI_TCP_BUFFER + LACI_TCP_RECORD + LACI_TCP_RECORD_SLACK };

// RFC 8446, 5.5: 2^24.5 full records at most with one AES-GCM key.
#define RECORDS_PER_KEY ((uint64_t)1 << 23)

static void end_input(laci_tcp_connection *c, int error)
{
    c->error = c->input_ended ? c->error : error;
    c->input_ended = true;
}

// The other end may have sent its reason before it closed: what it sent is
// still read.
static void end_output(laci_tcp_connection *c)
{
    c->output_ended = true;
    c->out_start = c->out_end = 0;
}

static bool is_transient(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

// Receives into the buffers of `parts`. Returns 0 if nothing is there.
static size_t receive(laci_tcp_connection *c, struct iovec *parts, size_t count)
{
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    const ssize_t got = recvmsg(c->socket, &message, 0);
    if (got > 0) {
        return (size_t)got;
    }
    if (got == 0 || !is_transient(errno)) {
        end_input(c, got == 0 ? 0 : errno);
    }
    return 0;
}

// Refills the empty input buffer.
static bool connection_refill(laci_tcp_connection *c)
{
    struct iovec part = {c->in, LACI_TCP_BUFFER};
    c->in_start = 0;
    c->in_end = 0;
    // Records without data, such as new keys, must not hold the caller.
    if (!c->input_ended && !c->hold && c->refills++ < MOST_REFILLS) {
        c->in_end = receive(c, &part, 1);
    }
    return c->in_end > 0;
}

static size_t take_buffered(laci_tcp_connection *c, uint8_t *into, size_t n)
{
    const size_t there = c->in_end - c->in_start;
    n = n < there ? n : there;
    memcpy(into, c->in + c->in_start, n);
    c->in_start += n;
    return n;
}

static int bio_read(BIO *bio, char *into, int n)
{
    laci_tcp_connection *const c = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (c->in_start == c->in_end && !connection_refill(c)) {
        if (c->input_ended) {
            return 0;
        }
        BIO_set_retry_read(bio);
        return -1;
    }
    return (int)take_buffered(c, (uint8_t *)into, (size_t)n);
}

// The callers leave room for a record before they write one.
static int bio_write(BIO *bio, const char *from, int n)
{
    laci_tcp_connection *const c = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if ((size_t)n > OUT_SIZE - c->out_end) {
        BIO_set_retry_write(bio);
        return -1;
    }
    memcpy(c->out + c->out_end, from, (size_t)n);
    c->out_end += (size_t)n;
    return n;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static int bio_create(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

BIO_METHOD *laci_tcp_bio_method(void)
{
    BIO_METHOD *const method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "laconic");
    if (method != NULL && BIO_meth_set_read(method, bio_read) == 1 &&
        BIO_meth_set_write(method, bio_write) == 1 &&
        BIO_meth_set_ctrl(method, bio_control) == 1 &&
        BIO_meth_set_create(method, bio_create) == 1) {
        return method;
    }
    BIO_meth_free(method);
    return NULL;
}

static bool open_ssl(
    laci_tcp_connection *c, const laci_tcp_tls *tls, bool server)
{
    BIO *const bio = BIO_new(tls->method);
    c->ssl = SSL_new(tls->context);
    if (bio == NULL || c->ssl == NULL) {
        BIO_free(bio);
        return false;
    }
    BIO_set_data(bio, c);
    SSL_set_bio(c->ssl, bio, bio);
    if (server) {
        SSL_set_accept_state(c->ssl);
    } else {
        SSL_set_connect_state(c->ssl);
    }
    return SSL_set_app_data(c->ssl, &c->pin) == 1;
}

lac_status laci_tcp_connection_open(
    laci_tcp_connection **out, const laci_services *services,
    const laci_tcp_tls *tls, int socket, bool server, laci_tcp_pin pin)
{
    laci_tcp_connection *const c = services->zalloc(sizeof(*c));
    *out = NULL;
    laci_tcp_prepare_socket(socket);
    if (c == NULL) {
        (void)close(socket);
        return services->fail(LAC_ERR_NOMEM, "tcp: no memory for a connection");
    }
    *c = (laci_tcp_connection){
        .services = services,
        .socket = socket,
        .pin = pin,
        .in = services->zalloc(LACI_TCP_BUFFER),
        .out = services->zalloc(OUT_SIZE),
        .records_per_key = RECORDS_PER_KEY,
    };
    c->pin.found = LAC_RANK_ANY;
    if (c->in == NULL || c->out == NULL || !open_ssl(c, tls, server)) {
        laci_tcp_connection_close(c);
        return services->fail(LAC_ERR_NOMEM, "tcp: no memory for a connection");
    }
    *out = c;
    return LAC_OK;
}

void laci_tcp_connection_close(laci_tcp_connection *c)
{
    if (c == NULL) {
        return;
    }
    SSL_free(c->ssl);
    (void)close(c->socket);
    c->services->free(c->in);
    c->services->free(c->out);
    c->services->free(c);
}

// Only some alerts concern the certificate. The others come from another
// program, or another TLS, at that port.
static const char *alert_reason(int alert)
{
    switch (alert) {
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_CERTIFICATE_REQUIRED:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
        return "it refused this worker's key";
    case SSL_AD_PROTOCOL_VERSION:
        return "it does not speak TLS 1.3";
    default:
        return SSL_alert_desc_string_long(alert);
    }
}

// Why a handshake failed, in the words of a user.
static const char *handshake_reason(
    const laci_tcp_connection *c, bool *fatal_out)
{
    const unsigned long code = ERR_peek_error();
    const int reason = ERR_GET_REASON(code);
    *fatal_out = true;
    if (c->pin.refused) {
        return "its key is not the one that is listed for it";
    }
    // Alerts of the other end are reported as 1000 and the number of the alert.
    if (ERR_GET_LIB(code) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET) {
        return alert_reason(reason - SSL_AD_REASON_OFFSET);
    }
    *fatal_out = false;
    if (c->input_ended) {
        return c->error == 0 ? "it closed the connection" : strerror(c->error);
    }
    const char *const text = ERR_reason_error_string(code);
    return text == NULL ? "TLS failed" : text;
}

laci_tcp_step laci_tcp_handshake(
    laci_tcp_connection *c, const char **reason_out, bool *fatal_out)
{
    ERR_clear_error();
    c->refills = 0;
    const int result = SSL_do_handshake(c->ssl);
    const int error =
        result == 1 ? SSL_ERROR_NONE : SSL_get_error(c->ssl, result);
    (void)laci_tcp_flush(c); // an alert too
    if (result == 1) {
        return LACI_TCP_DONE;
    }
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        return LACI_TCP_AGAIN;
    }
    *reason_out = handshake_reason(c, fatal_out);
    ERR_clear_error();
    return LACI_TCP_FAILED;
}

void laci_tcp_clear(laci_tcp_connection *c)
{
    SSL_free(c->ssl);
    c->ssl = NULL;
}

// A long read takes the rest of a message and what follows it in one call.
static size_t read_clear(laci_tcp_connection *c, uint8_t *into, size_t n)
{
    if (c->in_start < c->in_end) {
        return take_buffered(c, into, n);
    }
    if (c->input_ended || c->hold) {
        return 0;
    }
    struct iovec parts[] = {{into, n}, {c->in, LACI_TCP_BUFFER}};
    const size_t got = receive(c, parts, 2);
    c->in_start = 0;
    c->in_end = got > n ? got - n : 0;
    return got > n ? n : got;
}

size_t laci_tcp_read(laci_tcp_connection *c, uint8_t *into, size_t n)
{
    size_t got = 0;
    if (c->ssl == NULL) {
        return read_clear(c, into, n);
    }
    ERR_clear_error();
    c->refills = 0;
    if (SSL_read_ex(c->ssl, into, n, &got) == 1) {
        return got;
    }
    const int error = SSL_get_error(c->ssl, 0);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
        // A damaged record, an alert, or the end: nothing can follow.
        end_input(c, c->input_ended ? c->error : EPROTO);
        ERR_clear_error();
    }
    return 0;
}

static size_t write_clear(
    laci_tcp_connection *c, const uint8_t *head, size_t head_len,
    const uint8_t *data, size_t len)
{
    struct iovec parts[] = {
        {(void *)(uintptr_t)head, head_len}, {(void *)(uintptr_t)data, len}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    const ssize_t sent = sendmsg(c->socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && !is_transient(errno)) {
        end_output(c);
    }
    return sent < 0 ? 0 : (size_t)sent;
}

// Makes one record. A record that starts with a head carries data behind it.
static size_t write_record(
    laci_tcp_connection *c, const uint8_t *head, size_t head_len,
    const uint8_t *data, size_t len)
{
    uint8_t joined[LACI_TCP_RECORD];
    const uint8_t *from = data;
    size_t n = len < LACI_TCP_RECORD ? len : LACI_TCP_RECORD;
    size_t done = 0;
    if (head_len > 0) {
        n = len < LACI_TCP_RECORD - head_len ? len : LACI_TCP_RECORD - head_len;
        memcpy(joined, head, head_len);
        if (n > 0) {
            memcpy(joined + head_len, data, n);
        }
        n += head_len;
        from = joined;
    }
    ERR_clear_error();
    if (c->records == c->records_per_key) {
        c->records = 0;
        (void)SSL_key_update(c->ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
    }
    if (SSL_write_ex(c->ssl, from, n, &done) != 1) {
        end_output(c);
        ERR_clear_error();
        return 0;
    }
    c->records++;
    return done;
}

size_t laci_tcp_write(
    laci_tcp_connection *c, const uint8_t *head, size_t head_len,
    const uint8_t *data, size_t len)
{
    if (c->output_ended) {
        return 0;
    }
    if (c->ssl == NULL) {
        return laci_tcp_flush(c) ? write_clear(c, head, head_len, data, len)
                                 : 0;
    }
    if (c->out_end >= LACI_TCP_BUFFER && !laci_tcp_flush(c)) {
        return 0;
    }
    return c->output_ended ? 0 : write_record(c, head, head_len, data, len);
}

bool laci_tcp_flush(laci_tcp_connection *c)
{
    while (c->out_start < c->out_end) {
        const ssize_t sent = send(
            c->socket, c->out + c->out_start, c->out_end - c->out_start,
            MSG_NOSIGNAL);
        if (sent < 0 && !is_transient(errno)) {
            end_output(c);
            return true;
        }
        if (sent < 0) {
            return false;
        }
        c->out_start += (size_t)sent;
    }
    c->out_start = c->out_end = 0;
    return true;
}

size_t laci_tcp_unsent(const laci_tcp_connection *c)
{
    int queued = 0;
    if (c->output_ended || ioctl(c->socket, SIOCOUTQ, &queued) != 0) {
        return 0;
    }
    return c->out_end - c->out_start + (size_t)queued;
}
