// SPDX-License-Identifier: MIT
// The text format of LIBSVM: a line an example, "label index:value ...", the
// indices from 1 upwards and ascending; what follows a # is a comment.
#ifndef LACONIC_DATA_LIBSVM_H
#define LACONIC_DATA_LIBSVM_H

#include "data/file.h"

// Rows of a table without their zeros.
typedef struct data_table {
    size_t count;     // rows
    size_t values;    // in all rows
    uint32_t width;   // one more than the largest column
    double *label;    // of every row, as written
    size_t *start;    // count + 1: where the values of a row begin
    uint32_t *column; // of every value, from 0
    float *value;
} data_table;

enum { DATA_TABLE_WIDTH_MAX = 1 << 24 };

// data_libsvm_parse reads a table, to be released with data_table_free.
// Fails with LAC_ERR_CORRUPT or LAC_ERR_NOMEM; `*out` is then empty.
lac_status data_libsvm_parse(const data_bytes *bytes, data_table *out);

void data_table_free(data_table *table);

#endif
