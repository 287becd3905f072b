// SPDX-License-Identifier: MIT
// Compression times: estimates follow the table, and measurements are stored
// and read again unless their file is not one of ours.
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/plan/compression.h"
#include "lac_test.h"

enum { PATH_SIZE = 512, TEXT_SIZE = 2048, WORKERS = 200 };

static lac_layout *make_layout(size_t rows)
{
    lac_layout *layout = NULL;
    const lac_tensor tensor = {.name = "w", .shape = {rows, 64}};
    assert_ok(lac_layout_open(&layout, &tensor, 1));
    return layout;
}

static double seconds_of(
    plan_speed *s, const char *algorithm, const char *compressor, size_t rows,
    double degree)
{
    lac_layout *const layout = make_layout(rows);
    double seconds = -1;
    assert_ok(plan_compression_seconds(
        s, algorithm, compressor, layout, WORKERS, degree, &seconds));
    lac_layout_close(layout);
    return seconds;
}

static plan_speed *open_speed(bool measure)
{
    plan_speed *s = NULL;
    assert_ok(plan_speed_open(&s, measure));
    return s;
}

static void assert_near(double found, double expected)
{
    assert_true(fabs(found - expected) <= 1e-9 * fabs(expected));
}

static void times_grow_with_the_model_and_with_gathered_messages(void **state)
{
    (void)state;
    plan_speed *const s = open_speed(false);
    const double one = seconds_of(s, "error-feedback", "sign", 64, 1);
    const double three = seconds_of(s, "error-feedback", "sign", 64, 3);
    const double nine = seconds_of(s, "error-feedback", "sign", 64, 9);
    assert_true(one > 0 && three > one);
    assert_near(nine - three, 3 * (three - one));
    assert_near(seconds_of(s, "error-feedback", "sign", 128, 3), 2 * three);
    plan_speed_close(s);
}

static void times_of_sums_do_not_depend_on_the_workers(void **state)
{
    (void)state;
    plan_speed *const s = open_speed(false);
    const double few = seconds_of(s, "powersgd:rank=2", NULL, 64, 3);
    assert_true(few > 0);
    assert_near(seconds_of(s, "powersgd:rank=2", NULL, 64, 1023), few);
    plan_speed_close(s);
}

static void every_algorithm_but_allreduce_has_a_time(void **state)
{
    (void)state;
    plan_speed *const s = open_speed(false);
    size_t count = 0;
    lac_layout *const layout = make_layout(64);
    const lac_plugin *const *const plugins = lac_algorithms(&count);
    for (size_t i = 0; i < count; i++) {
        double seconds = 0;
        if (plan_compression_seconds(
                s, plugins[i]->name, NULL, layout, 8, 2, &seconds) != LAC_OK) {
            assert_ok(plan_compression_seconds(
                s, plugins[i]->name, "natural", layout, 8, 2, &seconds));
        }
        assert_true(
            strcmp(plugins[i]->name, "allreduce") == 0 ? seconds == 0
                                                       : seconds > 0);
    }
    lac_layout_close(layout);
    plan_speed_close(s);
}

static void a_single_worker_does_not_compress(void **state)
{
    (void)state;
    plan_speed *const s = open_speed(true);
    lac_layout *const layout = make_layout(64);
    double seconds = -1;
    assert_ok(
        plan_compression_seconds(s, "choco", "sign", layout, 1, 0, &seconds));
    assert_true(seconds == 0);
    lac_layout_close(layout);
    plan_speed_close(s);
}

static void a_choice_that_the_table_lacks_is_stated(void **state)
{
    (void)state;
    plan_speed *const s = open_speed(false);
    const double known = seconds_of(s, "choco", "top-k:0.01", 64, 2);
    assert_null(strstr(plan_speed_source(s), " as "));
    assert_non_null(strstr(plan_speed_source(s), "memcpy of "));
    // The nearest has the same compressor, not the same size.
    assert_near(seconds_of(s, "choco", "top-k:0.5", 64, 2), known);
    assert_non_null(
        strstr(plan_speed_source(s), "; choco top-k:0.5 as choco top-k:0.01"));
    (void)seconds_of(s, "choco", "half", 64, 2);
    assert_non_null(strstr(plan_speed_source(s), ", and others"));
    plan_speed_close(s);
}

