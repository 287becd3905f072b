// SPDX-License-Identifier: MIT
// Every example belongs to one worker in every epoch, which is a function of
// the seed.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "data/split.h"
#include "lac_test.h"

enum { COUNT = 10007, CLASSES = 10, WORKERS = 8 };

static uint32_t labels[COUNT];
static const char *const rules[] = {"shuffle",        "fixed",
                                    "sorted",         "dirichlet:0.1",
                                    "dirichlet:1e-6", "dirichlet:1e9"};
enum { RULES = sizeof(rules) / sizeof(rules[0]) };

static int make_labels(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < COUNT; i++) {
        labels[i] = i * 7919 % CLASSES;
    }
    return 0;
}

static data_split *open_split(const char *rule, uint32_t workers, uint64_t seed)
{
    data_split_options o = {
        .count = COUNT, .labels = labels, .workers = workers, .seed = seed};
    data_split *split = NULL;
    assert_ok(data_split_parse(rule, &o.rule));
    assert_ok(data_split_open(&split, &o));
    return split;
}

static void every_example_has_one_worker(void **state)
{
    static uint32_t index[COUNT];
    (void)state;
    for (size_t r = 0; r < RULES; r++) {
        for (uint32_t workers = 1; workers <= 29; workers += 7) {
            static uint8_t seen[COUNT];
            data_split *const split = open_split(rules[r], workers, 3);
            memset(seen, 0, sizeof(seen));
            for (uint32_t w = 0; w < workers; w++) {
                const size_t size = data_split_size(split, w);
                assert_in_range(size, 1, COUNT);
                data_split_epoch(split, 5, w, index);
                for (size_t i = 0; i < size; i++) {
                    assert_in_range(index[i], 0, COUNT - 1);
                    assert_int_equal(seen[index[i]]++, 0);
                }
            }
            assert_null(memchr(seen, 0, COUNT));
            data_split_close(split);
        }
    }
}

static void sizes_differ_by_one_at_most(void **state)
{
    (void)state;
    for (size_t r = 0; r < 3; r++) {
        data_split *const split = open_split(rules[r], WORKERS, 1);
        for (uint32_t w = 0; w < WORKERS; w++) {
            assert_in_range(
                data_split_size(split, w), COUNT / WORKERS,
                COUNT / WORKERS + 1);
        }
        data_split_close(split);
    }
}

// Whether two lists of worker 2 are equal.
static bool same(
    const char *rule, uint64_t seed, uint64_t epoch, uint64_t other_seed,
    uint64_t other_epoch)
{
    static uint32_t a[COUNT], b[COUNT];
    data_split *const one = open_split(rule, WORKERS, seed);
    data_split *const two = open_split(rule, WORKERS, other_seed);
    const size_t n = data_split_size(one, 2);
    data_split_epoch(one, epoch, 2, a);
    data_split_epoch(two, other_epoch, 2, b);
    const bool equal =
        n == data_split_size(two, 2) && memcmp(a, b, n * sizeof(*a)) == 0;
    data_split_close(one);
    data_split_close(two);
    return equal;
}

static void seed_and_epoch_decide(void **state)
{
    (void)state;
    for (size_t r = 0; r < 4; r++) {
        assert_true(same(rules[r], 1, 4, 1, 4));
        assert_false(same(rules[r], 1, 4, 1, 5));
        assert_false(same(rules[r], 1, 4, 2, 4));
    }
}

// The number of examples that worker 0 has in epochs 0 and 1.
static size_t kept(const char *rule)
{
    static uint32_t a[COUNT], b[COUNT];
    static uint8_t had[COUNT];
    data_split *const split = open_split(rule, WORKERS, 1);
    const size_t n = data_split_size(split, 0);
    size_t both = 0;
    memset(had, 0, sizeof(had));
    data_split_epoch(split, 0, 0, a);
    data_split_epoch(split, 1, 0, b);
    for (size_t i = 0; i < n; i++) {
        had[a[i]] = 1;
    }
    for (size_t i = 0; i < n; i++) {
        both += had[b[i]];
    }
    data_split_close(split);
    return both;
}

// Of n = 1251 drawn again from 10007 about n^2 / N = 156 are the same, with a
// deviation below sqrt(156) = 13: 100 to 220 is within five.
static void only_shuffle_deals_anew(void **state)
{
    (void)state;
    assert_in_range(kept("shuffle"), 100, 220);
    assert_int_equal(kept("fixed"), COUNT / WORKERS + 1);
    assert_int_equal(kept("sorted"), COUNT / WORKERS + 1);
}

