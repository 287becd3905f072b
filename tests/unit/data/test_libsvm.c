// SPDX-License-Identifier: MIT
// Text in the format of LIBSVM.
#include <string.h>

#include "data/libsvm.h"
#include "lac_test.h"

// The block ends with the text, so that a sanitizer detects a read beyond it.
static lac_status parse(const char *text, data_table *out)
{
    const size_t len = strlen(text);
    data_bytes bytes = {"file", malloc(len + (len == 0)), len};
    memcpy(bytes.data, text, len);
    const lac_status status = data_libsvm_parse(&bytes, out);
    data_bytes_free(&bytes);
    return status;
}

static void rows_are_read(void **state)
{
    (void)state;
    data_table t;
    assert_ok(parse("+1 1:0.5 3:-2e1 # note 4:1\r\n\n-1\n 2.5 2:1", &t));
    assert_int_equal(t.count, 3);
    assert_int_equal(t.values, 3);
    assert_int_equal(t.width, 3);
    assert_true(t.label[0] == 1 && t.label[1] == -1 && t.label[2] == 2.5);
    const size_t starts[] = {0, 2, 2, 3};
    const uint32_t columns[] = {0, 2, 1};
    const float values[] = {0.5F, -20, 1};
    assert_memory_equal(t.start, starts, sizeof(starts));
    assert_memory_equal(t.column, columns, sizeof(columns));
    assert_memory_equal(t.value, values, sizeof(values));
    data_table_free(&t);
}

static void what_is_wrong_is_shown(void **state)
{
    static const char *const cases[][2] = {
        {"", "file: has no examples, expected one per line"},
        {"# only\n", "file: has no examples, expected one per line"},
        {"1 1:1\nx 1:1", "file: line 2 has \"x\", expected a number as label"},
        {"nan 1:1", "file: line 1 has \"nan\", expected a number as label"},
        {"1 0:1", "file: line 1 has \"0:1\", expected index:value with an "
                  "index from 1 to 16777216"},
        {"1 16777217:1", "file: line 1 has \"16777217:1\", expected "
                         "index:value with an index from 1 to 16777216"},
        {"1 1.5:1", "file: line 1 has \"1.5:1\", expected index:value with "
                    "an index from 1 to 16777216"},
        {"1 qid:3", "file: line 1 has \"qid:3\", expected index:value with an "
                    "index from 1 to 16777216"},
        {"1 7", "file: line 1 has \"7\", expected index:value with an index "
                "from 1 to 16777216"},
        {"1 2:1 2:1", "file: line 1 has \"2:1\", expected ascending indices"},
        {"1 2:", "file: line 1 has \"2:\", expected a finite number after the "
                 "colon"},
        {"1 2:1e39", "file: line 1 has \"2:1e39\", expected a finite number "
                     "after the colon"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        data_table t;
        assert_fails(parse(cases[i][0], &t), LAC_ERR_CORRUPT, cases[i][1]);
        assert_null(t.label);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read),
        cmocka_unit_test(what_is_wrong_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
