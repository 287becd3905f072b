// Send a tensor in fewer bytes: encode it here, decode it elsewhere.
#include <laconic/laconic.h>

#include <stdio.h>

int main(void)
{
    enum { N = 1000 };
    float x[N], y[N];
    unsigned char payload[4 * N];
    size_t len = 0;
    const lac_shape shape = {N, 1};
    const lac_key key = lac_key_make( // seed, what for, round, who, tensor
        1, LAC_PURPOSE_COMPRESS, 0, lac_scope_worker(0), lac_name_hash("x"));
    for (unsigned i = 0; i < N; i++) {
        x[i] = lac_key_normal(&key, i);
    }
    lac_compressor *c = NULL;
    if (lac_compressor_open(&c, "natural", LAC_FORM_PLAIN) != LAC_OK ||
        lac_compressor_reserve(c, shape) != LAC_OK ||
        lac_compressor_encode(
            c, &key, shape, x, payload, sizeof(payload), &len) != LAC_OK ||
        lac_compressor_decode(c, &key, shape, payload, len, y) != LAC_OK) {
        fprintf(stderr, "%s\n", lac_error_message());
        return 1;
    }
    printf(
        "%d values in %zu bytes; %g became %g\n", N, len, (double)x[0],
        (double)y[0]);
    lac_compressor_close(c);
    return 0;
}
