// SPDX-License-Identifier: MIT
// Sets of files, and the one rename that makes a set the latest.
//
// Beside what it was given, the file of a worker has the numbers world, rank
// and step, so that none is taken for another. What is removed has a name that
// is ours: a folder step-N, in it worker-R.safetensors and what a killed run
// left of one. Anything else stays, and so does the folder that it is in.
#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/dataset.h"
#include "data/file.h"
#include "data/output.h"
#include "train/safetensors_file.h"

enum {
    SET_NAME_SIZE = 32, // step- and 20 digits
    NUMBERS_OWN = 3,    // world, rank, step
};

static const char latest_name[] = "latest";
static const char set_begin[] = "step-";
static const char file_begin[] = "worker-";
static const char file_end[] = ".safetensors";

static bool take_text(const char **text, const char *expected)
{
    const size_t len = strlen(expected);
    const bool good = strncmp(*text, expected, len) == 0;
    *text += good ? len : 0;
    return good;
}

static bool is_set(const char *name, uint64_t *step_out)
{
    return take_text(&name, set_begin) && train_take_number(&name, step_out) &&
           *name == '\0';
}

static bool is_ours(const char *name)
{
    uint64_t rank;
    const char *rest = name;
    return data_output_is_temporary(name) ||
           (take_text(&rest, file_begin) && train_take_number(&rest, &rank) &&
            take_text(&rest, file_end) && *rest == '\0');
}

static void name_set(uint64_t step, char name[SET_NAME_SIZE])
{
    (void)snprintf(name, SET_NAME_SIZE, "%s%" PRIu64, set_begin, step);
}

static lac_status set_path(const char *folder, uint64_t step, char *path)
{
    char name[SET_NAME_SIZE];
    if (*folder == '\0') {
        return data_empty_path();
    }
    name_set(step, name);
    return data_path_join(path, folder, name);
}

static lac_status worker_path(const train_place *place, char *path)
{
    char name[2 * SET_NAME_SIZE];
    (void)snprintf(
        name, sizeof(name), "%s%" PRIu64 "/%s%" PRIu32 "%s", set_begin,
        place->step, file_begin, place->rank, file_end);
    return *place->folder == '\0' ? data_empty_path()
                                  : data_path_join(path, place->folder, name);
}

// A set that was begun before may be there already, and other workers make
// the same folder. Worker 0 has made the one above it, but a network's file
// system may not show it yet: to make it again is how to see it.
static lac_status make_set(const char *folder, uint64_t step)
{
    char path[DATA_PATH_SIZE];
    const lac_status status = set_path(folder, step, path);
    return status == LAC_OK ? data_folder_make(path) : status;
}

// The record and the numbers that say whose it is.
typedef struct marked {
    train_record record;
    train_number *numbers;
    uint64_t world, rank, step;
} marked;

static lac_status mark(
    marked *m, const train_place *place, const train_record *record)
{
    const size_t count = record->number_count;
    m->record = *record;
    m->world = place->world;
    m->rank = place->rank;
    m->step = place->step;
    m->numbers = calloc(count + NUMBERS_OWN, sizeof(*m->numbers));
    if (m->numbers == NULL) {
        return data_no_memory(place->folder, count);
    }
    m->numbers[0] = (train_number){"world", &m->world};
    m->numbers[1] = (train_number){"rank", &m->rank};
    m->numbers[2] = (train_number){"step", &m->step};
    for (size_t i = 0; i < count; i++) {
        m->numbers[NUMBERS_OWN + i] = record->numbers[i];
    }
    m->record.numbers = m->numbers;
    m->record.number_count = count + NUMBERS_OWN;
    return LAC_OK;
}

lac_status train_checkpoint_write(
    const train_place *place, const train_record *record)
{
    char path[DATA_PATH_SIZE];
    marked m;
    lac_status status = worker_path(place, path);
    if (status == LAC_OK) {
        status = make_set(place->folder, place->step);
    }
    if (status == LAC_OK) {
        status = mark(&m, place, record);
    }
    if (status == LAC_OK) {
        status = train_safetensors_write(path, &m.record);
        free(m.numbers);
    }
    return status;
}

lac_status train_checkpoint_look(
    const char *folder, uint64_t step, uint32_t world)
{
    char path[DATA_PATH_SIZE];
    for (uint32_t rank = 0; rank < world; rank++) {
        const train_place place = {folder, step, rank, world};
        const lac_status status = worker_path(&place, path);
        if (status != LAC_OK) {
            return status;
        }
        if (!data_is_file(path)) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: worker %" PRIu32 " has written it, but not where worker 0 "
                "can see it, expected a folder that all machines share",
                path, rank);
        }
    }
    return LAC_OK;
}

static lac_status not_a_set(const char *path)
{
    return lac_fail(
        LAC_ERR_CORRUPT, "%s: does not name a set, expected step-N", path);
}

