// SPDX-License-Identifier: MIT
// What PowerSGD costs, against the numbers of the paper: ResNet-18 for CIFAR
// has 20 convolutions and 10 classes, all as matrices, and 9,610 values in
// vectors.
#include "cost.h"

#include <stdio.h>
#include <string.h>

enum { NAME_SIZE = 16, TENSORS_MAX = 80, BLOCKS = 2 };

typedef struct model {
    char names[TENSORS_MAX][NAME_SIZE];
    lac_tensor tensors[TENSORS_MAX];
    size_t count;
} model;

static void add_tensor(model *m, size_t rows, size_t cols)
{
    assert_true(m->count < TENSORS_MAX);
    char *const name = m->names[m->count];
    (void)snprintf(name, NAME_SIZE, "t%zu", m->count);
    m->tensors[m->count++] = (lac_tensor){.name = name, .shape = {rows, cols}};
}

// A convolution, and the two vectors of its normalisation.
static void add_convolution(model *m, size_t from, size_t to, size_t side)
{
    add_tensor(m, to, from * side * side);
    add_tensor(m, to, 1);
    add_tensor(m, to, 1);
}

static lac_layout *open_resnet18(model *m)
{
    static const size_t widths[] = {64, 128, 256, 512};
    size_t from = 64;
    lac_layout *layout;
    add_convolution(m, 3, 64, 3);
    for (size_t stage = 0; stage < 4; stage++) {
        for (size_t block = 0; block < BLOCKS; block++) {
            const size_t to = widths[stage];
            add_convolution(m, from, to, 3);
            add_convolution(m, to, to, 3);
            if (from != to) {
                add_convolution(m, from, to, 1);
            }
            from = to;
        }
    }
    add_tensor(m, 10, 512);
    add_tensor(m, 10, 1);
    assert_ok(lac_layout_open(&layout, m->tensors, m->count));
    return layout;
}

static lac_cost cost_of(const char *spec)
{
    static model m;
    memset(&m, 0, sizeof(m));
    return cost_for(spec, NULL, 0, open_resnet18(&m));
}

static void resnet18_costs_what_the_paper_states(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        double floats;
    } table[] = {
        {"allreduce", 11173962},
        {"powersgd", 45935},
        {"powersgd:rank=2", 82260},
        {"powersgd:rank=4", 154910},
        {"powersgd:rank=7", 263885},
        {"powersgd:alternating=yes", 27772.5},
        {"powersgd:iterations=3", 9610 + 3 * 36325},
        {"powersgd:2,min_compression_rate=1000", 11173962},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        const lac_cost cost = cost_of(table[i].spec);
        assert_true(cost.payload_bytes == sizeof(float) * table[i].floats);
    }
}

static void two_exchanges_or_one(void **state)
{
    (void)state;
    assert_true(cost_of("powersgd").phases == 2);
    assert_true(cost_of("powersgd").messages == 2);
    assert_true(cost_of("powersgd:iterations=3").phases == 6);
    assert_true(cost_of("powersgd:iterations=3").messages == 6);
    assert_true(cost_of("powersgd:alternating=yes").phases == 1);
    assert_true(cost_of("powersgd:min-compression-rate=1e6").phases == 1);
}

// Two sums of all matrices; without error memory only factors.
static void memory_is_two_models_or_none(void **state)
{
    (void)state;
    const double model_bytes = 11164352.0 * sizeof(float);
    const double with = (double)cost_of("powersgd").memory_bytes;
    const double without =
        (double)cost_of("powersgd:error-feedback=no").memory_bytes;
    assert_true(with > 2 * model_bytes && with < 2.05 * model_bytes);
    assert_true(without < 0.05 * model_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resnet18_costs_what_the_paper_states),
        cmocka_unit_test(two_exchanges_or_one),
        cmocka_unit_test(memory_is_two_models_or_none),
    };
    return cmocka_run_group_tests_name("powersgd_cost", tests, NULL, NULL);
}
