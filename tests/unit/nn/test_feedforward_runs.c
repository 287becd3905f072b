// SPDX-License-Identifier: MIT
// Feed-forward networks from run to run: initial parameters, equal bits for
// equal arguments, and memory.
#define _DEFAULT_SOURCE // MAP_ANONYMOUS
#include "network_test.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const nn_sample digits = {1, 28, 28, 10};
static const nn_sample photos = {3, 32, 32, 10};

// fc1 of lenet has 48,000 uniform weights between -1/20 and 1/20: their mean
// has a deviation of 0.05 / sqrt(3 * 48000) = 1.3e-4, that of their squares,
// 0.05^2 / 3, one of sqrt(0.8 / 48000) = 0.41 % of it; five of each are
// allowed. layer3.0.conv2 of resnet8 has 36,864 normal
// ones of variance 2 / (9 * 64): the mean square deviates by 0.74 %.
static void parameters_begin_as_in_pytorch_and_the_papers(void **state)
{
    (void)state;
    test_network t = open_test_network("lenet", digits, 1, true);
    const float *w = test_tensor(&t, "fc1.weight");
    double sum = 0, square = 0, largest = 0;
    for (size_t i = 0; i < 48000; i++) {
        sum += (double)w[i];
        square += (double)w[i] * (double)w[i];
        largest = fmax(largest, fabs((double)w[i]));
    }
    assert_true(fabs(sum / 48000) < 5 * 1.3e-4);
    assert_true(fabs(square / 48000 / (0.0025 / 3) - 1) < 5 * 0.0041);
    assert_true(largest <= 0.05 && largest > 0.0499);
    const float *const bias = test_tensor(&t, "fc1.bias");
    for (size_t i = 0; i < 120; i++) {
        assert_true(fabsf(bias[i]) <= 0.05F && bias[i] != 0);
    }
    close_full_network(&t);
    t = open_test_network("resnet8", photos, 1, true);
    w = test_tensor(&t, "layer3.0.conv2.weight");
    square = 0;
    for (size_t i = 0; i < 36864; i++) {
        square += (double)w[i] * (double)w[i];
    }
    assert_true(fabs(square / 36864 / (2.0 / (9 * 64)) - 1) < 5 * 0.0074);
    assert_true(test_tensor(&t, "bn1.weight")[3] == 1);
    assert_true(test_tensor(&t, "bn1.bias")[3] == 0);
    assert_true(t.statistics[15] == 0 && t.statistics[16] == 1);
    close_full_network(&t);
}

static void seeds_decide_where_training_begins(void **state)
{
    (void)state;
    test_network t = open_test_network("resnet8", photos, 1, true);
    float *const again = test_values(t.n, sizeof(float));
    nn_network_initialise(t.net, 1, again, t.statistics);
    assert_memory_equal(again, t.parameters, t.n * sizeof(float));
    nn_network_initialise(t.net, 2, again, t.statistics);
    assert_true(again[0] != t.parameters[0]);
    free(again);
    close_full_network(&t);
}

static void repeated_calls_give_equal_bits(void **state)
{
    (void)state;
    static const char *const models[] = {"mlp", "lenet", "resnet8"};
    for (size_t m = 0; m < 3; m++) {
        test_network t =
            open_test_network(models[m], m < 2 ? digits : photos, 5, true);
        assert_ok(test_gradient(&t));
        const nn_score score = t.score;
        float *const first = test_values(t.n, sizeof(float));
        memcpy(first, t.gradient, t.n * sizeof(float));
        memset(t.gradient, 0xff, t.n * sizeof(float));
        assert_ok(test_gradient(&t));
        assert_memory_equal(first, t.gradient, t.n * sizeof(float));
        assert_memory_equal(&score, &t.score, sizeof(score));
        free(first);
        close_full_network(&t);
    }
}

