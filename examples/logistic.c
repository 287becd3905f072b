// Distributed logistic regression: each worker trains on its own examples. The
// command line names the algorithm that averages gradients or models:
//
//     logistic                                  four threads, exact mean
//     logistic error-feedback sign              fewer bytes
//     logistic powergossip                      exchange with neighbours only
//     mpirun -n 4 logistic choco top-k:0.1 mpi  four processes
//
// usage: logistic [ALGORITHM [COMPRESSOR|- [TRANSPORT [STEPS [CHECKPOINT]]]]]
//
// With a CHECKPOINT every worker resumes from the file CHECKPOINT.<rank>, if it
// exists, and saves its state there at the end.
#include <laconic/laconic.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 4,
    FEATURES = 20,
    CLASSES = 4,
    EXAMPLES = 60, // in each worker's training set, and in the test set
    WEIGHTS = CLASSES * FEATURES,
    VALUES = WEIGHTS + CLASSES,
    TENSORS = 2,
    EVERYBODY = -1,
};

static const float rate = 0.5F;

// The settings of a run, equal on all workers.
typedef struct job {
    const char *algorithm;
    const char *compressor;
    const char *transport;
    uint64_t steps;
    const char *checkpoint; // NULL for none
    lac_hub *hub;           // NULL under MPI
} job;

typedef struct dataset {
    float x[EXAMPLES][FEATURES];
    int label[EXAMPLES];
} dataset;

// One worker. Its model is one flat vector, the weights first.
typedef struct worker {
    const job *job;
    uint32_t rank;
    lac_transport *transport;
    lac_topology *topology;
    lac_layout *layout;
    lac_algorithm *algorithm;
    uint64_t step; // the next one
    dataset own, common;
    float model[VALUES];
    float change[VALUES]; // the gradient, or the update of the model
    bool good;
} worker;

static void scores(const float *model, const float *x, double *out)
{
    for (int c = 0; c < CLASSES; c++) {
        out[c] = (double)model[WEIGHTS + c];
        for (int i = 0; i < FEATURES; i++) {
            out[c] += (double)(model[c * FEATURES + i] * x[i]);
        }
    }
}

// Draws the examples of `who`. A hidden model, the same for all, labels them.
static void make_data(dataset *d, int who)
{
    const lac_scope scope =
        who == EVERYBODY ? lac_scope_shared() : lac_scope_worker((uint32_t)who);
    const lac_key key = lac_key_make(7, LAC_PURPOSE_USER, 0, scope, 0);
    const lac_key hidden =
        lac_key_make(7, LAC_PURPOSE_USER, 1, lac_scope_shared(), 0);
    float model[VALUES];
    for (uint32_t i = 0; i < VALUES; i++) {
        model[i] = lac_key_normal(&hidden, i);
    }
    for (uint32_t e = 0; e < EXAMPLES; e++) {
        double score[CLASSES];
        for (uint32_t i = 0; i < FEATURES; i++) {
            d->x[e][i] = lac_key_normal(&key, e * FEATURES + i);
        }
        scores(model, d->x[e], score);
        d->label[e] = 0;
        for (int c = 1; c < CLASSES; c++) {
            d->label[e] = score[c] > score[d->label[e]] ? c : d->label[e];
        }
    }
}

// Returns the mean loss over a dataset and writes its gradient, unless that is
// NULL.
static double loss(const float *model, const dataset *d, float *gradient)
{
    double sum = 0;
    if (gradient != NULL) {
        memset(gradient, 0, VALUES * sizeof(float));
    }
    for (int e = 0; e < EXAMPLES; e++) {
        double score[CLASSES], total = 0;
        scores(model, d->x[e], score);
        for (int c = 0; c < CLASSES; c++) {
            total += exp(score[c]);
        }
        sum += log(total) - score[d->label[e]];
        for (int c = 0; gradient != NULL && c < CLASSES; c++) {
            const double wrong = exp(score[c]) / total - (c == d->label[e]);
            const float g = (float)(wrong / EXAMPLES);
            for (int i = 0; i < FEATURES; i++) {
                gradient[c * FEATURES + i] += g * d->x[e][i];
            }
            gradient[WEIGHTS + c] += g;
        }
    }
    return sum / EXAMPLES;
}

