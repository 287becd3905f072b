// SPDX-License-Identifier: MIT
// Feed-forward networks: their layouts, the options they reject, and their
// predictions. test_gradients.c has the derivatives.
#include "network_test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "nn/layouts.h"

static const nn_sample digits = {1, 28, 28, 10};
static const nn_sample photos = {3, 32, 32, 10};

static const struct {
    const char *model;
    const nn_sample *sample;
} models[] = {
    {"logistic", &digits}, {"mlp", &digits},      {"lenet", &digits},
    {"resnet8", &photos},  {"resnet20", &photos}, {"resnet18", &photos},
};
enum { MODELS = sizeof(models) / sizeof(models[0]) };

static void vectors_are_those_that_laconic_size_speaks_of(void **state)
{
    (void)state;
    for (size_t i = 0; i < MODELS; i++) {
        lac_layout *layout = NULL;
        assert_ok(nn_layout_open(&layout, models[i].model));
        for (int training = 0; training < 2; training++) {
            test_network t = open_test_network(
                models[i].model, *models[i].sample, 1, training == 1);
            assert_true(
                lac_layout_hash(nn_network_layout(t.net)) ==
                lac_layout_hash(layout));
            assert_int_equal(nn_network_carry(t.net), 0);
            close_full_network(&t);
        }
        lac_layout_close(layout);
    }
}

static void dimensions_are_those_of_pytorch(void **state)
{
    (void)state;
    size_t d[NN_DIMENSIONS_MAX];
    test_network t = open_test_network("lenet", digits, 1, false);
    assert_int_equal(nn_network_dimensions(t.net, 2, d), 4);
    assert_int_equal(d[0], 16);
    assert_int_equal(d[1], 6);
    assert_int_equal(d[2], 5);
    assert_int_equal(d[3], 5);
    assert_int_equal(nn_network_dimensions(t.net, 3, d), 1);
    assert_int_equal(d[0], 16);
    assert_int_equal(nn_network_dimensions(t.net, 4, d), 2);
    assert_int_equal(d[0], 120);
    assert_int_equal(d[1], 400);
    close_full_network(&t);
}

