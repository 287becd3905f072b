// SPDX-License-Identifier: MIT
// Words and their numbers. Words are counted in a hash table that points into
// the texts, then sorted, then copied, so that the texts can be freed.
#include "data/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

static const char unknown_word[] = "<unk>";
static const char end_word[] = "<eos>";

enum { FIRST_SLOTS = 1 << 12, WORDS_MAX = 1 << 28 };

typedef struct word {
    const char *chars;
    size_t len;
    uint64_t count;
} word;

// Distinct words in the order of their first appearance.
typedef struct counter {
    word *words;
    size_t count, room;
    uint32_t *slots;
    size_t mask;
} counter;

static bool is_word_byte(uint8_t c)
{
    return c > ' ';
}

// Reads the next word of a text at `*at`; the end of a line is <eos>. Returns
// false at the end of the text, which also ends a last line with words.
static bool next_word(const data_bytes *text, size_t *at, word *out)
{
    size_t i = *at;
    while (i < text->len && !is_word_byte(text->data[i]) &&
           text->data[i] != '\n') {
        i++;
    }
    if (i >= text->len) {
        // `*at` is beyond the end if the last line has been ended.
        const bool open = *at <= text->len && text->len > 0 &&
                          text->data[text->len - 1] != '\n';
        *out = (word){end_word, sizeof(end_word) - 1, 1};
        *at = text->len + 1;
        return open;
    }
    if (text->data[i] == '\n') {
        *out = (word){end_word, sizeof(end_word) - 1, 1};
        *at = i + 1;
        return true;
    }
    const size_t start = i;
    while (i < text->len && is_word_byte(text->data[i])) {
        i++;
    }
    *out = (word){(const char *)text->data + start, i - start, 1};
    *at = i;
    return true;
}

static bool same_word(const word *a, const char *chars, size_t len)
{
    return a->len == len && memcmp(a->chars, chars, len) == 0;
}

static size_t slot_of(const counter *c, const char *chars, size_t len)
{
    size_t slot = (size_t)XXH3_64bits(chars, len) & c->mask;
    while (c->slots[slot] != UINT32_MAX &&
           !same_word(&c->words[c->slots[slot]], chars, len)) {
        slot = (slot + 1) & c->mask;
    }
    return slot;
}

static uint32_t *empty_slots(size_t count)
{
    uint32_t *const slots = malloc(count * sizeof(*slots));
    if (slots != NULL) {
        memset(slots, 0xff, count * sizeof(*slots));
    }
    return slots;
}

// Doubles the table and inserts the words again.
static bool grow_counter(counter *c)
{
    const size_t room = c->room == 0 ? FIRST_SLOTS / 2 : 2 * c->room;
    word *const words = realloc(c->words, room * sizeof(*words));
    if (words == NULL) {
        return false;
    }
    c->words = words;
    uint32_t *const slots = empty_slots(2 * room);
    if (slots == NULL) {
        return false;
    }
    free(c->slots);
    c->slots = slots;
    c->mask = 2 * room - 1;
    c->room = room;
    for (size_t i = 0; i < c->count; i++) {
        c->slots[slot_of(c, words[i].chars, words[i].len)] = (uint32_t)i;
    }
    return true;
}

// Adds `times`, which may be 0, to the count of a word.
static bool count_word(counter *c, const word *w, uint64_t times)
{
    if (c->count == c->room && (c->room >= WORDS_MAX || !grow_counter(c))) {
        return false;
    }
    const size_t slot = slot_of(c, w->chars, w->len);
    if (c->slots[slot] == UINT32_MAX) {
        c->slots[slot] = (uint32_t)c->count;
        c->words[c->count] = *w;
        c->words[c->count++].count = 0;
    }
    c->words[c->slots[slot]].count += times;
    return true;
}

static bool count_texts(counter *c, const data_bytes *texts, size_t count)
{
    const word special[] = {
        {end_word, sizeof(end_word) - 1, 0},
        {unknown_word, sizeof(unknown_word) - 1, 0}};
    bool good = count_word(c, &special[0], 0) && count_word(c, &special[1], 0);
    for (size_t i = 0; good && i < count; i++) {
        word w;
        for (size_t at = 0; good && next_word(&texts[i], &at, &w);) {
            good = count_word(c, &w, 1);
        }
    }
    return good;
}

