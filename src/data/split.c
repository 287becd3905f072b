// SPDX-License-Identifier: MIT
// Assigns the training examples to workers.
#include "data/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/balance.h"
#include "data/dirichlet.h"
#include "data/file.h"

struct data_split {
    data_split_rule rule;
    uint64_t seed;
    size_t count;
    size_t *start;   // workers + 1: the first entry of each worker in index
    uint32_t *index; // all examples, grouped by worker
};

static const double alpha_min = 1e-6, alpha_max = 1e9;

lac_status data_split_parse(const char *text, data_split_rule *out)
{
    static const char *const words[] = {"shuffle", "fixed", "sorted"};
    static const char dirichlet[] = "dirichlet:";
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = (data_split_rule){.kind = (data_split_kind)i};
            return LAC_OK;
        }
    }
    if (strncmp(text, dirichlet, strlen(dirichlet)) == 0) {
        const char *const number = text + strlen(dirichlet);
        char *end;
        const double alpha = strtod(number, &end);
        const bool balanced = strcmp(end, ",balanced") == 0;
        if (end != number && (*end == '\0' || balanced) && alpha >= alpha_min &&
            alpha <= alpha_max) {
            *out = (data_split_rule){DATA_SPLIT_DIRICHLET, alpha, balanced};
            return LAC_OK;
        }
    }
    return lac_fail(
        LAC_ERR_INVALID,
        "split: \"%s\" was given, expected shuffle, fixed, sorted, "
        "dirichlet:ALPHA or dirichlet:ALPHA,balanced with a number from 1e-6 "
        "to 1e9",
        text);
}

static lac_key key_for(uint64_t seed, uint64_t epoch, const char *use)
{
    return lac_key_make(
        seed, LAC_PURPOSE_SPLIT, epoch, lac_scope_shared(), lac_name_hash(use));
}

// Fisher-Yates. A 32-bit draw times the bound favours some numbers by a part in
// 2^32 / n, far too little to matter.
static void shuffle(const lac_key *key, uint32_t *index, size_t n)
{
    for (size_t i = n; i > 1; i--) {
        const uint64_t draw = lac_key_draw(key, (uint32_t)(i - 1));
        const size_t k = (size_t)(draw * i >> 32);
        const uint32_t swapped = index[i - 1];
        index[i - 1] = index[k];
        index[k] = swapped;
    }
}

static void count_up(uint32_t *index, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        index[i] = (uint32_t)i;
    }
}

void data_shuffle_test(uint32_t *index_out, size_t n)
{
    const lac_key key = key_for(0, 0, "test");
    count_up(index_out, n);
    shuffle(&key, index_out, n);
}

// The first example of worker w if all workers get the same number.
static size_t even_start(size_t count, uint32_t workers, uint32_t w)
{
    const size_t each = count / workers, more = count % workers;
    return w * each + (w < more ? w : more);
}

// Stable counting sort by label. Writes the start of each label to `bounds`,
// which has classes + 1 entries, all 0.
static lac_status sort_by_label(
    const data_split_options *o, uint32_t classes, uint32_t *index,
    size_t *bounds)
{
    uint32_t *const sorted = malloc(o->count * sizeof(*sorted));
    if (sorted == NULL) {
        return data_no_memory("split", o->count * sizeof(*sorted));
    }
    for (size_t i = 0; i < o->count; i++) {
        bounds[o->labels[i] + 1]++;
    }
    for (uint32_t c = 0; c < classes; c++) {
        bounds[c + 1] += bounds[c];
    }
    for (size_t i = 0; i < o->count; i++) {
        sorted[bounds[o->labels[index[i]]]++] = index[i];
    }
    // Each bound is now the start of the next label.
    memmove(bounds + 1, bounds, classes * sizeof(*bounds));
    bounds[0] = 0;
    memcpy(index, sorted, o->count * sizeof(*index));
    free(sorted);
    return LAC_OK;
}

// Draws the worker of every example; `index` is sorted by label.
static void draw_owners(
    const data_split_options *o, uint32_t classes, const uint32_t *index,
    const size_t *bounds, double *shares, uint32_t *owner)
{
    for (uint32_t c = 0; c < classes; c++) {
        const size_t n = bounds[c + 1] - bounds[c];
        const lac_key key = key_for(o->seed, c, "dirichlet");
        data_dirichlet(&key, o->rule.alpha, o->workers, shares);
        double sum = 0;
        size_t i = 0;
        for (uint32_t w = 0; w < o->workers; w++) {
            sum += shares[w];
            const size_t end =
                w + 1 == o->workers ? n : (size_t)(sum * (double)n + 0.5);
            for (; i < end && i < n; i++) {
                owner[index[bounds[c] + i]] = w;
            }
        }
    }
}

// The same for equal numbers of examples.
static lac_status balance_owners(
    const data_split_options *o, uint32_t classes, const uint32_t *index,
    const size_t *bounds, uint32_t *owner)
{
    double *const logs =
        malloc(((size_t)classes * o->workers + 1) * sizeof(*logs));
    if (logs == NULL) {
        return data_no_memory("split", o->workers * sizeof(*logs));
    }
    for (uint32_t c = 0; c < classes; c++) {
        double *const row = logs + (size_t)c * o->workers;
        const size_t n = bounds[c + 1] - bounds[c];
        const lac_key key = key_for(o->seed, c, "dirichlet");
        data_log_dirichlet(&key, o->rule.alpha, o->workers, row);
        for (uint32_t w = 0; n > 0 && w < o->workers; w++) {
            row[w] += data_log((double)n);
        }
    }
    const data_balance balance = {
        o->workers, classes, index, bounds, logs, key_for(o->seed, 0, "turns")};
    const lac_status status = data_balance_assign(&balance, owner);
    free(logs);
    return status;
}

