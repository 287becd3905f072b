// SPDX-License-Identifier: MIT
// The text format of LIBSVM: one example per line, "label index:value ...",
// with ascending indices from 1; a # starts a comment.
#ifndef LACONIC_DATA_LIBSVM_H
#define LACONIC_DATA_LIBSVM_H

#include "data/file.h"

// A sparse table, row by row (CSR).
typedef struct data_table {
    size_t count;     // rows
    size_t values;    // in all rows
    uint32_t width;   // the largest column + 1
    double *label;    // of every row, as written
    size_t *start;    // count + 1: where the values of a row begin
    uint32_t *column; // of every value, from 0
    float *value;
} data_table;

enum { DATA_TABLE_WIDTH_MAX = 1 << 24 };

// data_libsvm_parse parses a table, which data_table_free frees.
// Fails with LAC_ERR_CORRUPT or LAC_ERR_NOMEM; `*out` is then empty.
lac_status data_libsvm_parse(const data_bytes *bytes, data_table *out);

void data_table_free(data_table *table);

#endif
