// SPDX-License-Identifier: MIT
// Keys: everything that a draw depends on, mixed into 128 bits by XXH3.
#include <laconic/random.h>

#include <string.h>

#include <xxhash.h>

#include "base/bytes.h"
#include "base/draw.h"

enum { NORMAL_DRAWS = 3 };

lac_scope lac_scope_worker(uint32_t rank)
{
    return (lac_scope){LAC_SCOPE_WORKER, rank, rank};
}

lac_scope lac_scope_edge(uint32_t rank, uint32_t other)
{
    return rank < other ? (lac_scope){LAC_SCOPE_EDGE, rank, other}
                        : (lac_scope){LAC_SCOPE_EDGE, other, rank};
}

lac_scope lac_scope_shared(void)
{
    return (lac_scope){LAC_SCOPE_SHARED, 0, 0};
}

uint64_t lac_name_hash(const char *name)
{
    return XXH3_64bits(name, strlen(name));
}

lac_key lac_key_make(
    uint64_t seed, uint32_t purpose, uint64_t round, lac_scope scope,
    uint64_t name_hash)
{
    uint8_t source[40];
    laci_put_u64(source, seed);
    laci_put_u64(source + 8, round);
    laci_put_u64(source + 16, name_hash);
    laci_put_u32(source + 24, purpose);
    laci_put_u32(source + 28, (uint32_t)scope.kind);
    laci_put_u32(source + 32, scope.low);
    laci_put_u32(source + 36, scope.high);
    const XXH128_hash_t mixed = XXH3_128bits(source, sizeof(source));
    return (lac_key){mixed.low64, mixed.high64, scope.kind};
}

uint32_t lac_key_draw(const lac_key *key, uint32_t index)
{
    const laci_stream stream = laci_stream_of(key);
    return laci_draw(&stream, index);
}

// Twelve uniform bytes have mean 12 * 127.5 and variance 12 * (256^2 - 1) / 12.
float lac_key_normal(const lac_key *key, uint32_t index)
{
    const laci_stream stream = laci_stream_of(key);
    int32_t sum = -12 * 255 / 2;
    for (uint32_t i = 0; i < NORMAL_DRAWS; i++) {
        const uint32_t bits = laci_draw(&stream, NORMAL_DRAWS * index + i);
        for (int byte = 0; byte < 4; byte++) {
            sum += (int32_t)(bits >> 8 * byte & 0xff);
        }
    }
    return (float)sum / 0x1.ffffp7f; // sqrt(256^2 - 1), nearly
}