// Gives each worker without examples one of the worker that has the most.
static void fill_empty_workers(
    uint32_t *owner, size_t count, size_t *size, uint32_t workers)
{
    for (uint32_t w = 0; w < workers; w++) {
        if (size[w] > 0) {
            continue;
        }
        uint32_t donor = 0;
        for (uint32_t k = 1; k < workers; k++) {
            donor = size[k] > size[donor] ? k : donor;
        }
        size_t i = 0;
        while (i < count && owner[i] != donor) {
            i++;
        }
        owner[i] = w;
        size[donor]--;
        size[w]++;
    }
}

// Makes the lists of the workers from the owner of each example.
static void list_by_owner(data_split *s, uint32_t workers, uint32_t *owner)
{
    size_t *const size = s->start + 1;
    memset(s->start, 0, (workers + (size_t)1) * sizeof(*s->start));
    for (size_t i = 0; i < s->count; i++) {
        size[owner[i]]++;
    }
    fill_empty_workers(owner, s->count, size, workers);
    for (uint32_t w = 0; w < workers; w++) {
        s->start[w + 1] += s->start[w];
    }
    for (size_t i = 0; i < s->count; i++) {
        s->index[s->start[owner[i]]++] = (uint32_t)i;
    }
    memmove(s->start + 1, s->start, workers * sizeof(*s->start));
    s->start[0] = 0;
}

static lac_status assign_by_label(
    data_split *s, const data_split_options *o, uint32_t classes)
{
    size_t *const bounds = calloc(classes + (size_t)1, sizeof(*bounds));
    double *const shares = malloc(o->workers * sizeof(*shares));
    uint32_t *const owner = calloc(o->count, sizeof(*owner));
    lac_status status = LAC_OK;
    if (bounds == NULL || shares == NULL || owner == NULL) {
        status = lac_fail(
            LAC_ERR_NOMEM, "split: no memory for %zu examples", o->count);
    } else {
        status = sort_by_label(o, classes, s->index, bounds);
    }
    const bool drawn = o->rule.kind == DATA_SPLIT_DIRICHLET;
    if (status == LAC_OK && o->rule.balanced) {
        status = balance_owners(o, classes, s->index, bounds, owner);
    } else if (status == LAC_OK && drawn) {
        draw_owners(o, classes, s->index, bounds, shares, owner);
    }
    if (status == LAC_OK && drawn) {
        list_by_owner(s, o->workers, owner);
    }
    free(bounds);
    free(shares);
    free(owner);
    return status;
}

static lac_status split_check(const data_split_options *o)
{
    if (o->workers == 0 || o->count < o->workers || o->count > UINT32_MAX) {
        return lac_fail(
            LAC_ERR_INVALID,
            "split: %zu examples for %u workers, expected at least one each",
            o->count, o->workers);
    }
    if (o->labels == NULL && (o->rule.kind == DATA_SPLIT_SORTED ||
                              o->rule.kind == DATA_SPLIT_DIRICHLET)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "split: the data has no labels, expected shuffle or "
            "fixed");
    }
    return LAC_OK;
}

static lac_status split_assign(data_split *s, const data_split_options *o)
{
    for (uint32_t w = 0; w <= o->workers; w++) {
        s->start[w] = even_start(o->count, o->workers, w);
    }
    count_up(s->index, o->count);
    if (o->rule.kind == DATA_SPLIT_FIXED ||
        o->rule.kind == DATA_SPLIT_DIRICHLET) {
        const lac_key key = key_for(o->seed, 0, "fixed");
        shuffle(&key, s->index, o->count);
    }
    if (o->rule.kind < DATA_SPLIT_SORTED) {
        return LAC_OK;
    }
    uint32_t classes = 0;
    for (size_t i = 0; i < o->count; i++) {
        classes = o->labels[i] >= classes ? o->labels[i] + 1 : classes;
    }
    return assign_by_label(s, o, classes);
}

lac_status data_split_open(data_split **out, const data_split_options *options)
{
    *out = NULL;
    LAC_TRY(split_check(options));
    data_split *const s = calloc(1, sizeof(*s));
    if (s != NULL) {
        *s = (data_split){
            options->rule, options->seed, options->count,
            malloc((options->workers + (size_t)1) * sizeof(*s->start)),
            malloc(options->count * sizeof(*s->index))};
    }
    const lac_status status =
        s == NULL || s->start == NULL || s->index == NULL
            ? data_no_memory("split", options->count * sizeof(uint32_t))
            : split_assign(s, options);
    if (status != LAC_OK) {
        data_split_close(s);
        return status;
    }
    *out = s;
    return LAC_OK;
}

void data_split_close(data_split *split)
{
    if (split != NULL) {
        free(split->start);
        free(split->index);
        free(split);
    }
}

size_t data_split_size(const data_split *split, uint32_t worker)
{
    return split->start[worker + 1] - split->start[worker];
}

void data_split_epoch(
    const data_split *split, uint64_t epoch, uint32_t worker,
    uint32_t *index_out)
{
    const size_t start = split->start[worker];
    const size_t size = data_split_size(split, worker);
    if (split->rule.kind == DATA_SPLIT_SHUFFLE) {
        const lac_key key = key_for(split->seed, epoch, "shuffle");
        count_up(index_out, split->count);
        shuffle(&key, index_out, split->count);
        memmove(index_out, index_out + start, size * sizeof(*index_out));
        return;
    }
    const lac_key key = lac_key_make(
        split->seed, LAC_PURPOSE_SPLIT, epoch, lac_scope_worker(worker),
        lac_name_hash("order"));
    memcpy(index_out, split->index + start, size * sizeof(*index_out));
    shuffle(&key, index_out, size);
}
