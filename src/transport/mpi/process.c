// SPDX-License-Identifier: MIT
// Whether the processes of the workers on this machine are alive. MPI reports
// no death: a dead worker is silent, and so is a worker that MPI keeps busy
// with the memory of a dead one. The processes of one machine can be looked up,
// so there the dead worker itself is named, and before the deadline.
//
// A machine is a boot of a kernel and a name space of process numbers: in
// another name space, as of a container, the numbers mean nothing. Without
// /proc nothing is known, and silence remains the only sign.
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "transport/mpi/session.h"

enum { BOOT_SIZE = 36, STAT_SIZE = 1024, FIELDS_TO_START = 20 };

#define CHECK_SECONDS 0.25

typedef enum process_state { ALIVE, DEAD, UNKNOWN } process_state;

// Reads the beginning of a file as a string.
static bool read_text(const char *path, char *out, size_t cap)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    const ssize_t len = read(file, out, cap - 1);
    const int error = len < 0 ? errno : 0;
    (void)close(file);
    errno = error; // ESRCH: the process has just ended
    out[len < 0 ? 0 : len] = '\0';
    return len > 0;
}

// Reads the state of a process and the time it started, fields 3 and 22 of
// /proc/PID/stat. Field 2, the name in parentheses, may contain anything.
static process_state read_process(int64_t pid, uint64_t *started_out)
{
    char path[64], text[STAT_SIZE];
    (void)snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
    if (!read_text(path, text, sizeof(text))) {
        return errno == ENOENT || errno == ESRCH ? DEAD : UNKNOWN;
    }
    const char *field = strrchr(text, ')');
    if (field == NULL || field[1] != ' ') {
        return UNKNOWN;
    }
    const char state = field[2];
    for (int i = 0; i < FIELDS_TO_START && field != NULL; i++) {
        field = strchr(field + 1, ' ');
    }
    if (field == NULL) {
        return UNKNOWN;
    }
    *started_out = strtoull(field + 1, NULL, 10);
    return state == 'Z' || state == 'X' ? DEAD : ALIVE;
}

// Describes this process, or leaves `machine` empty.
static void describe(laci_mpi_process *out)
{
    char boot[BOOT_SIZE + 1], space[LACI_MPI_MACHINE - BOOT_SIZE];
    const ssize_t len = readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
    out->pid = (int64_t)getpid();
    if (len <= 0 ||
        !read_text("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)) ||
        read_process(out->pid, &out->started) != ALIVE) {
        return;
    }
    space[len] = '\0';
    (void)snprintf(out->machine, sizeof(out->machine), "%s%s", boot, space);
}

// Empties `machine` where a process cannot be looked up from here.
static void drop_unknown(laci_mpi_session *s)
{
    const laci_mpi_process *const own = &s->processes[s->rank];
    for (uint32_t rank = 0; rank < s->world; rank++) {
        laci_mpi_process *const p = &s->processes[rank];
        uint64_t started = 0;
        if (rank != s->rank &&
            (memcmp(p->machine, own->machine, sizeof(p->machine)) != 0 ||
             read_process(p->pid, &started) != ALIVE ||
             started != p->started)) {
            p->machine[0] = '\0';
        }
    }
}

static bool is_crowded(const laci_mpi_session *s)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    long workers = 0;
    for (uint32_t rank = 0; rank < s->world; rank++) {
        workers += s->processes[rank].machine[0] != '\0';
    }
    return workers > processors;
}

lac_status laci_mpi_share_processes(laci_mpi_session *s)
{
    enum { SIZE = sizeof(laci_mpi_process) };
    MPI_Request request;
    laci_mpi_process *const all = s->services->zalloc(s->world * SIZE);
    if (all == NULL) {
        return s->services->fail(
            LAC_ERR_NOMEM, "mpi: no memory for a session of %u workers",
            s->world);
    }
    describe(&all[s->rank]);
    const int code = MPI_Iallgather(
        MPI_IN_PLACE, 0, MPI_BYTE, all, SIZE, MPI_BYTE, s->comm, &request);
    LAC_TRY(laci_mpi_check(s, code, "join", s->rank));
    LAC_TRY(laci_mpi_await(s, &request));
    s->processes = all;
    drop_unknown(s);
    s->crowded = is_crowded(s);
    return LAC_OK;
}

static bool has_died(const laci_mpi_process *p)
{
    uint64_t started = p->started;
    return p->machine[0] != '\0' &&
           (read_process(p->pid, &started) == DEAD || started != p->started);
}

lac_status laci_mpi_check_processes(laci_mpi_session *s, double now, bool due)
{
    if (s->process_check_at == 0) {
        s->process_check_at = now + CHECK_SECONDS;
    }
    if (!due && now < s->process_check_at) {
        return LAC_OK;
    }
    s->process_check_at = now + CHECK_SECONDS;
    for (uint32_t rank = 0; rank < s->world; rank++) {
        const laci_mpi_process *const p = &s->processes[rank];
        if (rank != s->rank && !s->peers[rank].left && has_died(p)) {
            char reason[LACI_MPI_WHY];
            (void)snprintf(
                reason, sizeof(reason),
                "worker %u has died: its process %lld is gone", rank,
                (long long)p->pid);
            return laci_mpi_suspect(s, rank, reason);
        }
    }
    return LAC_OK;
}
