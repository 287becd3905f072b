// SPDX-License-Identifier: MIT
// outer over exact gossip on random matchings: NoLoCo. The disagreement u of
// the anchors and the momentum m obey, in the mean over all matchings, an exact
// recursion of (|u|^2, <u, m>, |m|^2), and steps that make it diverge are
// refused.
#include "consensus.h"

#include <math.h>

enum { WORKERS_MAX = 8, VALUES = 16, MATCHINGS_MAX = 15 };

static float x[WORKERS_MAX * VALUES], y[WORKERS_MAX * VALUES];
static float anchors[WORKERS_MAX * VALUES];

// p of E[W] = (1 - p) I + p/n 11'.
static double gap_of(uint32_t n)
{
    return n % 2 == 1 ? 0.5 : n / (2.0 * (n - 1));
}

typedef struct squares {
    double u, um, m;
} squares;

typedef struct setting {
    double lr, momentum;
    bool nesterov;
} setting;

// One round of the recursion. m' = a m + Pu and u' = u - c Pu - d m, with
// E|Pu|^2 = p |u|^2 and E<Pu, m> = p <u, m>.
static squares recursion(const setting *s, double p, squares q)
{
    const double a = s->momentum, g = s->lr;
    const double c = s->nesterov ? g * (1 + a) : g;
    const double d = s->nesterov ? g * a * a : g * a;
    return (squares){
        (1 - 2 * c * p + c * c * p) * q.u + 2 * d * (c * p - 1) * q.um +
            d * d * q.m,
        p * (1 - c) * q.u + (a - c * a * p - d * p) * q.um - d * a * q.m,
        p * q.u + 2 * a * p * q.um + a * a * q.m,
    };
}

// The largest eigenvalue of the recursion: of a growth over 1000 rounds.
static double factor_of(const setting *s, double p)
{
    squares q = {1, 0, 1};
    double log_growth = 0;
    for (int i = 0; i < 2000; i++) {
        q = recursion(s, p, q);
        const double size = q.u + q.m;
        log_growth += i < 1000 ? 0 : log(size);
        q = (squares){q.u / size, q.um / size, q.m / size};
    }
    return exp(log_growth / 1000);
}

typedef struct matching {
    uint32_t partner[WORKERS_MAX];
} matching;

// Lists all matchings of the workers that have no partner yet. Of an odd
// number, one is its own partner.
static size_t list_matchings(
    uint32_t n, matching m, bool idle, matching *out, size_t count)
{
    uint32_t first = 0;
    while (first < n && m.partner[first] < n) {
        first++;
    }
    if (first == n) {
        out[count] = m;
        return count + 1;
    }
    for (uint32_t k = first; k < n; k++) {
        matching next = m;
        if (m.partner[k] < n || (k == first && !idle)) {
            continue;
        }
        next.partner[first] = k;
        next.partner[k] = first;
        count = list_matchings(n, next, idle && k != first, out, count);
    }
    return count;
}

static double inner_product(const double *a, const double *b, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

// The squares after a round with this matching.
static squares round_of(
    const setting *s, const matching *w, uint32_t n, const double *u,
    const double *m)
{
    double next_u[WORKERS_MAX], next_m[WORKERS_MAX];
    for (uint32_t i = 0; i < n; i++) {
        const double d = u[i] - (u[i] + u[w->partner[i]]) / 2;
        next_m[i] = s->momentum * m[i] + d;
        next_u[i] = u[i] - s->lr * (s->nesterov ? d + s->momentum * next_m[i]
                                                : next_m[i]);
    }
    return (squares){
        inner_product(next_u, next_u, n), inner_product(next_u, next_m, n),
        inner_product(next_m, next_m, n)};
}

// Vectors whose sum is 0.
static void fill_disagreement(double *v, uint32_t n, double phase)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        v[i] = cos(phase + 2.0 * i);
        sum += v[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        v[i] -= sum / n;
    }
}

