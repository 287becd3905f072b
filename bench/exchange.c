// SPDX-License-Identifier: MIT
// Rounds of gradient algorithms between real workers, timed for
// bench/exchange.py. It uses the public interface only.
//
// usage: bench_exchange TRANSPORT LAYOUT ALGORITHM...
//
// This process is one worker of the group that TRANSPORT joins; "local" is a
// group of one. LAYOUT is a file with a line per tensor. An ALGORITHM is a
// spec, or a spec and its compressor: "error-feedback with sign".
//
// Prints "ready" and its version. A request is a line "ALGORITHM TENSOR COUNT":
// the index of an algorithm, the index of a tensor or "all", and a number of
// rounds. It copies the gradient of this worker into place, waits for the other
// workers, makes the rounds, waits again, and prints the seconds of one round,
// the error of the last result relative to the exact mean, and the bytes that
// this worker sent in one round. It exits at the end of its input.
#include <laconic/laconic.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 1, LINE_SIZE = 128, BARRIER_TAG = 0x62617272 };

// An exact mean over 10 Mbit/s takes minutes.
static const double TIMEOUT = 3600;

typedef struct contender {
    lac_algorithm *algorithm;
    uint64_t *rounds; // made so far, of every tensor
} contender;

typedef struct bench {
    lac_hub *hub;
    lac_transport *transport;
    lac_layout *layout;
    float *gradient; // of this worker
    float *mean;     // the exact one, of all workers
    float *values;   // the gradient, then the result
    lac_slice *slices;
    lac_send *sends;
    lac_receive *receives;
    contender *contenders;
    size_t contender_count;
} bench;

typedef struct request {
    size_t contender;
    size_t first; // tensor
    size_t count; // of tensors
    unsigned long rounds;
} request;

static lac_status allocate(size_t count, size_t size, void *out)
{
    void *const memory = calloc(count + 1, size);
    if (memory == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "no memory for %zu times %zu bytes", count, size);
    }
    memcpy(out, &memory, sizeof(memory));
    return LAC_OK;
}

// --- the layout and the gradients --------------------------------------------

static lac_status read_layout(const char *path, lac_layout **out)
{
    enum { SIZE = 1 << 20 };
    char *text = NULL;
    LAC_TRY(allocate(SIZE, 1, &text));
    FILE *const file = fopen(path, "r");
    lac_status status = LAC_OK;
    if (file == NULL) {
        status = lac_fail(LAC_ERR_NOTFOUND, "%s: %s", path, strerror(errno));
    } else {
        const size_t len = fread(text, 1, SIZE, file);
        status = len == SIZE ? lac_fail(
                                   LAC_ERR_INVALID,
                                   "%s: %d bytes or more, expected "
                                   "fewer",
                                   path, SIZE)
                             : lac_layout_parse(out, text, len);
        (void)fclose(file);
    }
    free(text);
    return status;
}

// Noise that every worker can compute for every other, so that each knows the
// exact mean.
static void draw_gradient(const bench *b, uint32_t rank, float *out)
{
    for (size_t i = 0; i < lac_layout_count(b->layout); i++) {
        const lac_tensor *const tensor = lac_layout_tensor(b->layout, i);
        const lac_key key = lac_key_make(
            SEED, LAC_PURPOSE_DATA, rank, lac_scope_shared(),
            tensor->name_hash);
        const size_t n = lac_shape_values(tensor->shape);
        for (size_t k = 0; k < n; k++) {
            out[tensor->offset + k] = lac_key_normal(&key, (uint32_t)k);
        }
    }
}

static lac_status draw_gradients(bench *b)
{
    const size_t n = lac_layout_values(b->layout);
    const uint32_t world = lac_transport_world(b->transport);
    LAC_TRY(allocate(n, sizeof(float), &b->gradient));
    LAC_TRY(allocate(n, sizeof(float), &b->mean));
    LAC_TRY(allocate(n, sizeof(float), &b->values));
    for (uint32_t rank = 0; rank < world; rank++) {
        draw_gradient(b, rank, b->values);
        for (size_t i = 0; i < n; i++) {
            b->mean[i] += b->values[i] / (float)world;
        }
        if (rank == lac_transport_rank(b->transport)) {
            memcpy(b->gradient, b->values, n * sizeof(float));
        }
    }
    return LAC_OK;
}