static void models_adapt_to_the_examples(void **state)
{
    (void)state;
    static const struct {
        const char *model, *tensor;
        nn_sample sample;
        lac_shape shape;
    } cases[] = {
        {"logistic", "fc.weight", {1, 1, 123, 2}, {2, 123}},
        {"mlp", "fc1.weight", {3, 32, 32, 10}, {512, 3072}},
        {"lenet", "conv1.weight", {3, 32, 32, 10}, {6, 75}},
        {"lenet", "fc1.weight", {3, 32, 32, 10}, {120, 400}},
        {"lenet", "fc3.weight", {1, 28, 28, 47}, {47, 84}},
        {"resnet8", "conv1.weight", {1, 28, 28, 10}, {16, 9}},
        {"resnet8", "fc.weight", {3, 32, 32, 100}, {100, 64}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        test_network t =
            open_test_network(cases[i].model, cases[i].sample, 4, true);
        const lac_tensor *const tensor =
            lac_layout_find(nn_network_layout(t.net), cases[i].tensor);
        assert_non_null(tensor);
        assert_int_equal(tensor->shape.rows, cases[i].shape.rows);
        assert_int_equal(tensor->shape.cols, cases[i].shape.cols);
        assert_ok(test_gradient(&t));
        assert_true(isfinite(t.score.loss) && t.score.loss > 0);
        assert_int_equal(t.score.count, 4);
        close_full_network(&t);
    }
}

static void refuse(const char *model, nn_sample sample, const char *message)
{
    const nn_options options = {.model = model, .sample = sample, .batch = 2};
    nn_network *net = NULL;
    assert_fails(nn_network_open(&net, &options), LAC_ERR_INVALID, message);
    assert_null(net);
}

static void examples_that_do_not_fit_are_refused_with_a_message(void **state)
{
    (void)state;
    refuse(
        "lenet", (nn_sample){1, 1, 123, 2},
        "lenet: examples are 1 x 1 x 123, expected images of 28 x 28 or 32 x "
        "32");
    refuse(
        "resnet20", (nn_sample){1, 1, 123, 2},
        "resnet20: examples are 1 x 1 x 123, expected images of at least 8 x "
        "8");
    refuse(
        "mlp", (nn_sample){0, 0, 0, 10000},
        "mlp: examples are words, expected images or rows");
    refuse(
        "mlp", (nn_sample){1, 28, 28, 1},
        "mlp: examples have 1 classes, expected 2 or more");
    refuse(
        "resnet50", photos,
        "resnet50: only its shapes are known, expected a model that can be "
        "trained");
}

static void calls_that_were_not_planned_are_refused(void **state)
{
    (void)state;
    test_network t = open_test_network("logistic", digits, 4, true);
    assert_fails(
        test_evaluate(&t), LAC_ERR_INVALID,
        "logistic: was opened for training, expected to evaluate");
    t.batch.count = 3;
    assert_fails(
        test_gradient(&t), LAC_ERR_INVALID,
        "logistic: a batch has 3 examples, expected 4");
    t.batch.count = 4;
    t.labels[3] = 10;
    assert_fails(
        test_gradient(&t), LAC_ERR_INVALID,
        "logistic: a label is 10, expected below 10");
    close_full_network(&t);
    t = open_test_network("logistic", digits, 4, false);
    assert_fails(
        test_gradient(&t), LAC_ERR_INVALID,
        "logistic: was opened to evaluate, expected for training");
    t.batch.count = 5;
    assert_fails(
        test_evaluate(&t), LAC_ERR_INVALID,
        "logistic: a batch has 5 examples, expected from 1 to 4");
    close_full_network(&t);
}

// Predictions of 7 examples that are NaN do not affect 3 others that follow,
// alone or as the first of 8.
static void places_without_examples_have_no_influence(void **state)
{
    (void)state;
    for (size_t m = 0; m < MODELS - 1; m++) {
        test_network t =
            open_test_network(models[m].model, *models[m].sample, 8, false);
        t.batch.count = 3;
        assert_ok(test_evaluate(&t));
        const nn_score alone = t.score;
        assert_int_equal(alone.count, 3);
        float *const strange = test_values(7 * t.size, sizeof(float));
        for (size_t i = 0; i < 7 * t.size; i++) {
            strange[i] = NAN;
        }
        t.batch = (nn_batch){.count = 7, .x = strange, .labels = t.labels};
        assert_ok(test_evaluate(&t));
        t.batch = (nn_batch){.count = 3, .x = t.x, .labels = t.labels};
        assert_ok(test_evaluate(&t));
        assert_memory_equal(&t.score, &alone, sizeof(alone));
        free(strange);
        close_full_network(&t);
    }
}

// The prediction of an example does not depend on its position in a batch,
// except for the order of sums in a matrix product: sums of up to 400 products
// round by some 2^-24 of logits below 1 each, so losses are equal to within
// 1e-5.
static void batches_of_any_size_give_the_same_predictions(void **state)
{
    (void)state;
    test_network t = open_test_network("lenet", digits, 8, false);
    assert_ok(test_evaluate(&t));
    const nn_score whole = t.score;
    double loss = 0;
    uint64_t correct = 0;
    for (uint32_t i = 0; i < 8; i++) {
        t.batch = (nn_batch){
            .count = 1, .x = t.x + i * t.size, .labels = &t.labels[i]};
        assert_ok(test_evaluate(&t));
        loss += t.score.loss;
        correct += t.score.correct;
    }
    assert_true(fabs(loss - whole.loss) < 1e-5 * whole.loss);
    assert_int_equal(correct, whole.correct);
    close_full_network(&t);
}

// The output of a layer with zero weights is its bias.
static double loss_with_bias(test_network *t, const char *layer, float bias)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%s.weight", layer);
    const lac_layout *const layout = nn_network_layout(t->net);
    const lac_tensor *const weight = lac_layout_find(layout, name);
    assert_non_null(weight);
    const size_t n = weight->shape.rows * weight->shape.cols;
    float *const values = t->parameters + weight->offset;
    memset(values, 0, n * sizeof(float));
    for (size_t i = 0; i < weight->shape.rows; i++) {
        values[n + i] = bias;
    }
    assert_ok(test_evaluate(t));
    return t->score.loss;
}

