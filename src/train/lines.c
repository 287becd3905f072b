// SPDX-License-Identifier: MIT
// Lines of JSON. A full disk or a power failure may cut the last line short; a
// resume removes such a line.
#include "train/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/dataset.h"
#include "data/file.h"
#include "data/output.h"

static lac_status write_line(const char *path, const char *line, size_t len)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: cannot be written: %s", path,
            strerror(errno));
    }
    size_t done = 0;
    int problem = 0;
    while (done < len && problem == 0) {
        const ssize_t written = write(fd, line + done, len - done);
        if (written > 0) {
            done += (size_t)written;
        } else if (errno != EINTR) {
            problem = errno;
        }
    }
    if (problem == 0 && fsync(fd) != 0) {
        problem = errno;
    }
    if (close(fd) != 0 && problem == 0) {
        problem = errno;
    }
    return problem == 0 ? LAC_OK
                        : lac_fail(
                              LAC_ERR_INVALID, "%s: cannot be written: %s",
                              path, strerror(problem));
}

static lac_status append_object(const char *path, const cJSON *object)
{
    char *const text = cJSON_PrintUnformatted(object);
    const size_t len = text == NULL ? 0 : strlen(text);
    char *const line = malloc(len + 2);
    lac_status status;
    if (text == NULL || line == NULL) {
        status = lac_fail(LAC_ERR_NOMEM, "%s: no memory for a line", path);
    } else {
        memcpy(line, text, len);
        line[len] = '\n';
        status = write_line(path, line, len + 1);
    }
    free(line);
    cJSON_free(text);
    return status;
}

lac_status train_lines_append(
    const char *folder, const char *name, cJSON *object)
{
    char path[DATA_PATH_SIZE];
    lac_status status = data_path_join(path, folder, name);
    if (status == LAC_OK) {
        status = append_object(path, object);
    }
    cJSON_Delete(object);
    return status;
}

// Returns the step of a line, or -1 if the line is not one object with a step.
static double line_step(const char *line, size_t len)
{
    const char *end = NULL;
    cJSON *const object = cJSON_ParseWithLengthOpts(line, len, &end, 0);
    const cJSON *const step = cJSON_GetObjectItemCaseSensitive(object, "step");
    const bool good = cJSON_IsNumber(step) && end == line + len;
    const double found = good ? step->valuedouble : -1;
    cJSON_Delete(object);
    return found;
}

static lac_status line_is_damaged(const char *path, size_t line)
{
    return lac_fail(
        LAC_ERR_CORRUPT,
        "%s: line %zu is damaged, expected an object with a later step than "
        "the line before; repair or remove the line to resume",
        path, line);
}

// Writes the length of the lines up to `step` to `*len_out`. Steps ascend, so
// that a line whose step is wrong does not hide those after it.
static lac_status find_cut(
    const data_bytes *bytes, uint64_t step, size_t *len_out)
{
    const char *const text = (const char *)bytes->data;
    double before = -1;
    size_t line = 1, cut = 0;
    for (size_t at = 0; at < bytes->len; line++) {
        const char *const end = memchr(text + at, '\n', bytes->len - at);
        if (end == NULL) {
            break; // the last line is torn
        }
        const size_t len = (size_t)(end - (text + at));
        const double found = line_step(text + at, len);
        if (found <= before) {
            return line_is_damaged(bytes->name, line);
        }
        before = found;
        at += len + 1;
        cut = found <= (double)step ? at : cut;
    }
    *len_out = cut;
    return LAC_OK;
}

lac_status train_lines_cut(const char *folder, const char *name, uint64_t step)
{
    char path[DATA_PATH_SIZE];
    data_bytes bytes = {0};
    size_t len = 0;
    LAC_TRY(data_path_join(path, folder, name));
    if (!data_is_file(path)) {
        return LAC_OK;
    }
    LAC_TRY(data_file_read(path, &bytes));
    lac_status status = find_cut(&bytes, step, &len);
    if (status == LAC_OK && len < bytes.len) {
        status = data_file_write(path, bytes.data, len);
    }
    data_bytes_free(&bytes);
    return status;
}
