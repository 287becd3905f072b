// SPDX-License-Identifier: MIT
// Describes models in files, and loads them. Files may be damaged or of other
// programs: the metadata decide which tensors are expected, and the file must
// have exactly these.
#include "train/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/file.h"
#include "train/safetensors_file.h"

enum {
    SIZE_MOST = 1 << 24,
    VALUES_MOST = 1 << 24,
    TEST_EXAMPLES = 100,
    TEST_ROWS = 32,
};

static void join_numbers(
    const double *values, size_t n, char out[TRAIN_MODEL_TEXT_SIZE])
{
    size_t len = 0;
    for (size_t i = 0; i < n && len < TRAIN_MODEL_TEXT_SIZE; i++) {
        const int more = snprintf(
            out + len, TRAIN_MODEL_TEXT_SIZE - len, "%s%.10g",
            i == 0 ? "" : " ", values[i]);
        len += more < 0 ? 0 : (size_t)more;
    }
}

static lac_status join_words(const data_set *set, char **out)
{
    const uint32_t count = data_set_info(set)->classes;
    size_t len = 0;
    for (uint32_t i = 0; i < count; i++) {
        len += strlen(data_set_word(set, i)) + 1;
    }
    char *const text = malloc(len + 1);
    if (text == NULL) {
        return data_no_memory("the vocabulary", len);
    }
    char *at = text;
    for (uint32_t i = 0; i < count; i++) {
        const char *const word = data_set_word(set, i);
        const size_t word_len = strlen(word);
        memcpy(at, word, word_len);
        at[word_len] = '\n';
        at += word_len + 1;
    }
    *at = '\0';
    *out = text;
    return LAC_OK;
}

static void model_add_text(
    train_model_texts *t, const char *name, const char *value)
{
    t->list[t->count++] = (train_text){name, value};
}

lac_status train_model_describe(
    const char *model, const data_set *set, train_model_texts *out)
{
    const data_info *const info = data_set_info(set);
    train_model_texts *const t = out;
    t->count = 0;
    t->vocabulary = NULL;
    if (info->kind == DATA_TEXT) {
        LAC_TRY(join_words(set, &t->vocabulary));
    }
    model_add_text(t, "model", model);
    model_add_text(t, "data", info->name);
    model_add_text(t, "kind", data_kind_name(info->kind));
    (void)snprintf(
        t->sample, sizeof(t->sample), "%" PRIu32 " %" PRIu32 " %" PRIu32,
        info->channels, info->height, info->width);
    model_add_text(t, "sample", t->sample);
    (void)snprintf(t->classes, sizeof(t->classes), "%" PRIu32, info->classes);
    model_add_text(t, "classes", t->classes);
    if (info->kind == DATA_IMAGES) {
        join_numbers(info->mean, info->channels, t->mean);
        join_numbers(info->deviation, info->channels, t->deviation);
        model_add_text(t, "mean", t->mean);
        model_add_text(t, "deviation", t->deviation);
    }
    if (t->vocabulary != NULL) {
        model_add_text(t, "vocabulary", t->vocabulary);
    }
    return LAC_OK;
}

static const char *text_of(const train_file *f, const char *name)
{
    const char *const text = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(train_file_metadata(f), name));
    return text == NULL ? "" : text;
}

static lac_status not_described(const train_file *f, const char *name)
{
    char text[TRAIN_SHOWN_SIZE];
    return lac_fail(
        LAC_ERR_INVALID,
        "%s: its metadata have the %s \"%s\", expected a model.safetensors of "
        "`laconic train`",
        f->bytes.name, name, train_shown(text_of(f, name), text));
}

// Reads whole numbers separated by spaces.
static bool take_sizes(const char *text, uint32_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        if ((i > 0 && *text++ != ' ') || !train_take_number(&text, &value) ||
            value > SIZE_MOST) {
            return false;
        }
        out[i] = (uint32_t)value;
    }
    return *text == '\0';
}

static bool take_values(const char *text, double *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *end;
        out[i] = strtod(text, &end);
        if (end == text || out[i] != out[i]) {
            return false;
        }
        text = end;
    }
    return *text == '\0';
}

static lac_status take_kind(train_model *m, const train_file *f)
{
    for (int k = DATA_IMAGES; k <= DATA_TEXT; k++) {
        if (strcmp(text_of(f, "kind"), data_kind_name((data_kind)k)) == 0) {
            m->kind = (data_kind)k;
            return LAC_OK;
        }
    }
    return not_described(f, "kind");
}

// Cuts the vocabulary into words.
static lac_status take_words(train_model *m, const train_file *f)
{
    const uint32_t count = m->sample.classes;
    m->vocabulary = strdup(text_of(f, "vocabulary"));
    m->words = calloc((size_t)count + 1, sizeof(*m->words));
    if (m->vocabulary == NULL || m->words == NULL) {
        return data_no_memory(f->bytes.name, count);
    }
    char *at = m->vocabulary;
    for (uint32_t i = 0; i < count; i++) {
        char *const end = strchr(at, '\n');
        if (end == NULL) {
            return lac_fail(
                LAC_ERR_CORRUPT,
                "%s: its vocabulary has %" PRIu32 " words, expected %" PRIu32,
                f->bytes.name, i, count);
        }
        *end = '\0';
        m->words[i] = at;
        at = end + 1;
    }
    return LAC_OK;
}