// The slices of a flat vector, one for each tensor of the layout.
static void slices_of(float *values, lac_slice slices[TENSORS])
{
    slices[0] = (lac_slice){0, LAC_F32, values, values};
    slices[1] = (lac_slice){1, LAC_F32, values + WEIGHTS, values + WEIGHTS};
}

static lac_status open_worker(worker *w)
{
    static const lac_tensor tensors[TENSORS] = {
        {.name = "weight", .shape = {CLASSES, FEATURES}},
        {.name = "bias", .shape = {CLASSES, 1}},
    };
    LAC_TRY(lac_layout_open(&w->layout, tensors, TENSORS));
    LAC_TRY(lac_topology_open(
        &w->topology, "ring", lac_transport_world(w->transport), 1));
    lac_algorithm_options options = lac_algorithm_options_default();
    options.spec = w->job->algorithm;
    options.compressor = w->job->compressor;
    options.layout = w->layout;
    options.topology = w->topology;
    options.transport = w->transport;
    options.training = true;
    return lac_algorithm_open(&w->algorithm, &options);
}

// Makes one training step. A gradient algorithm averages the gradients. A model
// algorithm adds the local update and averages the models of neighbours.
static lac_status learn(worker *w)
{
    lac_slice slices[TENSORS];
    (void)loss(w->model, &w->own, w->change);
    if (lac_algorithm_family(w->algorithm) == LAC_FAMILY_GRADIENT) {
        slices_of(w->change, slices);
        LAC_TRY(lac_algorithm_reduce(w->algorithm, w->step, slices, TENSORS));
        for (int i = 0; i < VALUES; i++) {
            w->model[i] -= rate * w->change[i];
        }
        return LAC_OK;
    }
    for (int i = 0; i < VALUES; i++) {
        w->change[i] *= -rate;
    }
    const float *const updates[TENSORS] = {w->change, w->change + WEIGHTS};
    slices_of(w->model, slices);
    return lac_algorithm_mix(w->algorithm, w->step, slices, updates, TENSORS);
}

static void checkpoint_path(const worker *w, char *path, size_t size)
{
    (void)snprintf(path, size, "%s.%u", w->job->checkpoint, w->rank);
}

// The first part of a checkpoint file. The state of the algorithm follows.
typedef struct header {
    uint64_t step;
    uint64_t state_len;
    float model[VALUES];
} header;

static lac_status save(const worker *w)
{
    char path[1024];
    header head = {w->step, lac_algorithm_state_size(w->algorithm), {0}};
    memcpy(head.model, w->model, sizeof(head.model));
    checkpoint_path(w, path, sizeof(path));
    uint8_t *const state = malloc(head.state_len + 1);
    FILE *const file = fopen(path, "wb");
    bool good = file != NULL && state != NULL;
    if (good) {
        const lac_status saved =
            lac_algorithm_save(w->algorithm, state, head.state_len);
        good = saved == LAC_OK && fwrite(&head, sizeof(head), 1, file) == 1 &&
               fwrite(state, 1, head.state_len, file) == head.state_len;
    }
    good = (file == NULL || fclose(file) == 0) && good;
    free(state);
    return good ? LAC_OK : lac_fail(LAC_ERR_INVALID, "%s: not written", path);
}

// Reads a checkpoint. If the state is of another run or damaged, the library's
// load fails with a message that names the reason, and changes nothing.
static lac_status load(worker *w, FILE *file)
{
    header head = {0};
    uint8_t *state = NULL;
    if (fread(&head, sizeof(head), 1, file) == 1 && head.state_len < 1 << 20) {
        state = malloc(head.state_len + 1);
    }
    if (state == NULL) {
        return lac_fail(LAC_ERR_CORRUPT, "the checkpoint cannot be read");
    }
    const size_t got = fread(state, 1, head.state_len, file);
    const lac_status status = lac_algorithm_load(w->algorithm, state, got);
    if (status == LAC_OK) {
        w->step = head.step;
        memcpy(w->model, head.model, sizeof(w->model));
    }
    free(state);
    return status;
}

// Starts from zeros, or from a checkpoint.
static lac_status begin(worker *w)
{
    char path[1024];
    FILE *file = NULL;
    if (w->job->checkpoint != NULL) {
        checkpoint_path(w, path, sizeof(path));
        file = fopen(path, "rb");
    }
    if (file != NULL) {
        const lac_status status = load(w, file);
        (void)fclose(file);
        return status;
    }
    lac_slice slices[TENSORS];
    slices_of(w->model, slices);
    return lac_algorithm_start(w->algorithm, slices, TENSORS);
}

