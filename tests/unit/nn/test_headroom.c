// SPDX-License-Identifier: MIT
// Under any limit of memory a network works or fails with a message; oneDNN
// never crashes.
#include "nn/headroom.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lac_test.h"
#include "nn/network.h"

enum { MB = 1 << 20, LIMIT_MB = 80, VALUES_MAX = 1 << 17, LABELS = 64 };

// The exit codes of a process.
enum { DONE, REFUSED, WRONG };

static float parameters[VALUES_MAX], gradient[VALUES_MAX], carry[VALUES_MAX];
static float x[VALUES_MAX];
static uint32_t labels[LABELS], tokens[LABELS];

static lac_status use_network(const nn_options *options)
{
    nn_network *net = NULL;
    nn_score score;
    const nn_state state = {.parameters = parameters, .carry = carry};
    const nn_batch batch = {
        .count = options->batch, .x = x, .tokens = tokens, .labels = labels};
    const lac_key noise = {0};
    LAC_TRY(nn_network_open(&net, options));
    nn_network_initialise(net, 1, parameters, NULL);
    const lac_status status =
        nn_network_gradient(net, &state, &batch, &noise, gradient, &score);
    nn_network_close(net);
    return status;
}

// The size of the address space in bytes.
static size_t address_space(void)
{
    unsigned long pages = 0;
    FILE *const file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu", &pages), 1);
    assert_int_equal(fclose(file), 0);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static int use_with_limit(const nn_options *options, size_t more)
{
    const rlim_t limit = address_space() + more;
    if (setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit}) != 0) {
        return WRONG;
    }
    const lac_status status = use_network(options);
    if (status == LAC_OK) {
        return DONE;
    }
    const bool named = strstr(lac_error_message(), "memory") != NULL;
    return status == LAC_ERR_NOMEM && named ? REFUSED : WRONG;
}

// Uses a network in processes whose address space may grow by 0, 1, ... MB.
static void assert_never_crashes(const nn_options *options)
{
    int count[2] = {0};
    for (size_t mb = 0; mb <= LIMIT_MB; mb++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            _exit(use_with_limit(options, mb * MB));
        }
        int how = 0;
        assert_int_equal(waitpid(child, &how, 0), child);
        assert_true(WIFEXITED(how));
        assert_true(WEXITSTATUS(how) == DONE || WEXITSTATUS(how) == REFUSED);
        count[WEXITSTATUS(how)]++;
    }
    assert_true(count[DONE] > 0);
    assert_true(count[REFUSED] > 0);
}

static void a_feedforward_network_never_crashes(void **state)
{
    (void)state;
    assert_never_crashes(&(nn_options){
        .model = "lenet",
        .sample = {1, 28, 28, 10},
        .batch = 4,
        .training = true,
    });
}

static void a_language_model_never_crashes(void **state)
{
    (void)state;
    assert_never_crashes(&(nn_options){
        .model = "lstm:hidden=32,layers=1,dropout=0",
        .sample = {.classes = 50},
        .batch = 4,
        .steps = 8,
        .training = true,
    });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_feedforward_network_never_crashes),
        cmocka_unit_test(a_language_model_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
