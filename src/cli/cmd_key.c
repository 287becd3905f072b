// SPDX-License-Identifier: MIT
// laconic key: makes and shows the key of this machine, or makes a token.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/options/command.h"
#include "cli/report/table.h"

enum { PATH_SIZE = 4096, HOST_SIZE = 64 };

typedef struct settings {
    const char *file;
    bool show;
    const char *token;
    bool json;
} settings;

static const cli_option options[] = {
    {.name = "file",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, file),
     .value = "FILE",
     .default_value = "",
     .help = "the key (~/.config/laconic/key)"},
    {.name = "show",
     .type = CLI_OPTION_FLAG,
     .offset = offsetof(settings, show),
     .help = "fail if there is no key, and make none"},
    {.name = "token",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, token),
     .value = "FILE",
     .default_value = "",
     .help = "write a shared secret of 32 bytes instead"},
    CLI_OPTION_JSON(settings),
    {0},
};

// The name of this machine, as a first proposal for its line.
static void machine_name(char out[HOST_SIZE])
{
    if (gethostname(out, HOST_SIZE) != 0 || memchr(out, 0, HOST_SIZE) == NULL ||
        out[0] == '\0') {
        (void)snprintf(out, HOST_SIZE, "NAME");
    }
}

// Only the line of the peers file goes to stdout, so that `>>` adds it there.
// The public key is its last word, so that scripts can take it.
static int print_key(
    const settings *s, const char *path, const char *text, bool made)
{
    char host[HOST_SIZE];
    if (s->json) {
        cJSON *const o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "file", path);
        cJSON_AddBoolToObject(o, "created", made);
        cJSON_AddStringToObject(o, "key", text);
        return cli_json_print(o, stdout);
    }
    machine_name(host);
    (void)fprintf(
        stderr,
        "%s key is %s\n"
        "It is secret: copy it nowhere. The line of this machine for the peers "
        "file,\nwhose name, address and port you may change, is\n\n",
        made ? "the new" : "the", path);
    printf("%s %s:29500 %s\n", host, host, text);
    return CLI_GOOD;
}

static int show_key(const settings *s, const char *path)
{
    char text[LAC_KEY_TEXT_SIZE];
    lac_status status = lac_key_read(path, text);
    const bool make = status == LAC_ERR_NOTFOUND && !s->show;
    if (make) {
        status = lac_key_create(path, text);
    }
    return status == LAC_OK ? print_key(s, path, text, make) : cli_failed();
}

static int make_token(const settings *s)
{
    if (lac_token_create(s->token) != LAC_OK) {
        return cli_failed();
    }
    if (s->json) {
        cJSON *const o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "token", s->token);
        return cli_json_print(o, stdout);
    }
    (void)fprintf(
        stderr,
        "the new token is %s\n"
        "Copy it to every machine of the job, so that nobody else can read it, "
        "and start\nthe workers with\n\n",
        s->token);
    printf("--transport tcp:token=%s\n", s->token);
    return CLI_GOOD;
}

static int key_run(const void *given, size_t count, char *const *arguments)
{
    (void)count;
    (void)arguments;
    const settings *const s = given;
    char path[PATH_SIZE];
    if (*s->token != '\0') {
        if (*s->file != '\0' || s->show) {
            (void)!lac_fail(
                LAC_ERR_INVALID, "key: --token and %s were given, expected one",
                s->show ? "--show" : "--file");
            return cli_misused("key");
        }
        return make_token(s);
    }
    if (*s->file != '\0') {
        return show_key(s, s->file);
    }
    return lac_key_default_path(path, sizeof(path)) == LAC_OK
               ? show_key(s, path)
               : cli_failed();
}

const cli_command cmd_key = {
    .name = "key",
    .summary = "make or show the key of this machine for tcp",
    .arguments = "",
    .details =
        "Every worker of the transport tcp has a key, and takes part only if\n"
        "all others list its public key. `laconic key` makes the key of this\n"
        "user on this machine, readable by nobody else. A key that exists is\n"
        "shown and never overwritten. Standard output gets one line, whose "
        "last\n"
        "word is the public key, and standard error the explanations. Put a\n"
        "line for each worker into a file, the same on all machines:\n"
        "\n"
        "    name address:port key\n"
        "\n"
        "Try it with `laconic peers check FILE` on all machines at once, and\n"
        "start the workers with --transport tcp:peers=FILE.\n"
        "--token writes the secret of a job for --transport tcp:token=FILE,\n"
        "where torchrun or a batch system sets MASTER_ADDR, MASTER_PORT, RANK\n"
        "and WORLD_SIZE.",
    .example = "Make the key of this machine, or show the one it has:\n"
               "\n"
               "    laconic key",
    .options = options,
    .settings_size = sizeof(settings),
    .run = key_run,
};
