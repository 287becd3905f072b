// SPDX-License-Identifier: MIT
// Shards cover every value once and give all workers the same number of bytes,
// for the models that people train and for the buckets of their gradients.
#include "workers.h"

#include "algorithm/framework/algorithm.h"
#include "collective/frame.h"
#include "collective/group.h"
#include "exchanges.h"
#include "nn/layouts.h"

enum { WORKERS_MAX = 16, COUNT_SIZE = 4, SLICES_MAX = 100 };

// Shards of a worker that was not opened.
typedef struct fixture {
    lac_layout *layout;
    laci_worker worker;
} fixture;

static fixture open_shards(
    lac_layout *layout, const char *up, const char *back, uint32_t world)
{
    fixture f = {
        .layout = layout,
        .worker = {.algorithm = "test", .layout = layout, .world = world},
    };
    assert_ok(lac_compressor_open(&f.worker.compressor, up, LAC_FORM_UNBIASED));
    assert_ok(lac_compressor_open(&f.worker.server, back, LAC_FORM_UNBIASED));
    for (size_t t = 0; t < lac_layout_count(layout); t++) {
        const lac_shape shape = lac_layout_tensor(layout, t)->shape;
        assert_ok(lac_compressor_reserve(f.worker.compressor, shape));
        assert_ok(lac_compressor_reserve(f.worker.server, shape));
    }
    assert_ok(laci_shards_open(&f.worker.shards, &f.worker));
    return f;
}

static void close_shards(fixture *f)
{
    laci_shards_fini(&f->worker.shards);
    lac_compressor_close(f->worker.compressor);
    lac_compressor_close(f->worker.server);
    lac_layout_close(f->layout);
}

static lac_layout *layout_of(const lac_tensor *tensors, size_t count)
{
    lac_layout *layout;
    assert_ok(lac_layout_open(&layout, tensors, count));
    return layout;
}

static lac_layout *model_of(const char *model)
{
    lac_layout *layout;
    assert_ok(nn_layout_open(&layout, model));
    return layout;
}

// Expects the shards of a tensor to be its values, in order, in parts of `part`
// values but the last.
static void expect_parts(const fixture *f, size_t tensor, size_t part)
{
    const laci_shards *const shards = &f->worker.shards;
    const lac_tensor *const t = lac_layout_tensor(f->layout, tensor);
    const laci_shard *const end = laci_shards_of(shards, tensor + 1);
    size_t next = 0;
    for (const laci_shard *s = laci_shards_of(shards, tensor); s < end; s++) {
        const size_t n = lac_shape_values(s->shape);
        assert_int_equal(s->tensor, tensor);
        assert_int_equal(s->start, next);
        assert_true(n > 0 && (n == part || s + 1 == end) && n <= part);
        assert_true(s->name_hash == t->name_hash + s->start / part);
        assert_true(s->owner < f->worker.world);
        next += n;
    }
    assert_int_equal(next, lac_shape_values(t->shape));
}

// Expects the sums of what each worker serves.
static void expect_served(const fixture *f)
{
    const laci_shards *const shards = &f->worker.shards;
    laci_served served[WORKERS_MAX] = {{0}};
    for (size_t i = 0; i < shards->count; i++) {
        const laci_shard *const s = &shards->list[i];
        served[s->owner].count++;
        served[s->owner].up += lac_compressor_bound(
            f->worker.compressor, s->shape, LAC_SCOPE_WORKER);
        served[s->owner].back +=
            lac_compressor_bound(f->worker.server, s->shape, LAC_SCOPE_SHARED);
    }
    assert_memory_equal(
        shards->served, served, f->worker.world * sizeof(*served));
}

static const lac_tensor few[] = {
    {.name = "large", .shape = {100, 70}}, {.name = "empty", .shape = {0, 3}},
    {.name = "one", .shape = {1, 1}},      {.name = "part", .shape = {1024, 1}},
    {.name = "odd", .shape = {5, 205}},
};

enum { FEW = sizeof(few) / sizeof(*few) };

