// SPDX-License-Identifier: MIT
// The generator of all random numbers: a draw is a function of an index and of
// the four key words of a stream. It takes two multiplications. The words enter
// between them too, so that two streams are not shifts or xors of one another.
// docs/format.md holds the definition: changing a bit here changes the wire
// format.
#ifndef LACONIC_BASE_DRAW_H
#define LACONIC_BASE_DRAW_H

#include <stdint.h>

#include <laconic/random.h>

#define LACI_DRAW_STEP   0x9e3779b9u
#define LACI_DRAW_FIRST  0x21f0aaadu
#define LACI_DRAW_SECOND 0x735a2d97u

typedef struct laci_stream {
    uint32_t word[4];
} laci_stream;

static inline laci_stream laci_stream_of(const lac_key *key)
{
    return (laci_stream){{
        (uint32_t)key->low,
        (uint32_t)(key->low >> 32),
        (uint32_t)key->high,
        (uint32_t)(key->high >> 32),
    }};
}

static inline uint32_t laci_draw(const laci_stream *stream, uint32_t index)
{
    uint32_t z = index * LACI_DRAW_STEP + stream->word[0];
    z = (z ^ z >> 16) * LACI_DRAW_FIRST + stream->word[1];
    z = (z ^ z >> 15) * LACI_DRAW_SECOND + stream->word[2];
    return z ^ z >> 15 ^ stream->word[3];
}

#endif
