// SPDX-License-Identifier: MIT
// Long vectors that are viewed as matrices, and the warning where nothing is
// compressed.
#include "cost.h"
#include "workers.h"

#include <math.h>

enum {
    WORKERS = 3,
    N = 95, // a matrix of 10 x 10 with five zeros
    SIDE = 10,
    PADDED = SIDE * SIDE,
    ROUNDS = 6,
};

// Workers that reduce or mix one tensor, with another gradient or update in
// every round. Zeros follow the first N values of a matrix.
typedef struct folding {
    const char *spec;
    const char *compressor;
    lac_shape shape;
    lac_dtype dtype;
    bool resume; // save and load the state in the middle
    float x[WORKERS][PADDED];
    lac_traffic traffic;
} folding;

static void fill_round(uint32_t rank, uint64_t round, float *out)
{
    memset(out, 0, PADDED * sizeof(*out));
    fill_normal(out, N, 10 * round + rank);
}

static lac_status reload(lac_algorithm *a)
{
    const size_t len = lac_algorithm_state_size(a);
    uint8_t *const state = malloc(len);
    EXPECT(state != NULL);
    lac_status status = lac_algorithm_save(a, state, len);
    if (status == LAC_OK) {
        status = lac_algorithm_load(a, state, len);
    }
    free(state);
    return status;
}

// The values after the tensor's last are NaN, so that reading them shows, and
// writing them too.
static lac_status fold_round(
    const folding *f, lac_algorithm *a, uint64_t round, uint32_t rank, float *x)
{
    const size_t n = lac_shape_values(f->shape);
    float update[PADDED];
    double wide[PADDED];
    fill_round(rank, round, update);
    for (size_t i = n; i < PADDED; i++) {
        update[i] = NAN;
        x[i] = NAN;
    }
    const bool gradient = lac_algorithm_family(a) == LAC_FAMILY_GRADIENT;
    if (gradient) {
        memcpy(x, update, sizeof(update));
    }
    for (size_t i = 0; i < PADDED; i++) {
        wide[i] = (double)x[i];
    }
    const float *const updates[] = {update};
    void *const values = f->dtype == LAC_F64 ? (void *)wide : (void *)x;
    const lac_slice slice = {0, f->dtype, values, values};
    LAC_TRY(
        gradient ? lac_algorithm_reduce(a, round, &slice, 1)
                 : lac_algorithm_mix(a, round, &slice, updates, 1));
    for (size_t i = 0; i < PADDED; i++) {
        x[i] = f->dtype == LAC_F64 ? (float)wide[i] : x[i];
        EXPECT((isnan(x[i]) != 0) == (i >= n));
    }
    return LAC_OK;
}

static lac_status fold_rounds(test_worker *w, lac_algorithm *a)
{
    folding *const f = w->context;
    float *const x = f->x[w->rank];
    const lac_slice slice = {0, LAC_F32, x, x};
    fill_round(w->rank, 1000, x);
    LAC_TRY(lac_algorithm_start(a, &slice, 1));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        LAC_TRY(fold_round(f, a, round, w->rank, x));
        if (f->resume) {
            LAC_TRY(reload(a));
        }
    }
    if (w->rank == 0) {
        f->traffic = lac_algorithm_traffic(a);
    }
    return LAC_OK;
}

static lac_status fold_body(test_worker *w)
{
    const folding *const f = w->context;
    const lac_tensor tensor = {.name = "x", .shape = f->shape};
    return with_algorithm(
        w, options_for(f->spec, f->compressor), "complete", &tensor, 1,
        fold_rounds);
}

static void fold_run(folding *f)
{
    test_worker workers[WORKERS];
    run_workers(WORKERS, fold_body, f, workers);
    assert_all_ok(workers, WORKERS);
}

static void assert_same_values(const folding *a, const folding *b)
{
    for (size_t rank = 0; rank < WORKERS; rank++) {
        assert_memory_equal(a->x[rank], b->x[rank], N * sizeof(float));
    }
}

// A gradient has the same bits as the matrix with zeros that it is viewed as.
static void a_folded_gradient_is_that_of_the_padded_matrix(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"powersgd:rank=2,fold=yes", "powersgd:rank=2"},
        {"powersgd:alternating=yes,fold=yes", "powersgd:alternating=yes"},
        {"powersgd:error-feedback=no,fold=yes", "powersgd:error-feedback=no"},
    };
    for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
        folding column = {.spec = pairs[i][0], .shape = {N, 1}};
        folding row = {.spec = pairs[i][0], .shape = {1, N}, .resume = true};
        folding wide = {.spec = pairs[i][0], .shape = {N, 1}};
        folding matrix = {.spec = pairs[i][1], .shape = {SIDE, SIDE}};
        wide.dtype = LAC_F64;
        fold_run(&column);
        fold_run(&row);
        fold_run(&wide);
        fold_run(&matrix);
        assert_same_values(&column, &matrix);
        assert_same_values(&row, &matrix);
        assert_same_values(&wide, &matrix);
        assert_int_equal(
            column.traffic.payload_bytes, matrix.traffic.payload_bytes);
    }
}

