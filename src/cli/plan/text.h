// SPDX-License-Identifier: MIT
// Quantities and names in the output of `laconic plan`.
#ifndef LACONIC_CLI_PLAN_TEXT_H
#define LACONIC_CLI_PLAN_TEXT_H

#include <stdio.h>

#include "cli/plan/plan.h"

enum { PLAN_TEXT_SIZE = 32, PLAN_NAME_SIZE = 128, PLAN_ADVICE_SIZE = 768 };

// plan_seconds writes a time with three digits: "12.3 ms"; if it is long, in
// hours, days or years.
const char *plan_seconds(double seconds, char text[PLAN_TEXT_SIZE]);

// plan_bandwidth writes bytes a second as bits: "1.00 Gbit/s".
const char *plan_bandwidth(double bytes_per_second, char text[PLAN_TEXT_SIZE]);

// plan_bytes writes a number of bytes with three digits: "44.7 MB".
const char *plan_bytes(double bytes, char text[PLAN_TEXT_SIZE]);

// plan_name writes the algorithm and its compressor: "choco sign".
const char *plan_name(const plan_choice *choice, char text[PLAN_NAME_SIZE]);

// plan_advice writes one statement of what to do, from a ranked plan.
const char *plan_advice(const plan *p, char text[PLAN_ADVICE_SIZE]);

#endif
