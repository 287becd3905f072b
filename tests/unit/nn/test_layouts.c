// SPDX-License-Identifier: MIT
// The tensors of the models: the number of values, and the sums behind the byte
// tables of PowerSGD and PowerGossip.
#include "lac_test.h"

#include "nn/layouts.h"

static lac_layout *open_model(const char *spec)
{
    lac_layout *layout = NULL;
    assert_ok(nn_layout_open(&layout, spec));
    return layout;
}

// The shapes for low-rank methods: matrices of rows x columns, and vectors.
typedef struct sums {
    size_t rows, cols, vectors;
} sums;

static sums sums_of(const char *spec)
{
    lac_layout *const layout = open_model(spec);
    sums s = {0};
    for (size_t i = 0; i < lac_layout_count(layout); i++) {
        const lac_shape shape = lac_layout_tensor(layout, i)->shape;
        if (shape.cols == 1) {
            s.vectors += shape.rows;
        } else {
            s.rows += shape.rows;
            s.cols += shape.cols;
        }
    }
    lac_layout_close(layout);
    return s;
}

static void every_model_has_as_many_parameters_as_published(void **state)
{
    static const struct {
        const char *spec;
        size_t values, tensors;
    } models[] = {
        {"logistic", 7850, 2},       {"mlp", 407050, 4},
        {"lenet", 61706, 10},        {"resnet8", 78042, 29},
        {"resnet20", 272474, 65},    {"resnet18", 11173962, 62},
        {"resnet50", 25557032, 161}, {"lstm", 28949319, 14},
    };
    (void)state;
    size_t count = 0;
    (void)nn_models(&count);
    assert_int_equal(count, sizeof(models) / sizeof(models[0]));
    for (size_t i = 0; i < count; i++) {
        lac_layout *const layout = open_model(models[i].spec);
        assert_int_equal(lac_layout_values(layout), models[i].values);
        assert_int_equal(lac_layout_count(layout), models[i].tensors);
        lac_layout_close(layout);
    }
}

static void logistic_regression_has_the_outputs_that_are_asked_for(void **state)
{
    static const struct {
        const char *spec;
        size_t values, tensors;
    } models[] = {
        {"logistic:features=123,classes=3", 372, 2},
        {"logistic:features=123,outputs=1", 124, 2},
        {"logistic:features=123,outputs=1,bias=no", 123, 1},
        {"logistic:features=123,classes=3,bias=no", 369, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        lac_layout *const layout = open_model(models[i].spec);
        assert_int_equal(lac_layout_values(layout), models[i].values);
        assert_int_equal(lac_layout_count(layout), models[i].tensors);
        lac_layout_close(layout);
    }
}

static void rows_columns_and_vectors_add_up_as_in_the_papers(void **state)
{
    (void)state;
    const sums small = sums_of("resnet20");
    assert_int_equal(small.vectors, 1578);
    assert_int_equal(small.rows, 794);
    assert_int_equal(small.cols, 5755);
    const sums large = sums_of("resnet18");
    const size_t factors = large.rows + large.cols;
    assert_int_equal(factors + large.vectors, 45935);
    assert_int_equal(2 * factors + large.vectors, 82260);
    assert_int_equal(7 * factors + large.vectors, 263885);
}

static void names_and_shapes_are_those_of_torchvision(void **state)
{
    static const struct {
        const char *model, *name;
        lac_shape shape;
    } expected[] = {
        {"lenet", "conv2.weight", {16, 150}},
        {"lenet", "fc1.weight", {120, 400}},
        {"resnet20", "conv1.weight", {16, 27}},
        {"resnet20", "layer2.0.downsample.0.weight", {32, 16}},
        {"resnet18", "layer4.1.bn2.bias", {512, 1}},
        {"resnet50", "conv1.weight", {64, 147}},
        {"resnet50", "layer1.0.downsample.1.weight", {256, 1}},
        {"resnet50", "layer3.5.conv3.weight", {1024, 256}},
        {"resnet50", "fc.weight", {1000, 2048}},
        {"lstm", "encoder.weight", {28869, 650}},
        {"lstm", "rnn.weight_ih_l2", {2600, 650}},
        {"lstm", "decoder.bias", {28869, 1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        lac_layout *const layout = open_model(expected[i].model);
        const lac_tensor *const t = lac_layout_find(layout, expected[i].name);
        assert_non_null(t);
        assert_int_equal(t->shape.rows, expected[i].shape.rows);
        assert_int_equal(t->shape.cols, expected[i].shape.cols);
        lac_layout_close(layout);
    }
}

static void tensors_come_in_the_order_they_are_used(void **state)
{
    static const char *const first[] = {
        "conv1.weight",          "bn1.weight",          "bn1.bias",
        "layer1.0.conv1.weight", "layer1.0.bn1.weight", "layer1.0.bn1.bias",
        "layer1.0.conv2.weight"};
    (void)state;
    lac_layout *const layout = open_model("resnet18");
    for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
        assert_string_equal(lac_layout_tensor(layout, i)->name, first[i]);
    }
    lac_layout_close(layout);
}

static void settings_change_the_sizes(void **state)
{
    (void)state;
    lac_layout *layout = open_model("lstm:1000,layers=1,hidden=10");
    assert_int_equal(
        lac_layout_values(layout), 1000 * 10 + 2 * 40 * 10 + 2 * 40 + 1000);
    lac_layout_close(layout);
    layout = open_model("logistic:features=2000,classes=1");
    assert_int_equal(lac_layout_values(layout), 2001);
    lac_layout_close(layout);
}

static void wrong_specs_are_refused_with_a_message(void **state)
{
    lac_layout *layout = NULL;
    (void)state;
    assert_fails(
        nn_layout_open(&layout, "resnet21"), LAC_ERR_NOTFOUND,
        "no model is named \"resnet21\"; `laconic list` shows those there are");
    assert_fails(
        nn_layout_open(&layout, "resnet20:width=2"), LAC_ERR_INVALID,
        "resnet20: \"width\" was given, but it has no settings");
    assert_fails(
        nn_layout_open(&layout, "lstm:layers=0"), LAC_ERR_INVALID,
        "lstm: layers is \"0\", expected a whole number from 1 to 1000");
    assert_null(layout);
}

static void no_memory_is_reported_and_nothing_is_lost(void **state)
{
    (void)state;
    for (long left = 0;; left++) {
        lac_layout *layout = NULL;
        test_allocations_left = left;
        const lac_status status = nn_layout_open(&layout, "resnet8");
        test_allocations_left = -1;
        if (status == LAC_OK) {
            assert_true(left > 0);
            lac_layout_close(layout);
            break;
        }
        assert_status(status, LAC_ERR_NOMEM);
        assert_null(layout);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_model_has_as_many_parameters_as_published),
        cmocka_unit_test(
            logistic_regression_has_the_outputs_that_are_asked_for),
        cmocka_unit_test(rows_columns_and_vectors_add_up_as_in_the_papers),
        cmocka_unit_test(names_and_shapes_are_those_of_torchvision),
        cmocka_unit_test(tensors_come_in_the_order_they_are_used),
        cmocka_unit_test(settings_change_the_sizes),
        cmocka_unit_test(wrong_specs_are_refused_with_a_message),
        cmocka_unit_test(no_memory_is_reported_and_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
