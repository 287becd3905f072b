// SPDX-License-Identifier: MIT
// PowerSGD by several workers: it is one worker with the mean gradient, and
// their memories hold what was not delivered.
#include "powersgd_test.h"

enum { ROUNDS = 6 };

// A job of several workers with normal gradients.
typedef struct job {
    const char *spec;
    uint32_t workers;
    size_t rank;
    bool mean; // every worker gets the mean of WORKERS_MAX gradients
    float results[WORKERS_MAX][ROUNDS][ALL];
    double errors[WORKERS_MAX][N];
    lac_traffic traffic[WORKERS_MAX];
} job;

static void fill_gradient(uint32_t rank, uint64_t round, float *g)
{
    fill_normal(g, ALL, 100 * round + rank + 1);
}

static void fill_mean(uint64_t round, float *g)
{
    double sum[ALL] = {0};
    for (uint32_t rank = 0; rank < WORKERS_MAX; rank++) {
        fill_gradient(rank, round, g);
        for (size_t i = 0; i < ALL; i++) {
            sum[i] += (double)g[i] / WORKERS_MAX;
        }
    }
    for (size_t i = 0; i < ALL; i++) {
        g[i] = (float)sum[i];
    }
}

static lac_status reduce_all_rounds(test_worker *w, lac_algorithm *a)
{
    job *const c = w->context;
    const uint32_t rank = w->rank;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        float g[ALL];
        if (c->mean) {
            fill_mean(round, g);
        } else {
            fill_gradient(rank, round, g);
        }
        const lac_status status =
            reduce_both(a, round, g, c->results[rank][round]);
        if (status != LAC_OK) {
            return status;
        }
    }
    c->traffic[rank] = lac_algorithm_traffic(a);
    if (c->rank > 0) {
        read_error(a, c->rank, c->errors[rank]);
    }
    return LAC_OK;
}

static lac_status job_body(test_worker *w)
{
    const job *const c = w->context;
    return with_algorithm(
        w, options_for(c->spec, NULL), NULL, both_tensors, 2,
        reduce_all_rounds);
}

static void job_run(job *c)
{
    test_worker workers[WORKERS_MAX];
    run_workers(c->workers, job_body, c, workers);
    assert_all_ok(workers, c->workers);
    for (uint32_t rank = 1; rank < c->workers; rank++) {
        assert_memory_equal(
            c->results[0], c->results[rank], sizeof(c->results[0]));
    }
}

static job many, one;

// P is made of sums that differ by roundings, near 1e-7 of them; a gap between
// singular values of a few percent makes that 1e-5 of the factors at most.
static void workers_are_one_worker_with_the_mean(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "powersgd", "powersgd:rank=4", "powersgd:rank=3,alternating=yes",
        "powersgd:rank=2,error-feedback=no", "powersgd:rank=2,warm-start=no"};
    for (size_t k = 0; k < sizeof(specs) / sizeof(*specs); k++) {
        many = (job){.spec = specs[k], .workers = WORKERS_MAX};
        one = (job){.spec = specs[k], .workers = 1, .mean = true};
        job_run(&many);
        job_run(&one);
        for (size_t round = 0; round < ROUNDS; round++) {
            const float *const x = one.results[0][round];
            assert_true(
                square_distance(many.results[0][round], x, ALL) <
                1e-10 * square(x, ALL));
        }
    }
}

