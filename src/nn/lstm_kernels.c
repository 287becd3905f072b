// SPDX-License-Identifier: MIT
// The loops of the language model, written so that compilers vectorise them: no
// calls, no branches, sums in lanes. They are compiled twice, for any machine
// and for AVX2. Without fused operations both give the same bits.
#include "nn/lstm_kernels.h"

#include <math.h>

#include "nn/lstm_math.h"

enum {
    LANES = 64,
    RUN = 1024 // values that are summed in float; runs are summed in double
};

// Products of smaller numbers with weights would be denormal, which makes a
// processor a hundred times slower and changes no weight.
#define NEGLIGIBLE 1e-30F

NN_INLINE void apply_sigmoid(
    float *restrict x, const float *restrict bias, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        x[j] = nn_sigmoid(x[j] + bias[j]);
    }
}

NN_INLINE void apply_tanh(
    float *restrict x, const float *restrict bias, size_t n)
{
    for (size_t j = 0; j < n; j++) {
        x[j] = nn_tanh(x[j] + bias[j]);
    }
}

NN_INLINE void update_cell(
    size_t n, const float *gates, const float *before, float *restrict cells,
    float *restrict tanh_cells, float *restrict hidden)
{
    for (size_t j = 0; j < n; j++) {
        const float i = gates[j];
        const float f = gates[n + j];
        const float g = gates[2 * n + j];
        const float c = f * before[j] + i * g;
        cells[j] = c;
        tanh_cells[j] = nn_tanh(c);
        hidden[j] = gates[3 * n + j] * tanh_cells[j];
    }
}

NN_INLINE void cell_any(const nn_cell *c)
{
    const size_t n = c->width;
    for (size_t row = 0; row < c->rows; row++) {
        float *const gates = c->gates + 4 * row * n;
        apply_sigmoid(gates, c->biases, 2 * n);
        apply_tanh(gates + 2 * n, c->biases + 2 * n, n);
        apply_sigmoid(gates + 3 * n, c->biases + 3 * n, n);
        update_cell(
            n, gates, c->before + row * n, c->cells + row * n,
            c->tanh_cells + row * n, c->hidden + row * n);
    }
}

// Replaces the gates of a row by their gradient.
NN_INLINE void update_cell_backward(
    size_t n, float *restrict gates, const float *restrict before,
    const float *restrict tanh_cells, const float *restrict gradient,
    float *restrict gradient_cells)
{
    float *const f_gates = gates + n;
    float *const g_gates = gates + 2 * n;
    float *const o_gates = gates + 3 * n;
    for (size_t j = 0; j < n; j++) {
        const float i = gates[j];
        const float f = f_gates[j];
        const float g = g_gates[j];
        const float o = o_gates[j];
        const float dh = gradient[j];
        const float dc =
            gradient_cells[j] + dh * o * (1.0F - tanh_cells[j] * tanh_cells[j]);
        gradient_cells[j] = dc * f;
        gates[j] = dc * g * i * (1.0F - i);
        f_gates[j] = dc * before[j] * f * (1.0F - f);
        g_gates[j] = dc * i * (1.0F - g * g);
        o_gates[j] = dh * tanh_cells[j] * o * (1.0F - o);
    }
}

NN_INLINE void cell_backward_any(const nn_cell_backward *c)
{
    const size_t n = c->width;
    for (size_t row = 0; row < c->rows; row++) {
        update_cell_backward(
            n, c->gates + 4 * row * n, c->before + row * n,
            c->tanh_cells + row * n, c->gradient + row * n,
            c->gradient_cells + row * n);
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
            const float y = x[i + j] + bias[i + j];
            x[i + j] = y;
            most[j] = y > most[j] ? y : most[j];
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

NN_INLINE double lane_sum(const float *x, size_t n)
{
    float sums[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (size_t j = 0; j < LANES; j++) {
            sums[j] += x[i + j];
        }
    }
    double sum = 0;
    for (; i < n; i++) {
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
        const size_t count = n - i < RUN ? n - i : RUN;
        for (size_t j = i; j < i + count; j++) {
            x[j] = nn_exp(x[j] - highest);
        }
        sum += lane_sum(x + i, count);
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

#define TARGET_portable
#define TARGET_avx2 __attribute__((target("avx2")))

#define KERNELS(machine)                                                       \
    TARGET_##machine static void cell_##machine(const nn_cell *c)              \
    {                                                                          \
        cell_any(c);                                                           \
    }                                                                          \
    TARGET_##machine static void cell_backward_##machine(                      \
        const nn_cell_backward *c)                                             \
    {                                                                          \
        cell_backward_any(c);                                                  \
    }                                                                          \
    TARGET_##machine static float add_bias_##machine(                          \
        float *x, const float *bias, size_t n)                                 \
    {                                                                          \
        return add_bias_any(x, bias, n);                                       \
    }                                                                          \
    TARGET_##machine static double exponentials_##machine(                     \
        float *x, float highest, size_t n)                                     \
    {                                                                          \
        return exponentials_any(x, highest, n);                                \
    }                                                                          \
    TARGET_##machine static void scale_##machine(                              \
        float *x, float factor, float *sums, size_t n)                         \
    {                                                                          \
        scale_any(x, factor, sums, n);                                         \
    }                                                                          \
    static const nn_kernels kernels_##machine = {                              \
        cell_##machine, cell_backward_##machine, add_bias_##machine,           \
        exponentials_##machine, scale_##machine}

KERNELS(portable);

const nn_kernels *nn_lstm_kernels_portable(void)
{
    return &kernels_portable;
}

#if defined(LACI_HAVE_AVX2)

KERNELS(avx2);

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
