// SPDX-License-Identifier: MIT
// Options with a unit: bandwidths such as "100Mbit" and times such as "1.5 ms".
#ifndef LACONIC_CLI_OPTIONS_UNITS_H
#define LACONIC_CLI_OPTIONS_UNITS_H

#include <laconic/laconic.h>

// units_bandwidth reads a number and a unit, with or without a space: bits
// (Mbit, Mbit/s, Mbits/sec, Mbps, Mb/s) or bytes (MB/s, MBytes/sec, MiB/s) a
// second. b is bit and B is byte. A unit whose case leaves that open, such as
// mb/s, is rejected. `option` is the name in messages, such as "bandwidth".
// Fails with LAC_ERR_INVALID; the result is then unchanged.
lac_status units_bandwidth(
    const char *text, const char *option, double *bytes_per_second_out);

// units_seconds reads a time above 0 in ns, us, ms, s or min.
// Fails with LAC_ERR_INVALID; the result is then unchanged.
lac_status units_seconds(
    const char *text, const char *option, double *seconds_out);

#endif