static void shards_are_all_values_in_order(void **state)
{
    (void)state;
    for (uint32_t world = 1; world <= WORKERS_MAX; world++) {
        fixture f = open_shards(layout_of(few, FEW), "natural", "half", world);
        assert_int_equal(f.worker.shards.count, 7 + 0 + 1 + 1 + 2);
        for (size_t t = 0; t < FEW; t++) {
            expect_parts(&f, t, 1024);
        }
        expect_served(&f);
        close_shards(&f);
    }
}

// 11,173,962 values: 21,824 are a 32nd of a worker's share.
static void parts_of_large_models_are_powers_of_two(void **state)
{
    (void)state;
    fixture f = open_shards(model_of("resnet18"), "natural", "natural", 16);
    for (size_t t = 0; t < lac_layout_count(f.layout); t++) {
        expect_parts(&f, t, 16384);
    }
    expect_served(&f);
    close_shards(&f);
}

static bool splits(const char *up, const char *back)
{
    fixture f = open_shards(layout_of(few, FEW), up, back, 3);
    const size_t count = f.worker.shards.count;
    expect_served(&f);
    for (size_t t = 0; count == FEW - 1 && t < FEW; t++) {
        expect_parts(&f, t, SIZE_MAX);
    }
    for (size_t i = 0; count == FEW - 1 && i < count; i++) {
        const laci_shard *const s = &f.worker.shards.list[i];
        const lac_shape shape = few[s->tensor].shape;
        assert_memory_equal(&s->shape, &shape, sizeof(shape));
    }
    close_shards(&f);
    return count > FEW - 1;
}

static void tensors_are_split_if_both_ways_allow_it(void **state)
{
    (void)state;
    static const char *const elementwise[] = {"identity",        "natural",
                                              "natural:bits=8",  "half",
                                              "qsgd:bucket=512", "bfloat16"};
    static const char *const others[] = {
        "sign",      "dithering",         "terngrad", "natural-dithering",
        "top-k:0.5", "top-k:0.5+natural", "random-k", "random-block",
        "low-rank"};
    for (size_t i = 0; i < sizeof(elementwise) / sizeof(*elementwise); i++) {
        assert_true(splits(elementwise[i], "natural"));
        assert_true(splits("natural", elementwise[i]));
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        assert_false(splits(others[i], "natural"));
        assert_false(splits("natural", others[i]));
        assert_false(splits(others[i], others[i]));
    }
}

// 16384 values, the next multiple of 1000, and of 1000 and 768.
static void parts_are_multiples_of_groups(void **state)
{
    (void)state;
    static const struct {
        const char *up, *back;
        size_t part;
    } cases[] = {
        {"natural", "qsgd:bucket=512", 16384},
        {"qsgd:bucket=1000", "natural", 17000},
        {"qsgd:bucket=1000", "qsgd:bucket=768", 96000},
        {"qsgd:bucket=4000000000", "natural", 4000000000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        fixture f =
            open_shards(model_of("resnet18"), cases[i].up, cases[i].back, 16);
        for (size_t t = 0; t < lac_layout_count(f.worker.layout); t++) {
            expect_parts(&f, t, cases[i].part);
        }
        expect_served(&f);
        close_shards(&f);
    }
}

// Largest first: f to worker 0; e and d to worker 1; c, and at equal loads b to
// worker 0; a to worker 1.
static void whole_tensors_are_assigned_by_size(void **state)
{
    (void)state;
    static const lac_tensor tensors[] = {
        {.name = "a", .shape = {80, 1}},  {.name = "b", .shape = {160, 1}},
        {.name = "c", .shape = {240, 1}}, {.name = "d", .shape = {320, 1}},
        {.name = "e", .shape = {400, 1}}, {.name = "f", .shape = {480, 1}},
    };
    static const uint32_t owners[] = {1, 0, 0, 1, 1, 0};
    fixture f = open_shards(layout_of(tensors, 6), "sign", "sign", 2);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(f.worker.shards.list[i].owner, owners[i]);
    }
    close_shards(&f);
}

