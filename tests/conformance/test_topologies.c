// SPDX-License-Identifier: MIT
// The duties of every topology in topologies.def, for many numbers of workers
// and with every setting at values other than its default. A new line in the
// list is covered by all of them. Settings that are texts are taken for
// the path of a list of edges.
#include "duty.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "topology/topology.h"

enum {
    SPEC_SIZE = 96,
    WORKERS_MAX = 36,
    SEEDS = 8,
    RANDOM_WORKERS = 32, // enough for two random graphs to differ
    DRAWN_MAX = 8,       // rounds that are more than enough to mix
};

static const uint32_t sizes[] = {1, 2,  3,  4,  5,  6,  7,  8,
                                 9, 10, 12, 16, 17, 25, 32, 36};

enum { SIZE_COUNT = sizeof(sizes) / sizeof(sizes[0]) };

#define EDGES_FILE "conformance-edges.txt"

typedef void duty(const laci_topology_ops *ops, const char *spec);

// Edges of a ring for lists that are read from a file.
static void write_edges(uint32_t workers)
{
    FILE *const stream = fopen(EDGES_FILE, "w");
    assert_non_null(stream);
    for (uint32_t i = 0; i < workers && workers > 1; i++) {
        (void)fprintf(stream, "%u %u\n", i, (i + 1) % workers);
    }
    assert_int_equal(fclose(stream), 0);
}

static lac_status open_topology(
    lac_topology **t, const char *spec, uint32_t workers, uint64_t seed)
{
    write_edges(workers);
    return lac_topology_open(t, spec, workers, seed);
}

// "name:path=..." with the settings that have no useful default.
static void base_spec(const lac_plugin *plugin, char spec[SPEC_SIZE])
{
    (void)snprintf(spec, SPEC_SIZE, "%s", plugin->name);
    for (const lac_param *p = plugin->params; p != NULL && p->name; p++) {
        if (p->type == LAC_PARAM_TEXT) {
            (void)snprintf(
                spec, SPEC_SIZE, "%s:%s=" EDGES_FILE, plugin->name, p->name);
        }
    }
}

// Writes one value of a setting, which one by `number`. Returns whether there
// is such a value.
static bool value_of(const lac_param *p, int number, char *out, size_t size)
{
    static const double parts[] = {0.25, 0.5, 1};
    static const int steps[] = {0, 1, 2, 3, 5};
    if (p->type == LAC_PARAM_F64 && number < 3) {
        const double value = p->min + parts[number] * (p->max - p->min);
        return snprintf(out, size, "%s=%g", p->name, value) > 0;
    }
    if (p->type == LAC_PARAM_U32 && number < 5) {
        const double value = p->min + steps[number];
        return value <= p->max &&
               snprintf(out, size, "%s=%g", p->name, value) > 0;
    }
    if (p->type == LAC_PARAM_BOOL && number < 2) {
        return snprintf(out, size, "%s=%s", p->name, number ? "yes" : "no") > 0;
    }
    const char *word = p->type == LAC_PARAM_CHOICE ? p->choices : NULL;
    for (int i = 0; i < number && word != NULL; i++) {
        word = strchr(word, '|') == NULL ? NULL : strchr(word, '|') + 1;
    }
    return word != NULL && snprintf(
                               out, size, "%s=%.*s", p->name,
                               (int)strcspn(word, "|"), word) > 0;
}

// Runs a duty with the default settings and with each setting at each of its
// values.
static void for_all_settings(const laci_topology_ops *ops, duty *run)
{
    char base[SPEC_SIZE], spec[2 * SPEC_SIZE], value[SPEC_SIZE];
    base_spec(&ops->plugin, base);
    print_message("%s\n", base);
    duty_begin(base, "");
    run(ops, base);
    for (const lac_param *p = ops->plugin.params; p && p->name; p++) {
        for (int number = 0; value_of(p, number, value, SPEC_SIZE); number++) {
            (void)snprintf(
                spec, sizeof(spec), "%s%c%s", base,
                strchr(base, ':') == NULL ? ':' : ',', value);
            print_message("%s\n", spec);
            duty_begin(spec, "");
            run(ops, spec);
        }
    }
    duty_end();
}

static void for_all_topologies(duty *run)
{
    size_t count;
    const lac_plugin *const *const plugins = lac_topologies(&count);
    for (size_t i = 0; i < count; i++) {
        for_all_settings((const void *)plugins[i], run);
    }
    (void)remove(EDGES_FILE);
}

