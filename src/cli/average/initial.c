// SPDX-License-Identifier: MIT
// Initial values that the workers of `laconic average` draw.
#include "cli/average/initial.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { VALUES_DEFAULT = 1000, VALUES_MAX = 1000000000 };

// Reads a whole number from 1 to `max` and moves behind it.
static bool take_size(const char **text, uint64_t max, uint64_t *out)
{
    char *end = NULL;
    errno = 0;
    const uint64_t value = strtoull(*text, &end, 10);
    if (**text < '0' || **text > '9' || errno != 0 || value < 1 ||
        value > max) {
        return false;
    }
    *text = end;
    *out = value;
    return true;
}

lac_status cli_initial_parse(const char *text, cli_dimensions *out)
{
    const char *at = text;
    cli_dimensions d = {1, {VALUES_DEFAULT}};
    bool good = *text == '\0' || take_size(&at, VALUES_MAX, &d.size[0]);
    if (good && *at == 'x') {
        at++;
        d.count = 2;
        good = take_size(&at, VALUES_MAX / d.size[0], &d.size[1]);
    }
    if (!good || *at != '\0') {
        return lac_fail(
            LAC_ERR_INVALID,
            "--dimension is \"%s\", expected values or rows x columns, such as "
            "1000 or 100x100, from 1 to %d values",
            text, VALUES_MAX);
    }
    *out = d;
    return LAC_OK;
}

lac_status cli_initial_check(const cli_dimensions *dimensions, uint64_t rank)
{
    const uint64_t *const size = dimensions->size;
    if (dimensions->count != 2 || size[0] == 1 || size[1] == 1) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--low-rank is %" PRIu64 ", but the values of a worker are a "
            "vector, expected a matrix: --dimension RxC",
            rank);
    }
    const uint64_t most = size[0] < size[1] ? size[0] : size[1];
    return rank <= most
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "--low-rank is %" PRIu64 ", expected at most %" PRIu64
                     ", the smaller side of the matrix",
                     rank, most);
}

static void initial_draw(
    uint64_t seed, uint32_t worker, uint64_t name_hash, float *x, size_t n)
{
    const lac_key key = lac_key_make(
        seed, LAC_PURPOSE_DATA, 0, lac_scope_worker(worker), name_hash);
    for (size_t i = 0; i < n; i++) {
        x[i] = lac_key_normal(&key, (uint32_t)i);
    }
}

void cli_initial_normal(uint64_t seed, uint32_t worker, float *x, size_t n)
{
    initial_draw(seed, worker, 0, x, n);
}

static double initial_inner_product(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    return sum;
}

lac_status cli_initial_low_rank(
    uint64_t seed, uint32_t worker, lac_shape shape, size_t rank, float *x)
{
    const size_t left_n = shape.rows * rank, right_n = shape.cols * rank;
    float *const left = calloc(left_n + right_n, sizeof(*left));
    if (left == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "no memory for the factors of worker %u", worker);
    }
    float *const right = left + left_n;
    const double scale = 1 / sqrt((double)rank);
    initial_draw(seed, worker, lac_name_hash("left"), left, left_n);
    initial_draw(seed, worker, lac_name_hash("right"), right, right_n);
    for (size_t i = 0; i < shape.rows; i++) {
        for (size_t k = 0; k < shape.cols; k++) {
            const double product =
                initial_inner_product(left + i * rank, right + k * rank, rank);
            x[i * shape.cols + k] = (float)(scale * product);
        }
    }
    free(left);
    return LAC_OK;
}
