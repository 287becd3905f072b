// SPDX-License-Identifier: MIT
// The steps of the optimisers, against their formulas in double precision and
// against PyTorch, and their state for a checkpoint.
#include <float.h>
#include <math.h>
#include <string.h>

#include "lac_test.h"
#include "train/optimiser.h"

// No size is a multiple of the width of a vector register.
enum { WEIGHT = 37 * 5, NORM = 19, LAST = 3, VALUES = WEIGHT + NORM + LAST };

static lac_layout *layout;

static int open_layout(void **state)
{
    static const lac_tensor tensors[] = {
        {.name = "layer1.0.conv1.weight", .shape = {37, 5}},
        {.name = "layer1.0.bn1.weight", .shape = {NORM, 1}},
        {.name = "layer1.0.downsample.1.bias", .shape = {LAST, 1}},
    };
    (void)state;
    return lac_layout_open(&layout, tensors, 3) != LAC_OK;
}

static int close_layout(void **state)
{
    (void)state;
    lac_layout_close(layout);
    return 0;
}

static train_optimiser *open_with(train_optimiser_options options)
{
    train_optimiser *o = NULL;
    if (options.layout == NULL) {
        options.layout = layout;
    }
    assert_ok(train_optimiser_open(&o, &options));
    return o;
}

// Uniform between -1 and 1.
static void fill(uint64_t round, float *out)
{
    const lac_key key =
        lac_key_make(7, LAC_PURPOSE_DATA, round, lac_scope_shared(), 0);
    for (uint32_t i = 0; i < VALUES; i++) {
        out[i] = (float)lac_key_draw(&key, i) * 0x1p-31F - 1;
    }
}

static void add(const float *step, float *x)
{
    for (size_t i = 0; i < VALUES; i++) {
        x[i] += step[i];
    }
}

// Twenty steps of SGD against the formula in double, at the same parameters.
// A value of m has four roundings more a step, u = 2^-24 of what is summed
// each, and keeps 0.9 of those before: 40 u in all, and a few for the step.
static void compare_sgd(train_nesterov nesterov, double b, double wd)
{
    train_optimiser *const o = open_with((train_optimiser_options){
        .nesterov = nesterov, .momentum = b, .weight_decay = wd});
    float x[VALUES], g[VALUES];
    double m[VALUES] = {0}, size[VALUES] = {0};
    const double rate = 0.05;
    fill(1000, x);
    for (uint64_t t = 0; t < 20; t++) {
        float step[VALUES];
        fill(t, g);
        memcpy(step, g, sizeof(g));
        train_optimiser_step(o, rate, x, step);
        for (size_t i = 0; i < VALUES; i++) {
            const int decays = i < WEIGHT || i >= WEIGHT + NORM;
            const double pull = decays ? wd * (double)x[i] : 0;
            const double d = (double)g[i] + pull;
            m[i] = b * m[i] + d;
            size[i] = b * size[i] + fabs((double)g[i]) + fabs(pull);
            const double expected =
                b == 0                                ? d
                : nesterov == TRAIN_NESTEROV_TORCH    ? d + b * m[i]
                : nesterov == TRAIN_NESTEROV_POWERSGD ? d + m[i]
                                                      : m[i];
            const double error = fabs((double)step[i] + rate * expected);
            assert_true(error <= rate * 2 * 48 * 0x1p-24 * size[i]);
        }
        add(step, x);
    }
    train_optimiser_close(o);
}

static void sgd_follows_its_formulas(void **state)
{
    static const train_nesterov forms[] = {
        TRAIN_NESTEROV_TORCH, TRAIN_NESTEROV_POWERSGD, TRAIN_NESTEROV_NO};
    (void)state;
    for (int i = 0; i < 3; i++) {
        compare_sgd(forms[i], 0.9, 0);
        compare_sgd(forms[i], 0.9, 0.1);
        compare_sgd(forms[i], 0.5, 0.01);
        compare_sgd(forms[i], 0, 0.1);
    }
}

// The first step of the three forms, by hand: d = 2, b = 0.5, m = d.
static void the_three_forms_differ(void **state)
{
    static const struct {
        train_nesterov form;
        float first, second;
    } cases[] = {
        {TRAIN_NESTEROV_NO, -2, -3},
        {TRAIN_NESTEROV_TORCH, -3, -3.5F},
        {TRAIN_NESTEROV_POWERSGD, -4, -5},
    };
    (void)state;
    const float x[VALUES] = {0};
    for (int i = 0; i < 3; i++) {
        train_optimiser *const o = open_with((train_optimiser_options){
            .nesterov = cases[i].form, .momentum = 0.5});
        float g[VALUES] = {[5] = 2};
        train_optimiser_step(o, 1, x, g);
        assert_true(g[5] == cases[i].first);
        g[5] = 2;
        train_optimiser_step(o, 1, x, g);
        assert_true(g[5] == cases[i].second);
        train_optimiser_close(o);
    }
}

typedef struct torch_case {
    train_optimiser_options options;
    double rate;
    float after[4];
} torch_case;

