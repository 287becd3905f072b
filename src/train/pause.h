// SPDX-License-Identifier: MIT
// Computation that takes time without being done, for simulated networks.
#ifndef LACONIC_TRAIN_PAUSE_H
#define LACONIC_TRAIN_PAUSE_H

#include <errno.h>
#include <math.h>
#include <time.h>

// train_pause sleeps for so many seconds on the clock of the transport. On a
// simulated cluster both are simulated.
static inline void train_pause(double seconds)
{
    struct timespec left = {
        .tv_sec = (time_t)floor(seconds),
        .tv_nsec = (long)(1e9 * (seconds - floor(seconds))),
    };
    while (seconds > 0 && nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

#endif
