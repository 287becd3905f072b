// SPDX-License-Identifier: MIT
// Arbitrary bytes as a request to worker 0, as the start of its reply and as an
// entry of it. What is accepted holds to the format and is written again as it
// was read, up to bytes behind the end of a text.
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "transport/tcp/rendezvous.h"

enum { HOST_AT = 84 }; // of a request

// Bytes of the input in a block of their own, zeros behind its end.
static uint8_t *take(const uint8_t *data, size_t size, size_t len)
{
    uint8_t *const bytes = fuzz_alloc(len);
    memset(bytes, 0, len);
    memcpy(bytes, data, size < len ? size : len);
    return bytes;
}

static void check_host(const char *host)
{
    fuzz_require(
        memchr(host, 0, LACI_TCP_REPLY_HOST) != NULL, "a host does not end");
    for (; *host != '\0'; host++) {
        fuzz_require(*host > ' ' && *host <= '~', "a host is not plain text");
    }
}

static void read_request(const uint8_t *data, size_t size)
{
    uint8_t *const bytes = take(data, size, LACI_TCP_REQUEST);
    uint8_t written[LACI_TCP_REQUEST], rewritten[LACI_TCP_REQUEST];
    char reason[LACI_TCP_REASON] = "";
    laci_tcp_request request, again;
    if (laci_tcp_request_read(bytes, &request, reason)) {
        check_host(request.address.host);
        fuzz_require(request.address.port != 0, "no port");
        laci_tcp_request_write(&request, written);
        fuzz_require(
            laci_tcp_request_read(written, &again, reason), "is refused");
        laci_tcp_request_write(&again, rewritten);
        fuzz_require(
            memcmp(written, rewritten, sizeof(written)) == 0 &&
                memcmp(bytes, written, HOST_AT) == 0 &&
                memcmp(
                    bytes + HOST_AT + LACI_TCP_REPLY_HOST,
                    written + HOST_AT + LACI_TCP_REPLY_HOST,
                    LACI_TCP_REQUEST - HOST_AT - LACI_TCP_REPLY_HOST) == 0,
            "a request is not written as it was read");
    } else {
        fuzz_require(reason[0] != '\0', "no reason");
    }
    free(bytes);
}

static void read_reply(const uint8_t *data, size_t size)
{
    uint8_t *const bytes = take(data, size, LACI_TCP_REPLY);
    laci_tcp_reply reply;
    if (laci_tcp_reply_read(bytes, &reply)) {
        fuzz_require(
            reply.count <= LACI_TCP_WORKERS &&
                reply.text_len < LACI_TCP_REASON &&
                (reply.count == 0 || reply.text_len == 0),
            "a reply breaks the format");
    }
    free(bytes);
}

static void read_entry(const uint8_t *data, size_t size)
{
    uint8_t *const bytes = take(data, size, LACI_TCP_REPLY_ENTRY);
    uint8_t written[LACI_TCP_REPLY_ENTRY], rewritten[LACI_TCP_REPLY_ENTRY];
    laci_tcp_entry entry = {0}, again = {0};
    if (laci_tcp_reply_entry_read(bytes, &entry)) {
        check_host(entry.address.host);
        fuzz_require(entry.address.port != 0, "no port");
        laci_tcp_reply_entry_write(&entry, written);
        fuzz_require(laci_tcp_reply_entry_read(written, &again), "is refused");
        laci_tcp_reply_entry_write(&again, rewritten);
        fuzz_require(
            memcmp(written, rewritten, sizeof(written)) == 0 &&
                strcmp((const char *)bytes, (const char *)written) == 0,
            "an entry is not written as it was read");
    }
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t nothing;
    const uint8_t *const bytes = size == 0 ? &nothing : data;
    read_request(bytes, size);
    read_reply(bytes, size);
    read_entry(bytes, size);
    return 0;
}
