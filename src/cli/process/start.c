// SPDX-License-Identifier: MIT
// Starts the processes of a job. On this machine the guard is a fork of the
// launcher. On another one it is `laconic launch --agent`, and ssh connects its
// standard input to the lifeline: no secret and no word of the command is an
// argument that others could list.
#include "cli/process/start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "cli/options/command.h"
#include "cli/process/guard.h"
#include "cli/process/signals.h"

enum {
    VARIABLES = 6,
    VARIABLE_SIZE = 320,
    MASTER_MAX = 255, // characters of a host name, and more than one may have
    SSH_WORDS = 64,
    PROGRAM_MAX = 4095,                 // characters of a path
    COMMAND_SIZE = 4 * PROGRAM_MAX + 32 // if each of them is a quote
};

// The environment of one worker.
typedef struct variables {
    char text[VARIABLES][VARIABLE_SIZE];
    const char *list[VARIABLES + 1];
} variables;

static void fill_variables(const cli_job *job, uint32_t rank, variables *v)
{
    const uint32_t hosts = job->hosts == NULL ? 1 : (uint32_t)job->host_count;
    const uint32_t beside = (job->world + hosts - 1 - rank % hosts) / hosts;
    char(*const t)[VARIABLE_SIZE] = v->text;
    (void)snprintf(t[0], sizeof(t[0]), "MASTER_ADDR=%.255s", job->master);
    (void)snprintf(t[1], sizeof(t[1]), "MASTER_PORT=%u", job->port);
    (void)snprintf(t[2], sizeof(t[2]), "RANK=%u", rank);
    (void)snprintf(t[3], sizeof(t[3]), "WORLD_SIZE=%u", job->world);
    (void)snprintf(t[4], sizeof(t[4]), "LOCAL_RANK=%u", rank / hosts);
    (void)snprintf(t[5], sizeof(t[5]), "LOCAL_WORLD_SIZE=%u", beside);
    for (size_t i = 0; i < VARIABLES; i++) {
        v->list[i] = t[i];
    }
    v->list[VARIABLES] = NULL;
}

static lac_status start_failed(const char *what)
{
    return lac_fail(LAC_ERR_INVALID, "launch: %s: %s", what, strerror(errno));
}

static bool open_pipe(int ends[2])
{
    if (pipe(ends) != 0) {
        return false;
    }
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    return true;
}

// A forked process must not hold the lifelines of other workers: they would not
// end with the launcher.
static void close_others(const cli_slot *slots, uint32_t rank)
{
    for (uint32_t i = 0; i <= rank; i++) {
        if (slots[i].lifeline >= 0) {
            (void)close(slots[i].lifeline);
        }
        if (slots[i].output.file >= 0) {
            (void)close(slots[i].output.file);
        }
    }
}

static void redirect_output(int file)
{
    if (file >= 0) {
        (void)dup2(file, STDOUT_FILENO);
        (void)dup2(file, STDERR_FILENO);
    }
}

// Quotes the program for the shell on the other machine.
static void make_command(const char *program, char out[COMMAND_SIZE])
{
    size_t used = 0;
    out[used++] = '\'';
    for (; *program != '\0'; program++) {
        if (*program == '\'') {
            memcpy(out + used, "'\\''", 4);
            used += 4;
        } else {
            out[used++] = *program;
        }
    }
    (void)snprintf(out + used, COMMAND_SIZE - used, "' launch --agent");
}

// Splits a command at blanks, in place. Returns the number of its words, of
// which it writes the first SSH_WORDS.
static size_t split_words(char *text, char *words[SSH_WORDS])
{
    char *rest = NULL;
    size_t count = 0;
    for (char *word = strtok_r(text, " \t", &rest); word != NULL;
         word = strtok_r(NULL, " \t", &rest)) {
        if (count < SSH_WORDS) {
            words[count] = word;
        }
        count++;
    }
    return count;
}

_Noreturn static void become_ssh(
    const cli_job *job, const char *host, int lifeline)
{
    char *words[SSH_WORDS + 3];
    char command[COMMAND_SIZE];
    char *const copy = strdup(job->ssh);
    char *const target = strdup(host);
    const size_t count = copy == NULL ? 0 : split_words(copy, words);
    make_command(job->program, command);
    words[count] = target;
    words[count + 1] = command;
    words[count + 2] = NULL;
    (void)dup2(lifeline, STDIN_FILENO);
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    cli_signals_restore();
    if (count > 0 && target != NULL) {
        (void)execvp(words[0], words);
    }
    (void)fprintf(
        stderr, "laconic: launch: cannot start \"%s\": %s\n",
        count > 0 ? words[0] : "", strerror(errno));
    _exit(CLI_FAILED);
}

