// SPDX-License-Identifier: MIT
// gamma=auto: a trial on a small copy predicts a real run, and all workers get
// the same value, which is saved with the state. test_gamma_best.c tests how
// good the value is.
#include "consensus.h"

#include <math.h>

#include "algorithm/shared/gamma_trial.h"

static const double TARGET = 1e-4;

static float x[8 * 500];

static double errors[400][8], mean[500];

static void record_error(
    const consensus *c, uint32_t rank, uint32_t round, const lac_algorithm *a,
    const float *values)
{
    (void)c;
    (void)a;
    errors[round][rank] = 0;
    for (size_t i = 0; i < 500; i++) {
        const double d = (double)values[i] - mean[i];
        errors[round][rank] += d * d;
    }
}

static double error_of(uint32_t round)
{
    double sum = 0;
    for (size_t k = 0; k < 8; k++) {
        sum += errors[round][k];
    }
    return sum;
}

// The trial and the real run start from different normal values. The round in
// which the error reaches 1e-4 depends on sums of 4000 squares. Their deviation
// of 2 % moves it by less than 1 %, since ln(1e4) is 9.2; the error is measured
// every 3 % of the rounds.
static void a_trial_predicts_the_real_rounds(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        const char *compressor;
        double gamma;
        laci_gamma_kind kind;
    } cases[] = {
        {"choco:gamma=0.2", "top-k:0.1", 0.2, laci_gamma_choco},
        {"deepsqueeze:gamma=0.1", "dithering:levels=127", 0.1,
         laci_gamma_deepsqueeze},
    };
    lac_topology *t;
    assert_ok(lac_topology_open(&t, "ring", 8, 1));
    for (size_t i = 0; i < 2; i++) {
        laci_gamma_trial *trial;
        uint32_t round = 0;
        consensus c = {
            .algorithm = cases[i].spec,
            .compressor = cases[i].compressor,
            .topology = "ring",
            .workers = 8,
            .shape = {500, 1},
            .rounds = 399,
            .seed = 2,
            .x = x,
            .after = record_error,
        };
        consensus_fill_normal(&c, 3);
        consensus_mean(&c, mean);
        consensus_run(&c);
        while (error_of(round) > TARGET * error_of(0)) {
            round++;
            assert_true(round < 400);
        }
        assert_ok(laci_gamma_trial_open(
            &trial, cases[i].kind, cases[i].compressor, t, (lac_shape){500, 1},
            NULL));
        const laci_gamma_result result =
            laci_gamma_trial_run(trial, cases[i].gamma, TARGET, 1000);
        print_message("%u rounds, %.1f in the trial\n", round, result.rounds);
        assert_true(fabs(result.rounds / round - 1) < 0.05);
        assert_true(result.error <= TARGET);
        laci_gamma_trial_close(trial);
    }
    lac_topology_close(t);
}

typedef struct found {
    double gamma[2], halved[2], loaded[2];
    bool refused;
} found;

// The first handle searches, the second loads the state of the first, the third
// searches for training, and the fourth has another gamma.
static lac_status search_and_load(test_worker *w)
{
    found *const f = w->context;
    const lac_tensor tensor = {.name = "x", .shape = {40, 50}};
    static float values[2][2000];
    static uint8_t states[2][20000];
    const lac_slice slice = {0, LAC_F32, values[w->rank], values[w->rank]};
    uint8_t *const bytes = states[w->rank];
    lac_layout *layout = NULL;
    lac_topology *topology = NULL;
    lac_algorithm *a[4] = {NULL};
    lac_status status = lac_layout_open(&layout, &tensor, 1);
    if (status == LAC_OK) {
        status = lac_topology_open(&topology, "complete", 2, 1);
    }
    lac_algorithm_options o = lac_algorithm_options_default();
    o.compressor = "top-k:0.2";
    o.layout = layout;
    o.topology = topology;
    o.transport = w->transport;
    for (size_t i = 0; status == LAC_OK && i < 4; i++) {
        o.spec = i < 3 ? "choco" : "choco:gamma=0.01";
        o.training = i == 2;
        status = lac_algorithm_open(&a[i], &o);
    }
    if (status == LAC_OK) {
        status = lac_algorithm_start(a[0], &slice, 1);
    }
    if (status == LAC_OK) {
        status = lac_algorithm_start(a[2], &slice, 1);
    }
    if (status == LAC_OK) {
        const size_t len = lac_algorithm_state_size(a[0]);
        status = lac_algorithm_save(a[0], bytes, len);
        status =
            status == LAC_OK ? lac_algorithm_load(a[1], bytes, len) : status;
        f->refused |= lac_algorithm_load(a[3], bytes, len) == LAC_ERR_INVALID;
        f->gamma[w->rank] = lac_algorithm_gamma(a[0]);
        f->loaded[w->rank] = lac_algorithm_gamma(a[1]);
        f->halved[w->rank] = lac_algorithm_gamma(a[2]);
    }
    lac_transport_leave(w->transport);
    w->transport = NULL;
    for (size_t i = 0; i < 4; i++) {
        lac_algorithm_close(a[i]);
    }
    lac_topology_close(topology);
    lac_layout_close(layout);
    return status;
}

