// SPDX-License-Identifier: MIT
// laconic predict: the most probable class of examples, or the next word of a
// text, by a trained model.
//
// Examples are in a .npy file, one or many, of uint8 or float32. Pixels are
// numbers from 0 to 255, as in the files of the data sets, and are normalised
// as the metadata of the model describe it. The words of a text pass through
// the network one by one.
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files/model.h"
#include "cli/files/npy.h"
#include "cli/options/command.h"
#include "cli/report/table.h"
#include "data/file.h"
#include "data/source.h"
#include "nn/headroom.h"
#include "train/safetensors_file.h"

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
    const char *const *classes; // their names, or NULL; of a text, its words
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

// The sizes of an example without those in front that are 1.
static cli_dimensions example_dimensions(const nn_sample *s)
{
    const uint32_t sizes[] = {s->channels, s->height, s->width};
    cli_dimensions d = {0};
    for (size_t i = 0; i < 3; i++) {
        if (sizes[i] != 1 || d.count > 0 || i == 2) {
            d.size[d.count++] = sizes[i];
        }
    }
    return d;
}

// Whether an array is of such examples, or one of them.
static bool holds(const cli_dimensions *array, const cli_dimensions *example)
{
    const size_t count = example->count;
    return (array->count == count || array->count == count + 1) &&
           memcmp(
               array->size + array->count - count, example->size,
               count * sizeof(example->size[0])) == 0;
}

// Accepts 28 x 28, 1 x 28 x 28 or 784 values, and N of them.
static lac_status predict_check_shape(const prediction *p, const cli_npy *npy)
{
    const nn_sample *const s = &p->model.sample;
    const cli_dimensions usual = example_dimensions(s);
    const cli_dimensions whole = {3, {s->channels, s->height, s->width}};
    const cli_dimensions flat = {
        1, {(uint64_t)s->channels * s->height * s->width}};
    const cli_dimensions *const d = &npy->dimensions;
    char found[CLI_DIMENSIONS_SIZE], expected[CLI_DIMENSIONS_SIZE];
    if (npy->shape.rows * npy->shape.cols == 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: has no values, expected an example or more",
            p->input);
    }
    return holds(d, &usual) || holds(d, &whole) || holds(d, &flat)
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "%s: has the shape %s, expected an example of %s, or N x "
                     "%s",
                     p->input,
                     d->count == 0 ? "()" : cli_dimensions_text(d, found),
                     cli_dimensions_text(&usual, expected), expected);
}

static lac_status predict_check_values(
    const prediction *p, const float *x, size_t n)
{
    const bool pixels = p->model.kind == DATA_IMAGES;
    float highest = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || (pixels && !(x[i] >= 0 && x[i] <= 255))) {
            return lac_fail(
                LAC_ERR_INVALID, "%s: value %zu is %g, expected %s", p->input,
                i, (double)x[i],
                pixels ? "a pixel from 0 to 255" : "a finite number");
        }
        highest = fmaxf(highest, x[i]);
    }
    if (pixels && highest > 0 && highest <= 1) {
        (void)fprintf(
            stderr,
            "laconic: %s: no pixel is above 1, expected pixels from 0 "
            "to 255\n",
            p->input);
    }
    return LAC_OK;
}

static lac_status guess_all(prediction *p, float *x, size_t n)
{
    const nn_sample *const s = &p->model.sample;
    const size_t size = (size_t)s->channels * s->height * s->width;
    LAC_TRY(predict_check_values(p, x, n));
    p->count = n / size;
    p->guesses = calloc(p->count, sizeof(*p->guesses));
    if (p->guesses == NULL) {
        return data_no_memory(p->input, p->count);
    }
    for (size_t i = 0; i < p->count; i++, x += size) {
        if (p->model.kind == DATA_IMAGES) {
            normalise(&p->model, x);
        }
        LAC_TRY(guess_one(p, x, NULL, &p->guesses[i]));
    }
    return LAC_OK;
}

