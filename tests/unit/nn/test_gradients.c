// SPDX-License-Identifier: MIT
// Gradients of every kind of layer, and of whole models, against differences of
// the loss.
//
// The loss is a double made of float logits: with some rounding errors of
// 2^-24 each in logits of up to 16, it is known to about 2^-20, so that a
// difference with step h has an error of 2^-20 / h. Differences with h and h/2
// together leave an error of h^4 / 480 times the fifth derivative.
#include "network_test.h"

#include <math.h>
#include <string.h>

static double loss_of(test_network *t)
{
    assert_ok(test_gradient(t));
    return t->score.loss / (double)t->score.count;
}

// The derivative of the loss along `direction`, by one central difference.
static double difference(test_network *t, const float *direction, double step)
{
    float *const start = test_values(t->n, sizeof(float));
    float *const kept = test_values(t->n, sizeof(float));
    memcpy(start, t->parameters, t->n * sizeof(float));
    memcpy(kept, t->gradient, t->n * sizeof(float));
    double loss[2];
    for (int side = 0; side < 2; side++) {
        const double way = side == 0 ? -step : step;
        for (size_t i = 0; i < t->n; i++) {
            t->parameters[i] =
                (float)((double)start[i] + way * (double)direction[i]);
        }
        loss[side] = loss_of(t);
    }
    memcpy(t->parameters, start, t->n * sizeof(float));
    memcpy(t->gradient, kept, t->n * sizeof(float));
    free(start);
    free(kept);
    return (loss[1] - loss[0]) / (2 * step);
}

static double slope(test_network *t, const float *direction, double step)
{
    const double wide = difference(t, direction, step);
    const double narrow = difference(t, direction, step / 2);
    return (4 * narrow - wide) / 3;
}

// Some parameters of every tensor, one at a time. For losses without kinks
// near by: with h = 2^-6 rounding gives 2^-14, in the narrow difference twice
// that; the fifth derivatives are below 20^5 for values up to 20, which gives
// 2^-11 at worst.
static void check_single_parameters(test_network *t)
{
    const double step = 0x1p-6, tolerance = 0x1p-11;
    const lac_layout *const layout = nn_network_layout(t->net);
    float *const direction = test_values(t->n, sizeof(float));
    double largest = 0;
    (void)loss_of(t);
    for (size_t k = 0; k < lac_layout_count(layout); k++) {
        const lac_tensor *const tensor = lac_layout_tensor(layout, k);
        const size_t n = tensor->shape.rows * tensor->shape.cols;
        for (size_t i = 0; i < n; i += 1 + n / 5) {
            const size_t at = tensor->offset + i;
            direction[at] = 1;
            const double expected = slope(t, direction, step);
            direction[at] = 0;
            const double error = fabs((double)t->gradient[at] - expected);
            if (error > tolerance) {
                print_error(
                    "%s[%zu]: %g, expected %g\n", tensor->name, i,
                    (double)t->gradient[at], expected);
            }
            assert_true(error <= tolerance);
            largest = fmax(largest, fabs(expected));
        }
    }
    assert_true(largest > 100 * tolerance);
    free(direction);
}

// Moves the biases of this name far from 0, up and down in turn, so that no
// step moves a value across the kink of a ReLU.
static void keep_from_kinks(
    test_network *t, const char *name, size_t n, float distance)
{
    float *const bias = test_tensor(t, name);
    for (size_t i = 0; i < n; i++) {
        bias[i] = i % 3 == 0 ? -distance : distance;
    }
}

static const nn_window three = {.kernel = 3, .stride = 1, .pad = 1};
static const nn_window strided = {.kernel = 3, .stride = 2, .pad = 1};
static const nn_window half = {.kernel = 2, .stride = 2};

static void describe_linear(nn_graph *g, const void *shape)
{
    (void)shape;
    nn_linear(g, "a", 7, true);
    nn_relu(g);
    nn_linear(g, "b", g->sample.classes, true);
}

static void fully_connected_layers_and_relu(void **state)
{
    (void)state;
    test_network t =
        open_described(describe_linear, (nn_sample){1, 1, 5, 3}, 6, true);
    keep_from_kinks(&t, "a.bias", 7, 6);
    check_single_parameters(&t);
    close_full_network(&t);
}

static void describe_convs(nn_graph *g, const void *shape)
{
    (void)shape;
    nn_conv(g, "a", 5, three, true);
    nn_relu(g);
    nn_conv(g, "b", 20, strided, true);
    nn_relu(g);
    nn_conv(g, "c", 3, (nn_window){.kernel = 1, .stride = 1}, false);
    nn_linear(g, "d", g->sample.classes, true);
}

static void convolutions_of_all_windows(void **state)
{
    (void)state;
    test_network t =
        open_described(describe_convs, (nn_sample){2, 7, 6, 3}, 3, true);
    keep_from_kinks(&t, "a.bias", 5, 6);
    keep_from_kinks(&t, "b.bias", 20, 20);
    check_single_parameters(&t);
    close_full_network(&t);
}

