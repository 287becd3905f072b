// SPDX-License-Identifier: MIT
// outer over choco: momentum amplifies the steps towards values
// that follow late. A gamma that is too large for it is refused, the bound in
// the message is not, and gamma=auto finds a gamma that suits the outer step.
#include "consensus.h"

#include <math.h>

enum { VALUES = 150, SPEC_SIZE = 128 };

static float x[RING_WORKERS * VALUES];

typedef struct setting {
    const char *inner, *gamma; // a name, and its gamma
    const char *step;          // settings of outer
    const char *compressor;
    uint32_t rounds; // after which the workers agree with a gamma that works
} setting;

static const setting settings[] = {
    {"choco", "1", "momentum=0.6", "sign", 300},
    {"choco", "0.5", "momentum=0.9,nesterov=no", "sign", 400},
    {"choco", "0.3", "momentum=0.6", "top-k:0.1", 200},
};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

static consensus consensus_of(
    const setting *s, const char *gamma, char spec[SPEC_SIZE])
{
    (void)snprintf(
        spec, SPEC_SIZE, "outer:inner=(%s:gamma=%s),%s", s->inner, gamma,
        s->step);
    return consensus_on_a_ring(spec, s->compressor, VALUES, s->rounds, x);
}

// Asserts that the workers agree: of the squared distance to the mean less than
// a hundredth is left.
static void assert_agreement(const setting *s, const char *gamma)
{
    char spec[SPEC_SIZE];
    double mean[VALUES];
    consensus c = consensus_of(s, gamma, spec);
    consensus_mean(&c, mean);
    const double before = consensus_error(&c, mean);
    consensus_run(&c);
    const double left = consensus_error(&c, mean) / before;
    print_message("%s %s: gamma %g, %g\n", spec, s->compressor, c.gamma, left);
    assert_true(left < 0.01);
}

static void a_gamma_that_is_too_large_is_refused(void **state)
{
    (void)state;
    static const char *const ends[SETTINGS] = {
        (", or auto: with lr=0.7, momentum=0.6 and nesterov=yes of outer, 8 "
         "workers do not agree with larger ones"),
        "with lr=0.7, momentum=0.9 and nesterov=no of outer",
        "with lr=0.7, momentum=0.6 and nesterov=yes of outer",
    };
    for (size_t i = 0; i < SETTINGS; i++) {
        const setting *const s = &settings[i];
        test_worker workers[RING_WORKERS];
        char spec[SPEC_SIZE], begin[SPEC_SIZE], bound[16] = "";
        consensus c = consensus_of(s, s->gamma, spec);
        run_workers(RING_WORKERS, consensus_body, &c, workers);
        (void)snprintf(
            begin, sizeof(begin), "%s: gamma is %s, expected at most ",
            s->inner, s->gamma);
        for (uint32_t k = 0; k < RING_WORKERS; k++) {
            assert_int_equal(workers[k].status, LAC_ERR_INVALID);
            assert_string_equal(workers[k].message, workers[0].message);
        }
        print_message("%s\n", workers[0].message);
        assert_memory_equal(workers[0].message, begin, strlen(begin));
        assert_non_null(strstr(workers[0].message, ends[i]));
        (void)sscanf(workers[0].message + strlen(begin), "%15[0-9.e-]", bound);
        assert_agreement(s, bound);
    }
}

static void gamma_auto_suits_the_outer_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < SETTINGS; i++) {
        assert_agreement(&settings[i], "auto");
    }
}

// Without momentum and with lr=1 outer is its inner algorithm, which accepts
// every gamma.
static void outer_without_momentum_refuses_no_gamma(void **state)
{
    (void)state;
    const setting plain = {"choco", "2", "lr=1,momentum=0", "sign", 1};
    char spec[SPEC_SIZE];
    consensus c = consensus_of(&plain, plain.gamma, spec);
    consensus_run(&c);
    assert_true(c.gamma == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gamma_that_is_too_large_is_refused),
        cmocka_unit_test(gamma_auto_suits_the_outer_step),
        cmocka_unit_test(outer_without_momentum_refuses_no_gamma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