static void a_wrong_choice_is_refused(void **state)
{
    (void)state;
    plan_speed *const s = open_speed(false);
    lac_layout *const layout = make_layout(64);
    double seconds = -1;
    assert_int_equal(
        plan_compression_seconds(s, "choco", NULL, layout, 8, 2, &seconds),
        LAC_ERR_INVALID);
    assert_int_equal(
        plan_compression_seconds(s, "chaco", NULL, layout, 8, 2, &seconds),
        LAC_ERR_NOTFOUND);
    assert_true(seconds == -1);
    lac_layout_close(layout);
    plan_speed_close(s);
}

// A cache folder of this test, named by the environment.
static int make_cache(void **state)
{
    static char folder[] = "/tmp/laconic-test-XXXXXX";
    (void)snprintf(folder, sizeof(folder), "/tmp/laconic-test-XXXXXX");
    *state = mkdtemp(folder);
    return *state == NULL ? -1 : setenv("XDG_CACHE_HOME", folder, 1);
}

static int remove_cache(void **state)
{
    char command[PATH_SIZE];
    (void)snprintf(
        command, sizeof(command), "rm -r '%s'", (const char *)*state);
    return system(command);
}

// Writes the path of the stored time whose key has this line.
static void find_line(const char *cache, const char *line, char path[PATH_SIZE])
{
    char folder[PATH_SIZE / 2], text[TEXT_SIZE];
    (void)snprintf(folder, sizeof(folder), "%s/laconic", cache);
    DIR *const list = opendir(folder);
    assert_non_null(list);
    bool found = false;
    for (const struct dirent *e; !found && (e = readdir(list)) != NULL;) {
        (void)snprintf(path, PATH_SIZE, "%s/%.200s", folder, e->d_name);
        FILE *const file = e->d_name[0] == '.' ? NULL : fopen(path, "rb");
        if (file != NULL) {
            text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
            (void)fclose(file);
            found = strstr(text, line) != NULL;
        }
    }
    (void)closedir(list);
    assert_true(found);
}

// Likewise that of this degree.
static void find_file(const char *cache, unsigned degree, char path[PATH_SIZE])
{
    char line[32];
    (void)snprintf(line, sizeof(line), "\ndegree %u\n", degree);
    find_line(cache, line, path);
}

// Replaces a stored time; `seconds` is the last line of the file.
static void replace_time(const char *path, const char *seconds)
{
    char text[TEXT_SIZE];
    FILE *file = fopen(path, "rb");
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    (void)fclose(file);
    *strstr(text, "seconds ") = '\0';
    file = fopen(path, "wb");
    (void)fprintf(file, "%s%s", text, seconds);
    (void)fclose(file);
}

static void store(const char *cache, unsigned degree, const char *seconds)
{
    char path[PATH_SIZE];
    find_file(cache, degree, path);
    replace_time(path, seconds);
}

static double measured(double degree)
{
    plan_speed *const s = open_speed(true);
    const double seconds = seconds_of(s, "signum", NULL, 8, degree);
    plan_speed_close(s);
    return seconds;
}

// Opens until the memcpys agree, which are then stored. A machine that stays
// busy never stores one, and says so.
static plan_speed *open_idle(bool measure)
{
    enum { ATTEMPTS = 50 };
    for (int i = 0; i < ATTEMPTS; i++) {
        plan_speed *const s = open_speed(measure);
        if (strstr(plan_speed_source(s), "the machine is busy: ") == NULL) {
            return s;
        }
        plan_speed_close(s);
    }
    skip();
    return NULL;
}

static void a_memcpy_is_stored_until_it_is_measured_again(void **state)
{
    char path[PATH_SIZE];
    plan_speed_close(open_idle(false));
    find_line(*state, "\nmemcpy of ", path);
    replace_time(path, "seconds 64\n");
    plan_speed *s = open_speed(false);
    const double slow = seconds_of(s, "choco", "sign", 64, 2);
    assert_non_null(
        strstr(plan_speed_source(s), "memcpy of 0.0 GB/s here, measured"));
    plan_speed_close(s);
    plan_speed_close(open_idle(true));
    s = open_speed(false);
    assert_non_null(strstr(plan_speed_source(s), ", measured earlier"));
    assert_true(seconds_of(s, "choco", "sign", 64, 2) < slow / 100);
    plan_speed_close(s);
}

