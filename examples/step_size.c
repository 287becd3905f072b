// The step size that error feedback needs. Four threads minimise the mean of
// |X - B_i|^2 / 2, whose optimum is the mean of the workers' B_i, by gradient
// descent: X -= rate * mean of (X - B_i).
//
// With the exact mean the distance to the optimum shrinks by 1 - rate in every
// step. Error feedback delivers a part of a gradient some steps later, when X
// has moved: a step that is too large then overshoots further each time. The
// program fails unless each method ends as its row states.
#include <laconic/laconic.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

enum { WORKERS = 4, SIDE = 64, VALUES = SIDE * SIDE, STEPS = 400 };

// Distances to the optimum, relative to where the descent starts.
#define REACHED 0.05 // top-k has a floor that is proportional to the rate
#define LOST    1.0

typedef struct method {
    const char *algorithm;
    const char *compressor;
    float rate;
    bool reaches; // the optimum
} method;

static const method methods[] = {
    {"allreduce", NULL, 0.8F, true},
    {"powersgd:rank=4", NULL, 0.8F, false},
    {"powersgd:rank=4", NULL, 0.1F, true},
    {"error-feedback", "top-k:0.05", 0.8F, false},
    {"error-feedback", "top-k:0.05", 0.1F, true},
};

typedef struct worker {
    const method *method;
    lac_hub *hub;
    uint32_t rank;
    float target[VALUES]; // B
    float model[VALUES];  // X
    bool good;
} worker;

// B has much that all workers have in common, and a little of its own.
static void draw_target(worker *w)
{
    const lac_key common =
        lac_key_make(1, LAC_PURPOSE_USER, 0, lac_scope_shared(), 0);
    const lac_key own =
        lac_key_make(1, LAC_PURPOSE_USER, 0, lac_scope_worker(w->rank), 0);
    for (uint32_t i = 0; i < VALUES; i++) {
        w->target[i] =
            lac_key_normal(&common, i) + 0.1F * lac_key_normal(&own, i);
    }
}

static lac_status descend(worker *w, lac_algorithm *mean)
{
    float gradient[VALUES];
    const lac_slice slice = {0, LAC_F32, gradient, gradient};
    for (uint64_t step = 0; step < STEPS; step++) {
        for (uint32_t i = 0; i < VALUES; i++) {
            gradient[i] = w->model[i] - w->target[i];
        }
        LAC_TRY(lac_algorithm_reduce(mean, step, &slice, 1));
        for (uint32_t i = 0; i < VALUES; i++) {
            w->model[i] -= w->method->rate * gradient[i];
        }
    }
    return LAC_OK;
}

static lac_status run(worker *w, lac_transport *t)
{
    const lac_tensor tensor = {.name = "x", .shape = {SIDE, SIDE}};
    lac_layout *layout = NULL;
    lac_algorithm *mean = NULL;
    lac_status status = lac_layout_open(&layout, &tensor, 1);
    if (status == LAC_OK) {
        lac_algorithm_options options = lac_algorithm_options_default();
        options.spec = w->method->algorithm;
        options.compressor = w->method->compressor;
        options.layout = layout;
        options.transport = t;
        status = lac_algorithm_open(&mean, &options);
    }
    if (status == LAC_OK) {
        status = descend(w, mean);
    }
    if (status != LAC_OK) {
        lac_transport_abort(t, lac_error_message());
    }
    lac_transport_leave(t);
    lac_algorithm_close(mean);
    lac_layout_close(layout);
    return status;
}

static void *work(void *context)
{
    worker *const w = context;
    lac_transport *t = NULL;
    lac_status status =
        lac_transport_join(&t, "local", w->hub, w->rank, WORKERS);
    if (status == LAC_OK) {
        status = run(w, t);
    }
    w->good = status == LAC_OK;
    if (!w->good) {
        fprintf(stderr, "worker %u: %s\n", w->rank, lac_error_message());
    }
    return NULL;
}

// The distance of worker 0 to the optimum, relative to that of X = 0.
static double distance(const worker workers[WORKERS])
{
    double error = 0, start = 0;
    for (uint32_t i = 0; i < VALUES; i++) {
        double optimum = 0;
        for (uint32_t rank = 0; rank < WORKERS; rank++) {
            optimum += (double)workers[rank].target[i] / WORKERS;
        }
        const double off = (double)workers[0].model[i] - optimum;
        error += off * off;
        start += optimum * optimum;
    }
    return sqrt(error / start);
}

// Runs all workers and returns whether worker 0 ends where it should.
static bool try_method(const method *m, lac_hub *hub)
{
    worker workers[WORKERS];
    pthread_t threads[WORKERS];
    uint32_t started = 0;
    for (; started < WORKERS; started++) {
        worker *const w = &workers[started];
        *w = (worker){.method = m, .hub = hub, .rank = started};
        draw_target(w);
        if (pthread_create(&threads[started], NULL, work, w) != 0) {
            fprintf(stderr, "cannot start a thread\n");
            break;
        }
    }
    bool good = started == WORKERS;
    for (uint32_t i = 0; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
        good = good && workers[i].good;
    }
    const double d = good ? distance(workers) : 0;
    printf(
        "%-16s%-12s%4.1f  %8.2g\n", m->algorithm,
        m->compressor == NULL ? "" : m->compressor, (double)m->rate, d);
    return good && (m->reaches ? d < REACHED : d > LOST);
}

int main(void)
{
    bool good = true;
    printf("algorithm       compressor  rate  distance\n");
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        lac_hub *hub = NULL;
        if (lac_hub_open(&hub, WORKERS) != LAC_OK) {
            fprintf(stderr, "%s\n", lac_error_message());
            return 1;
        }
        good = try_method(&methods[i], hub) && good;
        lac_hub_close(hub);
    }
    return good ? 0 : 1;
}
