// SPDX-License-Identifier: MIT
// Marks are empty files with the name .laconic-PID-N-HOST, where the upper half
// of N is the number of the start and the lower half the rank. They are locked
// like all temporary files, because a PID means nothing in other containers.
#include "train/mark.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "data/file.h"
#include "data/output.h"

enum { HOST_SIZE = 65, NAME_SIZE = 160, MARK_MODE = 0666 };

static const char mark_prefix[] = ".laconic-";

static void name_mark(const train_mark *m, char name[NAME_SIZE])
{
    char host[HOST_SIZE];
    if (gethostname(host, sizeof(host)) != 0) {
        host[0] = '\0';
    }
    host[HOST_SIZE - 1] = '\0';
    (void)snprintf(
        name, NAME_SIZE, "%s%ld-%" PRIu64 "-%s", mark_prefix, (long)getpid(),
        (uint64_t)m->start << 32 | m->rank, host);
}

// Reads the start and the rank from the name of a mark.
static bool parse_mark(const char *name, uint32_t *start, uint32_t *rank)
{
    char *end;
    if (!data_output_is_temporary(name)) {
        return false;
    }
    (void)strtol(name + sizeof(mark_prefix) - 1, &end, 10);
    if (*end != '-') {
        return false;
    }
    const uint64_t number = strtoull(end + 1, &end, 10);
    *start = (uint32_t)(number >> 32);
    *rank = (uint32_t)number;
    return *end == '-';
}

lac_status train_mark_create(
    train_mark *m, const char *folder, uint32_t start, uint32_t rank)
{
    char name[NAME_SIZE];
    train_mark made = {.folder = folder, .start = start, .rank = rank};
    LAC_TRY(data_folder_make(folder));
    name_mark(&made, name);
    LAC_TRY(data_path_join(made.path, folder, name));
    made.lock =
        open(made.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, MARK_MODE);
    if (made.lock < 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: cannot create a file in it: %s", folder,
            strerror(errno));
    }
    // Without locks in the file system, the PID alone protects the mark.
    (void)flock(made.lock, LOCK_EX | LOCK_NB);
    *m = made;
    return LAC_OK;
}

lac_status train_mark_first(const train_mark *m, uint32_t *rank_out)
{
    uint32_t first = UINT32_MAX, start, rank;
    bool own = false;
    DIR *const list = opendir(m->folder);
    if (list == NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: cannot be listed: %s", m->folder,
            strerror(errno));
    }
    for (struct dirent *d = readdir(list); d != NULL; d = readdir(list)) {
        if (parse_mark(d->d_name, &start, &rank) && start == m->start) {
            first = rank < first ? rank : first;
            own = own || rank == m->rank;
        }
    }
    (void)closedir(list);
    if (!own) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: the file that worker %" PRIu32 " created in it is missing",
            m->folder, m->rank);
    }
    *rank_out = first;
    return LAC_OK;
}

void train_mark_remove(train_mark *m)
{
    if (m->folder != NULL) {
        (void)close(m->lock);
        (void)unlink(m->path);
        *m = (train_mark){0};
    }
}

uint64_t train_random_number(void)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), 0) == (ssize_t)sizeof(number)) {
        return number;
    }
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^
           (uint64_t)getpid() << 40;
}
