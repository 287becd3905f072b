// SPDX-License-Identifier: MIT
// Saves and loads the checkpoint of a worker, and exports the averaged model.
//
// Parameters and statistics have the names that PyTorch gives them, so that
// other programs can load a worker's file too. The other tensors have names of
// our own.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/file.h"
#include "train/checkpoint.h"
#include "train/model.h"
#include "train/worker.h"

enum { NUMBERS = 19, MESSAGE_SIZE = 512 };

// The numbers of a file are integers; seconds and losses are stored as the bits
// of a double.
typedef struct numbers {
    uint64_t step, loss, labels, optimiser;
    uint64_t payload, wire, messages;
    uint64_t compute, compress, wait, test;
    uint64_t elapsed, first_loss, first_labels, last, noise, pairs;
    uint64_t search;
    uint64_t untested; // 1: the test after this step was not made
} numbers;

typedef struct contents {
    train_tensor *tensors;
    size_t count;
    numbers values;
    train_number list[NUMBERS];
} contents;

static uint64_t double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static double double_from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

// Adds a vector in the order of the parameters, one tensor for each of them.
static void add_parameters(
    contents *c, const train_worker *w, const char *prefix, float *x)
{
    const nn_network *const net = train_compute_learner(w->compute);
    for (size_t t = 0; t < w->tensors; t++) {
        const lac_tensor *const tensor =
            lac_layout_tensor(nn_network_layout(net), t);
        train_tensor *const out = &c->tensors[c->count++];
        *out = (train_tensor){
            .prefix = prefix,
            .name = tensor->name,
            .data = x + tensor->offset,
        };
        out->dimension_count = nn_network_dimensions(net, t, out->dimensions);
    }
}

static void add_statistics(contents *c, const train_worker *w, float *x)
{
    const lac_layout *const layout =
        nn_network_statistics(train_compute_learner(w->compute));
    for (size_t t = 0; t < lac_layout_count(layout); t++) {
        const lac_tensor *const tensor = lac_layout_tensor(layout, t);
        c->tensors[c->count++] = (train_tensor){
            .name = tensor->name,
            .dimensions = {tensor->shape.rows},
            .dimension_count = 1,
            .data = x + tensor->offset,
        };
    }
}

static void add_vector(
    contents *c, const char *name, train_dtype dtype, void *data, size_t n)
{
    if (n > 0) {
        c->tensors[c->count++] = (train_tensor){
            .name = name,
            .dtype = dtype,
            .dimensions = {n},
            .dimension_count = 1,
            .data = data,
        };
    }
}

static void list_numbers(contents *c)
{
    numbers *const v = &c->values;
    const train_number list[NUMBERS] = {
        {"steps", &v->step, false},
        {"loss", &v->loss, false},
        {"labels", &v->labels, false},
        {"optimiser", &v->optimiser, false},
        {"payload", &v->payload, false},
        {"wire", &v->wire, false},
        {"messages", &v->messages, false},
        {"compute", &v->compute, false},
        {"compress", &v->compress, false},
        {"wait", &v->wait, false},
        {"test", &v->test, true}, // from here on later than the others
        {"elapsed", &v->elapsed, true},
        {"first-loss", &v->first_loss, true},
        {"first-labels", &v->first_labels, true},
        {"last-loss", &v->last, true},
        {"noise", &v->noise, true},
        {"pairs", &v->pairs, true},
        {"search", &v->search, true},
        {"untested", &v->untested, true},
    };
    memcpy(c->list, list, sizeof(list));
}

// Lists all tensors and numbers of a worker. The caller frees c->tensors.
static lac_status contents_init(contents *c, const train_worker *w)
{
    static const char *const prefixes[] = {"optimiser.0.", "optimiser.1."};
    const nn_network *const net = train_compute_learner(w->compute);
    const train_optimiser_state state = train_optimiser_get_state(w->optimiser);
    const size_t count_max = w->tensors * (1 + state.count) +
                             lac_layout_count(nn_network_statistics(net)) + 2;
    *c = (contents){.tensors = calloc(count_max, sizeof(*c->tensors))};
    if (c->tensors == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for a checkpoint");
    }
    add_parameters(c, w, NULL, w->x);
    add_statistics(c, w, w->running);
    assert(state.count <= sizeof(prefixes) / sizeof(prefixes[0]));
    for (size_t k = 0; k < state.count; k++) {
        add_parameters(c, w, prefixes[k], state.vector[k]);
    }
    add_vector(c, "carry", TRAIN_F32, w->carry, nn_network_carry(net));
    add_vector(c, "algorithm", TRAIN_U8, w->state, w->state_len);
    list_numbers(c);
    return LAC_OK;
}

