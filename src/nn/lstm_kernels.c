// SPDX-License-Identifier: MIT
// The loops of the language model, written so that compilers make vector code
// of them: no calls, no branches, and sums in sixteen lanes. They are compiled
// twice, for any machine and for AVX2; without fused operations both give the
// same bits.
#include "nn/lstm_kernels.h"

#include <math.h>

#include "nn/lstm_math.h"

enum {
    LANES = 16,
    RUN = 1024 // values that are added in float before double takes over
};

// Products of smaller numbers with weights would be denormal, which takes
// processors a hundred times as long and changes no weight.
#define NEGLIGIBLE 1e-30F

NN_INLINE void cell_row(const nn_cell *c, size_t row)
{
    const size_t n = c->width;
    float *restrict const i = c->gates + 4 * row * n;
    float *restrict const f = i + n;
    float *restrict const g = f + n;
    float *restrict const o = g + n;
    const float *restrict const before = c->before + row * n;
    const float *restrict const bias = c->biases;
    float *restrict const cells = c->cells + row * n;
    float *restrict const bent = c->bent + row * n;
    float *restrict const hidden = c->hidden + row * n;
    for (size_t j = 0; j < n; j++) {
        i[j] = nn_sigmoid(i[j] + bias[j]);
        f[j] = nn_sigmoid(f[j] + bias[n + j]);
        g[j] = nn_tanh(g[j] + bias[2 * n + j]);
        o[j] = nn_sigmoid(o[j] + bias[3 * n + j]);
        cells[j] = f[j] * before[j] + i[j] * g[j];
        bent[j] = nn_tanh(cells[j]);
        hidden[j] = o[j] * bent[j];
    }
}

NN_INLINE void cell_any(const nn_cell *c)
{
    for (size_t row = 0; row < c->rows; row++) {
        cell_row(c, row);
    }
}

NN_INLINE void cell_backward_row(const nn_cell_backward *c, size_t row)
{
    const size_t n = c->width;
    float *restrict const i = c->gates + 4 * row * n;
    float *restrict const f = i + n;
    float *restrict const g = f + n;
    float *restrict const o = g + n;
    const float *restrict const before = c->before + row * n;
    const float *restrict const bent = c->bent + row * n;
    const float *restrict const gradient = c->gradient + row * n;
    float *restrict const gradient_c = c->gradient_c + row * n;
    for (size_t j = 0; j < n; j++) {
        const float dh = gradient[j];
        const float dc = gradient_c[j] + dh * o[j] * (1.0F - bent[j] * bent[j]);
        gradient_c[j] = dc * f[j];
        const float di = dc * g[j] * i[j] * (1.0F - i[j]);
        f[j] = dc * before[j] * f[j] * (1.0F - f[j]);
        g[j] = dc * i[j] * (1.0F - g[j] * g[j]);
        o[j] = dh * bent[j] * o[j] * (1.0F - o[j]);
        i[j] = di;
    }
}

NN_INLINE void cell_backward_any(const nn_cell_backward *c)
{
    for (size_t row = 0; row < c->rows; row++) {
        cell_backward_row(c, row);
    }
}

NN_INLINE float add_bias_any(
    float *restrict x, const float *restrict bias, size_t n)
{
    float most[LANES];
    size_t i = 0;
    for (size_t j = 0; j < LANES; j++) {
        most[j] = -INFINITY;
    }
    for (; i + LANES <= n; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            x[i + j] += bias[i + j];
            most[j] = x[i + j] > most[j] ? x[i + j] : most[j];
        }
    }
    for (; i < n; i++) {
        x[i] += bias[i];
        most[0] = x[i] > most[0] ? x[i] : most[0];
    }
    for (size_t j = 1; j < LANES; j++) {
        most[0] = most[j] > most[0] ? most[j] : most[0];
    }
    return most[0];
}

NN_INLINE double exponentials_run(float *restrict x, float highest, size_t n)
{
    float sums[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            x[i + j] = nn_exp(x[i + j] - highest);
            sums[j] += x[i + j];
        }
    }
    double sum = 0;
    for (; i < n; i++) {
        x[i] = nn_exp(x[i] - highest);
        sum += (double)x[i];
    }
    for (size_t j = 0; j < LANES; j++) {
        sum += (double)sums[j];
    }
    return sum;
}

NN_INLINE double exponentials_any(float *x, float highest, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i += RUN) {
        sum += exponentials_run(x + i, highest, n - i < RUN ? n - i : RUN);
    }
    return sum;
}

NN_INLINE void scale_any(
    float *restrict x, float factor, float *restrict sums, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float y = x[i] * factor;
        x[i] = y < NEGLIGIBLE ? 0.0F : y;
        sums[i] += x[i];
    }
}

#define KERNELS(machine, target)                                               \
    target static void cell_##machine(const nn_cell *c)                        \
    {                                                                          \
        cell_any(c);                                                           \
    }                                                                          \
    target static void cell_backward_##machine(const nn_cell_backward *c)      \
    {                                                                          \
        cell_backward_any(c);                                                  \
    }                                                                          \
    target static float add_bias_##machine(                                    \
        float *x, const float *bias, size_t n)                                 \
    {                                                                          \
        return add_bias_any(x, bias, n);                                       \
    }                                                                          \
    target static double exponentials_##machine(                               \
        float *x, float highest, size_t n)                                     \
    {                                                                          \
        return exponentials_any(x, highest, n);                                \
    }                                                                          \
    target static void scale_##machine(                                        \
        float *x, float factor, float *sums, size_t n)                         \
    {                                                                          \
        scale_any(x, factor, sums, n);                                         \
    }                                                                          \
    static const nn_kernels kernels_##machine = {                              \
        cell_##machine, cell_backward_##machine, add_bias_##machine,           \
        exponentials_##machine, scale_##machine}

KERNELS(portable, );

const nn_kernels *nn_lstm_kernels_portable(void)
{
    return &kernels_portable;
}

#if defined(LACI_HAVE_AVX2)

KERNELS(avx2, __attribute__((target("avx2"))));

const nn_kernels *nn_lstm_kernels(void)
{
    return __builtin_cpu_supports("avx2") ? &kernels_avx2 : &kernels_portable;
}

#else

const nn_kernels *nn_lstm_kernels(void)
{
    return &kernels_portable;
}

#endif
