// SPDX-License-Identifier: MIT
// What of a worker goes into a checkpoint, and the averaged model for others.
//
// Parameters and statistics have the names that PyTorch gives them, so that a
// worker's file can also be loaded there; the rest has names of our own.
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/checkpoint.h"
#include "train/worker.h"

enum { NUMBERS = 10, PATH_SIZE = 4096 };

// Numbers go through files as whole ones: seconds and losses by their bits.
typedef struct numbers {
    uint64_t step, loss, labels, optimiser;
    uint64_t payload, wire, messages;
    uint64_t compute, compress, wait;
} numbers;

typedef struct contents {
    train_tensor *tensors;
    size_t count;
    numbers values;
    train_number list[NUMBERS];
} contents;

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

// A vector in the order of the parameters, a tensor each.
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
        {"steps", &v->step},        {"loss", &v->loss},
        {"labels", &v->labels},     {"optimiser", &v->optimiser},
        {"payload", &v->payload},   {"wire", &v->wire},
        {"messages", &v->messages}, {"compute", &v->compute},
        {"compress", &v->compress}, {"wait", &v->wait},
    };
    memcpy(c->list, list, sizeof(list));
}

static lac_status contents_init(contents *c, const train_worker *w)
{
    static const char *const prefixes[] = {"optimiser.0.", "optimiser.1."};
    const nn_network *const net = train_compute_learner(w->compute);
    const train_optimiser_memory memory =
        train_optimiser_remembers(w->optimiser);
    const size_t most = w->tensors * (1 + memory.count) +
                        lac_layout_count(nn_network_statistics(net)) + 2;
    *c = (contents){.tensors = calloc(most, sizeof(*c->tensors))};
    if (c->tensors == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for a checkpoint");
    }
    add_parameters(c, w, NULL, w->x);
    add_statistics(c, w, w->running);
    assert(memory.count <= sizeof(prefixes) / sizeof(prefixes[0]));
    for (size_t k = 0; k < memory.count; k++) {
        add_parameters(c, w, prefixes[k], memory.vector[k]);
    }
    add_vector(c, "carry", TRAIN_F32, w->carry, nn_network_carry(net));
    add_vector(c, "algorithm", TRAIN_U8, w->state, w->state_len);
    list_numbers(c);
    return LAC_OK;
}

static train_record record_of(const contents *c)
{
    return (train_record){c->tensors, c->count, c->list, NUMBERS};
}

static train_place place_of(const train_worker *w, uint64_t step)
{
    return (train_place){w->run->plan.folder, step, w->rank, w->world};
}

static lac_status write_own(train_worker *w)
{
    contents c;
    lac_status status = contents_init(&c, w);
    if (status != LAC_OK) {
        return status;
    }
    const train_usage u = train_worker_usage(w);
    c.values = (numbers){
        .step = w->step,
        .loss = bits_of(w->loss),
        .labels = w->labels,
        .optimiser = *train_optimiser_remembers(w->optimiser).steps,
        .payload = u.traffic.payload_bytes,
        .wire = u.traffic.wire_bytes,
        .messages = u.traffic.messages,
        .compute = bits_of(u.compute_seconds),
        .compress = bits_of(u.compress_seconds),
        .wait = bits_of(u.wait_seconds),
    };
    status = lac_algorithm_save(w->algorithm, w->state, w->state_len);
    if (status == LAC_OK) {
        const train_place place = place_of(w, w->step);
        const train_record record = record_of(&c);
        status = train_checkpoint_write(&place, &record);
    }
    free(c.tensors);
    return status;
}

