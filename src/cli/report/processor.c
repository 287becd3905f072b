// SPDX-License-Identifier: MIT
// Reads /proc/cpuinfo, which has a paragraph for each processor with lines of
// "key : value". The first processor stands for all. Other files of /proc have
// such lines too.
#define _GNU_SOURCE // sched_getaffinity
#include "cli/report/processor.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <laconic/laconic.h>

enum { LINE_SIZE = 256, BOOT_SIZE = 64 };

static const char cpuinfo[] = "/proc/cpuinfo";

// Returns the value of a line if its key is `key`, without the line feed, else
// NULL. "model" is not the key of "model name : AMD EPYC".
static const char *line_value(char line[LINE_SIZE], const char *key)
{
    const size_t len = strlen(key);
    const size_t blanks = strspn(line + strnlen(line, len), " \t");
    if (strncmp(line, key, len) != 0 || line[len + blanks] != ':') {
        return NULL;
    }
    char *const value = line + len + blanks + 1;
    value[strcspn(value, "\n")] = '\0';
    return value + strspn(value, " \t");
}

// Writes the values of the `count` keys of the first paragraph, in the order of
// the file, with a space between them.
static void join_values(
    const char *path, const char *const *keys, size_t count,
    char text[CLI_PROCESSOR_SIZE])
{
    char line[LINE_SIZE];
    size_t len = 0;
    FILE *const info = fopen(path, "re");
    text[0] = '\0';
    while (info != NULL && fgets(line, sizeof(line), info) != NULL &&
           line[0] != '\n') {
        for (size_t i = 0; i < count; i++) {
            const char *const value = line_value(line, keys[i]);
            if (value != NULL) {
                (void)snprintf(
                    text + len, CLI_PROCESSOR_SIZE - len, "%s%s",
                    len == 0 ? "" : " ", value);
                len = strlen(text);
                break;
            }
        }
    }
    if (info != NULL) {
        (void)fclose(info);
    }
}

void cli_processor(char text[CLI_PROCESSOR_SIZE])
{
    static const char *const keys[] = {"model name"};
    join_values(cpuinfo, keys, 1, text);
    if (text[0] == '\0') {
        (void)snprintf(text, CLI_PROCESSOR_SIZE, "an unknown processor");
    }
}

void cli_processor_id(char text[CLI_PROCESSOR_SIZE])
{
    static const char *const keys[] = {
        "vendor_id", "cpu family", "model", "CPU implementer", "CPU part"};
    join_values(cpuinfo, keys, sizeof(keys) / sizeof(keys[0]), text);
}

long cli_processor_count(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0
               ? CPU_COUNT(&set)
               : sysconf(_SC_NPROCESSORS_ONLN);
}

uint64_t cli_processor_set(void)
{
    static const char *const keys[] = {"Cpus_allowed_list"};
    char boot[BOOT_SIZE] = "", list[CLI_PROCESSOR_SIZE];
    char text[BOOT_SIZE + CLI_PROCESSOR_SIZE];
    FILE *const file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file != NULL) {
        (void)fgets(boot, sizeof(boot), file);
        (void)fclose(file);
    }
    join_values("/proc/self/status", keys, 1, list);
    if (boot[0] == '\0' || list[0] == '\0') {
        return 0;
    }
    (void)snprintf(text, sizeof(text), "%s%s", boot, list);
    return lac_name_hash(text);
}
