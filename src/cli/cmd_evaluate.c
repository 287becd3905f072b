// SPDX-License-Identifier: MIT
// laconic evaluate: a trained model on the test set of a data set.
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "cli/data/fetch.h"
#include "cli/files/model.h"
#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/report/table.h"
#include "nn/headroom.h"
#include "train/feed.h"

enum { BATCH_MAX = 1 << 20 };

typedef struct settings {
    const char *data;
    const char *data_dir;
    uint64_t limit;
    uint64_t batch;
    uint64_t bptt;
    bool json;
} settings;

// clang-format off
static const cli_option options[] = {
    {.name = "data", .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, data), .value = "NAME",
     .default_value = "",
     .help = "data set (that of the training)"},
    {.name = "data-dir", .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, data_dir), .value = "DIR",
     .default_value = "",
     .help = "folder of the data set (that of its package)"},
    {.name = "test-limit", .type = CLI_OPTION_U64,
     .offset = offsetof(settings, limit), .value = "N", .default_value = "0",
     .max = UINT32_MAX,
     .help = "the first N test examples, or words, only; 0: all"},
    {.name = "batch", .type = CLI_OPTION_U64,
     .offset = offsetof(settings, batch), .value = "N", .default_value = "0",
     .max = BATCH_MAX, .help = "examples, or rows of a text; 0: 100, or 32"},
    {.name = "bptt", .type = CLI_OPTION_U64,
     .offset = offsetof(settings, bptt), .value = "N", .default_value = "30",
     .min = 1, .max = BATCH_MAX, .help = "words of a row in a batch"},
    CLI_OPTION_JSON(settings),
    {0},
};
// clang-format on

// An evaluation. Everything is NULL or owned by it.
typedef struct evaluation {
    const settings *s;
    const char *path;
    train_model model;
    data_set *set;
    train_feed *feed;
    nn_score score;
} evaluation;

static bool same_words(const train_model *m, const data_set *set)
{
    for (uint32_t i = 0; i < m->sample.classes; i++) {
        if (strcmp(m->words[i], data_set_word(set, i)) != 0) {
            return false;
        }
    }
    return true;
}

// Rejects data that the model was not made for.
static lac_status check_data(const evaluation *e)
{
    const train_model *const m = &e->model;
    const data_info *const info = data_set_info(e->set);
    if (info->kind != m->kind) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: is a model of %s, but %s is %s", e->path,
            data_kind_name(m->kind), info->name, data_kind_name(info->kind));
    }
    if (m->kind == DATA_TEXT && info->classes != m->sample.classes) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: has a vocabulary of %u words, but that of %s has %u", e->path,
            m->sample.classes, info->name, info->classes);
    }
    if (m->kind == DATA_TEXT && !same_words(m, e->set)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: has another vocabulary than %s, expected that of its data",
            e->path, info->name);
    }
    if (info->channels != m->sample.channels ||
        info->height != m->sample.height || info->width != m->sample.width ||
        info->classes != m->sample.classes) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: is for examples of %u x %u x %u and %u classes, but those of "
            "%s are %u x %u x %u with %u",
            e->path, m->sample.channels, m->sample.height, m->sample.width,
            m->sample.classes, info->name, info->channels, info->height,
            info->width, info->classes);
    }
    return LAC_OK;
}

static const char *data_name(const evaluation *e)
{
    return *e->s->data == '\0' ? e->model.data : e->s->data;
}

static lac_status evaluate_open(evaluation *e)
{
    char cache[DATA_PATH_SIZE];
    LAC_TRY(cli_model_open(
        &e->model, e->path, (uint32_t)e->s->batch, (uint32_t)e->s->bptt));
    const bool cached = cli_cache_folder(cache) == LAC_OK;
    const data_options options_of_data = {
        .name = data_name(e),
        .folder = cli_given(e->s->data_dir),
        .cache = cached ? cache : NULL,
    };
    LAC_TRY(data_set_open(&e->set, &options_of_data));
    LAC_TRY(check_data(e));
    const train_feed_options feed = {
        .set = e->set,
        .world = 1,
        .batch = 1,
        .steps = (uint32_t)e->s->bptt,
        .test_batch = e->s->batch == 0 ? train_model_batch(e->model.kind)
                                       : (uint32_t)e->s->batch,
    };
    return train_feed_open(&e->feed, &feed);
}

