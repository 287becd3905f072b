// SPDX-License-Identifier: MIT
// Dirichlet shares: Gamma variates divided by their sum. Gamma(a) for a >= 1 by
// Marsaglia and Tsang, "A simple method for generating gamma variables" (2000):
// with d = a - 1/3, c = 1 / sqrt(9 d), x normal and v = (1 + c x)^3, d v is
// accepted if log u < x^2 / 2 + d - d v + d log v. For a < 1 it is Gamma(a + 1)
// times u^(1/a). All values are logarithms, because with a small alpha that
// power is below the smallest double.
#include "data/dirichlet.h"

#include <math.h>

enum { DRAWS_EACH = 1 << 12 }; // draws reserved for one share

// The draws of one share, one after the other.
typedef struct stream {
    const lac_key *key;
    uint32_t next;
} stream;

double data_log(double x)
{
    static const double ln2 = 0.693147180559945309417;
    int exponent;
    double m = frexp(x, &exponent);
    if (m < 0.70710678118654752440) {
        m *= 2;
        exponent--;
    }
    // log m = 2 atanh(s), |s| < 0.172, so that 12 terms are enough.
    const double s = (m - 1) / (m + 1), square = s * s;
    double sum = 0;
    for (int k = 25; k >= 1; k -= 2) {
        sum = sum * square + 1.0 / k;
    }
    return exponent * ln2 + 2 * s * sum;
}

double data_exp(double x)
{
    static const double ln2 = 0.693147180559945309417;
    if (x < -700) {
        return 0;
    }
    const double power = floor(x / ln2 + 0.5);
    const double rest = x - power * ln2;
    double sum = 1;
    for (int k = 18; k >= 1; k--) {
        sum = 1 + sum * rest / k;
    }
    return ldexp(sum, (int)power);
}

// In (0, 1), with 53 bits of two draws.
static double uniform(stream *s)
{
    const uint64_t high = lac_key_draw(s->key, s->next++);
    const uint64_t low = lac_key_draw(s->key, s->next++);
    return ((double)((high << 32 | low) >> 12) + 0.5) * 0x1p-52;
}

// Marsaglia's polar method; the second deviate of a pair is not used.
static double normal(stream *s)
{
    for (;;) {
        const double x = 2 * uniform(s) - 1, y = 2 * uniform(s) - 1;
        const double r = x * x + y * y;
        if (r > 0 && r < 1) {
            return x * sqrt(-2 * data_log(r) / r);
        }
    }
}

static double log_gamma_at_least_one(stream *s, double a)
{
    const double d = a - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        const double x = normal(s), root = 1 + c * x;
        if (root <= 0) {
            continue;
        }
        const double v = root * root * root, log_v = data_log(v);
        if (data_log(uniform(s)) < x * x / 2 + d - d * v + d * log_v) {
            return data_log(d) + log_v;
        }
    }
}

static double log_gamma_variate(stream *s, double a)
{
    if (a >= 1) {
        return log_gamma_at_least_one(s, a);
    }
    const double boost = data_log(uniform(s)) / a;
    return log_gamma_at_least_one(s, a + 1) + boost;
}

// Writes the logarithms of the Gamma variates and returns the largest.
static double log_gamma_variates(
    const lac_key *key, double alpha, size_t n, double *logs_out)
{
    double max = -HUGE_VAL;
    for (size_t i = 0; i < n; i++) {
        stream s = {key, (uint32_t)(i * DRAWS_EACH)};
        logs_out[i] = log_gamma_variate(&s, alpha);
        max = logs_out[i] > max ? logs_out[i] : max;
    }
    return max;
}

void data_dirichlet(
    const lac_key *key, double alpha, size_t n, double *shares_out)
{
    const double max = log_gamma_variates(key, alpha, n, shares_out);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        shares_out[i] = data_exp(shares_out[i] - max);
        sum += shares_out[i];
    }
    for (size_t i = 0; i < n; i++) {
        shares_out[i] /= sum;
    }
}

void data_log_dirichlet(
    const lac_key *key, double alpha, size_t n, double *logs_out)
{
    const double max = log_gamma_variates(key, alpha, n, logs_out);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += data_exp(logs_out[i] - max);
    }
    const double log_sum = max + data_log(sum);
    for (size_t i = 0; i < n; i++) {
        logs_out[i] -= log_sum;
    }
}