// Rows and columns sum to 1: weights are doubles, so a sum of n is off by n
// roundings of 2^-53 where it is made and as many here, below 1e-15 * n.
static void check_matrix(const lac_topology *t, uint64_t round)
{
    static double w[WORKERS_MAX * WORKERS_MAX];
    const uint32_t n = lac_topology_workers(t);
    lac_topology_matrix(t, round, w);
    for (uint32_t i = 0; i < n; i++) {
        double row = 0, column = 0;
        for (uint32_t j = 0; j < n; j++) {
            assert_true(w[i * n + j] == w[j * n + i]);
            assert_true(w[i * n + j] >= 0);
            row += w[i * n + j];
            column += w[j * n + i];
        }
        assert_true(fabs(row - 1) <= 1e-15 * n);
        assert_true(fabs(column - 1) <= 1e-15 * n);
        assert_true(w[i * n + i] == lac_topology_self_weight(t, i, round));
    }
}

// The weight of the edge from `rank` to `peer`, 0 if there is none.
static double weight_of(
    const lac_topology *t, uint32_t rank, uint32_t peer, uint64_t round)
{
    const lac_edge *edges;
    const uint32_t count = lac_topology_edges(t, rank, round, &edges);
    for (uint32_t k = 0; k < count; k++) {
        if (edges[k].peer == peer) {
            return edges[k].weight;
        }
    }
    return 0;
}

// Edges are in order, without the worker itself, among its peers, and the same
// from both ends. Returns the most that a worker has.
static uint32_t check_edges(const lac_topology *t, uint64_t round)
{
    const uint32_t n = lac_topology_workers(t);
    uint32_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        const lac_edge *edges;
        const uint32_t count = lac_topology_edges(t, i, round, &edges);
        for (uint32_t k = 0; k < count; k++) {
            assert_true(edges[k].peer < n && edges[k].peer != i);
            assert_true(k == 0 || edges[k].peer > edges[k - 1].peer);
            assert_true(edges[k].weight > 0);
            assert_true(
                weight_of(t, edges[k].peer, i, round) == edges[k].weight);
        }
        most = count > most ? count : most;
    }
    return most;
}

// Peers are in order, are the same from both ends, and are all who share an
// edge in some round. There are as many as the count of edges states.
static void check_peers(const lac_topology *t)
{
    const uint32_t n = lac_topology_workers(t);
    size_t ends = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *peers;
        const uint32_t count = lac_topology_peers(t, i, &peers);
        uint32_t known = 0;
        for (uint32_t j = 0; j < n; j++) {
            bool talk = false;
            for (uint32_t r = 0; r < lac_topology_period(t); r++) {
                talk = talk || weight_of(t, i, j, r) > 0;
            }
            assert_int_equal(talk, known < count && peers[known] == j);
            known += talk;
        }
        assert_int_equal(known, count);
        ends += count;
    }
    assert_int_equal(ends, 2 * lac_topology_edge_count(t));
}

// One value that differs spreads: a path, the slowest of all, has a gap of
// about pi^2 / (3 n^2), so that 16 n^2 periods leave e^-50 of the deviation.
// Of a long period that is drawn, some rounds do: in the mean each removes the
// gap, at least 1/2, of the squared deviation.
static void check_mixing(const lac_topology *t)
{
    double x[WORKERS_MAX] = {1}, y[WORKERS_MAX];
    const uint32_t n = lac_topology_workers(t);
    const uint32_t period = lac_topology_period(t);
    const bool part = lac_topology_is_drawn(t) && period > DRAWN_MAX;
    const uint64_t rounds = (uint64_t)16 * n * n * (part ? DRAWN_MAX : period);
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < n; i++) {
            const lac_edge *edges;
            const uint32_t count = lac_topology_edges(t, i, round, &edges);
            y[i] = lac_topology_self_weight(t, i, round) * x[i];
            for (uint32_t k = 0; k < count; k++) {
                y[i] += edges[k].weight * x[edges[k].peer];
            }
        }
        memcpy(x, y, sizeof(x));
    }
    for (uint32_t i = 0; i < n; i++) {
        assert_true(fabs(x[i] - 1.0 / n) < 1e-6);
    }
}

