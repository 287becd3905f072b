// SPDX-License-Identifier: MIT
// Batches of a text. The training words are cut into one part of equal length
// per worker, and a part into `batch` rows of L words. Batch s contains the
// words s * steps to (s + 1) * steps of every row, and the next words as
// labels. So an epoch has (L - 1) / steps batches, and each row continues from
// batch to batch. Words are stored as networks read them: first word 0 of all
// rows, then word 1, and so on.
//
// The test set is cut likewise. If it is too short for `test_batch` rows that
// fill a batch, it is cut into fewer rows.
#include <stdlib.h>
#include <string.h>

#include "data/file.h"
#include "train/feed_kinds.h"

// A document as a range of the training words.
typedef struct word_range {
    uint32_t label;
    size_t start, len;
} word_range;

// Documents with the same label keep their order.
static int by_label(const void *a, const void *b)
{
    const word_range *const s = a, *const t = b;
    if (s->label != t->label) {
        return s->label < t->label ? -1 : 1;
    }
    return s->start < t->start ? -1 : s->start > t->start;
}

// Lists the training documents, up to the limit on the words.
static size_t list_documents(const train_feed *feed, word_range *out)
{
    size_t documents, found = 0;
    const data_document *const d =
        data_set_documents(feed->options.set, &documents);
    const size_t words = feed->info->count[DATA_TRAIN];
    for (size_t i = 0; i < documents; i++) {
        if (d[i].part == DATA_TRAIN && d[i].start < words) {
            out[found++] = (word_range){d[i].label, d[i].start, 0};
        }
    }
    for (size_t i = 0; i < found; i++) {
        const size_t end = i + 1 < found ? out[i + 1].start : words;
        out[i].len = end - out[i].start;
    }
    return found;
}

static lac_status sort_documents(train_feed *feed)
{
    size_t documents;
    (void)data_set_documents(feed->options.set, &documents);
    const size_t words = feed->info->count[DATA_TRAIN];
    const uint32_t *const from = data_set_tokens(feed->options.set, DATA_TRAIN);
    word_range *const list = calloc(documents + 1, sizeof(*list));
    feed->sorted = calloc(words, sizeof(*feed->sorted));
    if (list == NULL || feed->sorted == NULL) {
        free(list);
        return data_no_memory(feed->info->name, words * sizeof(*feed->sorted));
    }
    const size_t count = list_documents(feed, list);
    qsort(list, count, sizeof(*list), by_label);
    uint32_t *to = feed->sorted;
    for (size_t i = 0; i < count; i++) {
        memcpy(to, from + list[i].start, list[i].len * sizeof(*to));
        to += list[i].len;
    }
    free(list);
    return LAC_OK;
}

static lac_status cut_rows(train_feed *feed)
{
    const train_feed_options *const o = &feed->options;
    const size_t words = feed->info->count[DATA_TRAIN];
    feed->part = words / o->world;
    feed->row = feed->part / o->batch;
    feed->steps = feed->row > 0 ? (feed->row - 1) / o->steps : 0;
    if (feed->steps == 0) {
        char advice[TRAIN_ADVICE_SIZE];
        const size_t rows = words / ((size_t)o->steps + 1);
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: %zu words for %u workers with batches of %u rows of %u words, "
            "expected at least one batch per worker%s",
            feed->info->name, words, o->world, o->batch, o->steps,
            train_feed_advice(rows / o->batch, rows / o->world, advice));
    }
    const size_t tests = feed->info->count[feed->test_part];
    const size_t rows = tests / ((size_t)o->steps + 1);
    if (rows > 0) {
        feed->test_rows = rows < o->test_batch ? (uint32_t)rows : o->test_batch;
        feed->test_row = tests / feed->test_rows;
        feed->tests = (feed->test_row - 1) / o->steps;
    }
    return LAC_OK;
}

lac_status train_text_open(train_feed *feed)
{
    const train_feed_options *const o = &feed->options;
    if (o->rule.kind == DATA_SPLIT_DIRICHLET) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: a text cannot be split by dirichlet, expected shuffle, fixed "
            "or sorted",
            feed->info->name);
    }
    LAC_TRY(cut_rows(feed));
    if (o->rule.kind == DATA_SPLIT_SORTED) {
        LAC_TRY(sort_documents(feed));
    }
    const uint32_t rows =
        o->batch > feed->test_rows ? o->batch : feed->test_rows;
    const size_t words = (size_t)rows * o->steps;
    feed->tokens = calloc(words, sizeof(*feed->tokens));
    feed->labels = calloc(words, sizeof(*feed->labels));
    if (feed->tokens == NULL || feed->labels == NULL) {
        return data_no_memory(feed->info->name, 2 * words * sizeof(uint32_t));
    }
    return LAC_OK;
}

// Writes the batch whose first row begins at `words` and whose next rows follow
// at intervals of `row` words.
static void fill_batch(
    train_feed *feed, const uint32_t *words, uint32_t rows, size_t row,
    nn_batch *out)
{
    const uint32_t steps = feed->options.steps;
    for (size_t r = 0; r < rows; r++) {
        const uint32_t *const from = words + r * row;
        for (size_t t = 0; t < steps; t++) {
            feed->tokens[t * rows + r] = from[t];
            feed->labels[t * rows + r] = from[t + 1];
        }
    }
    *out = (nn_batch){
        .count = rows, .tokens = feed->tokens, .labels = feed->labels};
}

void train_text_batch(
    train_feed *feed, uint64_t epoch, uint64_t step, nn_batch *out)
{
    const train_feed_options *const o = &feed->options;
    const uint32_t *const words = feed->sorted != NULL
                                      ? feed->sorted
                                      : data_set_tokens(o->set, DATA_TRAIN);
    uint64_t part = o->rank;
    if (o->rule.kind == DATA_SPLIT_SHUFFLE) {
        part = (part + epoch % o->world) % o->world;
    }
    const size_t start = (size_t)part * feed->part + (size_t)step * o->steps;
    fill_batch(feed, words + start, o->batch, feed->row, out);
}

uint64_t train_text_tests(const train_feed *feed, train_feed_part part)
{
    const size_t batch = (size_t)feed->test_rows * feed->options.steps;
    if (batch == 0 || part.limit == 0) {
        return feed->tests;
    }
    const uint64_t limit = part.limit / batch + (part.limit % batch != 0);
    return limit < feed->tests ? limit : feed->tests;
}

void train_text_test(
    train_feed *feed, train_feed_part part, uint64_t index, nn_batch *out)
{
    const uint32_t *const words =
        data_set_tokens(feed->options.set, feed->test_part);
    const uint32_t rank = part.shared ? feed->options.rank : 0;
    const size_t first = train_share_start(feed, part, feed->test_rows, rank);
    const size_t end = train_share_start(feed, part, feed->test_rows, rank + 1);
    const uint32_t rows = (uint32_t)(end - first);
    const size_t start =
        first * feed->test_row + (size_t)index * feed->options.steps;
    fill_batch(feed, words + (rows > 0 ? start : 0), rows, feed->test_row, out);
}
