// SPDX-License-Identifier: MIT
// Prints the call stack of a round's first exchange: one line for each frame,
// from lac_transport_exchange up. The library is compiled without optimisation
// for this program, and check_walk.py compares the lines with
// docs/architecture.md.
// usage: walk ALGORITHM COMPRESSOR
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <laconic/laconic.h>

enum { FRAMES_MAX = 64, VALUES = 64 };

static bool in_round;

lac_status __real_lac_transport_exchange(
    lac_transport *t, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline);
lac_status __wrap_lac_transport_exchange(
    lac_transport *t, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline);

lac_status __wrap_lac_transport_exchange(
    lac_transport *t, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline)
{
    if (in_round && lac_transport_rank(t) == 0) {
        void *frames[FRAMES_MAX];
        const int count = backtrace(frames, FRAMES_MAX);
        for (int i = 1; i < count; i++) { // 0 is this function
            printf("%p\n", frames[i]);
        }
        in_round = false;
    }
    return __real_lac_transport_exchange(
        t, sends, send_count, receives, receive_count, deadline);
}

typedef struct worker {
    lac_hub *hub;
    uint32_t rank;
    char **arguments;
    lac_status status;
} worker;

static lac_status run_round(const worker *w, lac_transport *transport)
{
    const lac_tensor tensor = {.name = "x", .shape = {8, 8}};
    float x[VALUES] = {(float)w->rank};
    const lac_slice slice = {0, LAC_F32, x, x};
    lac_layout *layout = NULL;
    lac_topology *topology = NULL;
    lac_algorithm *a = NULL;
    lac_algorithm_options o = lac_algorithm_options_default();
    LAC_TRY(lac_layout_open(&layout, &tensor, 1));
    LAC_TRY(lac_topology_open(&topology, "complete", 2, 1));
    o.spec = w->arguments[1];
    o.compressor = w->arguments[2];
    o.layout = layout;
    o.topology = topology;
    o.transport = transport;
    LAC_TRY(lac_algorithm_open(&a, &o));
    const bool model = lac_algorithm_family(a) == LAC_FAMILY_MODEL;
    if (model) {
        LAC_TRY(lac_algorithm_start(a, &slice, 1));
    }
    if (w->rank == 0) {
        in_round = true;
    }
    const lac_status status = model ? lac_algorithm_mix(a, 0, &slice, NULL, 1)
                                    : lac_algorithm_reduce(a, 0, &slice, 1);
    lac_algorithm_close(a);
    lac_topology_close(topology);
    lac_layout_close(layout);
    return status;
}

static void *run_worker(void *argument)
{
    worker *const w = argument;
    lac_transport *transport = NULL;
    w->status = lac_transport_join(&transport, "local", w->hub, w->rank, 2);
    if (w->status == LAC_OK) {
        w->status = run_round(w, transport);
    }
    lac_transport_leave(transport);
    return NULL;
}

int main(int argc, char **argv)
{
    lac_hub *hub = NULL;
    pthread_t other;
    if (argc < 2 || lac_hub_open(&hub, 2) != LAC_OK) {
        return 2;
    }
    worker workers[] = {{hub, 0, argv, LAC_OK}, {hub, 1, argv, LAC_OK}};
    if (pthread_create(&other, NULL, run_worker, &workers[1]) != 0) {
        return 2;
    }
    (void)run_worker(&workers[0]);
    (void)pthread_join(other, NULL);
    lac_hub_close(hub);
    return workers[0].status == LAC_OK && workers[1].status == LAC_OK ? 0 : 1;
}