static bool same_round(const lac_topology *t, uint32_t a, uint32_t b)
{
    bool same = true;
    for (uint32_t i = 0; i < lac_topology_workers(t); i++) {
        for (uint32_t j = 0; j < lac_topology_workers(t); j++) {
            same = same && weight_of(t, i, j, a) == weight_of(t, i, j, b);
        }
    }
    return same;
}

// Rounds repeat after a period and, unless they are drawn, not before.
static void check_period(const lac_topology *t, bool random)
{
    const uint32_t period = lac_topology_period(t);
    assert_true(period >= 1);
    assert_true(
        same_round(t, 0, period) && same_round(t, period - 1, 7 * period - 1));
    for (uint32_t shorter = 1; shorter < period && !random; shorter++) {
        bool repeats = period % shorter == 0;
        for (uint32_t r = 0; repeats && r + shorter < period; r++) {
            repeats = same_round(t, r, r + shorter);
        }
        assert_false(repeats);
    }
}

static void are_consistent(const laci_topology_ops *ops, const char *spec)
{
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        lac_topology *t;
        if (open_topology(&t, spec, sizes[i], 1) != LAC_OK) {
            continue;
        }
        uint32_t most = 0;
        assert_int_equal(lac_topology_workers(t), sizes[i]);
        check_period(t, ops->random);
        for (uint32_t r = 0; r < lac_topology_period(t); r++) {
            check_matrix(t, r);
            const uint32_t degree = check_edges(t, r);
            most = degree > most ? degree : most;
        }
        assert_int_equal(lac_topology_max_degree(t), most);
        check_peers(t);
        check_mixing(t);
        lac_topology_close(t);
    }
}

// Whether all settings but the weights have their defaults. Other values may
// exclude most numbers of workers, or give too few edges.
static bool usual_settings(const laci_topology_ops *ops, const char *spec)
{
    char base[SPEC_SIZE];
    base_spec(&ops->plugin, base);
    const size_t len = strlen(base);
    return strncmp(spec, base, len) == 0 &&
           (spec[len] == '\0' || strncmp(spec + len + 1, "weights=", 8) == 0);
}

// A number of workers that does not fit is refused by the builder, with a
// message that names the topology. A graph that it builds is connected.
static void refuse_with_a_message(
    const laci_topology_ops *ops, const char *spec)
{
    const size_t name = strlen(ops->plugin.name);
    size_t fit = 0;
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        lac_topology *t = (void *)1;
        const lac_status status = open_topology(&t, spec, sizes[i], 1);
        const char *const message = lac_error_message();
        if (status == LAC_OK) {
            fit += sizes[i] > 1;
            lac_topology_close(t);
            continue;
        }
        assert_status(status, LAC_ERR_INVALID);
        assert_null(t);
        assert_memory_equal(message, ops->plugin.name, name);
        assert_int_equal(message[name], ':');
        assert_non_null(strstr(message, "expected"));
        assert_null(strstr(message, "an edge"));
        // Only with max-degree may a good graph fail to mix.
        const bool may_fail =
            !usual_settings(ops, spec) || strstr(spec, "max-degree") != NULL;
        assert_true(may_fail || strstr(message, "connected") == NULL);
        assert_true(may_fail || strstr(message, "gap") == NULL);
        assert_true(
            ops->random || !usual_settings(ops, spec) ||
            strstr(message, "not connected") == NULL);
    }
    // Where all cycles are even, no graph mixes with max-degree.
    assert_true(
        fit > 0 || !usual_settings(ops, spec) ||
        strstr(spec, "max-degree") != NULL);
}

// Every worker builds the network for itself, each in its own process and
// after whatever it built before: equal arguments give an equal network.
static void are_the_same_everywhere(
    const laci_topology_ops *ops, const char *spec)
{
    (void)ops;
    uint64_t first[SIZE_COUNT] = {0};
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < SIZE_COUNT; i++) {
            // The second time in the other order.
            const size_t at = pass == 0 ? i : SIZE_COUNT - 1 - i;
            lac_topology *t;
            if (open_topology(&t, spec, sizes[at], 3) == LAC_OK) {
                const uint64_t hash = lac_topology_hash(t);
                assert_true(pass == 0 || hash == first[at]);
                first[at] = hash;
                lac_topology_close(t);
            } else {
                assert_true(first[at] == 0);
            }
        }
    }
}