static lac_status make_slices(bench *b)
{
    const size_t count = lac_layout_count(b->layout);
    LAC_TRY(allocate(count, sizeof(lac_slice), &b->slices));
    for (size_t i = 0; i < count; i++) {
        float *const x = b->values + lac_layout_tensor(b->layout, i)->offset;
        b->slices[i] = (lac_slice){.tensor = i, .in = x, .out = x};
    }
    return LAC_OK;
}

// --- the group ---------------------------------------------------------------

static lac_status join(bench *b, const char *spec)
{
    const bool alone = strcmp(spec, "local") == 0;
    if (alone) {
        LAC_TRY(lac_hub_open(&b->hub, 1));
    }
    LAC_TRY(lac_transport_join(
        &b->transport, spec, b->hub, alone ? 0 : LAC_RANK_ANY,
        alone ? 1 : LAC_RANK_ANY));
    const uint32_t world = lac_transport_world(b->transport);
    LAC_TRY(allocate(world, sizeof(lac_send), &b->sends));
    return allocate(world, sizeof(lac_receive), &b->receives);
}

static lac_status barrier(bench *b)
{
    static const char nothing[1];
    lac_transport *const t = b->transport;
    size_t count = 0;
    for (uint32_t peer = 0; peer < lac_transport_world(t); peer++) {
        if (peer == lac_transport_rank(t)) {
            continue;
        }
        b->sends[count] = (lac_send){
            .peer = peer, .tag = BARRIER_TAG, .data = nothing, .len = 1};
        b->receives[count] = (lac_receive){.peer = peer, .tag = BARRIER_TAG};
        count++;
    }
    return lac_transport_exchange(
        t, b->sends, count, b->receives, count, lac_transport_now(t) + TIMEOUT);
}

// --- the algorithms ----------------------------------------------------------

static lac_status open_contender(bench *b, const char *text, contender *out)
{
    static const char with[] = " with ";
    char spec[LINE_SIZE];
    if (strlen(text) >= sizeof(spec)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %zu characters, expected fewer than %zu",
            text, strlen(text), sizeof(spec));
    }
    memcpy(spec, text, strlen(text) + 1);
    lac_algorithm_options options = lac_algorithm_options_default();
    char *const split = strstr(spec, with);
    if (split != NULL) {
        *split = '\0';
        options.compressor = split + strlen(with);
    }
    options.spec = spec;
    options.layout = b->layout;
    options.transport = b->transport;
    options.timeout = TIMEOUT;
    options.session = (uint64_t)(out - b->contenders);
    LAC_TRY(lac_algorithm_open(&out->algorithm, &options));
    if (lac_algorithm_family(out->algorithm) != LAC_FAMILY_GRADIENT) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s averages models, expected an algorithm that "
            "averages gradients",
            spec);
    }
    return allocate(
        lac_layout_count(b->layout), sizeof(uint64_t), &out->rounds);
}

static lac_status open_bench(bench *b, int argc, char **argv)
{
    LAC_TRY(read_layout(argv[2], &b->layout));
    LAC_TRY(join(b, argv[1]));
    LAC_TRY(draw_gradients(b));
    LAC_TRY(make_slices(b));
    const size_t count = (size_t)argc - 3;
    LAC_TRY(allocate(count, sizeof(contender), &b->contenders));
    b->contender_count = count;
    for (size_t i = 0; i < count; i++) {
        LAC_TRY(open_contender(b, argv[i + 3], &b->contenders[i]));
    }
    return LAC_OK;
}

static void close_bench(bench *b)
{
    for (size_t i = 0; i < b->contender_count; i++) {
        lac_algorithm_close(b->contenders[i].algorithm);
        free(b->contenders[i].rounds);
    }
    lac_transport_leave(b->transport);
    lac_hub_close(b->hub);
    lac_layout_close(b->layout);
    void *const memory[] = {b->gradient, b->mean,     b->values,    b->slices,
                            b->sends,    b->receives, b->contenders};
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
        free(memory[i]);
    }
}

