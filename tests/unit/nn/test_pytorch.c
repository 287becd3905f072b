// SPDX-License-Identifier: MIT
// Whole training steps, against those of PyTorch on the same weights and data.
//
// tests/golden/pytorch_*.inc contain what tools/pytorch_reference.py recorded
// in float64: the losses of ten steps of SGD, the norm of each tensor's
// gradient in the first step and its product with a fixed vector (which detects
// permuted values, unlike the norm), the same of the running statistics
// at the end, and a prediction. The script also ran the steps in float32 with
// the examples of a batch in eight orders: `stray` is the largest
// deviation of any of them from float64: the effect of rounding alone on this
// network and this data, with its growth from step to step.
//
// Losses and statistics may be off by eight times that: the errors of a correct
// network are a sum of many small ones, of about the same size whatever the
// order in which they are added. Gradients may be off by 32 times it, since
// PyTorch adds up the sums of batch norms in double, oneDNN in single
// precision; they have 2^8 to 2^13 terms, of which the larger part cancels.
// No tolerance is below 16 roundings of a float.
#include "lac_test.h"

#include <math.h>
#include <string.h>

#include "full_network.h"

enum { STEPS = 10, BATCHES = 2 };

// The ranges of draws; tensors and steps count from their start.
enum {
    PARAMETERS = 0,
    GRADIENTS = 1000,
    STATISTICS = 2000,
    PROTOTYPES = 3000,
    EXAMPLES = 4000,
    LABELS = 5000,
    TEXT = 6000,
};

typedef struct figures {
    const char *name;
    double norm, product;
    double size; // what an error is judged by; mostly the norm
} figures;

// The initial values of a tensor: centre + 2^power * fraction, plus gap where
// the index is even and minus gap where it is odd.
typedef struct tensor_figures {
    const char *name;
    float centre, gap;
    int power;
    double norm, product, size;
} tensor_figures;

typedef struct reference {
    const char *spec;
    nn_sample sample;
    uint32_t batch, steps;
    float rate;
    double losses[STEPS];
    double evaluation; // the mean loss of one more batch
    uint64_t correct;  // in it
    const tensor_figures *gradients;
    size_t tensors;
    const figures *statistics;
    size_t statistics_count;
    struct {
        double losses, gradients, statistics; // the last two against the size
    } stray;
} reference;

#include "../../golden/pytorch_lenet.inc"
#include "../../golden/pytorch_logistic.inc"
#include "../../golden/pytorch_lstm.inc"
#include "../../golden/pytorch_mlp.inc"
#include "../../golden/pytorch_resnet20.inc"
#include "../../golden/pytorch_resnet8.inc"

enum { FORWARD_STRAYS = 8, BACKWARD_STRAYS = 32 };

static double tolerance(double strays)
{
    return fmax(strays, 16 * 0x1p-24);
}

// The last steps of SplitMix64.
static uint64_t draw(uint32_t stream, uint64_t index)
{
    uint64_t z = (uint64_t)stream << 32;
    z = (z + index + 1) * 0x9E3779B97F4A7C15U;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
}

// A multiple of 2^-15 in [-1, 1): few bits, so that sums are exact.
static float fraction(uint32_t stream, uint64_t index)
{
    return ((float)(draw(stream, index) >> 48) - 0x1p15F) * 0x1p-15F;
}

// Sets the parameters; the statistics are the initial ones of the network.
static void set_parameters(const reference *r, full_network *t)
{
    const lac_layout *const layout = nn_network_layout(t->net);
    assert_int_equal(lac_layout_count(layout), r->tensors);
    nn_network_initialise(t->net, 1, t->parameters, t->statistics);
    for (size_t k = 0; k < r->tensors; k++) {
        const lac_tensor *const tensor = lac_layout_tensor(layout, k);
        const tensor_figures *const f = &r->gradients[k];
        assert_string_equal(tensor->name, f->name);
        const size_t n = tensor->shape.rows * tensor->shape.cols;
        for (size_t i = 0; i < n; i++) {
            const float u = fraction(PARAMETERS + (uint32_t)k, i);
            t->parameters[tensor->offset + i] =
                f->centre + ldexpf(u, f->power) + (i % 2 ? -f->gap : f->gap);
        }
    }
}

static nn_options options_of(const reference *r, bool training)
{
    return (nn_options){
        .model = r->spec,
        .sample = r->sample,
        .batch = r->batch,
        .steps = r->steps,
        .training = training,
    };
}

// An image is that of its class, plus noise as strong.
static void draw_images(const reference *r, uint32_t step, full_network *t)
{
    const size_t size = t->size;
    step %= BATCHES;
    for (uint32_t b = 0; b < r->batch; b++) {
        const uint32_t label =
            (uint32_t)((draw(LABELS + step, b) >> 32) % r->sample.classes);
        t->labels[b] = label;
        for (size_t i = 0; i < size; i++) {
            t->x[b * size + i] = fraction(PROTOTYPES + label, i) +
                                 fraction(EXAMPLES + step, b * size + i);
        }
    }
}

static uint32_t word(const reference *r, uint32_t time, uint32_t row)
{
    const uint64_t coin = draw(TEXT, (uint64_t)time * r->batch + row) >> 63;
    return (uint32_t)((13 * row + 3 * time + coin) % r->sample.classes);
}

// Rows of words, each about three above the one before.
static void draw_text(const reference *r, uint32_t step, full_network *t)
{
    for (uint32_t i = 0; i < r->steps; i++) {
        const uint32_t time = step * r->steps + i;
        for (uint32_t b = 0; b < r->batch; b++) {
            t->tokens[i * r->batch + b] = word(r, time, b);
            t->labels[i * r->batch + b] = word(r, time + 1, b);
        }
    }
}

