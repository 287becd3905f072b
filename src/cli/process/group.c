// SPDX-License-Identifier: MIT
// Runs all processes of a job: passes on their output and our signals, and ends
// the others when one fails.
#include "cli/process/group.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/options/command.h"
#include "cli/process/clock.h"
#include "cli/process/guard.h"
#include "cli/process/signals.h"

enum { NOT_FOUND = 127, SIGNAL_CODE = 128, SSH_FAILED = 255, TEXT_SIZE = 300 };

// Seconds that guards get to end their processes before they are killed too.
#define GUARD_SECONDS (2 * CLI_END_SECONDS)

typedef struct group {
    const cli_job *job;
    cli_slot *slots;
    struct pollfd *files;
    uint32_t running;
    int interrupted; // the first signal that came, or 0
    bool failed;
    double deadline; // when guards are killed; 0: never
} group;

static void send_all(const group *g, char byte)
{
    for (uint32_t i = 0; i < g->job->world; i++) {
        if (g->slots[i].process != 0) {
            (void)!write(g->slots[i].lifeline, &byte, 1);
        }
    }
}

static void end_all(group *g)
{
    if (g->deadline == 0) {
        send_all(g, CLI_GUARD_END);
        g->deadline = cli_clock() + GUARD_SECONDS;
    }
}

static void kill_guards(group *g)
{
    for (uint32_t i = 0; i < g->job->world; i++) {
        if (g->slots[i].process != 0) {
            (void)kill(g->slots[i].process, SIGKILL);
        }
    }
    g->deadline = 0;
}

// The first signal is passed on, so that workers may write a checkpoint. The
// second ends them.
static void handle_signal(group *g, int number)
{
    if (number == SIGCHLD) {
        return;
    }
    if (g->interrupted != 0) {
        end_all(g);
        return;
    }
    g->interrupted = number;
    send_all(
        g, number == SIGINT    ? CLI_GUARD_INTERRUPT
           : number == SIGTERM ? CLI_GUARD_TERMINATE
                               : CLI_GUARD_HANG_UP);
}

// What the exit code of ssh means. An agent on another machine returns 128 +
// the number of a signal, but a process may return this code too.
static const char *explanation(
    const cli_slot *slot, int code, char text[TEXT_SIZE])
{
    const int number = code - SIGNAL_CODE;
    if (slot->host == NULL) {
        return "";
    }
    if (code == SSH_FAILED) {
        return ": ssh failed";
    }
    if (code == NOT_FOUND) {
        return ": a program was not found there; --program PATH names laconic";
    }
    if (number <= 0 || number > SIGRTMAX) {
        return "";
    }
    (void)snprintf(
        text, TEXT_SIZE, ", as after signal %d (%s)", number,
        strsignal(number));
    return text;
}

static void report_end(const cli_slot *slot, int state)
{
    char who[TEXT_SIZE], more[TEXT_SIZE];
    (void)snprintf(
        who, sizeof(who), "worker %u%s%.200s", slot->rank,
        slot->host == NULL ? "" : " on ", slot->host == NULL ? "" : slot->host);
    if (WIFSIGNALED(state)) {
        (void)fprintf(
            stderr, "laconic: launch: %s was killed by signal %d (%s)\n", who,
            WTERMSIG(state), strsignal(WTERMSIG(state)));
    } else {
        (void)fprintf(
            stderr, "laconic: launch: %s ended with exit code %d%s\n", who,
            WEXITSTATUS(state), explanation(slot, WEXITSTATUS(state), more));
    }
}

// A process that was killed explains more than one that failed at the same
// time.
static int severity(int state)
{
    return WIFSIGNALED(state) ? 2 * SIGNAL_CODE + WTERMSIG(state)
                              : WEXITSTATUS(state);
}

// Takes the exit codes of all processes that have ended.
static void reap(group *g)
{
    const cli_slot *worst = NULL;
    int worst_state = 0;
    for (uint32_t i = 0; i < g->job->world; i++) {
        cli_slot *const slot = &g->slots[i];
        int state = 0;
        if (slot->process == 0 ||
            waitpid(slot->process, &state, WNOHANG) != slot->process) {
            continue;
        }
        slot->process = 0;
        (void)close(slot->lifeline);
        slot->lifeline = -1;
        g->running--;
        if (severity(state) > severity(worst_state)) {
            worst = slot;
            worst_state = state;
        }
    }
    if (worst != NULL && !g->failed && g->interrupted == 0) {
        cli_lines_pull(&g->slots[worst->rank].output); // its own message first
        report_end(worst, worst_state);
        end_all(g);
    }
    g->failed = g->failed || worst != NULL;
}

static void pump(group *g, int signals)
{
    nfds_t count = 0;
    g->files[count++] = (struct pollfd){.fd = signals, .events = POLLIN};
    for (uint32_t i = 0; i < g->job->world; i++) {
        g->files[count++] =
            (struct pollfd){.fd = g->slots[i].output.file, .events = POLLIN};
    }
    (void)poll(g->files, count, cli_clock_poll(g->deadline));
    for (uint32_t i = 0; i < g->job->world; i++) {
        if (g->files[1 + i].revents != 0) {
            cli_lines_pull(&g->slots[i].output);
        }
    }
    int number;
    while ((number = cli_signals_next()) != 0) {
        handle_signal(g, number);
    }
    reap(g);
    if (g->deadline != 0 && cli_clock() >= g->deadline) {
        kill_guards(g);
    }
}

static void start_all(group *g, const uint8_t token[CLI_TOKEN_SIZE])
{
    const cli_job *const job = g->job;
    for (uint32_t i = 0; i < job->world && !g->failed; i++) {
        const lac_status status = cli_slot_start(job, token, g->slots, i);
        g->running += g->slots[i].process != 0;
        if (status != LAC_OK) {
            (void)cli_failed();
            g->failed = true;
            end_all(g);
        }
    }
}

static bool allocate(group *g)
{
    const cli_job *const job = g->job;
    g->slots = calloc(job->world, sizeof(*g->slots));
    g->files = calloc(job->world + 1, sizeof(*g->files));
    for (uint32_t i = 0; g->slots != NULL && i < job->world; i++) {
        g->slots[i] = (cli_slot){
            .rank = i,
            .host = job->hosts == NULL ? NULL : job->hosts[i % job->host_count],
            .lifeline = -1,
            .output = {.file = -1, .rank = i},
        };
    }
    return g->slots != NULL && g->files != NULL;
}

static int group_run_all(group *g)
{
    uint8_t token[CLI_TOKEN_SIZE];
    if (cli_token_make(token) != LAC_OK) {
        return cli_failed();
    }
    const int signals = cli_signals_open();
    if (signals < 0) {
        (void)!lac_fail(LAC_ERR_INVALID, "launch: no pipe");
        return cli_failed();
    }
    start_all(g, token);
    memset(token, 0, sizeof(token));
    while (g->running > 0) {
        pump(g, signals);
    }
    for (uint32_t i = 0; i < g->job->world; i++) {
        cli_lines_pull(&g->slots[i].output);
        cli_lines_close(&g->slots[i].output);
    }
    return g->interrupted != 0 ? SIGNAL_CODE + g->interrupted
           : g->failed         ? CLI_FAILED
                               : CLI_GOOD;
}

int cli_group_run(const cli_job *job)
{
    group g = {.job = job};
    int code = CLI_FAILED;
    if (allocate(&g)) {
        code = group_run_all(&g);
    } else {
        (void)!lac_fail(
            LAC_ERR_NOMEM, "no memory for %u processes", job->world);
        code = cli_failed();
    }
    free(g.slots);
    free(g.files);
    return code;
}