// --- requests ----------------------------------------------------------------

static lac_status parse_request(const bench *b, const char *line, request *out)
{
    char tensor[LINE_SIZE];
    const size_t tensors = lac_layout_count(b->layout);
    char *end = NULL;
    int consumed = 0;
    if (sscanf(
            line, "%zu %127s %lu %n", &out->contender, tensor, &out->rounds,
            &consumed) != 3 ||
        line[consumed] != '\0' || out->contender >= b->contender_count ||
        out->rounds == 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "request %.*s: expected an algorithm below %zu, a "
            "tensor and a number of rounds",
            (int)strcspn(line, "\n"), line, b->contender_count);
    }
    out->first = 0;
    out->count = tensors;
    if (strcmp(tensor, "all") != 0) {
        out->first = strtoul(tensor, &end, 10);
        out->count = 1;
        if (*end != '\0' || out->first >= tensors) {
            return lac_fail(
                LAC_ERR_INVALID,
                "tensor %s: expected all, or an index below "
                "%zu",
                tensor, tensors);
        }
    }
    return LAC_OK;
}

static lac_status make_rounds(bench *b, const request *r)
{
    contender *const c = &b->contenders[r->contender];
    for (unsigned long i = 0; i < r->rounds; i++) {
        LAC_TRY(lac_algorithm_reduce(
            c->algorithm, c->rounds[r->first], b->slices + r->first, r->count));
        for (size_t k = 0; k < r->count; k++) {
            c->rounds[r->first + k]++;
        }
    }
    return LAC_OK;
}

static double relative_error(const bench *b, size_t first, size_t n)
{
    double square = 0, distance = 0;
    for (size_t i = first; i < first + n; i++) {
        const double exact = (double)b->mean[i];
        const double difference = (double)b->values[i] - exact;
        square += exact * exact;
        distance += difference * difference;
    }
    return square > 0 ? sqrt(distance / square) : 0;
}

static lac_status serve_request(bench *b, const request *r)
{
    const lac_tensor *const first = lac_layout_tensor(b->layout, r->first);
    const lac_algorithm *const a = b->contenders[r->contender].algorithm;
    const size_t n = r->count == 1 ? lac_shape_values(first->shape)
                                   : lac_layout_values(b->layout);
    memcpy(
        b->values + first->offset, b->gradient + first->offset,
        n * sizeof(float));
    const uint64_t sent = lac_algorithm_traffic(a).wire_bytes;
    LAC_TRY(barrier(b));
    const double start = lac_transport_now(b->transport);
    LAC_TRY(make_rounds(b, r));
    const double seconds = lac_transport_now(b->transport) - start;
    // MPI delivers the last messages only while the sender calls it, and the
    // next request may come after all workers have answered this one.
    LAC_TRY(barrier(b));
    (void)printf(
        "%.9f %.9g %.0f\n", seconds / (double)r->rounds,
        relative_error(b, first->offset, n),
        (double)(lac_algorithm_traffic(a).wire_bytes - sent) /
            (double)r->rounds);
    (void)fflush(stdout);
    return LAC_OK;
}

static lac_status serve(bench *b)
{
    char line[LINE_SIZE];
    request r;
    (void)printf("ready laconic %s\n", lac_version());
    (void)fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        LAC_TRY(parse_request(b, line, &r));
        LAC_TRY(serve_request(b, &r));
    }
    return LAC_OK;
}

int main(int argc, char **argv)
{
    bench b = {0};
    if (argc < 4) {
        (void)fprintf(
            stderr, "usage: bench_exchange TRANSPORT LAYOUT ALGORITHM...\n");
        return 2;
    }
    lac_status status = open_bench(&b, argc, argv);
    if (status == LAC_OK) {
        status = serve(&b);
    }
    if (status != LAC_OK) {
        (void)fprintf(stderr, "bench_exchange: %s\n", lac_error_message());
    }
    close_bench(&b);
    return status == LAC_OK ? 0 : 1;
}
