// SPDX-License-Identifier: MIT
// Tensors survive a round trip through a file; a damaged file changes nothing.
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <xxhash.h>

#include "folder.h"
#include "lac_test.h"
#include "tensors.h"
#include "train/safetensors_file.h"

static data_bytes file_of(const train_record *record)
{
    data_bytes file;
    assert_ok(train_safetensors_write("file", record));
    assert_ok(data_file_read("file", &file));
    return file;
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    sample in, out;
    sample_fill(&in, 7);
    sample_clear(&out);
    assert_ok(train_safetensors_write("file", &in.record));
    assert_ok(read_record("file", &out.record));
    assert_same_sample(&in, &out);
    assert_int_equal(empty_folder(), 1);
}

// More than a piece of the writer, and not a multiple of one.
static void a_large_tensor_comes_back(void **state)
{
    (void)state;
    enum { LARGE = 3 * 4096 + 5 };
    static float x[LARGE], y[LARGE];
    for (size_t i = 0; i < LARGE; i++) {
        x[i] = (float)(i * i % 10007);
    }
    train_tensor t = {NULL, "x", TRAIN_F32, {LARGE}, 1, x};
    const train_record record = {.tensors = &t, .tensor_count = 1};
    assert_ok(train_safetensors_write("file", &record));
    t.data = y;
    assert_ok(read_record("file", &record));
    assert_memory_equal(x, y, sizeof(x));
    assert_int_equal(empty_folder(), 1);
}

static void the_bytes_are_these(void **state)
{
    (void)state;
    float x[2] = {1.0f, -2.0f};
    uint64_t step = 12;
    const train_tensor t = {"a.", "b", TRAIN_F32, {1, 2}, 2, x};
    const train_number number = {"step", &step, false};
    const train_record record = {
        .tensors = &t,
        .tensor_count = 1,
        .numbers = &number,
        .number_count = 1};
    const char header[] =
        "{\"__metadata__\":{\"checksum\":\"0000000000000000\","
        "\"format\":\"pt\",\"laconic\":\"1\",\"step\":\"12\"},"
        "\"a.b\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}}";
    uint8_t expected[8 + 184 + 8] = {184};
    memset(expected + 8, ' ', 184);
    memcpy(expected + 8, header, sizeof(header) - 1);
    memcpy(expected + 192, "\0\0\x80\x3f\0\0\0\xc0", 8);
    char digits[17];
    (void)snprintf(
        digits, sizeof(digits), "%016" PRIx64,
        XXH3_64bits(expected, sizeof(expected)));
    memcpy(expected + 8 + 29, digits, 16);
    data_bytes file = file_of(&record);
    assert_int_equal(file.len, sizeof(expected));
    assert_memory_equal(file.data, expected, sizeof(expected));
    data_bytes_free(&file);
    assert_int_equal(empty_folder(), 1);
}

static void floats_stand_before_bytes(void **state)
{
    (void)state;
    sample in;
    sample_fill(&in, 7);
    data_bytes file = file_of(&in.record);
    const char *const header = (const char *)file.data + 8;
    const char *const scalar = strstr(
        header, "\"scalar\":{\"dtype\":\"F32\",\"shape\":[],"
                "\"data_offsets\":[24,28]}");
    const char *const bytes = strstr(
        header, "\"state\":{\"dtype\":\"U8\",\"shape\":[5],"
                "\"data_offsets\":[28,33]}");
    assert_true(scalar != NULL && bytes > scalar);
    data_bytes_free(&file);
    assert_int_equal(empty_folder(), 1);
}

static void assert_refused(sample *out)
{
    const lac_status status = read_record("file", &out->record);
    assert_true(status == LAC_ERR_CORRUPT || status == LAC_ERR_INVALID);
    assert_memory_equal(lac_error_message(), "file: ", 6);
    assert_untouched(out);
}

static void every_altered_byte_is_refused(void **state)
{
    (void)state;
    sample in, out;
    sample_fill(&in, 7);
    sample_clear(&out);
    data_bytes file = file_of(&in.record);
    assert_true(file.len % 64 != 0); // the values are not padded
    for (size_t i = 0; i < file.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            file.data[i] ^= (uint8_t)(1 << bit);
            put_file("file", file.data, file.len);
            assert_refused(&out);
            file.data[i] ^= (uint8_t)(1 << bit);
        }
    }
    data_bytes_free(&file);
    assert_int_equal(empty_folder(), 1);
}

