// SPDX-License-Identifier: MIT
// The functions that the fuzz targets share: an input read byte by byte,
// buffers of exactly the requested size, so that a sanitizer detects an access
// beyond, and specs made from the tables of settings. No compressor is named
// here: a new one is fuzzed as soon as it is registered.
#ifndef LACONIC_FUZZ_H
#define LACONIC_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laconic/laconic.h>

// Each target defines this; libFuzzer and replay.c call it.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FUZZ_SPEC_SIZE = 1024 };

typedef struct fuzz_input {
    const uint8_t *data;
    size_t size;
} fuzz_input;

// fuzz_byte takes the next byte; past the end there are zeros.
uint8_t fuzz_byte(fuzz_input *input);

// fuzz_require aborts with `what` and the library's last message unless
// `holds`: this is how a target reports a finding.
void fuzz_require(bool holds, const char *what);

// fuzz_alloc returns `size` bytes that end where the block ends.
void *fuzz_alloc(size_t size);

// fuzz_copy returns a copy of bytes in a block of their own.
void *fuzz_copy(const void *bytes, size_t size);

// fuzz_spec writes a spec that the input's next bytes choose: a compressor or
// an alias with any of its settings, and after a sparsifier perhaps another.
// A byte 0 leaves a setting at its default.
void fuzz_spec(fuzz_input *input, char spec[FUZZ_SPEC_SIZE]);

// fuzz_key returns the key for a scope, always the same.
lac_key fuzz_key(uint8_t scope);

// fuzz_same returns whether two arrays have the same bits. Any NaN equals any
// other.
bool fuzz_same(const float *a, const float *b, size_t n);

#endif
