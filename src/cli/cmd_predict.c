// SPDX-License-Identifier: MIT
// laconic predict: the most probable class of examples, or the next word of a
// text, by a trained model.
//
// Examples are in a .npy file, one or many. Pixels are numbers from 0 to 255,
// as in the files of the data sets, and are normalised as the metadata of the
// model describe it. The words of a text pass through the network one by one.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files/npy.h"
#include "cli/options/command.h"
#include "cli/report/table.h"
#include "data/file.h"
#include "nn/headroom.h"
#include "train/model.h"

typedef struct settings {
    bool json;
} settings;

static const cli_option options[] = {
    CLI_OPTION_JSON(settings),
    {0},
};

// A prediction. Everything is NULL or owned by it.
typedef struct prediction {
    const char *path, *input;
    train_model model;
    nn_guess *guesses;
    size_t count;
} prediction;

static lac_status guess_one(
    prediction *p, const float *x, const uint32_t *token, nn_guess *out)
{
    const uint32_t label = 0; // any: only its loss depends on it
    const nn_state state = train_model_state(&p->model);
    const nn_batch batch = {
        .count = 1,
        .x = x,
        .tokens = token,
        .labels = &label,
        .guesses = out,
    };
    nn_score score;
    return nn_network_evaluate(p->model.net, &state, &batch, &score);
}

static void normalise(const train_model *m, float *x)
{
    const size_t pixels = (size_t)m->sample.height * m->sample.width;
    for (size_t c = 0; c < m->sample.channels; c++) {
        for (size_t i = 0; i < pixels; i++, x++) {
            *x = (float)(((double)*x / 255 - m->mean[c]) / m->deviation[c]);
        }
    }
}

static lac_status guess_examples(prediction *p)
{
    const train_model *const m = &p->model;
    const nn_sample *const s = &m->sample;
    const size_t size = (size_t)s->channels * s->height * s->width;
    cli_npy npy;
    float *x = NULL;
    LAC_TRY(cli_npy_read(p->input, &npy, &x));
    const size_t n = npy.shape.rows * npy.shape.cols;
    lac_status status = LAC_OK;
    p->count = size == 0 ? 0 : n / size;
    p->guesses = calloc(p->count + 1, sizeof(*p->guesses));
    if (p->guesses == NULL) {
        status = data_no_memory(p->input, p->count);
    } else if (n == 0 || p->count * size != n) {
        status = lac_fail(
            LAC_ERR_INVALID,
            "%s: has %zu values, expected a multiple of the %u x %u x %u of an "
            "example",
            p->input, n, s->channels, s->height, s->width);
    }
    for (size_t i = 0; status == LAC_OK && i < p->count; i++) {
        float *const example = x + i * size;
        if (m->kind == DATA_IMAGES) {
            normalise(m, example);
        }
        status = guess_one(p, example, NULL, &p->guesses[i]);
    }
    free(x);
    return status;
}

static uint32_t find_word(const train_model *m, const char *word, size_t len)
{
    for (uint32_t i = 0; i < m->sample.classes; i++) {
        if (strlen(m->words[i]) == len && memcmp(m->words[i], word, len) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

// A word that is not in the vocabulary is <unk>, as in training.
static lac_status guess_next_word(prediction *p)
{
    data_bytes text = {0};
    lac_status status = data_file_read(p->input, &text);
    if (status != LAC_OK) {
        return status;
    }
    const uint32_t unknown = find_word(&p->model, "<unk>", 5);
    p->guesses = calloc(1, sizeof(*p->guesses));
    for (size_t at = 0; p->guesses != NULL && at < text.len;) {
        const char *const word = (const char *)text.data + at;
        size_t len = 0;
        while (at + len < text.len && text.data[at + len] > ' ') {
            len++;
        }
        at += len + 1;
        uint32_t token = find_word(&p->model, word, len);
        token = token == UINT32_MAX ? unknown : token;
        if (len == 0 || token == UINT32_MAX) {
            continue;
        }
        status = guess_one(p, NULL, &token, p->guesses);
        p->count = 1;
        if (status != LAC_OK) {
            break;
        }
    }
    if (status == LAC_OK && p->count == 0) {
        status = p->guesses == NULL
                     ? data_no_memory(p->input, 1)
                     : lac_fail(
                           LAC_ERR_INVALID, "%s: has no words, expected a text",
                           p->input);
    }
    data_bytes_free(&text);
    return status;
}

static int predict_json(const prediction *p)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON *const list = cJSON_AddArrayToObject(o, "predictions");
    for (size_t i = 0; i < p->count; i++) {
        cJSON *const item = cJSON_CreateObject();
        const nn_guess *const g = &p->guesses[i];
        cJSON_AddNumberToObject(item, "label", g->label);
        if (p->model.kind == DATA_TEXT) {
            cJSON_AddStringToObject(item, "word", p->model.words[g->label]);
        }
        cJSON_AddNumberToObject(item, "probability", g->probability);
        cJSON_AddItemToArray(list, item);
    }
    return cli_json_print(o, stdout);
}

static int predict_table(const prediction *p)
{
    const bool text = p->model.kind == DATA_TEXT;
    cli_table t = cli_table_make("lr", NULL);
    cli_table_add(&t, "%s", text ? "word" : "label");
    cli_table_add(&t, "probability");
    for (size_t i = 0; i < p->count; i++) {
        const nn_guess *const g = &p->guesses[i];
        if (text) {
            cli_table_add(&t, "%s", p->model.words[g->label]);
        } else {
            cli_table_add(&t, "%u", g->label);
        }
        cli_table_add(&t, "%.4f", g->probability);
    }
    cli_table_print(&t, stdout);
    return CLI_GOOD;
}

static int predict_run(const void *given, size_t count, char *const *arguments)
{
    const settings *const s = given;
    (void)count;
    prediction p = {.path = arguments[0], .input = arguments[1]};
    nn_headroom_prepare();
    lac_status status = train_model_open(&p.model, p.path, 1, 1);
    if (status == LAC_OK) {
        status = p.model.kind == DATA_TEXT ? guess_next_word(&p)
                                           : guess_examples(&p);
    }
    int code = CLI_GOOD;
    if (status != LAC_OK) {
        code = cli_failed();
    } else {
        code = s->json ? predict_json(&p) : predict_table(&p);
    }
    free(p.guesses);
    train_model_close(&p.model);
    return code;
}

const cli_command cmd_predict = {
    .name = "predict",
    .summary = "predict classes or the next word by a trained model",
    .arguments = "DIR|FILE INPUT",
    .arguments_min = 2,
    .arguments_max = 2,
    .details =
        "Loads DIR/model.safetensors of a run of `laconic train`, or FILE.\n"
        "INPUT is a .npy file with one example or more, whose pixels are\n"
        "numbers from 0 to 255, or for a language model a text. Prints the\n"
        "most probable label of each example, or the next word of the text,\n"
        "and its probability.",
    .options = options,
    .settings_size = sizeof(settings),
    .run = predict_run,
};
