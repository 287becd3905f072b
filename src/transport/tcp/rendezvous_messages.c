// SPDX-License-Identifier: MIT
// The bytes of the rendezvous's messages, as docs/format.md describes them.
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "transport/tcp/rendezvous.h"

enum {
    AT_VERSION = 4,
    AT_LENGTH = 6,
    AT_WORLD = 8,
    AT_RANK = 12,
    AT_PORT = 16,
    AT_RESERVED = 18,
    AT_KEY = 20,
    AT_BINDING = 52,
    AT_HOST = 84,
    AT_END = AT_HOST + LACI_TCP_REPLY_HOST,
};

static const uint8_t request_magic[4] = {'L', 'A', 'C', 'M'};
static const uint8_t reply_magic[4] = {'L', 'A', 'C', 'R'};

static void host_write(const char *host, uint8_t *out)
{
    const size_t len = strlen(host);
    memset(out, 0, LACI_TCP_REPLY_HOST);
    memcpy(out, host, len < LACI_TCP_REPLY_HOST ? len : 0);
}

// A host is text that ends with a NUL, and empty or an address.
static bool host_read(const uint8_t *bytes, bool may_be_empty, char *out)
{
    laci_tcp_address address;
    const uint8_t *const end = memchr(bytes, 0, LACI_TCP_REPLY_HOST);
    if (end == NULL) {
        return false;
    }
    char text[LACI_TCP_REPLY_HOST + 2];
    const int len = snprintf(
        text, sizeof(text),
        memchr(bytes, ':', (size_t)(end - bytes)) == NULL ? "%s" : "[%s]",
        (const char *)bytes);
    if (!(may_be_empty && end == bytes) &&
        (!laci_tcp_address_parse(text, (size_t)len, &address) ||
         address.port != 0)) {
        return false;
    }
    memcpy(out, bytes, (size_t)(end - bytes) + 1);
    return true;
}

void laci_tcp_request_write(
    const laci_tcp_request *request, uint8_t out[LACI_TCP_REQUEST])
{
    memset(out, 0, LACI_TCP_REQUEST);
    memcpy(out, request_magic, sizeof(request_magic));
    laci_put_u16(out + AT_VERSION, LACI_TCP_VERSION);
    laci_put_u16(out + AT_LENGTH, LACI_TCP_REQUEST);
    laci_put_u32(out + AT_WORLD, request->world);
    laci_put_u32(out + AT_RANK, request->rank);
    laci_put_u16(out + AT_PORT, request->address.port);
    memcpy(out + AT_KEY, request->key, LACI_TCP_KEY);
    memcpy(out + AT_BINDING, request->binding, LACI_TCP_DIGEST);
    host_write(request->address.host, out + AT_HOST);
}

// A later version may use these bytes: one that does not know them must not
// guess.
static bool check_reserved(
    const uint8_t bytes[LACI_TCP_REQUEST], char reason_out[LACI_TCP_REASON])
{
    for (int i = AT_RESERVED; i < LACI_TCP_REQUEST; i++) {
        const bool reserved = i < AT_KEY || i >= AT_END;
        if (reserved && bytes[i] != 0) {
            (void)snprintf(
                reason_out, LACI_TCP_REASON,
                "its request has %d in the reserved byte %d, expected 0",
                bytes[i], i);
            return false;
        }
    }
    return true;
}

bool laci_tcp_request_read(
    const uint8_t bytes[LACI_TCP_REQUEST], laci_tcp_request *out,
    char reason_out[LACI_TCP_REASON])
{
    const uint32_t version = laci_get_u16(bytes + AT_VERSION);
    if (memcmp(bytes, request_magic, sizeof(request_magic)) != 0) {
        (void)snprintf(
            reason_out, LACI_TCP_REASON,
            "its first message is not a request of laconic");
        return false;
    }
    if (version != LACI_TCP_VERSION) {
        (void)snprintf(
            reason_out, LACI_TCP_REASON,
            "its request has protocol version %u, expected %d", version,
            LACI_TCP_VERSION);
        return false;
    }
    *out = (laci_tcp_request){
        .world = laci_get_u32(bytes + AT_WORLD),
        .rank = laci_get_u32(bytes + AT_RANK),
        .address.port = (uint16_t)laci_get_u16(bytes + AT_PORT),
    };
    memcpy(out->key, bytes + AT_KEY, LACI_TCP_KEY);
    memcpy(out->binding, bytes + AT_BINDING, LACI_TCP_DIGEST);
    if (laci_get_u16(bytes + AT_LENGTH) != LACI_TCP_REQUEST ||
        out->address.port == 0 ||
        !host_read(bytes + AT_HOST, true, out->address.host)) {
        (void)snprintf(
            reason_out, LACI_TCP_REASON, "its request has no usable address");
        return false;
    }
    return check_reserved(bytes, reason_out);
}

void laci_tcp_reply_write(
    const laci_tcp_reply *reply, uint8_t out[LACI_TCP_REPLY])
{
    memcpy(out, reply_magic, sizeof(reply_magic));
    laci_put_u32(out + 4, reply->count);
    laci_put_u32(out + 8, reply->text_len);
}

bool laci_tcp_reply_read(
    const uint8_t bytes[LACI_TCP_REPLY], laci_tcp_reply *out)
{
    out->count = laci_get_u32(bytes + 4);
    out->text_len = laci_get_u32(bytes + 8);
    return memcmp(bytes, reply_magic, sizeof(reply_magic)) == 0 &&
           out->count <= LACI_TCP_WORKERS &&
           (out->count == 0 ? out->text_len < LACI_TCP_REASON
                            : out->text_len == 0);
}

void laci_tcp_reply_entry_write(
    const laci_tcp_entry *entry, uint8_t out[LACI_TCP_REPLY_ENTRY])
{
    host_write(entry->address.host, out);
    laci_put_u16(out + LACI_TCP_REPLY_HOST, entry->address.port);
    memcpy(out + LACI_TCP_REPLY_HOST + 2, entry->key, LACI_TCP_KEY);
}

bool laci_tcp_reply_entry_read(
    const uint8_t bytes[LACI_TCP_REPLY_ENTRY], laci_tcp_entry *out)
{
    out->address.port = (uint16_t)laci_get_u16(bytes + LACI_TCP_REPLY_HOST);
    memcpy(out->key, bytes + LACI_TCP_REPLY_HOST + 2, LACI_TCP_KEY);
    // Worker 0 is where it was dialled: its host may be empty.
    return host_read(bytes, true, out->address.host) && out->address.port != 0;
}
