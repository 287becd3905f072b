// SPDX-License-Identifier: MIT
// Words and their numbers. A word is a run of bytes above a blank; every line
// ends with the word <eos>, also an empty one. Number 0 is the most frequent
// word of the training text; equally frequent ones go by their bytes. <eos> and
// <unk>, which stands for every word that is not in the vocabulary, always
// have a number.
#ifndef LACONIC_DATA_VOCABULARY_H
#define LACONIC_DATA_VOCABULARY_H

#include "data/file.h"

typedef struct data_vocabulary {
    uint32_t count;
    char *letters;   // all words, a zero byte after each
    size_t *start;   // where word i begins in them
    uint32_t *slots; // hash table of numbers, UINT32_MAX where it is empty
    size_t mask;     // slots - 1
    uint32_t unknown, end_of_line;
} data_vocabulary;

// data_vocabulary_build numbers the words that occur at least `least` times in
// these texts together.
// Fails with LAC_ERR_NOMEM; `*out` is then empty.
lac_status data_vocabulary_build(
    const data_bytes *texts, size_t count, uint64_t least,
    data_vocabulary *out);

// data_vocabulary_find returns the number of a word, or that of <unk>.
uint32_t data_vocabulary_find(
    const data_vocabulary *v, const char *word, size_t len);

const char *data_vocabulary_word(const data_vocabulary *v, uint32_t token);

// data_vocabulary_count returns how many words a text has, with every <eos>.
size_t data_vocabulary_count(const data_bytes *text);

// data_vocabulary_read writes the numbers of a text's words, as many as
// data_vocabulary_count says.
void data_vocabulary_read(
    const data_vocabulary *v, const data_bytes *text, uint32_t *tokens_out);

void data_vocabulary_free(data_vocabulary *v);

#endif