static train_record record_of(const contents *c)
{
    return (train_record){
        .tensors = c->tensors,
        .tensor_count = c->count,
        .numbers = c->list,
        .number_count = NUMBERS,
    };
}

static train_place worker_place(const train_worker *w, uint64_t step)
{
    return (train_place){w->run->plan.folder, step, w->rank, w->world};
}

static lac_status write_worker(train_worker *w)
{
    contents c;
    LAC_TRY(contents_init(&c, w));
    const train_usage u = train_worker_usage(w);
    c.values = (numbers){
        .step = w->step,
        .loss = double_bits(w->loss),
        .labels = w->labels,
        .optimiser = *train_optimiser_get_state(w->optimiser).steps,
        .payload = u.traffic.payload_bytes,
        .wire = u.traffic.wire_bytes,
        .messages = u.traffic.messages,
        .compute = double_bits(u.compute_seconds),
        .compress = double_bits(u.compress_seconds),
        .wait = double_bits(u.wait_seconds),
        .test = double_bits(u.test_seconds),
        .elapsed = double_bits(train_worker_elapsed(w)),
        .first_loss = double_bits(w->trace.first_loss),
        .first_labels = w->trace.first_labels,
        .last = double_bits(w->trace.last),
        .noise = double_bits(w->trace.noise),
        .pairs = w->trace.pairs,
        .search = double_bits(u.search_seconds),
        .untested = w->untested,
    };
    lac_status status =
        lac_algorithm_save(w->algorithm, w->state, w->state_len);
    if (status == LAC_OK) {
        const train_place place = worker_place(w, w->step);
        const train_record record = record_of(&c);
        status = train_checkpoint_explain(
            place.folder, train_checkpoint_write(&place, &record));
    }
    free(c.tensors);
    return status;
}

// The state of a checkpoint that is being written. A failure of this worker
// does not end it at once: the others must know, so that all end alike.
typedef struct saving {
    lac_status status;
    char message[MESSAGE_SIZE];
} saving;

static void note_failure(saving *s, lac_status status)
{
    s->status = status;
    (void)snprintf(s->message, sizeof(s->message), "%s", lac_error_message());
}

// Waits for all workers and sets w->decision.failed if one has failed. The
// others may leave as soon as they know that, and worker 0 knows it first.
static lac_status share_failures(train_worker *w, const saving *s)
{
    train_report report = {.failed = s->status != LAC_OK};
    const train_report *reports = NULL;
    LAC_TRY(train_worker_gather(w, &report, &reports));
    if (reports != NULL) {
        w->decision.failed = 0;
        for (uint32_t k = w->world; k > 0; k--) {
            if (reports[k - 1].failed != 0) {
                w->decision.failed = k;
            }
        }
    }
    const lac_status status = train_worker_broadcast(w);
    return w->decision.failed != 0 ? LAC_OK : status;
}

// Ends the run with the message of the failure and the checkpoint that is left.
static lac_status checkpoint_failed(
    const train_worker *w, lac_status status, const char *message)
{
    uint64_t step = 0;
    if (train_checkpoint_latest(w->run->plan.folder, &step) != LAC_OK) {
        return lac_fail(
            status, "%s; the run ends without a checkpoint", message);
    }
    return lac_fail(
        status,
        "%s; the run ends, its last complete checkpoint is that of step "
        "%" PRIu64,
        message, step);
}

static lac_status end_saving(const train_worker *w, const saving *s)
{
    if (s->status != LAC_OK) {
        return checkpoint_failed(w, s->status, s->message);
    }
    return w->decision.failed == 0
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_PEER,
                     "worker %" PRIu32 " could not write its checkpoint",
                     w->decision.failed - 1);
}