// The seven parts of the first tensor go round; then worker 3 has least, with
// one value more it still has, then worker 2, then worker 0.
static void parts_are_assigned_in_the_order_of_the_layout(void **state)
{
    (void)state;
    fixture f = open_shards(layout_of(few, FEW), "identity", "half", 4);
    static const uint32_t owners[] = {0, 1, 2, 3, 0, 1, 2, 3, 3, 2, 0};
    for (size_t i = 0; i < f.worker.shards.count; i++) {
        assert_int_equal(f.worker.shards.list[i].owner, owners[i]);
    }
    close_shards(&f);
}

static void layouts_may_have_fewer_shards_than_workers(void **state)
{
    (void)state;
    fixture none = open_shards(layout_of(NULL, 0), "sign", "natural", 5);
    assert_int_equal(none.worker.shards.count, 0);
    expect_served(&none);
    close_shards(&none);
    fixture two = open_shards(layout_of(few, 3), "sign", "natural", 16);
    assert_int_equal(two.worker.shards.list[0].owner, 0);
    assert_int_equal(two.worker.shards.list[1].owner, 1);
    close_shards(&two);
}

// The bytes of the ports in one exchange.
typedef struct ports {
    double sent[WORKERS_MAX];
    double received[WORKERS_MAX];
} ports;

static double busiest(const ports *p, uint32_t world)
{
    double most = 0;
    for (uint32_t k = 0; k < world; k++) {
        most = p->sent[k] > most ? p->sent[k] : most;
        most = p->received[k] > most ? p->received[k] : most;
    }
    return most;
}

// How much more the busiest port carries than the mean.
static double excess(const ports *p, uint32_t world)
{
    double sum = 0;
    for (uint32_t k = 0; k < world; k++) {
        sum += p->sent[k];
    }
    return busiest(p, world) / (sum / world) - 1;
}

// The bytes of messages with these payloads and a note of this size, or none.
static double message_bytes(size_t payload, size_t count, size_t note)
{
    const size_t lengths = (count + (note > 0)) * LACI_LENGTH_SIZE;
    return (double)(LACI_FRAME_SIZE + payload + lengths + note);
}

static void predict_ports(const fixture *f, ports exchanges_out[2])
{
    const uint32_t world = f->worker.world;
    memset(exchanges_out, 0, 2 * sizeof(*exchanges_out));
    for (uint32_t to = 0; to < world; to++) {
        const laci_served *const s = &f->worker.shards.served[to];
        const double up = message_bytes(s->up, s->count, COUNT_SIZE);
        const double back = message_bytes(s->back, s->count, 0);
        for (uint32_t k = 0; k < world; k++) {
            if (k != to) {
                exchanges_out[0].sent[k] += up;
                exchanges_out[0].received[to] += up;
                exchanges_out[1].sent[to] += back;
                exchanges_out[1].received[k] += back;
            }
        }
    }
}

// Expects that the listed exchanges of `compressed` have these ports.
static void expect_listed(const fixture *f, const ports expected[2])
{
    const uint32_t world = f->worker.world;
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = "compressed";
    o.compressor = "natural";
    o.layout = f->layout;
    o.workers = world;
    lac_exchange list[2];
    size_t count;
    uint32_t period;
    assert_ok(lac_algorithm_exchanges(&o, list, 2, &count, &period));
    assert_int_equal(count, 2);
    for (int e = 0; e < 2; e++) {
        assert_true((double)list[e].bytes == busiest(&expected[e], world));
        const double mean = (double)list[e].total / world;
        assert_true((double)list[e].bytes < 1.05 * mean);
    }
}

static void large_models_are_balanced(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        uint32_t world;
    } cases[] = {{"resnet20", 8}, {"resnet18", 16}, {"lstm", 16}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        ports expected[2];
        fixture f = open_shards(
            model_of(cases[i].model), "natural", "natural", cases[i].world);
        predict_ports(&f, expected);
        for (int e = 0; e < 2; e++) {
            const double above = excess(&expected[e], cases[i].world);
            print_message("%s: %.2f %%\n", cases[i].model, 100 * above);
            assert_true(above < 0.05);
        }
        expect_listed(&f, expected);
        close_shards(&f);
    }
}

