// SPDX-License-Identifier: MIT
// Metrics, a line of JSON an epoch. A line that a full disk or a sudden end has
// cut short is taken away when the run is resumed.
#include "train/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/dataset.h"
#include "data/file.h"
#include "data/output.h"

static lac_status path_of(const char *folder, char path[DATA_PATH_SIZE])
{
    return data_path_join(path, folder, "metrics.jsonl");
}

cJSON *train_metrics_json(const train_metrics *m)
{
    cJSON *const o = cJSON_CreateObject();
    const struct {
        const char *key;
        double value;
        bool wanted;
    } numbers[] = {
        {"epoch", (double)m->epoch, true},
        {"step", (double)m->step, true},
        {"train_loss", m->train_loss, true},
        {"test_loss", m->test_loss, true},
        {"test_accuracy", m->test_accuracy, true},
        {"averaged_loss", m->averaged_loss, true},
        {"averaged_accuracy", m->averaged_accuracy, true},
        {"test_perplexity", exp(m->test_loss), m->text},
        {"averaged_perplexity", exp(m->averaged_loss), m->text},
        {"payload_bytes", (double)m->usage.traffic.payload_bytes, true},
        {"wire_bytes", (double)m->usage.traffic.wire_bytes, true},
        {"messages", (double)m->usage.traffic.messages, true},
        {"consensus", m->consensus, true},
        {"compute_seconds", m->usage.compute_seconds, true},
        {"compress_seconds", m->usage.compress_seconds, true},
        {"wait_seconds", m->usage.wait_seconds, true},
    };
    // cJSON writes a number that is not finite as null.
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i].wanted) {
            cJSON_AddNumberToObject(o, numbers[i].key, numbers[i].value);
        }
    }
    return o;
}

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

lac_status train_metrics_append(const char *folder, const train_metrics *m)
{
    char path[DATA_PATH_SIZE];
    lac_status status = path_of(folder, path);
    if (status != LAC_OK) {
        return status;
    }
    cJSON *const object = train_metrics_json(m);
    char *const text = cJSON_PrintUnformatted(object);
    const size_t len = text == NULL ? 0 : strlen(text);
    char *const line = malloc(len + 2);
    if (text == NULL || line == NULL) {
        status = lac_fail(LAC_ERR_NOMEM, "%s: no memory for a line", path);
    } else {
        memcpy(line, text, len);
        line[len] = '\n';
        status = write_line(path, line, len + 1);
    }
    free(line);
    cJSON_free(text);
    cJSON_Delete(object);
    return status;
}

// The step of a line, or -1 if it is none of ours.
static double step_of(const char *line, size_t len)
{
    cJSON *const object = cJSON_ParseWithLength(line, len);
    const cJSON *const step = cJSON_GetObjectItemCaseSensitive(object, "step");
    const double found = cJSON_IsNumber(step) ? step->valuedouble : -1;
    cJSON_Delete(object);
    return found;
}

// Where the lines up to `step` end.
static size_t kept(const data_bytes *bytes, uint64_t step)
{
    const char *const text = (const char *)bytes->data;
    size_t at = 0;
    while (at < bytes->len) {
        const char *const end = memchr(text + at, '\n', bytes->len - at);
        const size_t len = end == NULL ? 0 : (size_t)(end - (text + at));
        const double found = end == NULL ? -1 : step_of(text + at, len);
        if (found < 0 || found > (double)step) {
            break;
        }
        at += len + 1;
    }
    return at;
}

lac_status train_metrics_cut(const char *folder, uint64_t step)
{
    char path[DATA_PATH_SIZE];
    data_bytes bytes = {0};
    lac_status status = path_of(folder, path);
    if (status != LAC_OK || !data_is_file(path)) {
        return status;
    }
    status = data_file_read(path, &bytes);
    if (status == LAC_OK) {
        const size_t len = kept(&bytes, step);
        if (len < bytes.len) {
            status = data_file_write(path, bytes.data, len);
        }
        data_bytes_free(&bytes);
    }
    return status;
}
