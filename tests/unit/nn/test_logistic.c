// SPDX-License-Identifier: MIT
// Logistic regression with one output, against formulas: for labels y of -1 and
// +1 the loss is the mean of log(1 + exp(-y (x.w + b))), and its gradient the
// mean of -y x / (1 + exp(y (x.w + b))).
#include "network_test.h"

#include <math.h>

enum { WIDTH = 13, BATCH = 8 };

static const nn_sample sample = {1, 1, WIDTH, 2};

static double sign_of(uint32_t label)
{
    return label == 1 ? 1 : -1;
}

// y (x.w + b) of an example.
static double margin_of(const test_network *t, size_t i)
{
    double z = t->n > WIDTH ? (double)t->parameters[WIDTH] : 0;
    for (size_t k = 0; k < WIDTH; k++) {
        z += (double)t->x[i * WIDTH + k] * (double)t->parameters[k];
    }
    return sign_of(t->labels[i]) * z;
}

// Values up to 2 in sums of 14 and means of 8: a few roundings of 2^-24 each.
static void check_gradient(const char *model, size_t parameters)
{
    test_network t = open_test_network(model, sample, BATCH, true);
    double gradient[WIDTH + 1] = {0}, loss = 0;
    assert_int_equal(t.n, parameters);
    for (size_t i = 0; i < BATCH; i++) {
        const double margin = margin_of(&t, i);
        const double slope = -sign_of(t.labels[i]) / (1 + exp(margin)) / BATCH;
        loss += log(1 + exp(-margin));
        for (size_t k = 0; k < WIDTH; k++) {
            gradient[k] += slope * (double)t.x[i * WIDTH + k];
        }
        gradient[WIDTH] += slope;
    }
    assert_ok(test_gradient(&t));
    assert_true(fabs(t.score.loss - loss) < 1e-5);
    for (size_t k = 0; k < t.n; k++) {
        assert_true(fabs((double)t.gradient[k] - gradient[k]) < 1e-6);
        assert_true(fabs(gradient[k]) > 1e-4);
    }
    close_full_network(&t);
}

static void the_gradient_is_that_of_the_formula(void **state)
{
    (void)state;
    check_gradient("logistic:outputs=1", WIDTH + 1);
    check_gradient("logistic:outputs=1,bias=no", WIDTH);
}

static void a_positive_output_is_class_one(void **state)
{
    (void)state;
    nn_guess guesses[BATCH];
    size_t correct = 0;
    test_network t =
        open_test_network("logistic:outputs=1", sample, BATCH, false);
    t.batch.guesses = guesses;
    assert_ok(test_evaluate(&t));
    for (size_t i = 0; i < BATCH; i++) {
        const double margin = margin_of(&t, i);
        const uint32_t label = margin > 0 ? t.labels[i] : 1 - t.labels[i];
        correct += margin > 0;
        assert_int_equal(guesses[i].label, label);
        const double expected = 1 / (1 + exp(-fabs(margin)));
        assert_true(fabs(guesses[i].probability - expected) < 1e-6);
    }
    assert_int_equal(t.score.correct, correct);
    assert_between(correct, 1, BATCH - 1);
    close_full_network(&t);
}

static void one_output_has_two_classes(void **state)
{
    (void)state;
    nn_network *net = NULL;
    const nn_options options = {
        .model = "logistic:outputs=1", .sample = {1, 1, 5, 3}, .batch = 4};
    assert_fails(
        nn_network_open(&net, &options), LAC_ERR_INVALID,
        "logistic: examples have 3 classes, expected 2 for one output");
    assert_null(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_is_that_of_the_formula),
        cmocka_unit_test(a_positive_output_is_class_one),
        cmocka_unit_test(one_output_has_two_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