static lac_status evaluate_all(evaluation *e)
{
    const train_feed_part part = {.limit = (size_t)e->s->limit};
    const nn_state state = train_model_state(&e->model);
    const uint64_t batches = train_feed_tests(e->feed, part);
    for (uint64_t i = 0; i < batches; i++) {
        nn_batch batch;
        nn_score score = {0};
        train_feed_test(e->feed, part, i, &batch);
        LAC_TRY(nn_network_evaluate(e->model.net, &state, &batch, &score));
        e->score.loss += score.loss;
        e->score.correct += score.correct;
        e->score.count += score.count;
    }
    return e->score.count > 0 ? LAC_OK
                              : lac_fail(
                                    LAC_ERR_INVALID, "%s: has no test set",
                                    data_set_info(e->set)->name);
}

static int evaluate_report(const evaluation *e)
{
    const bool text = e->model.kind == DATA_TEXT;
    const double count = (double)e->score.count;
    const double loss = e->score.loss / count;
    const double accuracy = (double)e->score.correct / count;
    if (e->s->json) {
        cJSON *const o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "model", e->model.name);
        cJSON_AddStringToObject(o, "data", data_set_info(e->set)->name);
        cJSON_AddNumberToObject(o, "test_loss", loss);
        cJSON_AddNumberToObject(o, "test_accuracy", accuracy);
        if (text) {
            cJSON_AddNumberToObject(o, "test_perplexity", exp(loss));
        }
        cJSON_AddNumberToObject(o, "test_examples", count);
        return cli_json_print(o, stdout);
    }
    char number[CLI_GROUPED_SIZE];
    cli_table t = cli_table_make("ll", NULL);
    cli_table_add(&t, "model");
    cli_table_add(
        &t, "%.60s on %.60s", e->model.name, data_set_info(e->set)->name);
    cli_table_add(&t, "accuracy");
    cli_table_add(&t, "%.2f %%", 100 * accuracy);
    cli_table_add(&t, "loss");
    cli_table_add(&t, "%.4f", loss);
    if (text) {
        cli_table_add(&t, "perplexity");
        cli_table_add(&t, "%.2f", exp(loss));
    }
    cli_table_add(&t, "%s", text ? "words" : "examples");
    cli_table_add(&t, "%s", cli_grouped(e->score.count, number));
    cli_table_print(&t, stdout);
    return CLI_GOOD;
}

static int evaluate_run(const void *given, size_t count, char *const *arguments)
{
    (void)count;
    evaluation e = {.s = given, .path = arguments[0]};
    nn_headroom_prepare();
    lac_status status = evaluate_open(&e);
    if (status == LAC_OK) {
        status = evaluate_all(&e);
    }
    int code = CLI_GOOD;
    if (status != LAC_OK) {
        code = status == LAC_ERR_NOTFOUND && e.model.net != NULL
                   ? cli_bad_spec("evaluate", "datasets", data_name(&e))
                   : cli_failed();
    } else {
        code = evaluate_report(&e);
    }
    train_feed_close(e.feed);
    train_model_close(&e.model);
    data_set_close(e.set);
    return code;
}

const cli_command cmd_evaluate = {
    .name = "evaluate",
    .summary = "evaluate a trained model on a test set",
    .arguments = "DIR|FILE",
    .arguments_min = 1,
    .arguments_max = 1,
    .details = "Loads DIR/model.safetensors of a run of `laconic train`, or\n"
               "FILE, and prints its accuracy and loss on the test set of the\n"
               "data that it was trained on, or of other ones.",
    .example = "Evaluate the averaged model of a run:\n"
               "\n"
               "    laconic evaluate runs/choco",
    .options = options,
    .settings_size = sizeof(settings),
    .run = evaluate_run,
};
