// SPDX-License-Identifier: MIT
// The message that brings a command to another machine: it arrives as it was
// sent, and nothing else is accepted.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/process/task.h"
#include "lac_test.h"

enum { SIZE = 64 * 1024, HEAD = 21 };

static const char *const environment[] = {"RANK=1", "EMPTY=", NULL};
static const char *const words[] = {"train", "", "a b\n", "\xff\"'", NULL};

static cli_task example(void)
{
    cli_task task = {
        .settings = ",listen=127.0.0.1",
        .folder = "/some where",
        .environment = environment,
        .words = words,
    };
    for (size_t i = 0; i < CLI_TOKEN_SIZE; i++) {
        task.token[i] = (uint8_t)(7 * i); // the first byte is 0
    }
    return task;
}

static size_t send_example(uint8_t bytes_out[SIZE])
{
    int ends[2];
    const cli_task task = example();
    assert_int_equal(pipe(ends), 0);
    assert_ok(cli_task_send(&task, ends[1]));
    (void)close(ends[1]);
    const ssize_t len = read(ends[0], bytes_out, SIZE);
    (void)close(ends[0]);
    assert_true(len > HEAD);
    return (size_t)len;
}

static lac_status receive(const uint8_t *bytes, size_t len, cli_task *out)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes, len), (ssize_t)len);
    (void)close(ends[1]);
    const lac_status status = cli_task_receive(out, ends[0]);
    (void)close(ends[0]);
    return status;
}

static void assert_list(const char *const *found, const char *const *expected)
{
    for (; *expected != NULL; found++, expected++) {
        assert_non_null(*found);
        assert_string_equal(*found, *expected);
    }
    assert_null(*found);
}

static void a_task_arrives_as_it_was_sent(void **state)
{
    (void)state;
    static uint8_t bytes[SIZE];
    const cli_task sent = example();
    cli_task task;
    assert_ok(receive(bytes, send_example(bytes), &task));
    assert_string_equal(task.settings, sent.settings);
    assert_string_equal(task.folder, sent.folder);
    assert_list(task.environment, environment);
    assert_list(task.words, words);
    assert_memory_equal(task.token, sent.token, CLI_TOKEN_SIZE);
    cli_task_release(&task);
}

static void what_follows_a_task_is_left(void **state)
{
    (void)state;
    static uint8_t bytes[SIZE];
    const size_t len = send_example(bytes);
    cli_task task;
    int ends[2];
    char next = 0;
    assert_int_equal(pipe(ends), 0);
    bytes[len] = 'E';
    assert_int_equal(write(ends[1], bytes, len + 1), (ssize_t)len + 1);
    assert_ok(cli_task_receive(&task, ends[0]));
    assert_int_equal(read(ends[0], &next, 1), 1);
    assert_int_equal(next, 'E');
    cli_task_release(&task);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void every_truncation_is_corrupt(void **state)
{
    (void)state;
    static uint8_t bytes[SIZE];
    const size_t len = send_example(bytes);
    cli_task task;
    for (size_t short_len = 0; short_len < len; short_len++) {
        assert_int_equal(receive(bytes, short_len, &task), LAC_ERR_CORRUPT);
    }
}

// The same with a length that matches, so that texts end early.
static void every_shorter_body_is_corrupt_or_sound(void **state)
{
    (void)state;
    static uint8_t bytes[SIZE];
    const size_t len = send_example(bytes);
    for (size_t body = 0; body < len - HEAD; body++) {
        cli_task task;
        bytes[HEAD - 4] = (uint8_t)body;
        bytes[HEAD - 3] = (uint8_t)(body >> 8);
        if (receive(bytes, HEAD + body, &task) == LAC_OK) {
            assert_non_null(task.words[0]);
            cli_task_release(&task);
        }
    }
}

static void every_changed_byte_is_corrupt_or_sound(void **state)
{
    (void)state;
    static uint8_t bytes[SIZE];
    const size_t len = send_example(bytes);
    for (size_t i = 0; i < len; i++) {
        const uint8_t before = bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            cli_task task;
            bytes[i] = (uint8_t)(before ^ 1 << bit);
            const lac_status status = receive(bytes, len, &task);
            assert_true(i >= HEAD - 4 || status == LAC_ERR_CORRUPT);
            if (status == LAC_OK) {
                assert_non_null(task.words[0]);
                cli_task_release(&task);
            }
        }
        bytes[i] = before;
    }
}

static void a_task_without_a_word_is_corrupt(void **state)
{
    (void)state;
    static const char *const none[] = {NULL};
    uint8_t bytes[SIZE];
    int ends[2];
    cli_task task = example();
    task.words = none;
    assert_int_equal(pipe(ends), 0);
    assert_ok(cli_task_send(&task, ends[1]));
    const ssize_t len = read(ends[0], bytes, sizeof(bytes));
    (void)close(ends[0]);
    (void)close(ends[1]);
    assert_int_equal(receive(bytes, (size_t)len, &task), LAC_ERR_CORRUPT);
}

static void a_long_task_is_refused(void **state)
{
    (void)state;
    static char word[SIZE];
    const char *const list[] = {word, NULL};
    cli_task task = example();
    memset(word, 'x', sizeof(word) - 1);
    task.words = list;
    assert_int_equal(cli_task_send(&task, -1), LAC_ERR_INVALID);
    assert_non_null(strstr(lac_error_message(), "expected at most 49152"));
    assert_int_equal(cli_task_check(&task), LAC_ERR_INVALID);
    word[1000] = '\0';
    assert_ok(cli_task_check(&task));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_arrives_as_it_was_sent),
        cmocka_unit_test(what_follows_a_task_is_left),
        cmocka_unit_test(every_truncation_is_corrupt),
        cmocka_unit_test(every_shorter_body_is_corrupt_or_sound),
        cmocka_unit_test(every_changed_byte_is_corrupt_or_sound),
        cmocka_unit_test(a_task_without_a_word_is_corrupt),
        cmocka_unit_test(a_long_task_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