// Sums of a hundred doubles of size 1: 1e-13 is far above their rounding.
static void the_mean_over_all_matchings_is_the_recursion(void **state)
{
    (void)state;
    static const size_t counts[] = {3, 15, 15};
    static const setting settings[] = {
        {0.7, 0.5, false}, {0.7, 0.9, true}, {1.3, 0.2, false}};
    for (uint32_t n = 4; n <= 6; n++) {
        matching list[MATCHINGS_MAX], none;
        memset(&none, 0xff, sizeof(none));
        const size_t count = list_matchings(n, none, n % 2 == 1, list, 0);
        assert_int_equal(count, counts[n - 4]);
        for (size_t k = 0; k < 3; k++) {
            double u[WORKERS_MAX], m[WORKERS_MAX];
            fill_disagreement(u, n, 0.3);
            fill_disagreement(m, n, 1.1);
            squares mean = {0};
            for (size_t i = 0; i < count; i++) {
                const squares q = round_of(&settings[k], &list[i], n, u, m);
                mean.u += q.u / (double)count;
                mean.um += q.um / (double)count;
                mean.m += q.m / (double)count;
            }
            const squares before = {
                inner_product(u, u, n), inner_product(u, m, n),
                inner_product(m, m, n)};
            const squares q = recursion(&settings[k], gap_of(n), before);
            assert_true(fabs(mean.u - q.u) < 1e-13);
            assert_true(fabs(mean.um - q.um) < 1e-13);
            assert_true(fabs(mean.m - q.m) < 1e-13);
        }
    }
}

static lac_status open_status(const setting *s, uint32_t n, double rate)
{
    const lac_tensor tensor = {.name = "x", .shape = {VALUES, 1}};
    lac_layout *layout;
    lac_topology *topology;
    lac_cost cost;
    char spec[160];
    assert_ok(lac_layout_open(&layout, &tensor, 1));
    assert_ok(lac_topology_open(&topology, "random-matching", n, 1));
    (void)snprintf(
        spec, sizeof(spec),
        "outer:inner=(dpsgd:rate=%.17g),lr=%.17g,momentum=%.17g,nesterov=%s",
        rate, s->lr, s->momentum, s->nesterov ? "yes" : "no");
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = spec;
    o.layout = layout;
    o.topology = topology;
    const lac_status status = lac_algorithm_cost(&o, &cost);
    lac_topology_close(topology);
    lac_layout_close(layout);
    return status;
}

// The step from which on the library refuses, by bisection.
static double refused_from(setting s, uint32_t n, double rate)
{
    double low = 0.01, high = 4;
    for (int i = 0; i < 40; i++) {
        s.lr = (low + high) / 2;
        if (open_status(&s, n, rate) == LAC_OK) {
            low = s.lr;
        } else {
            high = s.lr;
        }
    }
    return low;
}

static void steps_are_refused_where_the_recursion_diverges(void **state)
{
    (void)state;
    static const double momenta[] = {0, 0.5, 0.9};
    for (uint32_t n = 2; n <= WORKERS_MAX; n++) {
        for (size_t k = 0; k < 6; k++) {
            setting s = {0, momenta[k / 2], k % 2 == 1};
            const double bound = refused_from(s, n, 1);
            s.lr = 0.999 * bound;
            assert_true(factor_of(&s, gap_of(n)) < 1);
            s.lr = 1.001 * bound;
            assert_true(factor_of(&s, gap_of(n)) > 1);
            // A larger step of the gossip is a larger outer step.
            assert_true(
                fabs(refused_from(s, n, 0.8) - bound / 0.8) < 1e-9 ||
                bound / 0.8 > 4);
        }
    }
}