// Shares failures. Another worker may end the run before its decision arrives
// here; a failure of this worker is then the cause, and is reported.
static lac_status exchange_failures(train_worker *w, const saving *s)
{
    const lac_status status = share_failures(w, s);
    return status == LAC_OK || s->status == LAC_OK
               ? status
               : checkpoint_failed(w, s->status, s->message);
}

// All workers write their files; then the set is committed in every folder;
// then older ones are removed. Each part begins when all workers have done the
// one before, so that after a kill at any time all workers have files of the
// newest committed set.
lac_status train_worker_save(train_worker *w)
{
    const char *const folder = w->run->plan.folder;
    uint64_t previous = w->step;
    saving s = {.status = LAC_OK};
    note_failure(&s, write_worker(w));
    LAC_TRY(exchange_failures(w, &s));
    if (w->decision.failed != 0) {
        if (w->owner) {
            train_checkpoint_discard(folder, w->step);
        }
        return end_saving(w, &s);
    }
    if (w->owner) {
        note_failure(
            &s,
            train_checkpoint_explain(
                folder, train_checkpoint_commit(folder, w->step, &previous)));
    }
    LAC_TRY(exchange_failures(w, &s));
    if (w->decision.failed == 0 && w->owner) {
        train_checkpoint_prune(folder, w->step, previous);
    }
    return end_saving(w, &s);
}

static lac_status restore_numbers(train_worker *w, const numbers *v)
{
    w->step = v->step;
    w->untested = v->untested != 0;
    w->loss = double_from_bits(v->loss);
    w->labels = v->labels;
    *train_optimiser_get_state(w->optimiser).steps = v->optimiser;
    w->usage_before = (train_usage){
        .traffic = {v->payload, v->wire, v->messages},
        .compute_seconds = double_from_bits(v->compute),
        .compress_seconds = double_from_bits(v->compress),
        .wait_seconds = double_from_bits(v->wait),
        .test_seconds = double_from_bits(v->test),
        .search_seconds = double_from_bits(v->search),
    };
    // Older versions have no time of the run, only that of its parts.
    const train_usage *const u = &w->usage_before;
    w->elapsed_before = v->elapsed != 0
                            ? double_from_bits(v->elapsed)
                            : u->compute_seconds + u->compress_seconds +
                                  u->wait_seconds + u->test_seconds;
    w->trace = (train_trace){
        .first_loss = double_from_bits(v->first_loss),
        .first_labels = v->first_labels,
        .last = double_from_bits(v->last),
        .noise = double_from_bits(v->noise),
        .pairs = v->pairs,
    };
    const uint64_t epochs = w->run->plan.epochs;
    if (w->step > w->total_steps) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: has done %" PRIu64 " steps, %" PRIu64
            " in an epoch, expected no more than the %" PRIu64
            " epochs of --epochs",
            w->run->plan.folder, w->step, w->epoch_steps, epochs);
    }
    return lac_algorithm_load(w->algorithm, w->state, w->state_len);
}

lac_status train_worker_load(train_worker *w)
{
    contents c;
    LAC_TRY(contents_init(&c, w));
    const train_place place = worker_place(w, w->origin.step);
    const train_record record = record_of(&c);
    lac_status status = train_checkpoint_read(&place, &record);
    if (status == LAC_OK) {
        status = restore_numbers(w, &c.values);
    }
    free(c.tensors);
    return status;
}

lac_status train_worker_export(train_worker *w)
{
    char path[DATA_PATH_SIZE];
    contents c;
    const char *const folder = w->run->plan.folder;
    if (w->rank != 0) {
        return LAC_OK;
    }
    LAC_TRY(data_path_join(path, folder, "model.safetensors"));
    LAC_TRY(contents_init(&c, w));
    c.count = 0;
    add_parameters(&c, w, NULL, w->gradient);
    add_statistics(&c, w, w->mean_running);
    c.values.step = w->step;
    train_record record = {
        .tensors = c.tensors,
        .tensor_count = c.count,
        .numbers = c.list,
        .number_count = 1,
    };
    train_model_texts texts;
    lac_status status =
        train_model_describe(w->run->plan.model, w->run->plan.set, &texts);
    if (status == LAC_OK) {
        record.texts = texts.list;
        record.text_count = texts.count;
        status = train_checkpoint_explain(
            folder, train_safetensors_write(path, &record));
        free(texts.vocabulary);
    }
    free(c.tensors);
    return status;
}
