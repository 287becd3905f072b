// SPDX-License-Identifier: MIT
// Words and their token numbers. A word is a sequence of bytes above a space;
// every line, even an empty one, ends with the word <eos>. Number 0 is the most
// frequent word of the training text; equally frequent words are ordered by
// their bytes. <eos> and <unk>, which replaces every word that is not in the
// vocabulary, always have a number.
#ifndef LACONIC_DATA_VOCABULARY_H
#define LACONIC_DATA_VOCABULARY_H

#include "data/file.h"

typedef struct data_vocabulary {
    uint32_t count;
    char *chars;     // all words, a zero byte after each
    size_t *start;   // the offset of word i in chars
    uint32_t *slots; // hash table of numbers; UINT32_MAX: empty
    size_t mask;     // number of slots - 1
    uint32_t unknown, end_of_line;
} data_vocabulary;

// data_vocabulary_build numbers the words that occur at least `count_min` times
// in all of these texts.
// Fails with LAC_ERR_NOMEM; `*out` is then empty.
lac_status data_vocabulary_build(
    const data_bytes *texts, size_t count, uint64_t count_min,
    data_vocabulary *out);

// data_vocabulary_find returns the number of a word, or that of <unk>.
// data_vocabulary_word returns the word of a number.
uint32_t data_vocabulary_find(
    const data_vocabulary *v, const char *word, size_t len);

const char *data_vocabulary_word(const data_vocabulary *v, uint32_t token);

// data_vocabulary_count returns the number of words of a text, <eos> included.
size_t data_vocabulary_count(const data_bytes *text);

// data_vocabulary_read writes the numbers of the words of a text;
// data_vocabulary_count returns how many.
void data_vocabulary_read(
    const data_vocabulary *v, const data_bytes *text, uint32_t *tokens_out);

void data_vocabulary_free(data_vocabulary *v);

#endif