// Networks that are drawn differ by their seed, others do not know it.
static void depend_on_the_seed_if_random(
    const laci_topology_ops *ops, const char *spec)
{
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        uint64_t hashes[SEEDS] = {0};
        size_t others = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            lac_topology *t;
            if (open_topology(&t, spec, sizes[i], seed) == LAC_OK) {
                hashes[seed] = lac_topology_hash(t);
                lac_topology_close(t);
            }
            others += hashes[seed] != hashes[0];
        }
        assert_true(ops->random || others == 0);
        if (ops->random && sizes[i] == RANDOM_WORKERS && hashes[0] != 0 &&
            strchr(spec, '=') == NULL) {
            assert_int_equal(others, SEEDS - 1);
        }
    }
}

// Each setting changes the network of some number of workers.
static void every_setting_matters(void **state)
{
    (void)state;
    size_t count;
    const lac_plugin *const *const plugins = lac_topologies(&count);
    for (size_t k = 0; k < count; k++) {
        char base[SPEC_SIZE], spec[2 * SPEC_SIZE], value[SPEC_SIZE];
        base_spec(plugins[k], base);
        for (const lac_param *p = plugins[k]->params; p && p->name; p++) {
            bool matters = p->type == LAC_PARAM_TEXT;
            for (int j = 0; value_of(p, j, value, SPEC_SIZE); j++) {
                (void)snprintf(
                    spec, sizeof(spec), "%s%c%s", base,
                    strchr(base, ':') == NULL ? ':' : ',', value);
                for (size_t i = 0; i < SIZE_COUNT; i++) {
                    lac_topology *a, *b;
                    const lac_status plain =
                        open_topology(&a, base, sizes[i], 1);
                    const lac_status set = open_topology(&b, spec, sizes[i], 1);
                    matters = matters || plain != set ||
                              (plain == LAC_OK &&
                               lac_topology_hash(a) != lac_topology_hash(b));
                    lac_topology_close(a);
                    lac_topology_close(b);
                }
            }
            print_message("%s: %s\n", plugins[k]->name, p->name);
            assert_true(matters);
        }
    }
    (void)remove(EDGES_FILE);
}

// The weights are those that the setting names, so the state begins with it.
static void have_the_weights_of_their_setting(
    const laci_topology_ops *ops, const char *spec)
{
    (void)ops;
    const uint32_t extra = strstr(spec, "max-degree") == NULL;
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        lac_topology *t;
        if (open_topology(&t, spec, sizes[i], 1) != LAC_OK) {
            continue;
        }
        for (uint32_t r = 0; r < t->period; r++) {
            const laci_rows *const rows =
                t->varying == NULL ? &t->peers : &t->varying[r];
            uint32_t degree[WORKERS_MAX] = {0};
            for (uint32_t a = 0; a < t->workers; a++) {
                for (size_t k = rows->start[a]; k < rows->start[a + 1]; k++) {
                    degree[a] += rows->count[k];
                }
            }
            for (uint32_t a = 0; a < t->workers; a++) {
                for (size_t k = rows->start[a]; k < rows->start[a + 1]; k++) {
                    const uint32_t b = rows->peer[k];
                    const uint32_t larger =
                        degree[a] > degree[b] ? degree[a] : degree[b];
                    assert_true(
                        weight_of(t, a, b, r) ==
                        rows->count[k] * (1.0 / (larger + extra)));
                }
            }
        }
        lac_topology_close(t);
    }
}

#define TEST(run)                                                              \
    static void topologies_##run(void **state)                                 \
    {                                                                          \
        (void)state;                                                           \
        for_all_topologies(run);                                               \
    }
TEST(are_consistent)
TEST(refuse_with_a_message)
TEST(are_the_same_everywhere)
TEST(depend_on_the_seed_if_random)
TEST(have_the_weights_of_their_setting)
#undef TEST

int main(void)
{
#define TEST(run) cmocka_unit_test(topologies_##run)
    const struct CMUnitTest tests[] = {
        TEST(are_consistent),
        TEST(refuse_with_a_message),
        TEST(are_the_same_everywhere),
        TEST(depend_on_the_seed_if_random),
        TEST(have_the_weights_of_their_setting),
        cmocka_unit_test(every_setting_matters),
    };
    return cmocka_run_group_tests_name("topologies", tests, NULL, NULL);
}