// The mean of the workers moves by the mean of the updates, and they come
// closer than without gossip; factors are sent instead of the values.
static void a_folded_model_gossips(void **state)
{
    (void)state;
    folding f = {.spec = "powergossip:rank=2,fold=yes", .shape = {N, 1}};
    folding all = {.spec = "powergossip:rank=2", .shape = {N, 1}};
    fold_run(&f);
    fold_run(&all);
    double spread = 0, apart = 0;
    for (size_t i = 0; i < N; i++) {
        double mean = 0, expected = 0;
        for (uint32_t rank = 0; rank < WORKERS; rank++) {
            mean += (double)f.x[rank][i] / WORKERS;
            expected += (double)all.x[rank][i] / WORKERS;
        }
        assert_true(fabs(mean - expected) < 1e-5);
        for (uint32_t rank = 0; rank < WORKERS; rank++) {
            spread += pow((double)f.x[rank][i] - mean, 2) / N / WORKERS;
        }
    }
    // Seven independent normal steps without gossip.
    apart = (ROUNDS + 1) * (WORKERS - 1.0) / WORKERS;
    assert_true(spread < apart / 2);
    assert_int_equal(
        f.traffic.payload_bytes, ROUNDS * 2 * 2 * SIDE * sizeof(float));
    assert_int_equal(all.traffic.payload_bytes, ROUNDS * 2 * N * sizeof(float));
}

static lac_cost cost_of(const char *spec, lac_shape shape)
{
    lac_layout *layout;
    const lac_tensor tensor = {.name = "x", .shape = shape};
    assert_ok(lac_layout_open(&layout, &tensor, 1));
    return cost_for(spec, NULL, 4, layout);
}

static void only_what_becomes_smaller_is_folded(void **state)
{
    (void)state;
    // 10 x 10 in place of 95 values; 2 x 2 would not be smaller than 3.
    assert_true(
        cost_of("powersgd:fold=yes", (lac_shape){N, 1}).payload_bytes ==
        4 * 2 * SIDE);
    assert_true(
        cost_of("powersgd:fold=yes", (lac_shape){3, 1}).payload_bytes == 4 * 3);
    assert_true(
        cost_of("powersgd:rank=8,fold=yes", (lac_shape){N, 1}).payload_bytes ==
        4 * N);
    assert_true(
        cost_of("powergossip:fold=yes", (lac_shape){1, N}).payload_bytes ==
        4 * SIDE);
    assert_true(
        cost_of("powergossip:fold=yes", (lac_shape){3, 1}).payload_bytes ==
        4 * 2);
    assert_true(
        cost_of("powergossip:fold=yes", (lac_shape){1, 1}).payload_bytes == 4);
}

// Opens an algorithm of one worker and compares its warning, NULL for none.
static void expect_warning(
    const char *spec, const char *compressor, lac_shape shape,
    const char *expected)
{
    lac_layout *layout;
    lac_topology *topology;
    lac_hub *hub;
    lac_transport *t;
    lac_algorithm *a;
    const lac_tensor tensor = {.name = "x", .shape = shape};
    assert_ok(lac_layout_open(&layout, &tensor, 1));
    assert_ok(lac_topology_open(&topology, "complete", 1, 1));
    assert_ok(lac_hub_open(&hub, 1));
    assert_ok(lac_transport_join(&t, "local", hub, 0, 1));
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = spec;
    o.compressor = compressor;
    o.layout = layout;
    o.topology = topology;
    o.transport = t;
    assert_ok(lac_algorithm_open(&a, &o));
    const char *const warning = lac_algorithm_warning(a);
    assert_string_equal(
        warning == NULL ? "" : warning, expected == NULL ? "" : expected);
    lac_transport_leave(t);
    lac_algorithm_close(a);
    lac_hub_close(hub);
    lac_topology_close(topology);
    lac_layout_close(layout);
}

static void vectors_that_are_not_compressed_get_a_warning(void **state)
{
    (void)state;
    static const lac_shape vector = {1000, 1}, matrix = {100, 10};
    expect_warning(
        "powersgd:rank=4", NULL, vector,
        "powersgd sends 4000 bytes a round and the tensors have 4000: nothing "
        "is compressed; powersgd needs matrices, or fold=yes to view vectors "
        "as such");
    expect_warning(
        "powergossip", NULL, vector,
        "powergossip sends 4000 bytes a round and the tensors have 4000: "
        "nothing is compressed; powergossip needs matrices, or fold=yes to "
        "view vectors as such");
    expect_warning(
        "error-feedback", "low-rank", vector,
        "error-feedback sends 4000 bytes a round and the tensors have 4000: "
        "nothing is compressed; low-rank needs matrices, or fold=yes to view "
        "vectors as such");
    expect_warning(
        "powersgd:rank=32", NULL, matrix,
        "powersgd sends 4000 bytes a round and the tensors have 4000: nothing "
        "is compressed");
    expect_warning(
        "powersgd:rank=32,fold=yes", NULL, (lac_shape){10, 1},
        "powersgd sends 40 bytes a round and the tensors have 40: nothing is "
        "compressed");
}

static void choices_that_compress_or_are_exact_get_none(void **state)
{
    (void)state;
    static const lac_shape vector = {1000, 1}, matrix = {100, 10};
    expect_warning("powersgd", NULL, matrix, NULL);
    expect_warning("powersgd:fold=yes", NULL, vector, NULL);
    expect_warning("powergossip:fold=yes", NULL, vector, NULL);
    expect_warning("error-feedback", "low-rank:fold=yes", vector, NULL);
    expect_warning("error-feedback", "top-k", vector, NULL);
    expect_warning("choco:gamma=0.1", "identity", vector, NULL);
    expect_warning("allreduce", NULL, vector, NULL);
    expect_warning("dpsgd", NULL, vector, NULL);
    expect_warning("powersgd", NULL, (lac_shape){0, 1}, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folded_gradient_is_that_of_the_padded_matrix),
        cmocka_unit_test(a_folded_model_gossips),
        cmocka_unit_test(only_what_becomes_smaller_is_folded),
        cmocka_unit_test(vectors_that_are_not_compressed_get_a_warning),
        cmocka_unit_test(choices_that_compress_or_are_exact_get_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