static lac_status run(worker *w)
{
    LAC_TRY(open_worker(w));
    const char *const warning = lac_algorithm_warning(w->algorithm);
    if (warning != NULL && w->rank == 0) {
        fprintf(stderr, "%s\n", warning);
    }
    make_data(&w->own, (int)w->rank);
    make_data(&w->common, EVERYBODY);
    LAC_TRY(begin(w));
    const double first = loss(w->model, &w->common, NULL);
    const uint64_t end = w->step + w->job->steps;
    for (; w->step < end; w->step++) {
        LAC_TRY(learn(w));
    }
    if (w->job->checkpoint != NULL) {
        LAC_TRY(save(w));
    }
    if (w->rank == 0) {
        const lac_traffic traffic = lac_algorithm_traffic(w->algorithm);
        printf(
            "%s: after %llu steps loss %.6f, before %.6f; worker 0 sent "
            "%llu bytes in %llu messages\n",
            w->job->algorithm, (unsigned long long)w->step,
            loss(w->model, &w->common, NULL), first,
            (unsigned long long)traffic.payload_bytes,
            (unsigned long long)traffic.messages);
    }
    return LAC_OK;
}

// Joins, trains and leaves. Peers may read a worker's last messages until it
// has left, so the handles are closed after that.
static void *work(void *given)
{
    worker *const w = given;
    const uint32_t world = w->job->hub == NULL ? LAC_RANK_ANY : THREADS;
    lac_status status = lac_transport_join(
        &w->transport, w->job->transport, w->job->hub, w->rank, world);
    if (status == LAC_OK) {
        w->rank = lac_transport_rank(w->transport);
        status = run(w);
    }
    w->good = status == LAC_OK;
    if (w->transport == NULL) { // it could not join and may have no rank
        fprintf(stderr, "%s\n", lac_error_message());
    } else if (!w->good) {
        fprintf(stderr, "worker %u: %s\n", w->rank, lac_error_message());
        lac_transport_abort(w->transport, lac_error_message());
        lac_transport_kill_job(w->transport, 1);
    }
    lac_transport_leave(w->transport);
    lac_algorithm_close(w->algorithm);
    lac_topology_close(w->topology);
    lac_layout_close(w->layout);
    return NULL;
}

static bool run_threads(job *j)
{
    static worker workers[THREADS];
    pthread_t threads[THREADS];
    bool good = lac_hub_open(&j->hub, THREADS) == LAC_OK;
    if (!good) {
        fprintf(stderr, "%s\n", lac_error_message());
        return false;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.job = j, .rank = i};
        if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) {
            fprintf(stderr, "no thread for worker %u\n", i);
            exit(1);
        }
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
        good = good && workers[i].good;
    }
    lac_hub_close(j->hub);
    return good;
}

static bool run_process(const job *j)
{
    static worker w;
    w = (worker){.job = j, .rank = LAC_RANK_ANY};
    (void)work(&w);
    return w.good;
}

// This program links no MPI. Where modules for two are installed, the launcher
// decides which one the workers use; the library reads no environment.
static const char *choose_transport(const char *spec)
{
    if (strcmp(spec, "mpi") != 0) {
        return spec;
    }
    return getenv("OMPI_COMM_WORLD_SIZE") != NULL ? "mpi:library=openmpi"
           : getenv("PMI_SIZE") != NULL           ? "mpi:library=mpich"
                                                  : spec;
}

int main(int argc, char **argv)
{
    job j = {"allreduce", NULL, "local", 100, NULL, NULL};
    if (argc > 1) {
        j.algorithm = argv[1];
    }
    if (argc > 2 && strcmp(argv[2], "-") != 0) {
        j.compressor = argv[2];
    }
    if (argc > 3) {
        j.transport = choose_transport(argv[3]);
    }
    if (argc > 4) {
        j.steps = strtoull(argv[4], NULL, 10);
    }
    if (argc > 5) {
        j.checkpoint = argv[5];
    }
    const bool threads = strncmp(j.transport, "local", 5) == 0;
    return (threads ? run_threads(&j) : run_process(&j)) ? 0 : 1;
}