static void all_workers_share_and_save_the_value(void **state)
{
    (void)state;
    found f = {0};
    test_worker workers[2];
    run_workers(2, search_and_load, &f, workers);
    assert_all_ok(workers, 2);
    assert_true(f.gamma[0] > 0 && f.gamma[0] <= 2);
    assert_true(f.gamma[1] == f.gamma[0]);
    assert_true(f.loaded[0] == f.gamma[0] && f.loaded[1] == f.gamma[0]);
    assert_true(f.halved[0] == f.gamma[0] / 2 && f.halved[1] == f.halved[0]);
    assert_true(f.refused);
}

// The search accounts for the real size of the tensor: dithering with 7 levels
// preserves 1/80 of 300,000 values, but 1/4 of the copy.
static void large_tensors_get_a_small_gamma(void **state)
{
    (void)state;
    static float large[2 * 300000];
    consensus c = {
        .algorithm = "choco",
        .compressor = "dithering:levels=7",
        .topology = "complete",
        .workers = 2,
        .shape = {300000, 1},
        .rounds = 30,
        .seed = 1,
        .x = large,
    };
    consensus_fill_normal(&c, 1);
    consensus_run(&c);
    print_message("gamma %g\n", c.gamma);
    assert_true(c.gamma < 0.1);
    for (size_t i = 0; i < 600000; i++) {
        assert_true(fabsf(large[i]) < 10);
    }
}

static void one_worker_needs_no_search(void **state)
{
    (void)state;
    consensus c = {
        .algorithm = "choco",
        .compressor = "sign",
        .topology = "complete",
        .workers = 1,
        .shape = {10, 10},
        .x = x,
    };
    consensus_run(&c);
    assert_true(c.gamma == 1);
}

static lac_status search_ring(
    const char *compressor, bool training, double *gamma_out)
{
    const lac_tensor tensor = {.name = "x", .shape = {2000, 1}};
    lac_layout *layout;
    lac_topology *t;
    assert_ok(lac_layout_open(&layout, &tensor, 1));
    assert_ok(lac_topology_open(&t, "ring", 8, 1));
    const laci_gamma_problem problem = {
        .kind = laci_gamma_deepsqueeze,
        .compressor = compressor,
        .topology = t,
        .layout = layout,
        .training = training,
    };
    const lac_status status = laci_gamma_search(&problem, gamma_out);
    lac_topology_close(t);
    lac_layout_close(layout);
    return status;
}

// In training, speed matters more than the floor: half of the gamma that
// reaches 1e-4 first, which for natural is nearly 1.
static void training_gets_a_fast_gamma(void **state)
{
    (void)state;
    double gossip, training;
    assert_ok(search_ring("natural", false, &gossip));
    assert_ok(search_ring("natural", true, &training));
    print_message("gossip %g, training %g\n", gossip, training);
    assert_true(gossip < 0.05);
    assert_true(training > 0.3 && training < 0.7);
}

// Without loss there is no floor, and the fastest gamma is the best.
static void an_exact_compressor_gets_a_fast_gamma(void **state)
{
    (void)state;
    double gamma;
    assert_ok(search_ring("identity", false, &gamma));
    assert_true(gamma > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trial_predicts_the_real_rounds),
        cmocka_unit_test(all_workers_share_and_save_the_value),
        cmocka_unit_test(large_tensors_get_a_small_gamma),
        cmocka_unit_test(one_worker_needs_no_search),
        cmocka_unit_test(training_gets_a_fast_gamma),
        cmocka_unit_test(an_exact_compressor_gets_a_fast_gamma),
    };
    return cmocka_run_group_tests_name("gamma", tests, NULL, NULL);
}