// Worker 0 hears whether all could write, and then completes the set.
static lac_status complete(train_worker *w, const train_report *reports)
{
    const char *const folder = w->run->plan.folder;
    w->agreed.failed = 0;
    for (uint32_t k = w->world; k > 0; k--) {
        if (reports[k - 1].failed != 0) {
            w->agreed.failed = k;
        }
    }
    lac_status status = LAC_OK;
    if (w->agreed.failed == 0) {
        status = train_checkpoint_look(folder, w->step, w->world);
        if (status == LAC_OK) {
            status = train_checkpoint_commit(folder, w->step);
        }
        w->agreed.failed = status != LAC_OK;
    } else {
        train_checkpoint_discard(folder, w->step);
    }
    return status;
}

lac_status train_worker_save(train_worker *w)
{
    const lac_status written = write_own(w);
    char sentence[512];
    (void)snprintf(sentence, sizeof(sentence), "%s", lac_error_message());
    train_report report = {.failed = written != LAC_OK};
    const train_report *reports = NULL;
    lac_status status = train_worker_meet(w, &report, &reports);
    lac_status committed = LAC_OK;
    if (status == LAC_OK && reports != NULL) {
        committed = complete(w, reports);
        if (committed != LAC_OK) {
            (void)snprintf(
                sentence, sizeof(sentence), "%s", lac_error_message());
        }
    }
    if (status == LAC_OK) {
        status = train_worker_agree(w);
    }
    if (status != LAC_OK) {
        return status;
    }
    if (written != LAC_OK || committed != LAC_OK) {
        return lac_fail(
            written != LAC_OK ? written : committed,
            "%s; the run ends here, its last checkpoint is whole", sentence);
    }
    if (w->agreed.failed != 0) {
        return lac_fail(
            LAC_ERR_PEER, "worker %" PRIu32 " could not write its checkpoint",
            w->agreed.failed - 1);
    }
    return LAC_OK;
}

static lac_status take_up(train_worker *w, const numbers *v)
{
    w->step = v->step;
    w->loss = from_bits(v->loss);
    w->labels = v->labels;
    *train_optimiser_remembers(w->optimiser).steps = v->optimiser;
    w->past = (train_usage){
        .traffic = {v->payload, v->wire, v->messages},
        .compute_seconds = from_bits(v->compute),
        .compress_seconds = from_bits(v->compress),
        .wait_seconds = from_bits(v->wait),
    };
    const uint64_t epochs = w->run->plan.epochs;
    if (w->step > w->total_steps) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: has made %" PRIu64 " steps of %" PRIu64
            " an epoch, expected no more than the %" PRIu64 " epochs asked for",
            w->run->plan.folder, w->step, w->epoch_steps, epochs);
    }
    return lac_algorithm_load(w->algorithm, w->state, w->state_len);
}

lac_status train_worker_load(train_worker *w, bool *found_out)
{
    uint64_t step = 0;
    lac_status status = train_checkpoint_latest(w->run->plan.folder, &step);
    *found_out = status == LAC_OK;
    if (status != LAC_OK) {
        return status == LAC_ERR_NOTFOUND ? LAC_OK : status;
    }
    contents c;
    status = contents_init(&c, w);
    if (status != LAC_OK) {
        return status;
    }
    const train_place place = place_of(w, step);
    const train_record record = record_of(&c);
    status = train_checkpoint_read(&place, &record);
    if (status == LAC_OK) {
        status = take_up(w, &c.values);
    }
    free(c.tensors);
    return status;
}

lac_status train_worker_export(train_worker *w)
{
    char path[PATH_SIZE];
    contents c;
    if (w->rank != 0) {
        return LAC_OK;
    }
    lac_status status = contents_init(&c, w);
    if (status != LAC_OK) {
        return status;
    }
    c.count = 0;
    add_parameters(&c, w, NULL, w->gradient);
    add_statistics(&c, w, w->mean_running);
    c.values.step = w->step;
    (void)snprintf(
        path, sizeof(path), "%s/model.safetensors", w->run->plan.folder);
    const train_record record = {c.tensors, c.count, c.list, 1};
    status = train_safetensors_write(path, &record);
    free(c.tensors);
    return status;
}
