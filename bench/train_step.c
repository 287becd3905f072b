// SPDX-License-Identifier: MIT
// Whole training steps of one worker, timed for bench/training_speed.py.
//
// usage: bench_train_step MODEL CHANNELS HEIGHT WIDTH CLASSES BATCH STEPS
//
// Prints "ready" and the versions of its libraries. For every number that it
// then reads it makes that many steps (gradient, SGD with momentum, update) and
// prints their wall-clock and CPU seconds. It exits at the end of its input.
// The examples are noise of the right shape, the same in every step.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <oneapi/dnnl/dnnl.h>

#include "full_network.h"
#include "train/optimiser.h"

enum { ARGUMENTS = 7, SEED = 1 };

static const double MOMENTUM = 0.9;
static const double RATE = 0.001; // so small that parameters hardly change

typedef struct trainer {
    nn_options options;
    full_network network;
    train_optimiser *optimiser;
} trainer;

static double clock_seconds(clockid_t id)
{
    struct timespec t;
    (void)clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static lac_status read_number(const char *text, uint32_t *out)
{
    char *end = NULL;
    errno = 0;
    const unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || end == text || value > UINT32_MAX) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: expected a number without sign", text);
    }
    *out = (uint32_t)value;
    return LAC_OK;
}

static lac_status read_arguments(char *const *argv, nn_options *out)
{
    nn_sample *const s = &out->sample;
    uint32_t *const numbers[] = {&s->channels, &s->height,  &s->width,
                                 &s->classes,  &out->batch, &out->steps};
    out->model = argv[1];
    out->training = true;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        LAC_TRY(read_number(argv[i + 2], numbers[i]));
    }
    if (s->classes == 0 || out->batch == 0) {
        return lac_fail(
            LAC_ERR_INVALID, "0 classes or examples, expected at least 1");
    }
    return LAC_OK;
}

static void draw_examples(full_network *f, const nn_options *options)
{
    const size_t values = options->batch * f->size;
    const uint32_t classes = options->sample.classes;
    const lac_key key = lac_key_make(
        SEED, LAC_PURPOSE_DATA, 0, lac_scope_shared(), lac_name_hash("bench"));
    for (size_t i = 0; i < values; i++) {
        f->x[i] = lac_key_normal(&key, (uint32_t)i);
    }
    for (size_t i = 0; i < f->targets; i++) {
        const uint32_t at = (uint32_t)(values + 2 * i);
        f->tokens[i] = lac_key_draw(&key, at) % classes;
        f->labels[i] = lac_key_draw(&key, at + 1) % classes;
    }
}

static lac_status open_trainer(trainer *t)
{
    full_network *const f = &t->network;
    LAC_TRY(open_full_network(f, &t->options));
    draw_examples(f, &t->options);
    nn_network_initialise(f->net, SEED, f->parameters, f->statistics);
    return train_optimiser_open(
        &t->optimiser, &(train_optimiser_options){
                           .rule = TRAIN_SGD,
                           .nesterov = TRAIN_NESTEROV_NO,
                           .momentum = MOMENTUM,
                           .layout = nn_network_layout(f->net),
                       });
}

static void close_trainer(trainer *t)
{
    train_optimiser_close(t->optimiser);
    close_full_network(&t->network);
}

static lac_status take_step(trainer *t, uint32_t number)
{
    full_network *const f = &t->network;
    const nn_state state = {f->parameters, f->statistics, f->carry};
    const lac_key noise = lac_key_make(
        SEED, LAC_PURPOSE_DATA, number, lac_scope_shared(),
        lac_name_hash("dropout"));
    LAC_TRY(nn_network_gradient(
        f->net, &state, &f->batch, &noise, f->gradient, &f->score));
    train_optimiser_step(t->optimiser, RATE, f->parameters, f->gradient);
    for (size_t i = 0; i < f->n; i++) {
        f->parameters[i] += f->gradient[i];
    }
    return LAC_OK;
}

// Serves requests until the end of the input.
static lac_status serve(trainer *t)
{
    char line[32];
    uint32_t taken = 0;
    const dnnl_version_t *const dnnl = dnnl_version();
    (void)printf(
        "ready laconic %s, oneDNN %d.%d.%d\n", lac_version(), dnnl->major,
        dnnl->minor, dnnl->patch);
    (void)fflush(stdout);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        const unsigned long count = strtoul(line, NULL, 10);
        const double start = clock_seconds(CLOCK_MONOTONIC);
        const double start_cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
        for (unsigned long i = 0; i < count; i++) {
            LAC_TRY(take_step(t, taken++));
        }
        (void)printf(
            "%.6f %.6f\n", clock_seconds(CLOCK_MONOTONIC) - start,
            clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - start_cpu);
        (void)fflush(stdout);
    }
    return LAC_OK;
}

int main(int argc, char **argv)
{
    trainer t = {0};
    if (argc != 1 + ARGUMENTS) {
        (void)fprintf(
            stderr, "usage: bench_train_step MODEL CHANNELS HEIGHT WIDTH "
                    "CLASSES BATCH STEPS\n");
        return 2;
    }
    lac_status status = read_arguments(argv, &t.options);
    if (status == LAC_OK) {
        status = open_trainer(&t);
    }
    if (status == LAC_OK) {
        status = serve(&t);
    }
    close_trainer(&t);
    if (status != LAC_OK) {
        (void)fprintf(stderr, "bench_train_step: %s\n", lac_error_message());
        return 1;
    }
    return 0;
}
