// SPDX-License-Identifier: MIT
// A long message leaves without an answer of its receiver: SPEC FIFO.
//
// Worker 0 sends a long message and gets its bytes back before worker 1 calls
// MPI: worker 1 is blocked until worker 0 opens the named pipe. Prints a line
// for run_duty.py's rules if all is good.
#define _POSIX_C_SOURCE 200809L
#include <laconic/laconic.h>

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LEN = 100000 }; // more than any MPI sends at once

// Longer than any run: a busy machine must not reach it.
static const double SECONDS = 120;

static lac_status send_alone(lac_transport *t)
{
    static uint8_t bytes[LEN];
    const double deadline = lac_transport_now(t) + SECONDS;
    const lac_send send = {.peer = 1, .tag = 1, .data = bytes, .len = LEN};
    memset(bytes, 0x5a, LEN);
    LAC_TRY(lac_transport_exchange(t, &send, 1, NULL, 0, deadline));
    LAC_TRY(lac_transport_exchange(t, NULL, 0, NULL, 0, deadline));
    memset(bytes, 0, LEN); // they are free again
    return LAC_OK;
}

static lac_status receive_late(lac_transport *t)
{
    lac_receive receive = {.peer = 0, .tag = 1};
    LAC_TRY(lac_transport_exchange(
        t, NULL, 0, &receive, 1, lac_transport_now(t) + SECONDS));
    const uint8_t *const bytes = receive.data;
    size_t good = 0;
    while (good < receive.len && bytes[good] == 0x5a) {
        good++;
    }
    return good == LEN && receive.len == LEN
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_CORRUPT, "%zu of %zu bytes are good, expected %d",
                     good, receive.len, LEN);
}

static lac_status run(const char *spec, const char *fifo, uint32_t *rank_out)
{
    lac_transport *t = NULL;
    LAC_TRY(lac_transport_join(&t, spec, NULL, LAC_RANK_ANY, 2));
    const uint32_t rank = lac_transport_rank(t);
    lac_status status = rank == 0 ? send_alone(t) : LAC_OK;
    // Each end waits here until the other one is opened.
    const int pipe = open(fifo, rank == 0 ? O_WRONLY : O_RDONLY);
    if (status == LAC_OK && rank == 1) {
        status = receive_late(t);
    }
    (void)close(pipe);
    lac_transport_leave(t);
    *rank_out = rank;
    return status;
}

int main(int argc, char **argv)
{
    uint32_t rank = 0;
    if (argc != 3 || run(argv[1], argv[2], &rank) != LAC_OK) {
        (void)fprintf(stderr, "FAILED: %s\n", lac_error_message());
        return 1;
    }
    (void)printf("worker %u of 2: good\n", rank);
    return 0;
}
