// SPDX-License-Identifier: MIT
// A minimal C program outside the tree: a round trip through identity.
#include <laconic/laconic.h>

#include <stdio.h>
#include <string.h>

enum { ROWS = 4, COLS = 2, VALUES = ROWS * COLS };

int main(void)
{
    const float x[VALUES] = {1, -2, 3, -4, 5, -6, 7, -8};
    const lac_shape shape = {ROWS, COLS};
    const lac_key key = lac_key_make(
        1, LAC_PURPOSE_COMPRESS, 0, lac_scope_worker(0), lac_name_hash("x"));
    float y[VALUES] = {0};
    unsigned char payload[256];
    size_t len = 0;
    lac_compressor *c = NULL;
    if (strcmp(lac_version(), LAC_VERSION_STRING) != 0 ||
        lac_compressor_open(&c, "identity", LAC_FORM_PLAIN) != LAC_OK ||
        lac_compressor_reserve(c, shape) != LAC_OK ||
        lac_compressor_encode(
            c, &key, shape, x, payload, sizeof(payload), &len) != LAC_OK ||
        lac_compressor_decode(c, &key, shape, payload, len, y) != LAC_OK) {
        (void)fprintf(stderr, "%s\n", lac_error_message());
        return 1;
    }
    lac_compressor_close(c);
    return memcmp(x, y, sizeof(x)) == 0 ? 0 : 1;
}
