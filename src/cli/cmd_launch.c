// SPDX-License-Identifier: MIT
// laconic launch: starts the workers of a job over tcp, on this machine or on
// others by ssh.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/launch/launch.h"
#include "cli/options/command.h"
#include "cli/process/group.h"
#include "cli/process/guard.h"
#include "cli/process/port.h"

enum { FOLDER_SIZE = 4096 };

typedef struct settings {
    uint64_t workers;
    const char *hosts;
    uint64_t port;
    const char *master;
    const char *program;
    const char *ssh;
    const char *folder;
    bool agent;
} settings;

static const cli_option options[] = {
    {.name = "workers",
     .brief = 'n',
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, workers),
     .value = "N",
     .default_value = "",
     .min = 1,
     .max = CLI_WORKERS_MAX,
     .help = "number of processes (one a host)"},
    {.name = "hosts",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, hosts),
     .value = "A,B,...",
     .default_value = "",
     .help = "machines to start them on by ssh, in turn (this one)"},
    {.name = "port",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, port),
     .value = "P",
     .default_value = "",
     .min = 1,
     .max = 65534,
     .help = "MASTER_PORT; worker 0 listens on P + 1 (a free one)"},
    {.name = "master",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, master),
     .value = "ADDRESS",
     .default_value = "",
     .help = "where the others find worker 0 (the first host)"},
    {.name = "program",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, program),
     .value = "PATH",
     .default_value = "",
     .help = "laconic on the hosts (the one on their PATH)"},
    {.name = "ssh",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, ssh),
     .value = "COMMAND",
     .default_value = "",
     .help = "how to reach them (ssh -o BatchMode=yes)"},
    {.name = "folder",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, folder),
     .value = "DIR",
     .default_value = "",
     .help = "working folder of the processes (this one)"},
    {.name = "agent",
     .type = CLI_OPTION_FLAG,
     .offset = offsetof(settings, agent)},
    {0},
};

// The end of `launch --hosts` on another machine: the task and the lifeline are
// standard input.
static int run_agent(void)
{
    cli_task task;
    if (isatty(STDIN_FILENO)) {
        (void)!lac_fail(
            LAC_ERR_INVALID,
            "launch: --agent is what `laconic launch --hosts` starts by ssh");
        return cli_misused("launch");
    }
    if (cli_task_receive(&task, STDIN_FILENO) != LAC_OK) {
        return cli_failed();
    }
    // sshd passes on an exit code, but no signal.
    int number;
    const int code = cli_guard_run(&task, STDIN_FILENO, &number);
    cli_task_release(&task);
    return code;
}

// Splits hosts at commas, in place. ssh would take a word that begins with '-'
// for an option.
static lac_status split_hosts(char *text, const char **list, size_t *count_out)
{
    size_t count = 0;
    char *next = text;
    while ((text = next) != NULL) {
        next = strchr(text, ',');
        if (next != NULL) {
            *next++ = '\0';
        }
        if (*text == '\0' || *text == '-') {
            return lac_fail(
                LAC_ERR_INVALID,
                "launch: host %zu of --hosts is \"%s\", expected a name or an "
                "address",
                count + 1, text);
        }
        list[count++] = text;
    }
    *count_out = count;
    return LAC_OK;
}

static lac_status check_settings(
    const settings *s, size_t count, char *const *words)
{
    const bool remote = *s->hosts != '\0';
    const char *const lonely = *s->master != '\0'    ? "--master"
                               : *s->program != '\0' ? "--program"
                               : *s->ssh != '\0'     ? "--ssh"
                                                     : NULL;
    if (!remote && s->workers == 0) {
        return lac_fail(
            LAC_ERR_INVALID, "launch: -n N is missing, or --hosts A,B,...");
    }
    if (!remote && lonely != NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "launch: %s is given without --hosts", lonely);
    }
    if (count == 0) {
        return lac_fail(
            LAC_ERR_INVALID, "launch: no command is given, expected -- "
                             "COMMAND...");
    }
    if (words[0][0] == '\0' || (!remote && !cli_guard_finds(words[0]))) {
        return lac_fail(
            LAC_ERR_NOTFOUND,
            "launch: \"%s\" is no command of laconic and no program", words[0]);
    }
    return LAC_OK;
}