// Ends as the process did, but without a second core dump: an exit code alone
// does not show whether 143 was returned or SIGTERM came.
static void die_by(int number)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
#ifdef __linux__
    (void)prctl(PR_SET_DUMPABLE, 0);
#endif
    (void)sigaction(number, &usual, NULL);
    (void)raise(number);
}

// Runs in the new process.
_Noreturn static void become_guard(
    const cli_job *job, const cli_task *task, const cli_slot *slot,
    int lifeline, int output)
{
    (void)setpgid(0, 0); // Ctrl-C is for the launcher alone
    redirect_output(output);
    if (slot->host != NULL) {
        become_ssh(job, slot->host, lifeline);
    }
    int number;
    const int code = cli_guard_run(task, lifeline, &number);
    (void)fflush(stderr);
    if (number != 0) {
        die_by(number);
    }
    _exit(code);
}

static lac_status open_pipes(cli_slot *slot, int *lifeline, int *output)
{
    int ends[2];
    if (!open_pipe(ends)) {
        return start_failed("no pipe");
    }
    *lifeline = ends[0];
    slot->lifeline = ends[1];
    if (slot->rank == 0) {
        return LAC_OK;
    }
    if (!open_pipe(ends)) {
        return start_failed("no pipe");
    }
    slot->output.file = ends[0];
    *output = ends[1];
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return LAC_OK;
}

static lac_status start_process(
    const cli_job *job, const cli_task *task, cli_slot *slots, uint32_t rank)
{
    cli_slot *const slot = &slots[rank];
    int lifeline = -1, output = -1;
    lac_status status = open_pipes(slot, &lifeline, &output);
    if (status == LAC_OK) {
        (void)fflush(NULL);
        const pid_t process = fork();
        if (process == 0) {
            close_others(slots, rank);
            become_guard(job, task, slot, lifeline, output);
        }
        slot->process = process < 0 ? 0 : process;
        if (process < 0) {
            status = start_failed("no process");
        }
    }
    if (lifeline >= 0) {
        (void)close(lifeline);
    }
    if (output >= 0) {
        (void)close(output);
    }
    return status;
}

// Makes the task of a worker, without its token. It points to `v`.
static cli_task make_task(const cli_job *job, uint32_t rank, variables *v)
{
    fill_variables(job, rank, v);
    return (cli_task){
        // Others on the network have no business with a try on one machine.
        .settings = job->hosts == NULL ? ",listen=127.0.0.1" : "",
        .folder = job->folder,
        .environment = v->list,
        .words = job->words,
    };
}

static lac_status check_length(const char *name, const char *text, size_t most)
{
    const size_t len = strlen(text);
    if (len > most) {
        return lac_fail(
            LAC_ERR_INVALID,
            "launch: %s has %zu characters, expected at most %zu", name, len,
            most);
    }
    return LAC_OK;
}

static lac_status check_ssh(const char *ssh)
{
    char *words[SSH_WORDS];
    char *const copy = strdup(ssh);
    if (copy == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for the command");
    }
    const size_t count = split_words(copy, words);
    free(copy);
    if (count < 1 || count > SSH_WORDS) {
        return lac_fail(
            LAC_ERR_INVALID, "launch: --ssh has %zu words, expected 1 to %d",
            count, SSH_WORDS);
    }
    return LAC_OK;
}

lac_status cli_job_check(const cli_job *job)
{
    variables v;
    LAC_TRY(check_length("--program", job->program, PROGRAM_MAX));
    LAC_TRY(check_length("the address of worker 0", job->master, MASTER_MAX));
    LAC_TRY(check_ssh(job->ssh));
    for (uint32_t rank = 0; rank < job->world; rank++) {
        const cli_task task = make_task(job, rank, &v);
        LAC_TRY(cli_task_check(&task));
    }
    return LAC_OK;
}

lac_status cli_slot_start(
    const cli_job *job, const uint8_t token[CLI_TOKEN_SIZE], cli_slot *slots,
    uint32_t rank)
{
    variables v;
    cli_task task = make_task(job, rank, &v);
    memcpy(task.token, token, CLI_TOKEN_SIZE);
    LAC_TRY(start_process(job, &task, slots, rank));
    if (slots[rank].host == NULL) {
        return LAC_OK;
    }
    const lac_status status = cli_task_send(&task, slots[rank].lifeline);
    // If ssh has ended already, its exit code is reported.
    return status == LAC_ERR_PEER ? LAC_OK : status;
}