lac_status train_checkpoint_latest(const char *folder, uint64_t *step_out)
{
    char path[DATA_PATH_SIZE], name[SET_NAME_SIZE] = "";
    if (*folder == '\0') {
        return data_empty_path();
    }
    const lac_status status = data_path_join(path, folder, latest_name);
    if (status != LAC_OK) {
        return status;
    }
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        return errno == ENOENT
                   ? lac_fail(
                         LAC_ERR_NOTFOUND,
                         "%s: is not there, expected a checkpoint", path)
                   : lac_fail(
                         LAC_ERR_INVALID, "%s: cannot open: %s", path,
                         strerror(errno));
    }
    // Not more than a name can have: it may be anything.
    const size_t len = fread(name, 1, sizeof(name), file);
    const bool failed = ferror(file);
    const int problem = errno;
    (void)fclose(file);
    if (failed) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: cannot read: %s", path, strerror(problem));
    }
    uint64_t step;
    if (len == sizeof(name) || strlen(name) != len || !is_set(name, &step)) {
        return not_a_set(path);
    }
    *step_out = step;
    return LAC_OK;
}

// Removes what is ours of a set. Its folder goes last, if nothing else is in
// it; a link to a folder is somebody's and stays.
static void remove_set(const char *folder, uint64_t step)
{
    char path[DATA_PATH_SIZE], inside[DATA_PATH_SIZE];
    struct stat info;
    if (set_path(folder, step, path) != LAC_OK || lstat(path, &info) != 0 ||
        !S_ISDIR(info.st_mode)) {
        return;
    }
    DIR *const list = opendir(path);
    if (list == NULL) {
        return;
    }
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list)) {
        if (is_ours(d->d_name) &&
            data_path_join(inside, path, d->d_name) == LAC_OK) {
            (void)unlink(inside);
        }
    }
    (void)closedir(list);
    (void)rmdir(path);
}

// The newest set below `step`, or `step` if there is none.
static uint64_t newest_below(const char *folder, uint64_t step)
{
    uint64_t newest = step, found;
    DIR *const list = opendir(folder);
    if (list == NULL) {
        return step;
    }
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list)) {
        if (is_set(d->d_name, &found) && found < step &&
            (newest == step || found > newest)) {
            newest = found;
        }
    }
    (void)closedir(list);
    return newest;
}

static void remove_others(const char *folder, uint64_t step, uint64_t before)
{
    uint64_t found;
    DIR *const list = opendir(folder);
    if (list == NULL) {
        return;
    }
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list)) {
        if (is_set(d->d_name, &found) && found != step && found != before) {
            remove_set(folder, found);
        }
    }
    (void)closedir(list);
}

lac_status train_checkpoint_commit(const char *folder, uint64_t step)
{
    char path[DATA_PATH_SIZE], name[SET_NAME_SIZE];
    uint64_t before = 0;
    lac_status status = set_path(folder, step, path);
    if (status != LAC_OK) {
        return status;
    }
    if (!data_is_folder(path)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: is not there, expected a set", path);
    }
    // Only what was the latest is known to be complete. A set that is committed
    // again, or after a later one, has to do with what is there.
    if (train_checkpoint_latest(folder, &before) != LAC_OK || before >= step) {
        before = newest_below(folder, step);
    }
    status = data_path_join(path, folder, latest_name);
    if (status == LAC_OK) {
        name_set(step, name);
        status = data_file_write(path, (const uint8_t *)name, strlen(name));
    }
    if (status == LAC_OK) {
        remove_others(folder, step, before);
    }
    return status;
}

void train_checkpoint_discard(const char *folder, uint64_t step)
{
    uint64_t latest = 0;
    if (train_checkpoint_latest(folder, &latest) != LAC_OK || latest != step) {
        remove_set(folder, step);
    }
}

static lac_status check_place(const train_file *f, const train_place *place)
{
    uint64_t world, rank, step;
    lac_status status = train_file_number(f, "world", &world);
    if (status == LAC_OK) {
        status = train_file_number(f, "rank", &rank);
    }
    if (status == LAC_OK) {
        status = train_file_number(f, "step", &step);
    }
    if (status != LAC_OK) {
        return status;
    }
    if (world != place->world) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: was written by %" PRIu64 " workers, expected %" PRIu32,
            f->bytes.name, world, place->world);
    }
    if (rank != place->rank) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: was written by worker %" PRIu64 ", expected %" PRIu32,
            f->bytes.name, rank, place->rank);
    }
    if (step != place->step) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: was written at step %" PRIu64 ", expected %" PRIu64,
            f->bytes.name, step, place->step);
    }
    return LAC_OK;
}

static lac_status open_worker(
    const train_place *place, char *path, train_file *f)
{
    data_bytes bytes;
    struct stat info;
    lac_status status = worker_path(place, path);
    if (status != LAC_OK) {
        return status;
    }
    if (stat(path, &info) != 0 && errno == ENOENT) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: is not there, expected the file of worker %" PRIu32
            " of %" PRIu32,
            path, place->rank, place->world);
    }
    status = data_file_read(path, &bytes);
    return status == LAC_OK ? train_file_open(f, bytes) : status;
}

lac_status train_checkpoint_read(
    const train_place *place, const train_record *record)
{
    char path[DATA_PATH_SIZE];
    train_file f;
    marked m;
    lac_status status = open_worker(place, path, &f);
    if (status != LAC_OK) {
        return status;
    }
    status = check_place(&f, place);
    if (status == LAC_OK) {
        status = mark(&m, place, record);
    }
    if (status == LAC_OK) {
        status = train_file_load(&f, &m.record);
        free(m.numbers);
    }
    train_file_close(&f);
    return status;
}