// This relies on biases following their weights in the vector.
static void what_is_negative_ends_at_every_relu(void **state)
{
    (void)state;
    static const struct {
        const char *model, *layer;
    } cases[] = {
        {"mlp", "fc1"},
        {"lenet", "conv1"},
        {"lenet", "conv2"},
        {"lenet", "fc1"},
        {"lenet", "fc2"},
        {"resnet8", "bn1"},
        {"resnet8", "layer1.0.bn1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const bool image = strcmp(cases[i].model, "resnet8") == 0;
        test_network t = open_test_network(
            cases[i].model, image ? photos : digits, 2, false);
        const double zero = loss_with_bias(&t, cases[i].layer, 0);
        assert_true(loss_with_bias(&t, cases[i].layer, -1) == zero);
        assert_true(loss_with_bias(&t, cases[i].layer, 1) != zero);
        close_full_network(&t);
    }
}

// With the batch norm of the body far below 0, the ReLU of the sum is 0 unless
// the shortcut raises it.
static void the_sum_of_branches_ends_at_a_relu(void **state)
{
    (void)state;
    test_network t = open_test_network("resnet8", photos, 2, false);
    const double far = loss_with_bias(&t, "layer3.0.bn2", -1e6F);
    assert_true(loss_with_bias(&t, "layer3.0.bn2", -2e6F) == far);
    assert_true(loss_with_bias(&t, "layer3.0.bn2", 0) != far);
    close_full_network(&t);
}

static void describe_norm_only(nn_graph *g, const void *shape)
{
    (void)shape;
    nn_norm(g, "n");
    nn_linear(g, "fc", g->sample.classes, true);
}

// As in PyTorch: 0.9 of the old value and 0.1 of the mean and of the unbiased
// variance over examples and positions. Sums of 24 floats: some 2^-22.
static void running_means_follow_the_batches(void **state)
{
    (void)state;
    const nn_sample sample = {2, 2, 3, 3};
    const size_t places = 6, batch = 4;
    test_network t = open_described(describe_norm_only, sample, 4, true);
    for (size_t c = 0; c < 2; c++) {
        t.statistics[c] = 0.5F;
        t.statistics[2 + c] = 3;
    }
    assert_ok(test_gradient(&t));
    for (size_t c = 0; c < 2; c++) {
        const double n = (double)(batch * places);
        double mean = 0, variance = 0;
        for (size_t i = 0; i < batch * places; i++) {
            mean += (double)t.x[(i / places * 2 + c) * places + i % places] / n;
        }
        for (size_t i = 0; i < batch * places; i++) {
            const double x =
                (double)t.x[(i / places * 2 + c) * places + i % places];
            variance += (x - mean) * (x - mean) / (n - 1);
        }
        const double running = 0.9 * 0.5 + 0.1 * mean;
        assert_true(fabs((double)t.statistics[c] - running) < 0x1p-22);
        const double spread = 0.9 * 3 + 0.1 * variance;
        assert_true(fabs((double)t.statistics[2 + c] - spread) < 0x1p-20);
    }
    assert_string_equal(
        lac_layout_tensor(nn_network_statistics(t.net), 1)->name,
        "n.running_var");
    close_full_network(&t);
}

// With a running variance of 0 the divisor is the root of 1e-5: with one value
// per example and weights 1 and -1 the logits are +-316.2 x + bias.
static void variances_are_kept_from_0(void **state)
{
    (void)state;
    test_network t =
        open_described(describe_norm_only, (nn_sample){1, 1, 1, 2}, 2, false);
    t.statistics[0] = t.statistics[1] = 0;
    const float parameters[] = {1, 0, 1, -1, 0, 0};
    memcpy(t.parameters, parameters, sizeof(parameters));
    t.x[0] = t.x[1] = 0.001F;
    assert_ok(test_evaluate(&t));
    const double z = 0.001 / sqrt(1e-5);
    const double expected = 2 * log(exp(z) + exp(-z));
    assert_true(fabs(t.score.loss - expected) < 0x1p-20);
    close_full_network(&t);
}

// After one step from 0 the running means are a tenth of the batch's. With ten
// times that (and the biased variance) evaluation gives the loss of training,
// to within the rounding of floats through nine layers.
static void predictions_use_the_running_means(void **state)
{
    (void)state;
    const uint32_t batch = 4;
    const nn_sample small = {3, 16, 16, 10};
    test_network t = open_test_network("resnet8", small, batch, true);
    memset(t.statistics, 0, t.running * sizeof(float));
    assert_ok(test_gradient(&t));
    test_network p = open_test_network("resnet8", small, batch, false);
    const lac_layout *const layout = nn_network_statistics(p.net);
    for (size_t k = 0; k < lac_layout_count(layout); k++) {
        const lac_tensor *const tensor = lac_layout_tensor(layout, k);
        size_t size = 16;
        size >>= strstr(tensor->name, "layer2") != NULL;
        size >>= strstr(tensor->name, "layer3") != NULL ? 2 : 0;
        const double n = (double)(batch * size * size);
        const bool variance = strstr(tensor->name, "_var") != NULL;
        for (size_t i = 0; i < tensor->shape.rows; i++) {
            const double value = 10 * (double)t.statistics[tensor->offset + i];
            p.statistics[tensor->offset + i] =
                (float)(variance ? value * (n - 1) / n : value);
        }
    }
    assert_ok(test_evaluate(&p));
    assert_int_equal(p.score.correct, t.score.correct);
    assert_true(fabs(p.score.loss - t.score.loss) < 1e-4 * t.score.loss);
    close_full_network(&p);
    close_full_network(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_those_that_laconic_size_speaks_of),
        cmocka_unit_test(dimensions_are_those_of_pytorch),
        cmocka_unit_test(models_adapt_to_the_examples),
        cmocka_unit_test(examples_that_do_not_fit_are_refused_with_a_message),
        cmocka_unit_test(calls_that_were_not_planned_are_refused),
        cmocka_unit_test(places_without_examples_have_no_influence),
        cmocka_unit_test(batches_of_any_size_give_the_same_predictions),
        cmocka_unit_test(what_is_negative_ends_at_every_relu),
        cmocka_unit_test(the_sum_of_branches_ends_at_a_relu),
        cmocka_unit_test(variances_are_kept_from_0),
        cmocka_unit_test(running_means_follow_the_batches),
        cmocka_unit_test(predictions_use_the_running_means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
