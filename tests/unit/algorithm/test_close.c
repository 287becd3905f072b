// SPDX-License-Identifier: MIT
// Closing an algorithm after its sum has failed. The transport's own all-reduce
// may still write to the values until the worker leaves, so their memory must
// last until then. The linker replaces that all-reduce by one that fails.
#include "workers.h"

#include <math.h>

#include "transport/transport.h"

enum { VALUES = 6000, BLOCKS_MAX = 64 };

static _Thread_local float *pending; // what the failed all-reduce may write to
static _Thread_local size_t pending_n;
static _Thread_local bool released;  // before the worker has left
static _Thread_local int calls_left; // sums that succeed

bool __wrap_laci_transport_has_allreduce(const lac_transport *t);
lac_status __wrap_laci_transport_allreduce(
    lac_transport *t, float *x, size_t n, double deadline);
void *__real_laci_zalloc_aligned(size_t size);
void *__wrap_laci_zalloc_aligned(size_t size);
void __real_laci_free_aligned(void *block);
void __wrap_laci_free_aligned(void *block);

// The blocks of this thread's worker.
static _Thread_local struct {
    uintptr_t start;
    size_t size;
} blocks[BLOCKS_MAX];
static _Thread_local size_t block_count;

void *__wrap_laci_zalloc_aligned(size_t size)
{
    void *const block = __real_laci_zalloc_aligned(size);
    if (block_count < BLOCKS_MAX) {
        blocks[block_count].start = (uintptr_t)block;
        blocks[block_count++].size = size;
    }
    return block;
}

bool __wrap_laci_transport_has_allreduce(const lac_transport *t)
{
    (void)t;
    return true;
}

lac_status __wrap_laci_transport_allreduce(
    lac_transport *t, float *x, size_t n, double deadline)
{
    (void)t;
    (void)deadline;
    if (calls_left-- > 0) { // both workers have the same values
        for (size_t i = 0; i < n; i++) {
            x[i] *= 2;
        }
        return LAC_OK;
    }
    pending = x;
    pending_n = n;
    return lac_fail(LAC_ERR_PEER, "a test lets the all-reduce fail");
}

void __wrap_laci_free_aligned(void *block)
{
    for (size_t i = 0; i < block_count; i++) {
        if (blocks[i].start == (uintptr_t)block) {
            released = released ||
                       (uintptr_t)pending - blocks[i].start < blocks[i].size;
        }
    }
    __real_laci_free_aligned(block);
}

typedef struct order {
    bool leave_first;
    lac_nonfinite nonfinite;
} order;

static lac_status fail_and_close(test_worker *w)
{
    const order *const o = w->context;
    static _Thread_local float x[VALUES];
    const lac_tensor tensor = {.name = "x", .shape = {VALUES, 1}};
    const lac_slice slice = {0, LAC_F32, x, x};
    lac_layout *layout = NULL;
    lac_algorithm *a = NULL;
    LAC_TRY(lac_layout_open(&layout, &tensor, 1));
    lac_algorithm_options options = lac_algorithm_options_default();
    options.layout = layout;
    options.transport = w->transport;
    options.nonfinite = o->nonfinite;
    LAC_TRY(lac_algorithm_open(&a, &options));
    pending = NULL;
    released = false;
    // A value that is not finite makes a second sum, of uncompressed values.
    x[0] = o->nonfinite == LAC_NONFINITE_RAW ? NAN : 0;
    calls_left = o->nonfinite == LAC_NONFINITE_RAW ? 1 : 0;
    const lac_status status = lac_algorithm_reduce(a, 0, &slice, 1);
    EXPECT(status == LAC_ERR_PEER && pending != NULL);
    if (o->leave_first) {
        memset(pending, 0xff, pending_n * sizeof(*pending));
        lac_transport_leave(w->transport);
        w->transport = NULL;
        pending = NULL;
        lac_algorithm_close(a);
    } else {
        lac_algorithm_close(a);
        EXPECT(!released);
        memset(pending, 0xff, pending_n * sizeof(*pending));
    }
    lac_layout_close(layout);
    return LAC_OK;
}

static void sums_last_until_the_worker_has_left(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        order o = {i % 2 == 1, i < 2 ? LAC_NONFINITE_STOP : LAC_NONFINITE_RAW};
        test_worker workers[2];
        run_workers(2, fail_and_close, &o, workers);
        assert_all_ok(workers, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_last_until_the_worker_has_left),
    };
    return cmocka_run_group_tests_name("close", tests, NULL, NULL);
}
