// SPDX-License-Identifier: MIT
// Lines of metrics, and the lines that a resume removes.
#include "train/metrics.h"

#include <math.h>

#include "folder.h"

static train_metrics epoch(uint64_t number)
{
    return (train_metrics){
        .epoch = (double)number,
        .step = 10 * number,
        .rate = 0.125,
        .train_loss = 0.5,
        .test.loss = 1,
        .test.averaged_loss = (double)NAN,
        .usage.traffic = {.payload_bytes = UINT64_C(123456789012345)},
    };
}

static double number_in(const cJSON *o, const char *key)
{
    const cJSON *const item = cJSON_GetObjectItemCaseSensitive(o, key);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static cJSON *last_line(size_t *count_out)
{
    data_bytes file;
    assert_ok(data_file_read("metrics.jsonl", &file));
    size_t at = 0, start = 0;
    *count_out = 0;
    for (at = 0; at < file.len; at++) {
        if (file.data[at] == '\n') {
            ++*count_out;
            start = at + 1 < file.len ? at + 1 : start;
        }
    }
    cJSON *const o = cJSON_ParseWithLength(
        (const char *)file.data + start, file.len - start);
    data_bytes_free(&file);
    return o;
}

static void numbers_come_back_and_those_that_are_not_finite_are_null(
    void **state)
{
    (void)state;
    size_t lines = 0;
    const train_metrics m = epoch(3);
    assert_ok(train_metrics_append(".", &m));
    cJSON *const o = last_line(&lines);
    assert_int_equal(lines, 1);
    assert_true(number_in(o, "epoch") == 3);
    assert_true(number_in(o, "step") == 30);
    assert_true(number_in(o, "lr") == 0.125);
    assert_true(number_in(o, "payload_bytes") == 123456789012345.0);
    assert_true(
        cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(o, "averaged_loss")));
    assert_null(cJSON_GetObjectItemCaseSensitive(o, "test_perplexity"));
    assert_null(cJSON_GetObjectItemCaseSensitive(o, "final_loss"));
    cJSON_Delete(o);
    (void)empty_folder();
}

static void a_text_has_perplexities(void **state)
{
    (void)state;
    size_t lines = 0;
    train_metrics m = epoch(1);
    m.text = true;
    assert_ok(train_metrics_append(".", &m));
    cJSON *const o = last_line(&lines);
    assert_true(fabs(number_in(o, "test_perplexity") - exp(1.0)) < 1e-12);
    cJSON_Delete(o);
    (void)empty_folder();
}

static void the_test_on_the_whole_set_has_keys_of_its_own(void **state)
{
    (void)state;
    size_t lines = 0;
    train_metrics m = epoch(1);
    assert_ptr_equal(train_metrics_quality(&m), &m.test);
    m.final = (train_quality){
        .loss = 2, .accuracy = 0.5, .examples = 100, .averaged_accuracy = 0.75};
    assert_ptr_equal(train_metrics_quality(&m), &m.final);
    assert_ok(train_metrics_append(".", &m));
    cJSON *const o = last_line(&lines);
    assert_true(number_in(o, "test_loss") == 1);
    assert_true(number_in(o, "final_loss") == 2);
    assert_true(number_in(o, "final_accuracy") == 0.5);
    assert_true(number_in(o, "final_averaged_accuracy") == 0.75);
    assert_true(number_in(o, "final_examples") == 100);
    assert_null(cJSON_GetObjectItemCaseSensitive(o, "final_perplexity"));
    cJSON_Delete(o);
    (void)empty_folder();
}

static void a_cut_keeps_what_lies_before_the_step(void **state)
{
    (void)state;
    size_t lines = 0;
    for (uint64_t i = 1; i <= 4; i++) {
        const train_metrics m = epoch(i);
        assert_ok(train_metrics_append(".", &m));
    }
    assert_ok(train_metrics_cut(".", 25));
    cJSON *const o = last_line(&lines);
    assert_int_equal(lines, 2);
    assert_true(number_in(o, "step") == 20);
    cJSON_Delete(o);
    (void)empty_folder();
}

static void half_a_line_is_taken_away(void **state)
{
    (void)state;
    assert_ok(write_text("metrics.jsonl", "{\"step\":10}\n{\"step\":2"));
    assert_ok(train_metrics_cut(".", 1000));
    assert_holds("metrics.jsonl", "{\"step\":10}\n");
    (void)empty_folder();
}

// Nothing is cut, whether the line lies before or after the step to resume at.
static void a_damaged_line_is_named_and_nothing_is_cut(void **state)
{
    (void)state;
    static const char *const damaged[] = {
        "{\"step\":2",    "{\"stop\":20}", "{\"step\":\"20\"}", "",
        "{\"step\":20}}", "[20]",          "{\"step\":-20}",    "\001",
        "{\"step\":10}", // not later than the line before
    };
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        char text[128];
        (void)snprintf(
            text, sizeof(text), "{\"step\":10}\n%s\n{\"step\":30}\n{\"st",
            damaged[i]);
        for (uint64_t step = 10; step <= 40; step += 15) {
            put_text("metrics.jsonl", text);
            assert_fails(
                train_metrics_cut(".", step), LAC_ERR_CORRUPT,
                "./metrics.jsonl: line 2 is damaged, expected an object with "
                "a later step than the line before; repair or remove the line "
                "to resume");
            assert_holds("metrics.jsonl", text);
        }
    }
    put_text("metrics.jsonl", "{\"step\":1}\n{\"step\":90}\n{\"step\":3}\n");
    assert_status(train_metrics_cut(".", 3), LAC_ERR_CORRUPT);
    assert_non_null(strstr(lac_error_message(), "line 3 is damaged"));
    (void)empty_folder();
}

static void a_file_that_is_not_there_needs_no_cut(void **state)
{
    (void)state;
    assert_ok(train_metrics_cut(".", 5));
    assert_int_equal(empty_folder(), 0);
}

static void a_place_that_cannot_be_written_is_named(void **state)
{
    (void)state;
    const train_metrics m = epoch(1);
    assert_fails(
        train_metrics_append("nowhere", &m), LAC_ERR_INVALID,
        "nowhere/metrics.jsonl: cannot be written: No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            numbers_come_back_and_those_that_are_not_finite_are_null),
        cmocka_unit_test(a_text_has_perplexities),
        cmocka_unit_test(the_test_on_the_whole_set_has_keys_of_its_own),
        cmocka_unit_test(a_cut_keeps_what_lies_before_the_step),
        cmocka_unit_test(half_a_line_is_taken_away),
        cmocka_unit_test(a_damaged_line_is_named_and_nothing_is_cut),
        cmocka_unit_test(a_file_that_is_not_there_needs_no_cut),
        cmocka_unit_test(a_place_that_cannot_be_written_is_named),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