// Published and simulated numbers of NoLoCo's settings.
static void the_numbers_of_noloco_are_met(void **state)
{
    (void)state;
    setting s = {0.7, 0.5, false};
    assert_true(fabs(refused_from(s, 8, 1) - 1.615) < 5e-4);
    assert_true(fabs(refused_from(s, 7, 1) - 1.5) < 1e-9);
    assert_true(fabs(factor_of(&s, gap_of(8)) - 0.668) < 5e-4);
    assert_true(fabs(factor_of(&s, gap_of(7)) - 0.7) < 5e-4);
    s.momentum = 0.9;
    assert_true(fabs(refused_from(s, 8, 1) - 0.436) < 5e-4);
    assert_true(fabs(factor_of(&s, gap_of(8)) - 1.072) < 5e-4);
    assert_fails(
        open_status(&s, 8, 1), LAC_ERR_INVALID,
        "outer: lr is 0.7, expected less than 0.4361: with momentum=0.9, "
        "nesterov=no and random matchings of 8 workers, larger steps diverge");
}

// Keeps the anchors, then moves every worker by a step of its own.
static void keep_and_move(
    const consensus *c, uint32_t rank, uint32_t round, const lac_algorithm *a,
    const float *now)
{
    (void)a;
    const size_t n = consensus_values(c);
    float *const own = c->x + rank * n;
    float *const kept = (float *)c->user + rank * n;
    memcpy(kept, now, n * sizeof(*kept));
    for (size_t i = 0; i < n && round < c->rounds; i++) {
        own[i] += (float)(0.1 * sin(rank + 2.0 * (double)i + 5.0 * round));
    }
}

static void run_matching(
    const char *spec, uint32_t n, uint32_t rounds, float *values, float *kept)
{
    consensus c = {
        .algorithm = spec,
        .topology = "random-matching",
        .workers = n,
        .shape = {VALUES, 1},
        .rounds = rounds,
        .seed = 5,
        .x = values,
        .after = keep_and_move,
        .user = kept,
    };
    for (size_t i = 0; i < (size_t)n * VALUES; i++) {
        values[i] = (float)cos((double)(i % VALUES));
    }
    consensus_run(&c);
}

static double mean_at(const float *values, uint32_t n, size_t i)
{
    double sum = 0;
    for (uint32_t rank = 0; rank < n; rank++) {
        sum += (double)values[rank * VALUES + i] / n;
    }
    return sum;
}

// The mean of the anchors follows heavy ball on the mean of the local steps,
// whoever is paired with whom, and in odd worlds too. A round rounds a few
// times by 2^-23 of values below 2, and the momentum doubles an error.
static void the_mean_follows_the_mean_of_the_local_steps(void **state)
{
    (void)state;
    enum { ROUNDS = 12 };
    for (uint32_t n = 3; n <= WORKERS_MAX; n++) {
        run_matching(
            "outer:inner=(dpsgd),lr=0.7,momentum=0.5,nesterov=no", n, ROUNDS, x,
            anchors);
        for (size_t i = 0; i < VALUES; i++) {
            double mean = cos((double)i), delta = 0;
            for (uint32_t round = 0; round < ROUNDS; round++) {
                double step = 0;
                for (uint32_t rank = 0; rank < n; rank++) {
                    step += 0.1 * sin(rank + 2.0 * (double)i + 5.0 * round) / n;
                }
                delta = 0.5 * delta + 0.7 * step;
                mean += delta;
            }
            assert_true(
                fabs(mean_at(x, n, i) - mean) < ROUNDS * 2 * 8 * 0x1p-23);
        }
    }
}

// Two workers are always a pair: gossip is the exact mean.
static void two_workers_are_averaged_by_heavy_ball(void **state)
{
    (void)state;
    enum { ROUNDS = 12 };
    static float other[WORKERS_MAX * VALUES];
    run_matching(
        "outer:inner=(dpsgd),lr=0.7,momentum=0.5,nesterov=no", 2, ROUNDS, x,
        anchors);
    run_matching(
        "outer:inner=(allreduce),lr=0.7,momentum=0.5,nesterov=no", 2, ROUNDS, y,
        other);
    for (size_t i = 0; i < 2 * (size_t)VALUES; i++) {
        assert_true(
            fabs((double)x[i] - (double)y[i]) < ROUNDS * 2 * 8 * 0x1p-23);
    }
}

