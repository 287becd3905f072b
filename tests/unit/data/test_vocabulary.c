// SPDX-License-Identifier: MIT
// Words, their numbers, and unknown words.
#include <stdio.h>
#include <string.h>

#include "data/vocabulary.h"
#include "lac_test.h"

static data_bytes text_of(const char *text)
{
    const size_t len = strlen(text);
    data_bytes bytes = {"text", malloc(len + (len == 0)), len};
    memcpy(bytes.data, text, len);
    return bytes;
}

static void assert_words(
    const char *training, uint64_t least, const char *expected)
{
    data_bytes text = text_of(training);
    data_vocabulary v;
    char found[256] = "";
    assert_ok(data_vocabulary_build(&text, 1, least, &v));
    data_bytes_free(&text);
    for (uint32_t i = 0; i < v.count; i++) {
        const size_t len = strlen(found);
        (void)snprintf(
            found + len, sizeof(found) - len, "%s ",
            data_vocabulary_word(&v, i));
    }
    assert_string_equal(found, expected);
    data_vocabulary_free(&v);
}

static void frequent_words_come_first_then_by_name(void **state)
{
    (void)state;
    assert_words("b a c a\nb a bb", 1, "a <eos> b bb c <unk> ");
    assert_words("", 1, "<eos> <unk> ");
    // The three rare words count as <unk>.
    assert_words("b a c a\nb a bb d", 2, "<unk> a <eos> b ");
}

static void assert_tokens(const char *text, const char *expected)
{
    data_bytes training = text_of("the cat\nthe mat\n");
    data_bytes bytes = text_of(text);
    data_vocabulary v;
    uint32_t tokens[16];
    char found[256] = "";
    assert_ok(data_vocabulary_build(&training, 1, 1, &v));
    const size_t count = data_vocabulary_count(&bytes);
    assert_between(count, 0, 16);
    data_vocabulary_read(&v, &bytes, tokens);
    for (size_t i = 0; i < count; i++) {
        const size_t len = strlen(found);
        (void)snprintf(
            found + len, sizeof(found) - len, "%s ",
            data_vocabulary_word(&v, tokens[i]));
    }
    assert_string_equal(found, expected);
    data_vocabulary_free(&v);
    data_bytes_free(&bytes);
    data_bytes_free(&training);
}

static void every_line_ends_once(void **state)
{
    (void)state;
    assert_tokens("the cat\n", "the cat <eos> ");
    assert_tokens("the cat", "the cat <eos> ");
    assert_tokens("the cat ", "the cat <eos> ");
    assert_tokens("\tthe \r\n\n mat", "the <eos> <eos> mat <eos> ");
    assert_tokens("", "");
    assert_tokens("\n", "<eos> ");
}

static void other_words_are_unknown(void **state)
{
    (void)state;
    assert_tokens("the ca cats t\n", "the <unk> <unk> <unk> <eos> ");
}

// More words than the initial capacity of the table.
static void many_words_are_all_found(void **state)
{
    enum { WORDS = 20000 };
    (void)state;
    char *const chars = malloc(WORDS * 8);
    size_t len = 0;
    for (int i = 0; i < WORDS; i++) {
        len += (size_t)sprintf(chars + len, "w%d ", i);
    }
    const data_bytes text = {"text", (uint8_t *)chars, len};
    data_vocabulary v;
    assert_ok(data_vocabulary_build(&text, 1, 1, &v));
    assert_int_equal(v.count, WORDS + 2);
    for (int i = 0; i < WORDS; i++) {
        char word[16];
        (void)snprintf(word, sizeof(word), "w%d", i);
        const uint32_t token = data_vocabulary_find(&v, word, strlen(word));
        assert_string_equal(data_vocabulary_word(&v, token), word);
    }
    data_vocabulary_free(&v);
    free(chars);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequent_words_come_first_then_by_name),
        cmocka_unit_test(every_line_ends_once),
        cmocka_unit_test(other_words_are_unknown),
        cmocka_unit_test(many_words_are_all_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