// PyTorch 1.13, five steps from x = (1, -2, 0, 3):
//
//     o = torch.optim.Adam([x], lr=0.01, weight_decay=w)
//     o = torch.optim.SGD([x], lr=0.1, momentum=0.9, weight_decay=0.01,
//                         nesterov=n)
//     for t in 1..5: x.grad = tensor([0.5*t, -0.25, 1e-7*t*t, 2.0-t]); o.step()
//
// The third gradient is of the size of Adam's epsilon. Both add five steps to
// values up to 4 in single precision, half an ulp of 2^-22 each.
static void five_steps_are_those_of_pytorch(void **state)
{
    static const torch_case cases[] = {
        {{.rule = TRAIN_ADAM},
         0.01,
         {0.951491654F, -1.95000005F, -0.0434294045F, 2.99629021F}},
        {{.rule = TRAIN_ADAM, .weight_decay = 0.1},
         0.01,
         {0.951158881F, -1.9500097F, 0.00550866919F, 2.98786235F}},
        {{.nesterov = TRAIN_NESTEROV_NO, .momentum = 0.9, .weight_decay = 0.01},
         0.1,
         {-0.595737875F, -1.64594579F, -9.75376565e-07F, 3.5032866F}},
        {{.nesterov = TRAIN_NESTEROV_TORCH,
          .momentum = 0.9,
          .weight_decay = 0.01},
         0.1,
         {-1.18739069F, -1.5474453F, -1.42610952e-06F, 3.93871832F}},
    };
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        train_optimiser *const o = open_with(cases[c].options);
        float x[VALUES] = {1, -2, 0, 3};
        for (int t = 1; t <= 5; t++) {
            const float u = (float)t;
            float g[VALUES] = {0.5F * u, -0.25F, 1e-7F * u * u, 2 - u};
            train_optimiser_step(o, cases[c].rate, x, g);
            add(g, x);
        }
        for (size_t i = 0; i < 4; i++) {
            const double off = fabs((double)x[i] - (double)cases[c].after[i]);
            assert_true(off <= 10 * 0x1p-23);
            // The rounding error of a small value is small.
            assert_true(
                fabs((double)x[i]) > 0.1 ||
                off <= 1e-4 * fabs((double)cases[c].after[i]));
        }
        train_optimiser_close(o);
    }
}

// The step at a gradient of 0 is the decay of x = 1.
static void batch_norms_do_not_decay(void **state)
{
    static const struct {
        const char *name;
        int decays;
    } cases[] = {
        {"bn1.weight", 0},        {"layer1.0.bn2.bias", 0},
        {"layer4.2.bn", 0},       {"layer1.0.downsample.1.weight", 1},
        {"conv1.weight", 1},      {"layer1.0.abn1.weight", 1},
        {"layer1.cbn.weight", 1}, {"b.n", 1},
    };
    enum { COUNT = sizeof(cases) / sizeof(cases[0]) };
    (void)state;
    lac_tensor tensors[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        tensors[i] = (lac_tensor){.name = cases[i].name, .shape = {1, 1}};
    }
    lac_layout *names = NULL;
    assert_ok(lac_layout_open(&names, tensors, COUNT));
    for (int rule = 0; rule < 3; rule++) {
        train_optimiser *const o = open_with((train_optimiser_options){
            .rule = rule == 2 ? TRAIN_ADAM : TRAIN_SGD,
            .momentum = rule == 1 ? 0.9 : 0,
            .weight_decay = 0.25,
            .layout = names});
        float x[COUNT], g[COUNT] = {0};
        for (size_t i = 0; i < COUNT; i++) {
            x[i] = 1;
        }
        train_optimiser_step(o, 1, x, g);
        for (size_t i = 0; i < COUNT; i++) {
            assert_int_equal(g[i] < 0, cases[i].decays);
        }
        train_optimiser_close(o);
    }
    lac_layout_close(names);
}

// Of {1, -2} with a decay of 0.25 and {3} of a batch norm, which has none:
// 0.25 / 2 * 5. Its derivative by x is what a step adds to the gradient.
static void the_penalty_is_that_of_the_decay(void **state)
{
    (void)state;
    const lac_tensor tensors[] = {
        {.name = "fc.weight", .shape = {2, 1}},
        {.name = "bn1.weight", .shape = {1, 1}},
    };
    lac_layout *names = NULL;
    assert_ok(lac_layout_open(&names, tensors, 2));
    train_optimiser *const o = open_with(
        (train_optimiser_options){.weight_decay = 0.25, .layout = names});
    const float x[] = {1, -2, 3};
    assert_true(train_optimiser_penalty(o, x) == 0.625);
    float g[] = {0, 0, 0};
    train_optimiser_step(o, 1, x, g);
    assert_true(g[0] == -0.25F && g[1] == 0.5F && g[2] == 0);
    train_optimiser_close(o);
    lac_layout_close(names);
}

static void take_steps(train_optimiser *o, uint64_t from, uint64_t to, float *x)
{
    float g[VALUES];
    for (uint64_t t = from; t < to; t++) {
        fill(t, g);
        train_optimiser_step(o, 0.1, x, g);
        add(g, x);
    }
}

