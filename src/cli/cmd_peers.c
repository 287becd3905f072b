// SPDX-License-Identifier: MIT
// laconic peers: checks the links between the machines of a peers file.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/command.h"
#include "cli/report/table.h"

// Of cells, so that the table fits into 80 columns.
enum { NAME_MAX_SHOWN = 14, ADDRESS_MAX_SHOWN = 21 };

typedef struct settings {
    const char *key;
    double timeout;
    bool json;
} settings;

static const cli_option options[] = {
    {.name = "key",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, key),
     .value = "FILE",
     .default_value = "",
     .help = "key of this machine (~/.config/laconic/key)"},
    {.name = "timeout",
     .type = CLI_OPTION_F64,
     .offset = offsetof(settings, timeout),
     .value = "SECONDS",
     .default_value = "10",
     .low = 0.001,
     .high = 1e8,
     .help = "how long to wait for the others"},
    CLI_OPTION_JSON(settings),
    {0},
};

// What the reports are added to.
typedef struct findings {
    cli_table table;
    cJSON *peers;
    size_t missing;
} findings;

// Adds a cell of at most `most` characters; the end of a longer text is cut.
static void add_shortened(cli_table *table, const char *text, size_t most)
{
    const bool fits = strlen(text) <= most;
    cli_table_add(
        table, "%.*s%s", (int)(fits ? most : most - 2), text, fits ? "" : "..");
}

static void add_row(findings *f, const lac_peer_report *peer)
{
    cli_table *const t = &f->table;
    add_shortened(t, peer->name, NAME_MAX_SHOWN);
    cli_table_add(t, "%u", peer->rank);
    add_shortened(t, peer->address, ADDRESS_MAX_SHOWN);
    cli_table_add(t, "%s", peer->answered ? peer->status : "missing");
    if (peer->mbit > 0) {
        cli_table_add(t, "%.3f ms", 1e3 * peer->rtt_seconds);
        cli_table_add(t, "%.0f", peer->mbit);
    } else {
        cli_table_add(t, "-");
        cli_table_add(t, "-");
    }
}

static void peers_add_item(findings *f, const lac_peer_report *peer)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "name", peer->name);
    cJSON_AddNumberToObject(o, "rank", peer->rank);
    cJSON_AddStringToObject(o, "address", peer->address);
    cJSON_AddStringToObject(o, "status", peer->status);
    if (peer->mbit > 0) {
        cJSON_AddNumberToObject(o, "rtt_seconds", peer->rtt_seconds);
        cJSON_AddNumberToObject(o, "mbit", peer->mbit);
    } else {
        cJSON_AddNullToObject(o, "rtt_seconds");
        cJSON_AddNullToObject(o, "mbit");
    }
    cJSON_AddItemToArray(f->peers, o);
}

static void add_peer(void *context, const lac_peer_report *peer)
{
    findings *const f = context;
    add_row(f, peer);
    peers_add_item(f, peer);
    if (!peer->answered) {
        f->missing++;
        (void)fprintf(
            stderr, "laconic: worker %u, %s at %s, is missing: %s\n",
            peer->rank, peer->name, peer->address, peer->status);
    }
}

static void add_heads(cli_table *table)
{
    static const char *const heads[] = {"name",   "rank",       "address",
                                        "status", "round trip", "Mbit/s"};
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        cli_table_add(table, "%s", heads[i]);
    }
}

// Paths are in parentheses because they may have commas.
static char *check_spec(const settings *s, const char *file)
{
    const size_t size = strlen(file) + strlen(s->key) + 96;
    char *const spec = malloc(size);
    if (spec == NULL) {
        (void)!lac_fail(LAC_ERR_NOMEM, "no memory for the path %s", file);
        return NULL;
    }
    (void)snprintf(
        spec, size, "tcp:peers=(%s),timeout=%.17g%s%s%s", file, s->timeout,
        *s->key == '\0' ? "" : ",key=(", s->key, *s->key == '\0' ? "" : ")");
    return spec;
}

static int check_peers(const settings *s, const char *file)
{
    findings f = {
        .table = cli_table_make("lrllrr", NULL), .peers = cJSON_CreateArray()};
    char *const spec = check_spec(s, file);
    if (spec == NULL) {
        cJSON_Delete(f.peers);
        return cli_failed();
    }
    add_heads(&f.table);
    const lac_status status = lac_peers_check(spec, add_peer, &f);
    int code = status == LAC_OK ? CLI_GOOD : cli_failed();
    free(spec);
    if (status == LAC_OK && s->json) {
        cJSON *const o = cJSON_CreateObject();
        cJSON_AddItemToObject(o, "peers", f.peers);
        f.peers = NULL;
        code = cli_json_print(o, stdout);
    } else if (status == LAC_OK) {
        cli_table_print(&f.table, stdout);
        f.table = cli_table_make("lrllrr", NULL);
    }
    free(f.table.cells);
    cJSON_Delete(f.peers);
    return code == CLI_GOOD && f.missing > 0 ? CLI_FAILED : code;
}

static int peers_run(const void *given, size_t count, char *const *arguments)
{
    const settings *const s = given;
    if (strcmp(arguments[0], "check") != 0 || count != 2) {
        (void)!lac_fail(
            LAC_ERR_INVALID, "peers: \"%s\" was given, expected check FILE",
            arguments[0]);
        return cli_misused("peers");
    }
    return check_peers(s, arguments[1]);
}

const cli_command cmd_peers = {
    .name = "peers",
    .summary = "check the links between the machines of a peers file",
    .arguments = "check FILE",
    .arguments_min = 1,
    .arguments_max = 2,
    .completes = "check @files",
    .details =
        "Run it on all machines at once. Each listens at its own line of the\n"
        "peers file (see `laconic key`), connects to all others that run the\n"
        "same check, and prints who answers, the round trip and the bandwidth\n"
        "to it. The exit code is 1 if a machine is missing.",
    .example =
        "Check the links to the machines of a file, on all of them at once:\n"
        "\n"
        "    laconic peers check peers.txt",
    .options = options,
    .settings_size = sizeof(settings),
    .run = peers_run,
};