static lac_status guess_examples(prediction *p)
{
    cli_npy npy;
    float *x = NULL;
    LAC_TRY(cli_npy_read(p->input, CLI_NPY_F32 + CLI_NPY_U8, &npy, &x));
    lac_status status = predict_check_shape(p, &npy);
    if (status == LAC_OK) {
        status = guess_all(p, x, npy.shape.rows * npy.shape.cols);
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
static lac_status guess_after(
    prediction *p, const char *word, size_t len, size_t *unknown)
{
    char shown[TRAIN_SHOWN_SIZE];
    uint32_t token = find_word(&p->model, word, len);
    if (token == UINT32_MAX) {
        token = find_word(&p->model, "<unk>", 5);
        (*unknown)++;
    }
    if (token == UINT32_MAX) {
        char copy[TRAIN_SHOWN_SIZE];
        (void)snprintf(copy, sizeof(copy), "%.*s", (int)len, word);
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: the word \"%s\" is not in the vocabulary of %s, which has no "
            "<unk>",
            p->input, train_shown(copy, shown), p->path);
    }
    return guess_one(p, NULL, &token, p->guesses);
}

static lac_status guess_text(prediction *p, const data_bytes *text)
{
    const char *at = (const char *)text->data;
    const char *const end = at + text->len;
    const char *const zero = memchr(at, '\0', text->len);
    size_t words = 0, unknown = 0;
    if (zero != NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: byte %zu is 0, expected a text", p->input,
            (size_t)(zero - at));
    }
    while (at < end) {
        const char *const word = at;
        while (at < end && (uint8_t)*at > ' ') {
            at++;
        }
        if (at > word) {
            LAC_TRY(guess_after(p, word, (size_t)(at - word), &unknown));
            words++;
        }
        at++;
    }
    if (unknown > 0) {
        (void)fprintf(
            stderr,
            "laconic: %s: %zu of %zu words are not in the vocabulary and were "
            "read as <unk>\n",
            p->input, unknown, words);
    }
    return words > 0 ? LAC_OK
                     : lac_fail(
                           LAC_ERR_INVALID, "%s: has no words, expected a text",
                           p->input);
}

static lac_status guess_next_word(prediction *p)
{
    data_bytes text = {0};
    LAC_TRY(data_file_read(p->input, &text));
    p->count = 1;
    p->guesses = calloc(1, sizeof(*p->guesses));
    const lac_status status =
        p->guesses == NULL ? data_no_memory(p->input, 1) : guess_text(p, &text);
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
        if (p->classes != NULL) {
            cJSON_AddStringToObject(
                item, p->model.kind == DATA_TEXT ? "word" : "class",
                p->classes[g->label]);
        }
        cJSON_AddNumberToObject(item, "probability", g->probability);
        cJSON_AddItemToArray(list, item);
    }
    return cli_json_print(o, stdout);
}

static int predict_table(const prediction *p)
{
    const bool text = p->model.kind == DATA_TEXT;
    const bool both = !text && p->classes != NULL; // the label and its class
    cli_table t = cli_table_make(both ? "rlr" : "lr", NULL);
    if (!text) {
        cli_table_add(&t, "label");
    }
    if (p->classes != NULL) {
        cli_table_add(&t, "%s", text ? "word" : "class");
    }
    cli_table_add(&t, "probability");
    for (size_t i = 0; i < p->count; i++) {
        const nn_guess *const g = &p->guesses[i];
        if (!text) {
            cli_table_add(&t, "%u", g->label);
        }
        if (p->classes != NULL) {
            cli_table_add(&t, "%s", p->classes[g->label]);
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
    lac_status status = cli_model_open(&p.model, p.path, 1, 1);
    if (status == LAC_OK) {
        const bool text = p.model.kind == DATA_TEXT;
        p.classes =
            text ? p.model.words
                 : data_source_classes(p.model.data, p.model.sample.classes);
        status = text ? guess_next_word(&p) : guess_examples(&p);
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
        "INPUT is a .npy file of uint8 or float32 with one example or more,\n"
        "whose pixels are numbers from 0 to 255, or for a language model a\n"
        "text. Prints the most probable label of each example, with the name\n"
        "of its class if the data set has names, or the next word of the\n"
        "text, and its probability.",
    .example = "Classify the images of a file:\n"
               "\n"
               "    laconic predict runs/choco images.npy",
    .options = options,
    .settings_size = sizeof(settings),
    .run = predict_run,
};