// The sum of all mean gradients is the sum of all results and the mean of the
// memories. A sum of ROUNDS values below 6 ROUNDS has as many roundings.
static void what_was_not_delivered_is_in_the_memories(void **state)
{
    (void)state;
    static const char *const specs[] = {
        "powersgd:rank=4", "powersgd:rank=4,alternating=yes",
        "powersgd:rank=4,warm-start=no"};
    for (size_t k = 0; k < sizeof(specs) / sizeof(*specs); k++) {
        double left[N] = {0};
        many = (job){.spec = specs[k], .workers = WORKERS_MAX, .rank = 4};
        job_run(&many);
        for (uint64_t round = 0; round < ROUNDS; round++) {
            for (uint32_t rank = 0; rank < WORKERS_MAX; rank++) {
                float g[ALL];
                fill_gradient(rank, round, g);
                for (size_t i = 0; i < N; i++) {
                    left[i] += (double)g[i] / WORKERS_MAX;
                }
            }
            for (size_t i = 0; i < N; i++) {
                left[i] -= (double)many.results[0][round][i];
            }
        }
        double size = 0;
        for (size_t i = 0; i < N; i++) {
            double mean = 0;
            for (uint32_t rank = 0; rank < WORKERS_MAX; rank++) {
                mean += many.errors[rank][i] / WORKERS_MAX;
            }
            assert_true(fabs(left[i] - mean) < 1e-5);
            size += mean * mean;
        }
        assert_true(size > 1);
    }
}

// The worker's own residual is in no direction that was just delivered, so it
// does not grow with the number of rounds as the difference of gradients does.
static void memories_hold_the_workers_own_residual(void **state)
{
    (void)state;
    many = (job){.spec = "powersgd:rank=1", .workers = WORKERS_MAX, .rank = 1};
    job_run(&many);
    const float *const last = many.results[0][ROUNDS - 1];
    for (uint32_t rank = 0; rank < WORKERS_MAX; rank++) {
        double product = 0, size = 0;
        // The result is p q^T; a column of it is p, but for its length.
        for (size_t j = 0; j < COLS; j++) {
            double sum = 0;
            for (size_t i = 0; i < ROWS; i++) {
                sum += (double)last[i * COLS] * many.errors[rank][i * COLS + j];
                size += many.errors[rank][i * COLS + j] *
                        many.errors[rank][i * COLS + j];
            }
            product += sum * sum;
        }
        double column = 0;
        for (size_t i = 0; i < ROWS; i++) {
            column += (double)last[i * COLS] * (double)last[i * COLS];
        }
        assert_true(product < 1e-10 * column * size);
    }
}

static void vectors_are_the_exact_mean(void **state)
{
    (void)state;
    many = (job){.spec = "powersgd:rank=2", .workers = WORKERS_MAX};
    one = (job){.spec = "allreduce", .workers = WORKERS_MAX};
    job_run(&many);
    job_run(&one);
    for (size_t round = 0; round < ROUNDS; round++) {
        assert_memory_equal(
            many.results[0][round] + N, one.results[0][round] + N,
            BIAS_N * sizeof(float));
    }
}

static void bytes_are_those_of_the_factors(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        uint64_t floats, messages;
    } table[] = {
        {"powersgd", ROUNDS * (ROWS + COLS + BIAS_N), 2 * ROUNDS},
        {"powersgd:rank=4", ROUNDS * (4 * (ROWS + COLS) + BIAS_N), 2 * ROUNDS},
        {"powersgd:rank=4,alternating=yes",
         ROUNDS * (4 * (ROWS + COLS) / 2 + BIAS_N), ROUNDS},
        {"powersgd:start-iteration=2",
         2 * ALL + (ROUNDS - 2) * (ROWS + COLS + BIAS_N), 2 + 2 * (ROUNDS - 2)},
        {"powersgd:rank=16", ROUNDS * ALL, ROUNDS},
    };
    for (size_t k = 0; k < sizeof(table) / sizeof(*table); k++) {
        many = (job){.spec = table[k].spec, .workers = 3};
        job_run(&many);
        for (uint32_t rank = 0; rank < 3; rank++) {
            assert_int_equal(
                many.traffic[rank].payload_bytes,
                sizeof(float) * table[k].floats);
            assert_int_equal(many.traffic[rank].messages, table[k].messages);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_are_one_worker_with_the_mean),
        cmocka_unit_test(what_was_not_delivered_is_in_the_memories),
        cmocka_unit_test(memories_hold_the_workers_own_residual),
        cmocka_unit_test(vectors_are_the_exact_mean),
        cmocka_unit_test(bytes_are_those_of_the_factors),
    };
    return cmocka_run_group_tests_name("powersgd_workers", tests, NULL, NULL);
}