static void a_measurement_is_stored(void **state)
{
    const char *const cache = *state;
    assert_true(measured(2) > 0);
    store(cache, 2, "seconds 123\n");
    assert_near(measured(2), 123);
    plan_speed *const s = open_speed(true);
    (void)seconds_of(s, "signum", NULL, 8, 2);
    (void)seconds_of(s, "signum", NULL, 8, 1);
    static const char source[] =
        "measured on this machine, 1 of 2 times in an earlier run";
    assert_memory_equal(plan_speed_source(s), source, sizeof(source) - 1);
    // Another layout, or another compressor, is another measurement.
    assert_true(seconds_of(s, "signum", NULL, 9, 2) < 100);
    assert_true(seconds_of(s, "signum:momentum=0.5", NULL, 8, 2) < 100);
    plan_speed_close(s);
}

static void a_damaged_file_is_measured_again(void **state)
{
    static const char *const damaged[] = {
        "",
        "seconds 123",
        "seconds -1\n",
        "seconds nan\n",
        "seconds x\n",
        "seconds 1\n2\n",
        "seconds inf\n",
    };
    const char *const cache = *state;
    assert_true(measured(2) > 0);
    for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
        store(cache, 2, damaged[i]);
        const double again = measured(2);
        assert_true(again > 0 && again < 100);
        assert_near(measured(2), again); // it was stored
    }
}

static void a_foreign_file_is_replaced_and_a_pipe_left_alone(void **state)
{
    const char *const cache = *state;
    char path[PATH_SIZE];
    const double first = measured(2);
    find_file(cache, 2, path);
    FILE *const file = fopen(path, "wb");
    (void)fputs("something else\nseconds 123\n", file);
    (void)fclose(file);
    assert_true(first > 0 && measured(2) < 100);
    store(cache, 2, "seconds 123\n");
    assert_near(measured(2), 123);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_true(measured(2) < 100);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
}

static void many_workers_are_extrapolated(void **state)
{
    const char *const cache = *state;
    assert_true(measured(50) > 0);
    store(cache, 3, "seconds 1\n");
    store(cache, 7, "seconds 3\n");
    assert_near(measured(7), 3);
    assert_near(measured(101), 1 + 0.5 * 98);
    // Between two degrees a time is interpolated.
    assert_true(measured(4) > 0);
    store(cache, 4, "seconds 2\n");
    assert_near(measured(3.25), 1.25);
}

static void a_folder_that_cannot_be_written_is_no_error(void **state)
{
    const char *const cache = *state;
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof(path), "%s/laconic", cache);
    FILE *const file = fopen(path, "wb"); // in place of the folder
    (void)fclose(file);
    assert_true(measured(2) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_grow_with_the_model_and_with_gathered_messages),
        cmocka_unit_test(times_of_sums_do_not_depend_on_the_workers),
        cmocka_unit_test(every_algorithm_but_allreduce_has_a_time),
        cmocka_unit_test(a_single_worker_does_not_compress),
        cmocka_unit_test(a_choice_that_the_table_lacks_is_stated),
        cmocka_unit_test(a_wrong_choice_is_refused),
        cmocka_unit_test_setup_teardown(
            a_memcpy_is_stored_until_it_is_measured_again, make_cache,
            remove_cache),
        cmocka_unit_test_setup_teardown(
            a_measurement_is_stored, make_cache, remove_cache),
        cmocka_unit_test_setup_teardown(
            a_damaged_file_is_measured_again, make_cache, remove_cache),
        cmocka_unit_test_setup_teardown(
            a_foreign_file_is_replaced_and_a_pipe_left_alone, make_cache,
            remove_cache),
        cmocka_unit_test_setup_teardown(
            many_workers_are_extrapolated, make_cache, remove_cache),
        cmocka_unit_test_setup_teardown(
            a_folder_that_cannot_be_written_is_no_error, make_cache,
            remove_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
