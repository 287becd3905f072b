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
// The first five give lists of many examples, the first four of equal size.
static const char *const rules[] = {
    "shuffle",
    "fixed",
    "sorted",
    "dirichlet:0.01,balanced",
    "dirichlet:0.1",
    "dirichlet:1e-6",
    "dirichlet:1e9",
    "dirichlet:1e-6,balanced",
    "dirichlet:100,balanced"};
enum { RULES = sizeof(rules) / sizeof(rules[0]), EQUAL = 4, MANY = 5 };

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
                assert_between(size, 1, COUNT);
                data_split_epoch(split, 5, w, index);
                for (size_t i = 0; i < size; i++) {
                    assert_between(index[i], 0, COUNT - 1);
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
    for (size_t r = 0; r < EQUAL; r++) {
        data_split *const split = open_split(rules[r], WORKERS, 1);
        for (uint32_t w = 0; w < WORKERS; w++) {
            assert_int_equal(
                data_split_size(split, w),
                COUNT / WORKERS + (w < COUNT % WORKERS));
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
    for (size_t r = 0; r < MANY; r++) {
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
    assert_between(kept("shuffle"), 100, 220);
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
    assert_between(stayed, 9, 71);
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

// Counts the labels of a worker.
static void count_labels(
    const data_split *split, uint32_t worker, size_t has[CLASSES])
{
    static uint32_t index[COUNT];
    memset(has, 0, CLASSES * sizeof(*has));
    data_split_epoch(split, 0, worker, index);
    for (size_t i = 0; i < data_split_size(split, worker); i++) {
        has[labels[index[i]]]++;
    }
}

// The mean over workers of the part of their examples that has the label they
// have the most of.
static double dominance(const char *rule)
{
    double sum = 0;
    data_split *const split = open_split(rule, WORKERS, 1);
    for (uint32_t w = 0; w < WORKERS; w++) {
        size_t has[CLASSES], most = 0;
        count_labels(split, w, has);
        for (int c = 0; c < CLASSES; c++) {
            most = has[c] > most ? has[c] : most;
        }
        sum += (double)most / (double)data_split_size(split, w);
    }
    data_split_close(split);
    return sum / WORKERS;
}

// A worker has 1251 examples, a label 1000: a part is at most 0.8. For
// alpha = 100 a preference deviates by about a tenth of itself and a count of
// 125 by sqrt(125) = 11, together by 17: the largest of ten rarely reaches
// 125 + 3 * 17, a part of 0.14.
static void balanced_workers_have_their_own_labels(void **state)
{
    (void)state;
    assert_true(dominance("dirichlet:1e-6,balanced") > 0.5);
    assert_true(dominance("dirichlet:0.01,balanced") > 0.5);
    assert_true(dominance("dirichlet:1,balanced") < 0.5);
    assert_true(dominance("dirichlet:100,balanced") < 0.14);
}

// Replaces the labels: one of `every` examples has label 1, the others 0. The
// next test has those of make_labels again.
static void use_rare_label(size_t every)
{
    for (size_t i = 0; i < COUNT; i++) {
        labels[i] = i % every == 0;
    }
}

// Of the 1251 examples of a worker a third has label 1, as in the whole set,
// with a deviation of 17; five are allowed.
static void balanced_equal_shares_follow_the_sizes_of_labels(void **state)
{
    use_rare_label(3);
    data_split *const split = open_split("dirichlet:1e9,balanced", WORKERS, 1);
    for (uint32_t w = 0; w < WORKERS; w++) {
        size_t has[CLASSES];
        count_labels(split, w, has);
        assert_between(has[1], 417 - 85, 417 + 85);
    }
    data_split_close(split);
    (void)make_labels(state);
}

// Of a label that a tenth of the examples has, a worker has the part that
// dirichlet:10 gives it: the slope between both is 1. The parts deviate by
// about 0.045 between workers and by sqrt(0.09 / 1251) = 0.0085 by chance, so
// that the slope of 8 workers deviates by 0.07. A preference without the size
// of the label would give 0.5.
static void balanced_workers_have_the_parts_of_a_rare_label(void **state)
{
    use_rare_label(10);
    data_split *const plain = open_split("dirichlet:10", WORKERS, 1);
    data_split *const equal = open_split("dirichlet:10,balanced", WORKERS, 1);
    double product = 0, square = 0;
    for (uint32_t w = 0; w < WORKERS; w++) {
        size_t p[CLASSES], e[CLASSES];
        count_labels(plain, w, p);
        count_labels(equal, w, e);
        const double a = (double)p[1] / (double)data_split_size(plain, w) - 0.1;
        const double b = (double)e[1] * WORKERS / COUNT - 0.1;
        product += a * b;
        square += a * a;
    }
    const double slope = product / square;
    assert_true(slope > 0.75 && slope < 1.25);
    data_split_close(plain);
    data_split_close(equal);
    (void)make_labels(state);
}

// The proportions of labels under both rules are clearly correlated.
static void balanced_workers_prefer_what_dirichlet_gives_them(void **state)
{
    (void)state;
    data_split *const plain = open_split("dirichlet:0.1", WORKERS, 1);
    data_split *const equal = open_split("dirichlet:0.1,balanced", WORKERS, 1);
    double product = 0, plain_square = 0, equal_square = 0;
    for (uint32_t w = 0; w < WORKERS; w++) {
        size_t p[CLASSES], e[CLASSES];
        count_labels(plain, w, p);
        count_labels(equal, w, e);
        const double size = (double)data_split_size(plain, w);
        for (int c = 0; c < CLASSES; c++) {
            const double a = (double)p[c] / size - 1.0 / CLASSES;
            const double b = (double)e[c] * WORKERS / COUNT - 1.0 / CLASSES;
            product += a * b;
            plain_square += a * a;
            equal_square += b * b;
        }
    }
    assert_true(product > 0.5 * sqrt(plain_square * equal_square));
    data_split_close(plain);
    data_split_close(equal);
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
        "dirichlet:inf",
        "dirichlet:balanced",
        "dirichlet:,balanced",
        "dirichlet:1,",
        "dirichlet:1,balance",
        "dirichlet:1,balanced,"};
    (void)state;
    data_split_rule rule;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_status(data_split_parse(wrong[i], &rule), LAC_ERR_INVALID);
    }
    assert_fails(
        data_split_parse("random", &rule), LAC_ERR_INVALID,
        "split: \"random\" was given, expected shuffle, fixed, sorted, "
        "dirichlet:ALPHA or dirichlet:ALPHA,balanced with a number from 1e-6 "
        "to 1e9");
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
        cmocka_unit_test(balanced_workers_have_their_own_labels),
        cmocka_unit_test(balanced_equal_shares_follow_the_sizes_of_labels),
        cmocka_unit_test(balanced_workers_have_the_parts_of_a_rare_label),
        cmocka_unit_test(balanced_workers_prefer_what_dirichlet_gives_them),
        cmocka_unit_test(wrong_rules_are_refused),
        cmocka_unit_test(what_cannot_be_split_is_refused),
    };
    return cmocka_run_group_tests(tests, make_labels, NULL);
}
