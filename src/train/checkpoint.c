// SPDX-License-Identifier: MIT
// Sets of files, and the rename that makes a set the latest.
//
// Besides the caller's numbers the file of a worker contains world, rank and
// step, so that a file in the wrong place is detected. Only files with our
// names are removed: worker-R.safetensors and temporary files in a folder
// step-N, then that folder if it is empty.
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
    OWN_NUMBERS = 3,    // world, rank, step
};

static const char latest_name[] = "latest";
static const char set_prefix[] = "step-";
static const char file_prefix[] = "worker-";
static const char file_suffix[] = ".safetensors";

static bool skip_text(const char **text, const char *expected)
{
    const size_t len = strlen(expected);
    const bool good = strncmp(*text, expected, len) == 0;
    *text += good ? len : 0;
    return good;
}

static bool parse_set_name(const char *name, uint64_t *step_out)
{
    return skip_text(&name, set_prefix) && train_take_number(&name, step_out) &&
           *name == '\0';
}

static bool is_worker_file(const char *name)
{
    uint64_t rank;
    const char *rest = name;
    return data_output_is_temporary(name) ||
           (skip_text(&rest, file_prefix) && train_take_number(&rest, &rank) &&
            skip_text(&rest, file_suffix) && *rest == '\0');
}

static void name_set(uint64_t step, char name[SET_NAME_SIZE])
{
    (void)snprintf(name, SET_NAME_SIZE, "%s%" PRIu64, set_prefix, step);
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
        name, sizeof(name), "%s%" PRIu64 "/%s%" PRIu32 "%s", set_prefix,
        place->step, file_prefix, place->rank, file_suffix);
    return *place->folder == '\0' ? data_empty_path()
                                  : data_path_join(path, place->folder, name);
}

static lac_status check_folder(const char *folder)
{
    return data_folder_exists(folder)
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_INVALID,
                     "%s: the folder of the run is missing, expected one that "
                     "exists until the run ends",
                     folder);
}

lac_status train_checkpoint_explain(const char *folder, lac_status status)
{
    if (status != LAC_OK) {
        LAC_TRY(check_folder(folder));
    }
    return status;
}

// Other workers make the same folder, and an incomplete set may have left it.
static lac_status make_set(const char *folder, uint64_t step)
{
    char path[DATA_PATH_SIZE];
    LAC_TRY(set_path(folder, step, path));
    LAC_TRY(check_folder(folder));
    return data_folder_make_one(path);
}

// A record with the numbers that identify its place.
typedef struct placed_record {
    train_record record;
    train_number *numbers;
    uint64_t world, rank, step;
} placed_record;

// The caller frees m->numbers.
static lac_status placed_record_init(
    placed_record *m, const train_place *place, const train_record *record)
{
    const size_t count = record->number_count;
    m->record = *record;
    m->world = place->world;
    m->rank = place->rank;
    m->step = place->step;
    m->numbers = calloc(count + OWN_NUMBERS, sizeof(*m->numbers));
    if (m->numbers == NULL) {
        return data_no_memory(place->folder, count);
    }
    m->numbers[0] = (train_number){"world", &m->world, false};
    m->numbers[1] = (train_number){"rank", &m->rank, false};
    m->numbers[2] = (train_number){"step", &m->step, false};
    for (size_t i = 0; i < count; i++) {
        m->numbers[OWN_NUMBERS + i] = record->numbers[i];
    }
    m->record.numbers = m->numbers;
    m->record.number_count = count + OWN_NUMBERS;
    return LAC_OK;
}

lac_status train_checkpoint_write(
    const train_place *place, const train_record *record)
{
    char path[DATA_PATH_SIZE];
    placed_record m;
    LAC_TRY(worker_path(place, path));
    LAC_TRY(make_set(place->folder, place->step));
    LAC_TRY(placed_record_init(&m, place, record));
    const lac_status status = train_safetensors_write(path, &m.record);
    free(m.numbers);
    return status;
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
    LAC_TRY(data_path_join(path, folder, latest_name));
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        return errno == ENOENT
                   ? lac_fail(
                         LAC_ERR_NOTFOUND,
                         "%s: does not exist, expected a checkpoint", path)
                   : lac_fail(
                         LAC_ERR_INVALID, "%s: cannot open: %s", path,
                         strerror(errno));
    }
    // Any file may have that name; no more than a valid text is read.
    const size_t len = fread(name, 1, sizeof(name), file);
    const bool failed = ferror(file);
    const int problem = errno;
    (void)fclose(file);
    if (failed) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: cannot read: %s", path, strerror(problem));
    }
    uint64_t step;
    if (len == sizeof(name) || strlen(name) != len ||
        !parse_set_name(name, &step)) {
        return not_a_set(path);
    }
    *step_out = step;
    return LAC_OK;
}

// Removes the files of a set, then its folder if it is empty. A link to a
// folder is not ours and stays.
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
        if (is_worker_file(d->d_name) &&
            data_path_join(inside, path, d->d_name) == LAC_OK) {
            (void)unlink(inside);
        }
    }
    (void)closedir(list);
    (void)rmdir(path);
}

// Returns the newest set below `step`, or `step` if there is none.
static uint64_t newest_below(const char *folder, uint64_t step)
{
    uint64_t newest = step, found;
    DIR *const list = opendir(folder);
    if (list == NULL) {
        return step;
    }
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list)) {
        if (parse_set_name(d->d_name, &found) && found < step &&
            (newest == step || found > newest)) {
            newest = found;
        }
    }
    (void)closedir(list);
    return newest;
}

