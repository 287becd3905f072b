// SPDX-License-Identifier: MIT
// Measured times in the cache folder of the user. A file holds the text of its
// key and then the time, so that one of another key, or of another program, is
// never taken for it.
#ifndef LACONIC_CLI_PLAN_CACHE_H
#define LACONIC_CLI_PLAN_CACHE_H

#include <stdbool.h>

// plan_cache_read writes the stored time of `key` to `*seconds_out` and returns
// true. Without a complete file of this key it returns false.
bool plan_cache_read(const char *key, double *seconds_out);

// plan_cache_write stores a time. A folder that cannot be written is not an
// error: the time will be measured again.
void plan_cache_write(const char *key, double seconds);

#endif
