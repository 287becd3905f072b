// SPDX-License-Identifier: MIT
// A worker may open and close any number of algorithms on one transport: the
// memory of those that were closed does not add up, and is not released while
// peers read it.
#include "workers.h"

#include <math.h>

enum {
    WORLD = 3,
    HANDLES = WORKERS_ARE_LOCAL ? 1000 : 200,
    WARM_UP = 50,
    VALUES = 6000, // a large sum
};

// Blocks that this thread has allocated and not released.
static _Thread_local long live;

void *__real_laci_zalloc_aligned(size_t size);
void *__wrap_laci_zalloc_aligned(size_t size);
void __real_laci_free_aligned(void *block);
void __wrap_laci_free_aligned(void *block);

void *__wrap_laci_zalloc_aligned(size_t size)
{
    void *const block = __real_laci_zalloc_aligned(size);
    live += block != NULL;
    return block;
}

void __wrap_laci_free_aligned(void *block)
{
    live -= block != NULL;
    __real_laci_free_aligned(block);
}

typedef struct kind {
    const char *algorithm;
    size_t n;
} kind;

// Small and large sums, messages to neighbours, and none at all.
static const kind kinds[] = {
    {"allreduce", 10},
    {"allreduce", VALUES},
    {"error-feedback", 300},
    {"dpsgd", 300},
    {NULL, 10},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static lac_status run_round(
    lac_algorithm *a, const test_worker *w, float *x, size_t n)
{
    const lac_slice slice = {0, LAC_F32, x, x};
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)w->rank;
    }
    if (lac_algorithm_family(a) == LAC_FAMILY_GRADIENT) {
        LAC_TRY(lac_algorithm_reduce(a, 0, &slice, 1));
    } else {
        LAC_TRY(lac_algorithm_start(a, &slice, 1));
        LAC_TRY(lac_algorithm_mix(a, 0, &slice, NULL, 1));
    }
    for (size_t i = 0; i < n; i++) {
        EXPECT(fabsf(x[i] - (WORLD - 1) / 2.0F) < 1e-5F);
    }
    return LAC_OK;
}

// Opens, uses and closes a handle for a tensor of n values.
static lac_status use_handle(test_worker *w, const kind *k, float *x)
{
    const lac_tensor tensor = {.name = "x", .shape = {k->n, 1}};
    const char *const spec = k->algorithm == NULL ? "allreduce" : k->algorithm;
    handles h = {0};
    lac_algorithm_options o = options_for(
        spec, strcmp(spec, "error-feedback") == 0 ? "identity" : NULL);
    lac_status status = open_parts(&h, &o, "ring", WORLD, &tensor, 1);
    o.transport = w->transport;
    o.timeout = 600;
    if (status == LAC_OK) {
        status = lac_algorithm_open(&h.a, &o);
    }
    if (status == LAC_OK && k->algorithm != NULL) {
        status = run_round(h.a, w, x, k->n);
    }
    close_handles(&h);
    return status;
}

// A transport may keep a few more messages than after the warm-up, for those
// that arrive early; fewer than there are handles.
static lac_status open_and_close(test_worker *w)
{
    static _Thread_local float x[VALUES];
    long before = 0;
    for (int i = 0; i < HANDLES; i++) {
        before = i == WARM_UP ? live : before;
        LAC_TRY(use_handle(w, &kinds[i % KINDS], x));
    }
    EXPECT(live - before < WARM_UP);
    return LAC_OK;
}

static void memory_of_closed_handles_does_not_add_up(void **state)
{
    (void)state;
    test_worker workers[WORLD];
    run_workers(WORLD, open_and_close, NULL, workers);
    assert_all_ok(workers, WORLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_closed_handles_does_not_add_up),
    };
    return cmocka_run_group_tests_name(
        "closed", tests, setup_workers, teardown_workers);
}