static void *run_alone(void *context)
{
    test_network *const t = context;
    const nn_options options = {
        .model = "resnet8", .sample = photos, .batch = 4, .training = true};
    nn_network *net = NULL;
    if (nn_network_open(&net, &options) != LAC_OK) {
        return NULL;
    }
    *t = fill_test_network(net, &options, 1);
    for (int i = 0; i < 5; i++) {
        if (test_gradient(t) != LAC_OK) {
            t->n = 0;
        }
    }
    return t;
}

static void threads_at_the_same_time_get_the_bits_of_one_alone(void **state)
{
    (void)state;
    test_network alone = {0}, both[2] = {{0}};
    assert_non_null(run_alone(&alone));
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, run_alone, &both[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        void *done = NULL;
        assert_int_equal(pthread_join(threads[i], &done), 0);
        assert_non_null(done);
        assert_int_equal(both[i].n, alone.n);
        assert_memory_equal(
            both[i].gradient, alone.gradient, alone.n * sizeof(float));
        assert_memory_equal(
            both[i].statistics, alone.statistics,
            alone.running * sizeof(float));
        close_full_network(&both[i]);
    }
    close_full_network(&alone);
}

// The examples end at the end of a page, and the next page cannot be read.
static void nothing_is_read_behind_the_last_example(void **state)
{
    (void)state;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    test_network t = open_test_network("lenet", digits, 8, false);
    const size_t len = 3 * t.size * sizeof(float);
    const size_t room = (len + page - 1) / page * page;
    char *const map = mmap(
        NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
        -1, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    assert_int_equal(mprotect(map + room, page, PROT_NONE), 0);
    float *const x = (float *)(void *)(map + room - len);
    memcpy(x, t.x, len);
    t.batch = (nn_batch){.count = 3, .x = x, .labels = t.labels};
    assert_ok(test_evaluate(&t));
    assert_int_equal(t.score.count, 3);
    close_full_network(&t);
    assert_int_equal(munmap(map, room + page), 0);
}

static void calls_allocate_nothing(void **state)
{
    (void)state;
    test_network t = open_test_network("resnet8", photos, 2, true);
    const size_t before = test_allocations;
    assert_ok(test_gradient(&t));
    assert_ok(test_gradient(&t));
    assert_int_equal(test_allocations, before);
    close_full_network(&t);
}

static void no_memory_is_reported_and_nothing_is_lost(void **state)
{
    (void)state;
    for (int training = 0; training < 2; training++) {
        const nn_options options = {
            .model = "lenet",
            .sample = digits,
            .batch = 2,
            .training = training == 1};
        lac_status status = LAC_ERR_NOMEM;
        for (long left = 0; status != LAC_OK; left++) {
            nn_network *net = NULL;
            test_allocations_left = left;
            status = nn_network_open(&net, &options);
            test_allocations_left = -1;
            if (status != LAC_OK) {
                assert_status(status, LAC_ERR_NOMEM);
                assert_null(net);
            }
            nn_network_close(net);
        }
    }
}

// All activations of a training plan would need more than three buffers.
static void predictions_need_little_memory(void **state)
{
    (void)state;
    test_network t = open_test_network("resnet20", photos, 16, false);
    const size_t activation = 16 * 16 * 32 * 32 * sizeof(float);
    assert_true(nn_network_memory(t.net) < 4 * activation);
    close_full_network(&t);
    t = open_test_network("resnet20", photos, 16, true);
    assert_true(nn_network_memory(t.net) > 14 * activation);
    close_full_network(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_begin_as_in_pytorch_and_the_papers),
        cmocka_unit_test(seeds_decide_where_training_begins),
        cmocka_unit_test(repeated_calls_give_equal_bits),
        cmocka_unit_test(threads_at_the_same_time_get_the_bits_of_one_alone),
        cmocka_unit_test(nothing_is_read_behind_the_last_example),
        cmocka_unit_test(calls_allocate_nothing),
        cmocka_unit_test(no_memory_is_reported_and_nothing_is_lost),
        cmocka_unit_test(predictions_need_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