static lac_status write_latest(const char *folder, uint64_t step)
{
    char path[DATA_PATH_SIZE], name[SET_NAME_SIZE];
    LAC_TRY(data_path_join(path, folder, latest_name));
    name_set(step, name);
    return data_file_write(path, (const uint8_t *)name, strlen(name));
}

lac_status train_checkpoint_commit(
    const char *folder, uint64_t step, uint64_t *previous_out)
{
    char path[DATA_PATH_SIZE];
    uint64_t previous = 0;
    LAC_TRY(set_path(folder, step, path));
    if (!data_is_folder(path)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: does not exist, expected a set", path);
    }
    // Only the latest set is known to be complete. If it is not older than this
    // one, the newest older set is the best guess.
    if (train_checkpoint_latest(folder, &previous) != LAC_OK ||
        previous >= step) {
        previous = newest_below(folder, step);
    }
    LAC_TRY(write_latest(folder, step));
    *previous_out = previous;
    return LAC_OK;
}

static bool is_listed(uint64_t step, const uint64_t *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == step) {
            return true;
        }
    }
    return false;
}

// Removes all sets except those in spared[0..count) and those of step `newer`
// and later.
static void remove_sets(
    const char *folder, const uint64_t *spared, size_t count, uint64_t newer)
{
    uint64_t found;
    DIR *const list = opendir(folder);
    if (list == NULL) {
        return;
    }
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list)) {
        if (parse_set_name(d->d_name, &found) && found < newer &&
            !is_listed(found, spared, count)) {
            remove_set(folder, found);
        }
    }
    (void)closedir(list);
}

void train_checkpoint_prune(
    const char *folder, uint64_t step, uint64_t previous)
{
    // Workers that are ahead may be writing the next set.
    remove_sets(folder, (uint64_t[]){step, previous}, 2, step);
}

lac_status train_checkpoint_rewind(const char *folder, uint64_t step)
{
    uint64_t latest = 0;
    if (train_checkpoint_latest(folder, &latest) != LAC_OK || latest != step) {
        LAC_TRY(write_latest(folder, step));
    }
    const uint64_t spared[] = {step, newest_below(folder, step)};
    remove_sets(folder, spared, 2, UINT64_MAX);
    return LAC_OK;
}

void train_checkpoint_clear(const char *folder)
{
    uint64_t latest = 0;
    if (train_checkpoint_latest(folder, &latest) == LAC_ERR_NOTFOUND) {
        remove_sets(folder, NULL, 0, UINT64_MAX);
    }
}

void train_checkpoint_discard(const char *folder, uint64_t step)
{
    uint64_t latest = 0;
    if (train_checkpoint_latest(folder, &latest) != LAC_OK || latest != step) {
        remove_set(folder, step);
    }
}

// Adds a step to a list in descending order, which drops its last if it is
// full.
static uint32_t insert_step(uint64_t *steps, uint32_t count, uint64_t step)
{
    uint32_t at = count;
    while (at > 0 && steps[at - 1] < step) {
        at--;
    }
    if (at == TRAIN_SETS_MAX) {
        return count;
    }
    const uint32_t kept = count < TRAIN_SETS_MAX ? count : count - 1;
    memmove(steps + at + 1, steps + at, (kept - at) * sizeof(*steps));
    steps[at] = step;
    return kept + 1;
}

uint32_t train_checkpoint_list(const train_place *place, uint64_t *steps_out)
{
    char path[DATA_PATH_SIZE];
    uint32_t count = 0;
    train_place at = *place;
    DIR *const list = opendir(place->folder);
    if (list == NULL) {
        return 0;
    }
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list)) {
        if (parse_set_name(d->d_name, &at.step) &&
            worker_path(&at, path) == LAC_OK && data_is_file(path)) {
            count = insert_step(steps_out, count, at.step);
        }
    }
    (void)closedir(list);
    return count;
}

static lac_status checkpoint_check_place(
    const train_file *f, const train_place *place)
{
    uint64_t world, rank, step;
    LAC_TRY(train_file_number(f, "world", &world));
    LAC_TRY(train_file_number(f, "rank", &rank));
    LAC_TRY(train_file_number(f, "step", &step));
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

static lac_status open_worker_file(
    const train_place *place, char *path, train_file *f)
{
    data_bytes bytes;
    struct stat info;
    LAC_TRY(worker_path(place, path));
    if (stat(path, &info) != 0 && errno == ENOENT) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: does not exist, expected the file of worker %" PRIu32
            " of %" PRIu32,
            path, place->rank, place->world);
    }
    LAC_TRY(data_file_read(path, &bytes));
    return train_file_open(f, bytes);
}

lac_status train_checkpoint_read(
    const train_place *place, const train_record *record)
{
    char path[DATA_PATH_SIZE];
    train_file f;
    placed_record m;
    LAC_TRY(open_worker_file(place, path, &f));
    lac_status status = checkpoint_check_place(&f, place);
    if (status == LAC_OK) {
        status = placed_record_init(&m, place, record);
    }
    if (status == LAC_OK) {
        status = train_file_load(&f, &m.record);
        free(m.numbers);
    }
    train_file_close(&f);
    return status;
}
