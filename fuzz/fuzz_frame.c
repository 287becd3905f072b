// SPDX-License-Identifier: MIT
// Arbitrary bytes as a message from a peer. First as they are: next to nothing
// passes the hashes. Then as the body of a good frame, which must pass and is
// read payload by payload: those must lie inside it, one after the other.
#include <stdlib.h>
#include <string.h>

#include "collective/frame.h"
#include "collective/group.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds) {
        abort();
    }
}

static const laci_frame frame = {
    .session = 1,
    .identity = 2,
    .round = 3,
    .phase = 4,
    .sender = 5,
    .receiver = 6,
};

static void read_payloads(const uint8_t *body, size_t len)
{
    laci_reader r = {.next = body, .end = body + len, .peer = 5};
    size_t total = 0;
    const uint8_t *payload;
    size_t payload_len;
    volatile unsigned char sum = 0; // so that every byte is really read
    while (laci_reader_next(&r, &payload, &payload_len) == LAC_OK) {
        total += 8 + payload_len;
        require(payload + payload_len == body + total);
        for (size_t i = 0; i < payload_len; i++) {
            sum = (unsigned char)(sum + payload[i]);
        }
    }
    require((laci_reader_done(&r) == LAC_OK) == (total == len));
    require(total <= len);
}

// Checks bytes from a block of exactly their size.
static void check(const uint8_t *bytes, size_t len, int good)
{
    uint8_t *const copy = malloc(len + (len == 0));
    const uint8_t *body = NULL;
    size_t body_len = 0;
    require(copy != NULL);
    memcpy(copy, bytes, len);
    const lac_status status =
        laci_frame_check(&frame, copy, len, &body, &body_len);
    require(
        status == LAC_OK || status == LAC_ERR_PEER ||
        status == LAC_ERR_CORRUPT);
    require(!good || status == LAC_OK);
    require((status == LAC_OK) == (body != NULL));
    if (status == LAC_OK) {
        require(body_len == len - LACI_FRAME_SIZE);
        read_payloads(body, body_len);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t nothing = 0;
    const uint8_t *const bytes = size == 0 ? &nothing : data;
    check(bytes, size, 0);
    uint8_t *const message = malloc(LACI_FRAME_SIZE + size);
    require(message != NULL);
    memcpy(message + LACI_FRAME_SIZE, bytes, size);
    laci_frame_write(&frame, message, size);
    check(message, LACI_FRAME_SIZE + size, 1);
    free(message);
    return 0;
}