// NoLoCo as published, in double: two vectors of every worker, its way since
// the last round and its anchor, enter the momentum of a pair, with equal
// coefficients. A worker without a partner is its own.
static void run_published(uint32_t n, uint32_t rounds, double (*phi)[VALUES])
{
    double delta[WORKERS_MAX][VALUES] = {{0}};
    lac_topology *t;
    assert_ok(lac_topology_open(&t, "random-matching", n, 5));
    for (uint32_t k = 0; k < n * VALUES; k++) {
        phi[k / VALUES][k % VALUES] = (double)(float)cos((double)(k % VALUES));
    }
    for (uint32_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < n; i++) {
            const lac_edge *edges;
            const uint32_t count = lac_topology_edges(t, i, round, &edges);
            const uint32_t j = count == 0 ? i : edges[0].peer;
            for (size_t v = 0; v < VALUES; v++) {
                const double angle = 2.0 * (double)v + 5.0 * round;
                const double way = 0.1 * (sin(i + angle) + sin(j + angle)) / 2;
                delta[i][v] = 0.5 * delta[i][v] + 0.7 * way -
                              0.7 * (phi[i][v] - phi[j][v]) / 2;
            }
        }
        for (uint32_t k = 0; k < n * VALUES; k++) {
            phi[k / VALUES][k % VALUES] += delta[k / VALUES][k % VALUES];
        }
    }
    lac_topology_close(t);
}

// One vector has both. The tolerance is that of the mean above.
static void one_vector_replaces_the_two_of_noloco(void **state)
{
    (void)state;
    enum { ROUNDS = 12 };
    for (uint32_t n = 3; n <= WORKERS_MAX; n++) {
        double phi[WORKERS_MAX][VALUES];
        run_matching(
            "outer:inner=(dpsgd),lr=0.7,momentum=0.5,nesterov=no", n, ROUNDS, x,
            anchors);
        run_published(n, ROUNDS, phi);
        for (uint32_t k = 0; k < n * VALUES; k++) {
            const double expected = phi[k / VALUES][k % VALUES];
            assert_true(
                fabs((double)x[k] - expected) < ROUNDS * 2 * 8 * 0x1p-23);
        }
    }
}

// What 40 rounds without local steps leave of the squared disagreement, in the
// mean over seeds of the matchings.
static void disagreement_falls_as_the_recursion_does(void **state)
{
    (void)state;
    enum { ROUNDS = 40, SEEDS = 200 };
    const setting s = {0.7, 0.5, false};
    for (uint32_t n = 7; n <= 8; n++) {
        squares q = {1, 0, 0};
        double sum = 0, sum_squares = 0;
        for (int i = 0; i < ROUNDS; i++) {
            q = recursion(&s, gap_of(n), q);
        }
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            double mean[VALUES];
            consensus c = {
                .algorithm =
                    "outer:inner=(dpsgd),lr=0.7,momentum=0.5,nesterov=no",
                .topology = "random-matching",
                .workers = n,
                .shape = {VALUES, 1},
                .rounds = ROUNDS,
                .seed = seed,
                .x = x,
            };
            consensus_fill_normal(&c, seed);
            consensus_mean(&c, mean);
            const double before = consensus_error(&c, mean);
            consensus_run(&c);
            const double left = consensus_error(&c, mean) / before;
            sum += left / SEEDS;
            sum_squares += left * left / SEEDS;
        }
        const double error = sqrt((sum_squares - sum * sum) / SEEDS);
        print_message("%u: %.3g of %.3g, spread %.2g\n", n, sum, q.u, error);
        assert_true(fabs(sum - q.u) < 5 * error);
        assert_true(error < q.u / 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mean_over_all_matchings_is_the_recursion),
        cmocka_unit_test(steps_are_refused_where_the_recursion_diverges),
        cmocka_unit_test(the_numbers_of_noloco_are_met),
        cmocka_unit_test(the_mean_follows_the_mean_of_the_local_steps),
        cmocka_unit_test(two_workers_are_averaged_by_heavy_ball),
        cmocka_unit_test(one_vector_replaces_the_two_of_noloco),
        cmocka_unit_test(disagreement_falls_as_the_recursion_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
