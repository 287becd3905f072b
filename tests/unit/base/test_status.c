// SPDX-License-Identifier: MIT
// The descriptions of statuses, and the message of each thread.
#include "lac_test.h"

#include <pthread.h>
#include <string.h>

static void every_status_has_a_text(void **state)
{
    (void)state;
    for (int status = 0; status >= LAC_ERR_PEER; status--) {
        assert_string_not_equal(
            lac_status_text((lac_status)status), "unknown status");
    }
    assert_string_equal(lac_status_text((lac_status)77), "unknown status");
}

static void *fail_elsewhere(void *seen)
{
    *(bool *)seen = lac_error_message()[0] == '\0';
    assert_status(lac_fail(LAC_ERR_SPACE, "there"), LAC_ERR_SPACE);
    return NULL;
}

static void a_message_stays_with_its_thread(void **state)
{
    (void)state;
    pthread_t thread;
    bool empty_at_first = false;
    assert_status(lac_fail(LAC_ERR_INVALID, "here %d", 1), LAC_ERR_INVALID);
    assert_int_equal(
        pthread_create(&thread, NULL, fail_elsewhere, &empty_at_first), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(empty_at_first);
    assert_string_equal(lac_error_message(), "here 1");
}

static void a_message_may_hold_the_one_before(void **state)
{
    (void)state;
    assert_status(lac_fail(LAC_ERR_INVALID, "inner"), LAC_ERR_INVALID);
    assert_status(
        lac_fail(LAC_ERR_INVALID, "outer: %s", lac_error_message()),
        LAC_ERR_INVALID);
    assert_string_equal(lac_error_message(), "outer: inner");
}

static void a_long_message_is_cut(void **state)
{
    (void)state;
    char word[2000];
    memset(word, 'a', sizeof(word));
    word[sizeof(word) - 1] = '\0';
    assert_status(lac_fail(LAC_ERR_INVALID, "%s", word), LAC_ERR_INVALID);
    assert_int_equal(strlen(lac_error_message()), 511);
}

// Bindings pass messages of their own programs, which are not formats.
static void a_text_is_no_format(void **state)
{
    (void)state;
    assert_status(lac_fail_text(LAC_ERR_PEER, "100%s %n lost"), LAC_ERR_PEER);
    assert_string_equal(lac_error_message(), "100%s %n lost");
    assert_status(
        lac_fail_text(LAC_ERR_SPACE, lac_error_message() + 4), LAC_ERR_SPACE);
    assert_string_equal(lac_error_message(), "s %n lost");
    assert_status(lac_fail_text(LAC_ERR_NOMEM, NULL), LAC_ERR_NOMEM);
    assert_string_equal(lac_error_message(), "out of memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_text),
        cmocka_unit_test(a_message_stays_with_its_thread),
        cmocka_unit_test(a_message_may_hold_the_one_before),
        cmocka_unit_test(a_long_message_is_cut),
        cmocka_unit_test(a_text_is_no_format),
    };
    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