// By descending frequency, then by bytes.
static int by_rank(const void *left, const void *right)
{
    const word *const a = left;
    const word *const b = right;
    if (a->count != b->count) {
        return a->count > b->count ? -1 : 1;
    }
    const size_t shorter = a->len < b->len ? a->len : b->len;
    const int order = memcmp(a->chars, b->chars, shorter);
    return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

// Drops words that occur fewer than `count_min` times, except the first two,
// <eos> and <unk>. Dropped words count as <unk>.
static void drop_rare(counter *c, uint64_t count_min)
{
    size_t kept = 2;
    for (size_t i = 2; i < c->count; i++) {
        if (c->words[i].count >= count_min) {
            c->words[kept++] = c->words[i];
        } else {
            c->words[1].count += c->words[i].count;
        }
    }
    c->count = kept;
}

static size_t find_slot(const data_vocabulary *v, const char *chars, size_t len)
{
    size_t slot = (size_t)XXH3_64bits(chars, len) & v->mask;
    while (v->slots[slot] != UINT32_MAX) {
        const char *const found = v->chars + v->start[v->slots[slot]];
        if (strncmp(found, chars, len) == 0 && found[len] == '\0') {
            break;
        }
        slot = (slot + 1) & v->mask;
    }
    return slot;
}

// Copies the sorted words.
static bool copy_words(const counter *c, data_vocabulary *out)
{
    size_t chars = 0;
    for (size_t i = 0; i < c->count; i++) {
        chars += c->words[i].len + 1;
    }
    out->chars = malloc(chars + 1);
    out->start = malloc((c->count + 1) * sizeof(*out->start));
    out->slots = empty_slots(c->mask + 1);
    out->mask = c->mask;
    if (out->chars == NULL || out->start == NULL || out->slots == NULL) {
        return false;
    }
    char *at = out->chars;
    for (size_t i = 0; i < c->count; i++) {
        const word *const w = &c->words[i];
        memcpy(at, w->chars, w->len);
        at[w->len] = '\0';
        out->start[i] = (size_t)(at - out->chars);
        out->slots[find_slot(out, at, w->len)] = (uint32_t)i;
        at += w->len + 1;
    }
    out->count = (uint32_t)c->count;
    out->end_of_line = out->slots[find_slot(out, end_word, strlen(end_word))];
    out->unknown =
        out->slots[find_slot(out, unknown_word, strlen(unknown_word))];
    return true;
}

lac_status data_vocabulary_build(
    const data_bytes *texts, size_t count, uint64_t count_min,
    data_vocabulary *out)
{
    counter c = {0};
    *out = (data_vocabulary){0};
    bool good = count_texts(&c, texts, count);
    if (good) {
        drop_rare(&c, count_min);
        qsort(c.words, c.count, sizeof(*c.words), by_rank);
        good = copy_words(&c, out);
    }
    const size_t words = c.count;
    free(c.words);
    free(c.slots);
    if (!good) {
        data_vocabulary_free(out);
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for a vocabulary of %zu words",
            count == 0 ? "text" : texts[0].name, words);
    }
    return LAC_OK;
}

uint32_t data_vocabulary_find(
    const data_vocabulary *v, const char *word_chars, size_t len)
{
    const uint32_t found = v->slots[find_slot(v, word_chars, len)];
    return found == UINT32_MAX ? v->unknown : found;
}

const char *data_vocabulary_word(const data_vocabulary *v, uint32_t token)
{
    return v->chars + v->start[token];
}

size_t data_vocabulary_count(const data_bytes *text)
{
    size_t count = 0;
    word w;
    for (size_t at = 0; next_word(text, &at, &w);) {
        count++;
    }
    return count;
}

void data_vocabulary_read(
    const data_vocabulary *v, const data_bytes *text, uint32_t *tokens_out)
{
    word w;
    for (size_t at = 0; next_word(text, &at, &w);) {
        *tokens_out++ = data_vocabulary_find(v, w.chars, w.len);
    }
}

void data_vocabulary_free(data_vocabulary *v)
{
    free(v->chars);
    free(v->start);
    free(v->slots);
    *v = (data_vocabulary){0};
}
