// SPDX-License-Identifier: MIT
// Reads os-release, a file of shell assignments that every distribution has,
// and asks the kernel.
#include "cli/report/system.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

// Copies the value of PRETTY_NAME without its quotes, if the line has one.
static void take_name(const char *line, char text[CLI_SYSTEM_SIZE])
{
    static const char key[] = "PRETTY_NAME=";
    const size_t len = strlen(key);
    if (strncmp(line, key, len) != 0) {
        return;
    }
    const char *const value = line + len + strspn(line + len, "\"'");
    const size_t value_len = strcspn(value, "\"'\n");
    if (value_len > 0) {
        (void)snprintf(text, CLI_SYSTEM_SIZE, "%.*s", (int)value_len, value);
    }
}

void cli_system_name_in(const char *path, char text[CLI_SYSTEM_SIZE])
{
    char line[CLI_SYSTEM_SIZE];
    FILE *const file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        take_name(line, text);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

void cli_system_name(char text[CLI_SYSTEM_SIZE])
{
    (void)snprintf(text, CLI_SYSTEM_SIZE, "an unknown system");
    cli_system_name_in("/etc/os-release", text);
}

void cli_system_kernel(char text[CLI_SYSTEM_SIZE])
{
    struct utsname system;
    text[0] = '\0';
    if (uname(&system) == 0) {
        (void)snprintf(
            text, CLI_SYSTEM_SIZE, "%.60s %.100s %.60s", system.sysname,
            system.release, system.machine);
    }
}