static void describe_max(nn_graph *g, const void *shape)
{
    (void)shape;
    nn_conv(g, "a", 4, (nn_window){.kernel = 1, .stride = 1}, true);
    nn_relu(g);
    nn_max_pool(g, half);
    nn_linear(g, "b", g->sample.classes, true);
}

static void maxima(void **state)
{
    (void)state;
    test_network t =
        open_described(describe_max, (nn_sample){1, 6, 4, 3}, 3, true);
    // One channel in and windows of 1: which is the largest depends on the
    // sign of the weight alone, and no sign changes.
    float *const weight = test_tensor(&t, "a.weight");
    for (size_t i = 0; i < 4; i++) {
        weight[i] = i % 2 == 0 ? 0.5F : -0.5F;
    }
    keep_from_kinks(&t, "a.bias", 4, 6);
    check_single_parameters(&t);
    close_full_network(&t);
}

static void describe_norm(nn_graph *g, const void *shape)
{
    (void)shape;
    nn_conv(g, "a", 6, three, false);
    nn_norm(g, "b");
    nn_relu(g);
    nn_conv(g, "c", 5, half, false);
    nn_norm(g, "d");
    nn_mean_pool(g);
    nn_linear(g, "e", g->sample.classes, true);
}

static void batch_norms_and_means(void **state)
{
    (void)state;
    test_network t =
        open_described(describe_norm, (nn_sample){2, 4, 4, 3}, 4, true);
    keep_from_kinks(&t, "b.bias", 6, 6);
    check_single_parameters(&t);
    close_full_network(&t);
}

static void describe_joins(nn_graph *g, const void *shape)
{
    (void)shape;
    nn_conv(g, "a", 4, three, true);
    const size_t entry = nn_here(g);
    nn_conv(g, "b", 4, three, true);
    nn_relu(g);
    nn_residual(g, entry);
    nn_relu(g);
    const size_t second = nn_here(g);
    nn_conv(g, "c", 6, strided, true);
    const size_t body = nn_here(g);
    nn_from(g, second);
    nn_conv(g, "d", 6, strided, true);
    nn_residual(g, body);
    nn_linear(g, "e", g->sample.classes, true);
}

static void branches_and_their_sums(void **state)
{
    (void)state;
    test_network t =
        open_described(describe_joins, (nn_sample){2, 4, 4, 3}, 3, true);
    // Opposite signs: the sum is positive where the ReLU of b is 0.
    keep_from_kinks(&t, "a.bias", 4, -8);
    keep_from_kinks(&t, "b.bias", 4, 30);
    check_single_parameters(&t);
    close_full_network(&t);
}

// A whole model, a tensor at a time and along its own gradient, where the
// derivative is the length of it. Kinks are met on the way: with a step of
// 2^-8, values within some 2^-8 of a kink change sides, and the derivatives
// that they carry appear or vanish. That is less than a percent of all there
// are, but a derivative can be a difference of larger ones: 3 %.
static void check_model(test_network *t)
{
    const double step = 0x1p-8, tolerance = 0.03;
    const lac_layout *const layout = nn_network_layout(t->net);
    float *const direction = test_values(t->n, sizeof(float));
    (void)loss_of(t);
    for (size_t k = 0; k < lac_layout_count(layout); k++) {
        const lac_tensor *const tensor = lac_layout_tensor(layout, k);
        const size_t n = tensor->shape.rows * tensor->shape.cols;
        double square = 0;
        for (size_t i = 0; i < n; i++) {
            const double g = (double)t->gradient[tensor->offset + i];
            square += g * g;
        }
        const double length = sqrt(square);
        assert_true(length > 0);
        for (size_t i = 0; i < n; i++) {
            direction[tensor->offset + i] =
                (float)((double)t->gradient[tensor->offset + i] / length);
        }
        const double expected = slope(t, direction, step);
        memset(direction + tensor->offset, 0, n * sizeof(float));
        if (fabs(length - expected) > tolerance * expected) {
            print_error(
                "%s: %g, expected %g\n", tensor->name, length, expected);
        }
        assert_true(fabs(length - expected) <= tolerance * expected);
    }
    free(direction);
}

static void all_of_lenet(void **state)
{
    (void)state;
    test_network t =
        open_test_network("lenet", (nn_sample){1, 28, 28, 10}, 64, true);
    check_model(&t);
    close_full_network(&t);
}

static void all_of_resnet8(void **state)
{
    (void)state;
    test_network t =
        open_test_network("resnet8", (nn_sample){3, 16, 16, 10}, 8, true);
    check_model(&t);
    close_full_network(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fully_connected_layers_and_relu),
        cmocka_unit_test(convolutions_of_all_windows),
        cmocka_unit_test(maxima),
        cmocka_unit_test(batch_norms_and_means),
        cmocka_unit_test(branches_and_their_sums),
        cmocka_unit_test(all_of_lenet),
        cmocka_unit_test(all_of_resnet8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