static void every_truncation_and_addition_is_refused(void **state)
{
    (void)state;
    sample in, out;
    sample_fill(&in, 7);
    sample_clear(&out);
    data_bytes file = file_of(&in.record);
    for (size_t len = 0; len < file.len; len++) {
        put_file("file", file.data, len);
        assert_refused(&out);
    }
    uint8_t longer[4096] = {0};
    memcpy(longer, file.data, file.len);
    put_file("file", longer, file.len + 1);
    assert_refused(&out);
    data_bytes_free(&file);
    assert_int_equal(empty_folder(), 1);
}

static void the_order_of_tensors_does_not_matter(void **state)
{
    (void)state;
    sample in, out;
    sample_fill(&in, 3);
    sample_clear(&out);
    const train_tensor first = in.tensors[0];
    in.tensors[0] = in.tensors[2];
    in.tensors[2] = first;
    assert_ok(train_safetensors_write("file", &in.record));
    assert_ok(read_record("file", &out.record));
    assert_same_sample(&in, &out);
    assert_int_equal(empty_folder(), 1);
}

static void a_prefix_belongs_to_the_name(void **state)
{
    (void)state;
    sample in, out;
    sample_fill(&in, 3);
    sample_clear(&out);
    assert_ok(train_safetensors_write("file", &in.record));
    out.tensors[0].prefix = "means.";
    assert_fails(
        read_record("file", &out.record), LAC_ERR_INVALID,
        "file: has an unexpected tensor 'model.weight'");
    assert_untouched(&out);
    assert_int_equal(empty_folder(), 1);
}

static void what_cannot_be_addressed_is_refused(void **state)
{
    (void)state;
    train_tensor t = {NULL, "x", TRAIN_F32, {(size_t)1 << 40, (size_t)1 << 40},
                      2,    NULL};
    const train_record record = {.tensors = &t, .tensor_count = 1};
    assert_fails(
        train_safetensors_write("file", &record), LAC_ERR_INVALID,
        "file: tensor 'x' is too large");
    t.dimensions[0] = 0;
    assert_ok(train_safetensors_write("file", &record));
    assert_ok(read_record("file", &record));
    assert_int_equal(empty_folder(), 1);
}

static void a_device_that_is_full_is_named(void **state)
{
    (void)state;
    sample in;
    sample_fill(&in, 1);
    assert_fails(
        train_safetensors_write("/dev/full", &in.record), LAC_ERR_INVALID,
        "/dev/full: cannot write: No space left on device");
}

// Every limit on the file size below the true size makes a write fail, each at
// another position.
static void a_disk_that_is_full_leaves_the_old_file(void **state)
{
    (void)state;
    sample old, new, out;
    sample_fill(&old, 1);
    sample_fill(&new, 2);
    data_bytes file = file_of(&old.record);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGXFSZ, SIG_IGN);
        for (rlim_t len = file.len - 1; len > 0; len--) {
            const struct rlimit limit = {len, RLIM_INFINITY};
            (void)setrlimit(RLIMIT_FSIZE, &limit);
            if (train_safetensors_write("file", &new.record) !=
                    LAC_ERR_INVALID ||
                strcmp(
                    lac_error_message(),
                    "file: cannot write: File too large") != 0) {
                _exit(1);
            }
        }
        _exit(0);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    sample_clear(&out);
    assert_ok(read_record("file", &out.record));
    assert_same_sample(&old, &out);
    data_bytes_free(&file);
    assert_int_equal(empty_folder(), 1);
}

static void no_memory_is_reported_and_nothing_is_written(void **state)
{
    (void)state;
    sample in, out;
    sample_fill(&in, 1);
    sample_clear(&out);
    assert_ok(train_safetensors_write("file", &in.record));
    test_allocations_left = 0;
    const lac_status status = read_record("file", &out.record);
    test_allocations_left = -1;
    assert_int_equal(status, LAC_ERR_NOMEM);
    assert_untouched(&out);
    assert_int_equal(empty_folder(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_large_tensor_comes_back),
        cmocka_unit_test(the_bytes_are_these),
        cmocka_unit_test(floats_stand_before_bytes),
        cmocka_unit_test(every_altered_byte_is_refused),
        cmocka_unit_test(every_truncation_and_addition_is_refused),
        cmocka_unit_test(the_order_of_tensors_does_not_matter),
        cmocka_unit_test(a_prefix_belongs_to_the_name),
        cmocka_unit_test(what_cannot_be_addressed_is_refused),
        cmocka_unit_test(a_device_that_is_full_is_named),
        cmocka_unit_test(a_disk_that_is_full_leaves_the_old_file),
        cmocka_unit_test(no_memory_is_reported_and_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