// A random order leaves one example in its place on the average, whatever
// their number: in 40 epochs 40, with a deviation of 6.3; five are allowed.
static void some_examples_stay_in_place(void **state)
{
    static uint32_t index[COUNT];
    size_t stayed = 0;
    (void)state;
    data_split *const split = open_split("shuffle", 1, 1);
    for (uint64_t epoch = 0; epoch < 40; epoch++) {
        data_split_epoch(split, epoch, 0, index);
        for (size_t i = 0; i < COUNT; i++) {
            stayed += index[i] == i;
        }
    }
    assert_in_range(stayed, 9, 71);
    data_split_close(split);
}

static void sorted_gives_few_labels(void **state)
{
    static uint32_t index[COUNT];
    (void)state;
    data_split *const split = open_split("sorted", WORKERS, 1);
    uint32_t highest = 0;
    for (uint32_t w = 0; w < WORKERS; w++) {
        uint32_t low = CLASSES, high = 0;
        data_split_epoch(split, 0, w, index);
        for (size_t i = 0; i < data_split_size(split, w); i++) {
            const uint32_t label = labels[index[i]];
            low = label < low ? label : low;
            high = label > high ? label : high;
        }
        assert_true(low >= highest && high <= low + 2);
        highest = high;
    }
    data_split_close(split);
}

// The mean over labels of the largest share that one worker has of a label.
static double concentration(const char *rule)
{
    static uint32_t index[COUNT];
    double most[CLASSES] = {0}, sum = 0;
    data_split *const split = open_split(rule, WORKERS, 1);
    for (uint32_t w = 0; w < WORKERS; w++) {
        size_t has[CLASSES] = {0};
        data_split_epoch(split, 0, w, index);
        for (size_t i = 0; i < data_split_size(split, w); i++) {
            has[labels[index[i]]]++;
        }
        for (int c = 0; c < CLASSES; c++) {
            most[c] = fmax(most[c], (double)has[c] / (COUNT / CLASSES));
        }
    }
    for (int c = 0; c < CLASSES; c++) {
        sum += most[c] / CLASSES;
    }
    data_split_close(split);
    return sum;
}

// A share of Dirichlet(a) among 8 has the variance 7 / 64 / (8 a + 1): 1e-11
// for a = 1e9, so that only rounding to whole examples of 1000 is left. For
// a = 1e-6 one worker gets all of a label, except examples for empty workers.
static void alpha_decides_how_unequal(void **state)
{
    (void)state;
    assert_true(concentration("dirichlet:1e9") < 0.125 + 0.002);
    assert_true(concentration("dirichlet:1e-6") > 0.99);
    assert_true(concentration("dirichlet:0.1") > 0.5);
    assert_true(concentration("dirichlet:10") < 0.35);
}

static void wrong_rules_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "random",
        "dirichlet",
        "dirichlet:",
        "dirichlet:0",
        "dirichlet:-1",
        "dirichlet:nan",
        "dirichlet:1x",
        "dirichlet:inf"};
    (void)state;
    data_split_rule rule;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_status(data_split_parse(wrong[i], &rule), LAC_ERR_INVALID);
    }
    assert_fails(
        data_split_parse("random", &rule), LAC_ERR_INVALID,
        "split: \"random\" was given, expected shuffle, fixed, sorted or "
        "dirichlet:ALPHA with a number from 1e-6 to 1e9");
}

static void what_cannot_be_split_is_refused(void **state)
{
    (void)state;
    data_split *split = NULL;
    data_split_options o = {.count = 3, .workers = 4};
    assert_fails(
        data_split_open(&split, &o), LAC_ERR_INVALID,
        "split: 3 examples for 4 workers, expected at least one each");
    o.count = 4;
    o.rule.kind = DATA_SPLIT_SORTED;
    assert_fails(
        data_split_open(&split, &o), LAC_ERR_INVALID,
        "split: the data has no labels, expected shuffle or fixed");
    assert_null(split);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example_has_one_worker),
        cmocka_unit_test(sizes_differ_by_one_at_most),
        cmocka_unit_test(seed_and_epoch_decide),
        cmocka_unit_test(only_shuffle_deals_anew),
        cmocka_unit_test(some_examples_stay_in_place),
        cmocka_unit_test(sorted_gives_few_labels),
        cmocka_unit_test(alpha_decides_how_unequal),
        cmocka_unit_test(wrong_rules_are_refused),
        cmocka_unit_test(what_cannot_be_split_is_refused),
    };
    return cmocka_run_group_tests(tests, make_labels, NULL);
}