// Loads never differ by more than one part, at the beginning of a bucket as
// well as at its end.
static void buckets_of_gradients_are_balanced(void **state)
{
    (void)state;
    enum { WORLD = 16 };
    fixture f = open_shards(model_of("resnet18"), "natural", "natural", WORLD);
    const laci_shards *const shards = &f.worker.shards;
    const lac_shape shape = {16384, 1};
    const size_t part =
        2 *
        (lac_compressor_bound(f.worker.compressor, shape, LAC_SCOPE_WORKER) +
         LACI_LENGTH_SIZE);
    for (size_t a = 0; a < lac_layout_count(f.layout); a++) {
        size_t loads[WORLD] = {0};
        for (const laci_shard *s = laci_shards_of(shards, a);
             s < shards->list + shards->count; s++) {
            loads[s->owner] += s->up + s->back + (size_t)2 * LACI_LENGTH_SIZE;
        }
        size_t least = SIZE_MAX, most = 0;
        for (size_t k = 0; k < WORLD; k++) {
            least = loads[k] < least ? loads[k] : least;
            most = loads[k] > most ? loads[k] : most;
        }
        assert_true(most - least <= 2 * part);
    }
    close_shards(&f);
}

// What every worker sends and receives, in each exchange.
static ports traffic[2];

static void add_traffic(const exchange *e)
{
    ports *const p = &traffic[(exchanges - 1) % 2];
    for (size_t i = 0; i < e->send_count; i++) {
        p->sent[e->rank] += (double)e->sends[i].len;
    }
    for (size_t i = 0; i < e->receive_count; i++) {
        p->received[e->rank] += (double)e->receives[i].len;
    }
}

static lac_status reduce_model(test_worker *w)
{
    lac_layout *layout = NULL;
    lac_algorithm *a = NULL;
    LAC_TRY(nn_layout_open(&layout, w->context));
    const size_t count = lac_layout_count(layout);
    lac_slice slices[SLICES_MAX];
    EXPECT(count <= SLICES_MAX);
    float *const x = calloc(lac_layout_values(layout), sizeof(*x));
    EXPECT(x != NULL);
    fill_normal(x, lac_layout_values(layout), w->rank + 1);
    for (size_t i = 0; i < count; i++) {
        float *const values = x + lac_layout_tensor(layout, i)->offset;
        slices[i] = (lac_slice){i, LAC_F32, values, values};
    }
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = "compressed";
    o.compressor = "natural";
    o.layout = layout;
    o.transport = w->transport;
    lac_status status = lac_algorithm_open(&a, &o);
    if (status == LAC_OK) {
        status = lac_algorithm_reduce(a, 0, slices, count);
    }
    lac_transport_leave(w->transport);
    w->transport = NULL;
    lac_algorithm_close(a);
    lac_layout_close(layout);
    free(x);
    EXPECT(status != LAC_OK || exchanges == 2);
    return status;
}

static void traffic_is_as_predicted_and_balanced(void **state)
{
    (void)state;
    enum { WORLD = 8 };
    static char model[] = "resnet20";
    test_worker workers[WORLD];
    ports expected[2];
    after_exchange = add_traffic;
    run_workers(WORLD, reduce_model, model, workers);
    assert_all_ok(workers, WORLD);
    fixture f = open_shards(model_of(model), "natural", "natural", WORLD);
    predict_ports(&f, expected);
    assert_memory_equal(traffic, expected, sizeof(expected));
    assert_true(excess(&traffic[0], WORLD) < 0.05);
    assert_true(excess(&traffic[1], WORLD) < 0.05);
    close_shards(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_all_values_in_order),
        cmocka_unit_test(parts_of_large_models_are_powers_of_two),
        cmocka_unit_test(tensors_are_split_if_both_ways_allow_it),
        cmocka_unit_test(parts_are_multiples_of_groups),
        cmocka_unit_test(whole_tensors_are_assigned_by_size),
        cmocka_unit_test(parts_are_assigned_in_the_order_of_the_layout),
        cmocka_unit_test(layouts_may_have_fewer_shards_than_workers),
        cmocka_unit_test(large_models_are_balanced),
        cmocka_unit_test(buckets_of_gradients_are_balanced),
        cmocka_unit_test(traffic_is_as_predicted_and_balanced),
    };
    return cmocka_run_group_tests_name("shards", tests, NULL, NULL);
}
