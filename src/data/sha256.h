// SPDX-License-Identifier: MIT
// SHA-256 (FIPS 180-4), to verify downloads.
#ifndef LACONIC_DATA_SHA256_H
#define LACONIC_DATA_SHA256_H

#include "data/file.h"

enum { DATA_SHA256_SIZE = 65 };

// data_sha256 writes the hash as 64 hexadecimal digits and a zero byte.
void data_sha256(
    const uint8_t *data, size_t len, char digits_out[DATA_SHA256_SIZE]);

// data_sha256_check compares the hash of `bytes` with `digits`.
// Fails with LAC_ERR_CORRUPT.
lac_status data_sha256_check(const data_bytes *bytes, const char *digits);

#endif
