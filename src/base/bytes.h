// SPDX-License-Identifier: MIT
// Numbers in payloads are little-endian on every host. Only these functions
// depend on it.
#ifndef LACONIC_BASE_BYTES_H
#define LACONIC_BASE_BYTES_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static_assert(sizeof(float) == 4, "payloads assume IEEE 754 binary32");

static inline void laci_put_u32(uint8_t *out, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(value >> 8 * i);
    }
}

static inline uint32_t laci_get_u32(const uint8_t *in)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        value |= (uint32_t)in[i] << 8 * i;
    }
    return value;
}

static inline void laci_put_u16(uint8_t *out, uint32_t value)
{
    out[0] = (uint8_t)value;
    out[1] = (uint8_t)(value >> 8);
}

static inline uint32_t laci_get_u16(const uint8_t *in)
{
    return in[0] | (uint32_t)in[1] << 8;
}

static inline void laci_put_u64(uint8_t *out, uint64_t value)
{
    laci_put_u32(out, (uint32_t)value);
    laci_put_u32(out + 4, (uint32_t)(value >> 32));
}

static inline uint64_t laci_get_u64(const uint8_t *in)
{
    return laci_get_u32(in) | (uint64_t)laci_get_u32(in + 4) << 32;
}

static inline uint32_t laci_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float laci_float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline void laci_put_f32(uint8_t *out, float x)
{
    laci_put_u32(out, laci_bits_of(x));
}

static inline float laci_get_f32(const uint8_t *in)
{
    return laci_float_of(laci_get_u32(in));
}

// laci_put_floats and laci_get_floats copy n floats to and from a payload.
static inline void laci_put_floats(uint8_t *out, const float *x, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(out, x, n * sizeof(*x));
#else
    for (size_t i = 0; i < n; i++) {
        laci_put_f32(out + 4 * i, x[i]);
    }
#endif
}

static inline void laci_get_floats(const uint8_t *in, float *x, size_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(x, in, n * sizeof(*x));
#else
    for (size_t i = 0; i < n; i++) {
        x[i] = laci_get_f32(in + 4 * i);
    }
#endif
}

#endif