static void what_is_remembered_is_enough_to_go_on(void **state)
{
    static const struct {
        train_optimiser_options options;
        size_t count;
        const char *name[2];
    } cases[] = {
        {{.weight_decay = 0.1}, 0, {NULL, NULL}},
        {{.momentum = 0.9, .weight_decay = 0.1}, 1, {"momentum", NULL}},
        {{.rule = TRAIN_ADAM, .momentum = 0.9}, 2, {"first", "second"}},
        {{.rule = TRAIN_ADAM}, 2, {"first", "second"}},
    };
    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        float x[VALUES], y[VALUES];
        train_optimiser *const one = open_with(cases[c].options);
        train_optimiser *const two = open_with(cases[c].options);
        fill(500, x);
        take_steps(one, 0, 7, x);
        memcpy(y, x, sizeof(y));
        const train_optimiser_state from = train_optimiser_get_state(one);
        const train_optimiser_state to = train_optimiser_get_state(two);
        assert_int_equal(from.count, cases[c].count);
        assert_int_equal(*from.steps, 7);
        *to.steps = *from.steps;
        for (size_t i = 0; i < from.count; i++) {
            assert_string_equal(from.name[i], cases[c].name[i]);
            memcpy(to.vector[i], from.vector[i], VALUES * sizeof(float));
        }
        take_steps(one, 7, 12, x);
        take_steps(two, 7, 12, y);
        assert_memory_equal(x, y, sizeof(x));
        train_optimiser_close(one);
        train_optimiser_close(two);
    }
}

static void steps_allocate_nothing_and_open_fails_whole(void **state)
{
    (void)state;
    float x[VALUES] = {0};
    const train_optimiser_options options = {
        .rule = TRAIN_ADAM, .layout = layout};
    train_optimiser *o = NULL;
    size_t before = test_allocations;
    assert_ok(train_optimiser_open(&o, &options));
    const long needed = (long)(test_allocations - before);
    before = test_allocations;
    take_steps(o, 0, 2, x);
    assert_int_equal(test_allocations, before);
    train_optimiser_close(o);
    for (long left = 0; left < needed; left++) {
        test_allocations_left = left;
        const lac_status status = train_optimiser_open(&o, &options);
        test_allocations_left = -1;
        assert_status(status, LAC_ERR_NOMEM);
        assert_null(o);
    }
    train_optimiser_close(NULL);
}

static void a_gradient_is_cut_to_the_limit(void **state)
{
    (void)state;
    float g[VALUES] = {[0] = 3, [8] = -4, [VALUES - 1] = 12};
    assert_true(train_clip(g, VALUES, 0) == 13);
    assert_true(train_clip(g, VALUES, 13) == 13);
    assert_true(train_clip(g, VALUES, 100) == 13);
    assert_true(g[0] == 3 && g[8] == -4 && g[VALUES - 1] == 12);
    assert_true(train_clip(g, VALUES, 6.5) == 13);
    assert_true(g[0] == 1.5F && g[8] == -2 && g[VALUES - 1] == 6 && g[1] == 0);
    // Each value counts, whatever its position.
    for (size_t n = 1; n < 40; n++) {
        float ones[40];
        for (size_t i = 0; i < 40; i++) {
            ones[i] = 1;
        }
        assert_true(train_clip(ones, n, 0.5) == sqrt((double)n));
        assert_true(fabs(train_clip(ones, n, 0) - 0.5) < 1e-7);
        assert_true(ones[n] == 1);
    }
}

static void extreme_gradients_are_left_visible(void **state)
{
    (void)state;
    float zero[3] = {0};
    assert_true(train_clip(zero, 3, 0.1) == 0);
    assert_true(train_clip(zero, 0, 0.1) == 0);
    assert_true(zero[0] == 0);
    float large[2] = {FLT_MAX, FLT_MAX};
    const double norm = train_clip(large, 2, 1);
    assert_true(isfinite(norm) && norm > (double)FLT_MAX);
    assert_true(fabs((double)large[0] - sqrt(0.5)) < 1e-7);
    float endless[2] = {INFINITY, 2};
    assert_true(isinf(train_clip(endless, 2, 1)));
    assert_true(isinf(endless[0]) && endless[1] == 2);
    float nan[2] = {2, NAN};
    assert_true(isnan(train_clip(nan, 2, 1)));
    assert_true(nan[0] == 2 && isnan(nan[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sgd_follows_its_formulas),
        cmocka_unit_test(the_three_forms_differ),
        cmocka_unit_test(five_steps_are_those_of_pytorch),
        cmocka_unit_test(batch_norms_do_not_decay),
        cmocka_unit_test(the_penalty_is_that_of_the_decay),
        cmocka_unit_test(what_is_remembered_is_enough_to_go_on),
        cmocka_unit_test(steps_allocate_nothing_and_open_fails_whole),
        cmocka_unit_test(a_gradient_is_cut_to_the_limit),
        cmocka_unit_test(extreme_gradients_are_left_visible),
    };
    return cmocka_run_group_tests(tests, open_layout, close_layout);
}