// The address in "user@address".
static const char *without_user(const char *host)
{
    const char *const at = strrchr(host, '@');
    return at == NULL ? host : at + 1;
}

static int launch_hosts(const settings *s, cli_job *job)
{
    char *const text = strdup(s->hosts);
    const char **const list = calloc(strlen(s->hosts) + 1, sizeof(*list));
    int code = CLI_FAILED;
    if (text == NULL || list == NULL) {
        (void)!lac_fail(LAC_ERR_NOMEM, "no memory for the hosts");
        code = cli_failed();
    } else if (split_hosts(text, list, &job->host_count) != LAC_OK) {
        code = cli_misused("launch");
    } else {
        job->hosts = list;
        job->world = job->world == 0 ? (uint32_t)job->host_count : job->world;
        job->master = *s->master == '\0' ? without_user(list[0]) : s->master;
        job->port = job->port == 0 ? cli_port_guess() : job->port;
        const lac_status status = cli_job_check(job);
        code = status == LAC_OK ? cli_group_run(job)
                                : cli_rejected("launch", status);
    }
    free(list);
    free(text);
    return code;
}

static int launch_here(cli_job *job)
{
    int reservation = -1;
    job->master = "127.0.0.1";
    if (cli_port_reserve(&job->port, &reservation) != LAC_OK) {
        return cli_failed();
    }
    const int code = cli_group_run(job);
    (void)close(reservation);
    return code;
}

static int launch_run(const void *given, size_t count, char *const *arguments)
{
    const settings *const s = given;
    char folder[FOLDER_SIZE];
    if (s->agent) {
        return run_agent();
    }
    const lac_status status = check_settings(s, count, arguments);
    if (status != LAC_OK) {
        return cli_rejected("launch", status);
    }
    if (*s->folder == '\0' && getcwd(folder, sizeof(folder)) == NULL) {
        (void)!lac_fail(LAC_ERR_INVALID, "launch: the folder has no path");
        return cli_failed();
    }
    const char **const words = calloc(count + 1, sizeof(*words));
    if (words == NULL) {
        (void)!lac_fail(LAC_ERR_NOMEM, "no memory for the command");
        return cli_failed();
    }
    memcpy(words, arguments, count * sizeof(*words));
    cli_job job = {
        .world = (uint32_t)s->workers,
        .port = (uint16_t)s->port,
        .program = *s->program == '\0' ? "laconic" : s->program,
        .ssh = *s->ssh == '\0' ? "ssh -o BatchMode=yes" : s->ssh,
        .folder = *s->folder == '\0' ? folder : s->folder,
        .words = words,
    };
    const int code =
        *s->hosts == '\0' ? launch_here(&job) : launch_hosts(s, &job);
    free(words);
    return code;
}

const cli_command cmd_launch = {
    .name = "launch",
    .summary = "start workers as processes that communicate over tcp",
    .arguments = "-- COMMAND...",
    .arguments_max = SIZE_MAX,
    .command_line = true,
    .completes = "@command",
    .details =
        "Starts COMMAND, a command of laconic or a program, as N workers:\n"
        "\n"
        "    laconic launch -n 4 -- train --epochs 1\n"
        "    laconic launch --hosts anna,berta -- ./program\n"
        "\n"
        "Each gets MASTER_ADDR, MASTER_PORT, RANK, LOCAL_RANK, WORLD_SIZE and\n"
        "LOCAL_WORLD_SIZE, as torchrun sets them, and LACONIC_TRANSPORT, a\n"
        "spec with a token of this run: commands of laconic take it as their\n"
        "transport, and a program passes it to lac_transport_join.\n"
        "What worker 0 prints is left as it is. What the others print goes to\n"
        "stderr, with the worker in front of each line. If one fails, the\n"
        "others are ended (SIGTERM, and SIGKILL after 5 seconds), and the\n"
        "exit code is 1. Ctrl-C is passed on, for a checkpoint; a second one\n"
        "ends all. With --hosts, laconic must be installed on each of them,\n"
        "and the token and the command go there through the input of ssh.",
    .example = "Try tcp with four processes on this machine:\n"
               "\n"
               "    laconic launch -n 4 -- average --algorithm powergossip",
    .options = options,
    .settings_size = sizeof(settings),
    .run = launch_run,
};
