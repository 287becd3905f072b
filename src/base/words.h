// SPDX-License-Identifier: MIT
// Splits text into lines and words, for formats such as layouts and lists of
// edges: blanks and commas separate words, and # begins a comment. The bytes
// may be anything and need not end with a NUL.
#ifndef LACONIC_BASE_WORDS_H
#define LACONIC_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// A part of a text, not ended by a NUL.
typedef struct laci_words {
    const char *start;
    size_t len;
} laci_words;

static inline bool laci_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == ',';
}

// laci_next_line returns the line at `*cursor`, without its comment, and moves
// past it.
static inline laci_words laci_next_line(const char **cursor, const char *end)
{
    const char *const start = *cursor;
    const char *const newline = memchr(start, '\n', (size_t)(end - start));
    const char *const stop = newline == NULL ? end : newline;
    *cursor = newline == NULL ? end : newline + 1;
    const char *const comment = memchr(start, '#', (size_t)(stop - start));
    return (laci_words){
        start, (size_t)((comment == NULL ? stop : comment) - start)};
}

// laci_next_word removes the first word from a line and returns it. It is empty
// when none is left.
static inline laci_words laci_next_word(laci_words *line)
{
    while (line->len > 0 && laci_is_blank(line->start[0])) {
        line->start++;
        line->len--;
    }
    laci_words word = {line->start, 0};
    while (word.len < line->len && !laci_is_blank(word.start[word.len])) {
        word.len++;
    }
    line->start += word.len;
    line->len -= word.len;
    return word;
}

// laci_read_whole reads a whole number of at most `digits` digits, which must
// not be more than 19.
static inline bool laci_read_whole(
    laci_words word, size_t digits, uint64_t *out)
{
    uint64_t value = 0;
    for (size_t i = 0; i < word.len; i++) {
        if (word.start[i] < '0' || word.start[i] > '9' || i >= digits) {
            return false;
        }
        value = 10 * value + (uint64_t)(word.start[i] - '0');
    }
    *out = value;
    return word.len > 0;
}

#endif
