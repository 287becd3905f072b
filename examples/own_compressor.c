// A compressor that a program defines itself: every value becomes the mean of
// the tensor, four bytes in all. The library does not change.
#include <laconic/laconic.h>

#include <stdio.h>
#include <string.h>

static size_t mean_bound(const void *state, lac_shape shape)
{
    (void)state;
    (void)shape;
    return sizeof(float);
}

// A projection never makes the error larger than the tensor itself.
static lac_guarantee mean_guarantee(
    const void *state, lac_shape shape, lac_form form)
{
    (void)state;
    (void)shape;
    (void)form;
    return (lac_guarantee){.unbiased = false, .error = 1};
}

static size_t mean_encode(
    const void *state, const lac_call *call, const float *x, uint8_t *out)
{
    (void)state;
    const size_t n = lac_shape_values(call->shape);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i];
    }
    const float mean = (float)(sum / (double)n);
    memcpy(out, &mean, sizeof(mean));
    return sizeof(mean);
}

static lac_status mean_check(
    const void *state, const lac_call *call, const uint8_t *in, size_t len)
{
    (void)state;
    (void)call;
    (void)in;
    return len == sizeof(float)
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_CORRUPT, "mean: payload has %zu bytes, expected 4",
                     len);
}

static void mean_decode(
    const void *state, const lac_call *call, const uint8_t *in, size_t len,
    float *x)
{
    (void)state;
    float mean;
    memcpy(&mean, in, len);
    for (size_t i = 0; i < lac_shape_values(call->shape); i++) {
        x[i] = mean;
    }
}

static const lac_compressor_ops mean_ops = {
    .plugin.size = sizeof(lac_compressor_ops),
    .plugin.name = "mean",
    .plugin.summary = "the mean of the tensor",
    .traits = LAC_TRAIT_LINEAR | LAC_TRAIT_DETERMINISTIC,
    .guarantee = mean_guarantee,
    .bound = mean_bound,
    .encode = mean_encode,
    .check = mean_check,
    .decode = mean_decode,
};

int main(void)
{
    const float x[4] = {1, 2, 3, 6};
    float y[4] = {0};
    unsigned char payload[sizeof(float)];
    size_t len = 0;
    const lac_shape shape = {4, 1};
    const lac_key key = lac_key_make(
        1, LAC_PURPOSE_USER, 0, lac_scope_shared(), lac_name_hash("x"));
    lac_compressor *c = NULL;
    if (lac_compressor_open_with(&c, &mean_ops, "", LAC_FORM_PLAIN) != LAC_OK ||
        lac_compressor_reserve(c, shape) != LAC_OK ||
        lac_compressor_encode(
            c, &key, shape, x, payload, sizeof(payload), &len) != LAC_OK ||
        lac_compressor_decode_add(c, &key, shape, payload, len, 1, y) !=
            LAC_OK) {
        fprintf(stderr, "%s\n", lac_error_message());
        return 1;
    }
    printf("mean %g in %zu bytes\n", (double)y[0], len);
    lac_compressor_close(c);
    return y[0] == 3 && y[3] == 3 ? 0 : 1;
}