static void draw_examples(const reference *r, uint32_t step, full_network *t)
{
    if (r->steps > 0) {
        draw_text(r, step, t);
    } else {
        draw_images(r, step, t);
    }
}

static void check(
    const reference *r, const char *what, double got, double expected,
    double allowed)
{
    // A NaN is not within anything.
    if (!(fabs(got - expected) <= allowed)) {
        print_error(
            "%s: %s is %.9g, expected %.9g, off by %.2g where %.2g is "
            "allowed\n",
            r->spec, what, got, expected, fabs(got - expected), allowed);
        fail();
    }
}

// Compares the norm of a tensor, and its product with fractions.
static void check_figures(
    const reference *r, const figures *f, const float *values, size_t n,
    uint32_t stream, double strays)
{
    double square = 0, product = 0;
    for (size_t i = 0; i < n; i++) {
        const double v = (double)values[i];
        square += v * v;
        product += v * (double)fraction(stream, i);
    }
    const double allowed = tolerance(strays) * f->size;
    check(r, f->name, sqrt(square), f->norm, allowed);
    check(r, f->name, product, f->product, allowed);
}

static void check_gradients(const reference *r, const full_network *t)
{
    const lac_layout *const layout = nn_network_layout(t->net);
    for (size_t k = 0; k < r->tensors; k++) {
        const lac_tensor *const tensor = lac_layout_tensor(layout, k);
        const tensor_figures *const f = &r->gradients[k];
        check_figures(
            r, &(figures){f->name, f->norm, f->product, f->size},
            t->gradient + tensor->offset,
            tensor->shape.rows * tensor->shape.cols, GRADIENTS + (uint32_t)k,
            BACKWARD_STRAYS * r->stray.gradients);
    }
}

static void check_statistics(const reference *r, const full_network *t)
{
    const lac_layout *const layout = nn_network_statistics(t->net);
    assert_int_equal(lac_layout_count(layout), r->statistics_count);
    for (size_t k = 0; k < r->statistics_count; k++) {
        const lac_tensor *const tensor = lac_layout_tensor(layout, k);
        const figures *const f = &r->statistics[k];
        assert_string_equal(tensor->name, f->name);
        check_figures(
            r, f, t->statistics + tensor->offset,
            tensor->shape.rows * tensor->shape.cols, STATISTICS + (uint32_t)k,
            FORWARD_STRAYS * r->stray.statistics);
    }
}

// Of one more batch, by a network that was opened for it.
static void check_evaluation(
    const reference *r, const nn_state *state, full_network *t)
{
    const nn_options options = options_of(r, false);
    nn_network *net = NULL;
    nn_score score;
    draw_examples(r, STEPS, t);
    assert_ok(nn_network_open(&net, &options));
    assert_ok(nn_network_evaluate(net, state, &t->batch, &score));
    nn_network_close(net);
    assert_int_equal(score.count, (r->steps ? r->steps : 1) * r->batch);
    check(
        r, "the loss in the end", score.loss / (double)score.count,
        r->evaluation, tolerance(FORWARD_STRAYS * r->stray.losses));
    assert_int_equal(score.correct, r->correct);
}

static void check_training(const reference *r)
{
    const nn_options options = options_of(r, true);
    full_network t;
    assert_ok(open_full_network(&t, &options));
    set_parameters(r, &t);
    const nn_state state = {t.parameters, t.statistics, t.carry};
    const lac_key noise =
        lac_key_make(1, LAC_PURPOSE_INITIAL, 0, lac_scope_shared(), 0);
    for (uint32_t step = 0; step < STEPS; step++) {
        draw_examples(r, step, &t);
        assert_ok(nn_network_gradient(
            t.net, &state, &t.batch, &noise, t.gradient, &t.score));
        check(
            r, "the loss of a step", t.score.loss / (double)t.score.count,
            r->losses[step], tolerance(FORWARD_STRAYS * r->stray.losses));
        if (step == 0) {
            check_gradients(r, &t);
        }
        for (size_t i = 0; i < t.n; i++) {
            t.parameters[i] -= r->rate * t.gradient[i];
        }
    }
    check_statistics(r, &t);
    check_evaluation(r, &state, &t);
    close_full_network(&t);
}

static void logistic_regression_learns_as_in_pytorch(void **state)
{
    (void)state;
    check_training(&logistic_reference);
}

static void mlp_learns_as_in_pytorch(void **state)
{
    (void)state;
    check_training(&mlp_reference);
}

static void lenet_learns_as_in_pytorch(void **state)
{
    (void)state;
    check_training(&lenet_reference);
}

static void resnet8_learns_as_in_pytorch(void **state)
{
    (void)state;
    check_training(&resnet8_reference);
}

static void resnet20_learns_as_in_pytorch(void **state)
{
    (void)state;
    check_training(&resnet20_reference);
}

static void lstm_learns_as_in_pytorch(void **state)
{
    (void)state;
    check_training(&lstm_reference);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logistic_regression_learns_as_in_pytorch),
        cmocka_unit_test(mlp_learns_as_in_pytorch),
        cmocka_unit_test(lenet_learns_as_in_pytorch),
        cmocka_unit_test(resnet8_learns_as_in_pytorch),
        cmocka_unit_test(resnet20_learns_as_in_pytorch),
        cmocka_unit_test(lstm_learns_as_in_pytorch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