static lac_status take_metadata(train_model *m, const train_file *f)
{
    uint32_t sizes[3];
    LAC_TRY(take_kind(m, f));
    if (!take_sizes(text_of(f, "sample"), sizes, 3) ||
        sizes[0] > DATA_CHANNELS_MAX ||
        (uint64_t)sizes[0] * sizes[1] * sizes[2] > VALUES_MOST) {
        return not_described(f, "sample");
    }
    m->sample = (nn_sample){sizes[0], sizes[1], sizes[2], 0};
    if (!take_sizes(text_of(f, "classes"), &m->sample.classes, 1) ||
        m->sample.classes == 0) {
        return not_described(f, "classes");
    }
    if (m->kind == DATA_IMAGES) {
        if (!take_values(text_of(f, "mean"), m->mean, sizes[0])) {
            return not_described(f, "mean");
        }
        if (!take_values(text_of(f, "deviation"), m->deviation, sizes[0])) {
            return not_described(f, "deviation");
        }
    }
    m->name = strdup(text_of(f, "model"));
    m->data = strdup(text_of(f, "data"));
    if (m->name == NULL || m->data == NULL) {
        return data_no_memory(f->bytes.name, 0);
    }
    return m->kind == DATA_TEXT ? take_words(m, f) : LAC_OK;
}

static bool allocate_vectors(train_model *m)
{
    const nn_network *const net = m->net;
    m->parameters =
        calloc(lac_layout_values(nn_network_layout(net)) + 1, sizeof(float));
    m->statistics = calloc(
        lac_layout_values(nn_network_statistics(net)) + 1, sizeof(float));
    m->carry = calloc(nn_network_carry(net) + 1, sizeof(float));
    return m->parameters != NULL && m->statistics != NULL && m->carry != NULL;
}

// Lists the parameters, then the statistics.
static void list_tensors(train_model *m, train_tensor *out)
{
    const lac_layout *const layout = nn_network_layout(m->net);
    const lac_layout *const statistics = nn_network_statistics(m->net);
    for (size_t t = 0; t < lac_layout_count(layout); t++, out++) {
        const lac_tensor *const tensor = lac_layout_tensor(layout, t);
        *out = (train_tensor){
            .name = tensor->name, .data = m->parameters + tensor->offset};
        out->dimension_count =
            nn_network_dimensions(m->net, t, out->dimensions);
    }
    for (size_t t = 0; t < lac_layout_count(statistics); t++, out++) {
        const lac_tensor *const tensor = lac_layout_tensor(statistics, t);
        *out = (train_tensor){
            .name = tensor->name,
            .dimensions = {tensor->shape.rows},
            .dimension_count = 1,
            .data = m->statistics + tensor->offset,
        };
    }
}

static lac_status load_tensors(train_model *m, const train_file *f)
{
    const size_t count = lac_layout_count(nn_network_layout(m->net)) +
                         lac_layout_count(nn_network_statistics(m->net));
    uint64_t steps = 0;
    const train_number number = {"steps", &steps, false};
    train_tensor *const tensors = calloc(count + 1, sizeof(*tensors));
    if (tensors == NULL || !allocate_vectors(m)) {
        free(tensors);
        return data_no_memory(f->bytes.name, count);
    }
    list_tensors(m, tensors);
    const train_record record = {
        .tensors = tensors,
        .tensor_count = count,
        .numbers = &number,
        .number_count = 1,
        .has_texts = true,
    };
    const lac_status status = train_file_load(f, &record);
    free(tensors);
    return status;
}

uint32_t train_model_batch(data_kind kind)
{
    return kind == DATA_TEXT ? TEST_ROWS : TEST_EXAMPLES;
}

lac_status train_model_open(
    train_model *m, const char *path, uint32_t batch, uint32_t steps)
{
    char inside[DATA_PATH_SIZE];
    data_bytes bytes;
    train_file f;
    *m = (train_model){0};
    if (data_is_folder(path)) {
        LAC_TRY(data_path_join(inside, path, "model.safetensors"));
        path = inside;
        if (!data_is_file(path)) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: is missing or no file, expected the folder of a finished "
                "run of `laconic train`",
                path);
        }
    }
    LAC_TRY(data_file_read(path, &bytes));
    LAC_TRY(train_file_open(&f, bytes));
    lac_status status = take_metadata(m, &f);
    if (status == LAC_OK) {
        const nn_options options = {
            .model = m->name,
            .sample = m->sample,
            .batch = batch == 0 ? train_model_batch(m->kind) : batch,
            .steps = steps,
        };
        status = nn_network_open(&m->net, &options);
    }
    if (status == LAC_OK) {
        status = load_tensors(m, &f);
    }
    train_file_close(&f);
    return status;
}

void train_model_close(train_model *m)
{
    nn_network_close(m->net);
    free(m->parameters);
    free(m->statistics);
    free(m->carry);
    free(m->name);
    free(m->data);
    free(m->vocabulary);
    free(m->words);
    *m = (train_model){0};
}

nn_state train_model_state(const train_model *m)
{
    return (nn_state){m->parameters, m->statistics, m->carry};
}
