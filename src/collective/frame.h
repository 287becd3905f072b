// SPDX-License-Identifier: MIT
// Frames: the header of a message between two workers. A message that is
// truncated, altered or meant for another exchange is refused, and the error
// message names the difference. docs/format.md has the layout.
#ifndef LACONIC_COLLECTIVE_FRAME_H
#define LACONIC_COLLECTIVE_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/status.h>

enum {
    LACI_FRAME_SIZE = 64, // bytes of header before the body
    LACI_FRAME_VERSION = 1,
};

// The properties of a message that both ends know beforehand.
typedef struct laci_frame {
    uint64_t session;  // which run
    uint64_t identity; // hash of layout, algorithm and compressor
    uint64_t round;
    uint32_t phase; // which exchange of the round
    uint32_t sender;
    uint32_t receiver; // or LAC_RANK_ANY for any receiver
    uint16_t step;     // which message of a collective made of several
    bool intact;       // the body needs no hash: laci_transport_ops
} laci_frame;

// laci_frame_write writes the header for the `len` bytes that follow it to
// message[0..LACI_FRAME_SIZE).
void laci_frame_write(const laci_frame *frame, uint8_t *message, size_t len);

// laci_frame_check compares a whole message with the expected one and sets
// `*body_out` to its body. A message to LAC_RANK_ANY is valid for every
// receiver.
// Fails with LAC_ERR_PEER (another session, identity, sender, receiver, round,
// phase, step or version) or LAC_ERR_CORRUPT.
__attribute__((warn_unused_result)) lac_status laci_frame_check(
    const laci_frame *expected, const uint8_t *message, size_t len,
    const uint8_t **body_out, size_t *body_len_out);

#endif
