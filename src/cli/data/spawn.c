// SPDX-License-Identifier: MIT
// Runs other programs without a shell.
#include "cli/data/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LINE_SIZE = 200, LOG_MODE = 0600 };

// Read and written by the signal handler.
static volatile sig_atomic_t caught;
static volatile sig_atomic_t child;

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };
static struct sigaction before[SIGNALS];

static void pass_on(int number)
{
    caught = number;
    if (child > 0) {
        (void)kill((pid_t)child, number);
    }
}

void cli_spawn_guard(void)
{
    struct sigaction action = {.sa_handler = pass_on};
    (void)sigemptyset(&action.sa_mask);
    caught = 0;
    for (int i = 0; i < SIGNALS; i++) {
        (void)sigaction(signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
}

void cli_spawn_unguard(void)
{
    for (int i = 0; i < SIGNALS; i++) {
        (void)sigaction(signals[i], &before[i], NULL);
    }
    if (caught != 0) {
        (void)raise((int)caught);
    }
}

// Writes the line of a log that has the reason of a failure, without control
// characters: the first one with that word, as npm prints it before its advice,
// else the last one that is not blank.
static void reason_line(const char *log, char line[LINE_SIZE])
{
    char text[LINE_SIZE];
    bool found = false;
    line[0] = '\0';
    FILE *const file = fopen(log, "r");
    if (file == NULL) {
        return;
    }
    while (!found && fgets(text, sizeof(text), file) != NULL) {
        text[strcspn(text, "\r\n")] = '\0';
        found = strstr(text, " reason: ") != NULL;
        if (text[strspn(text, " \t")] != '\0') {
            memcpy(line, text, sizeof(text));
        }
    }
    (void)fclose(file);
    for (char *at = line; *at != '\0'; at++) {
        *at = *at < ' ' && *at >= 0 ? ' ' : *at;
    }
}

static int start_program(const char *const *words, const char *log, pid_t *out)
{
    posix_spawn_file_actions_t actions;
    int code = posix_spawn_file_actions_init(&actions);
    if (code != 0) {
        return code;
    }
    code = posix_spawn_file_actions_addopen(
        &actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (code == 0) {
        code = posix_spawn_file_actions_addopen(
            &actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_TRUNC,
            LOG_MODE);
    }
    if (code == 0) {
        code = posix_spawn_file_actions_adddup2(
            &actions, STDOUT_FILENO, STDERR_FILENO);
    }
    if (code == 0) {
        // posix_spawnp does not change the words; its type predates const.
        char *const *const argv = (char *const *)(const void *)words;
        code = posix_spawnp(out, words[0], &actions, NULL, argv, environ);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return code;
}

static lac_status interrupted(const char *program)
{
    return lac_fail(
        LAC_ERR_INVALID, "%s: interrupted, no file was changed", program);
}

lac_status cli_spawn(const char *const *words, const char *log)
{
    pid_t pid = 0;
    int state = 0;
    if (caught != 0) {
        return interrupted(words[0]);
    }
    const int code = start_program(words, log, &pid);
    if (code != 0) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED, "%s: cannot be started: %s", words[0],
            strerror(code));
    }
    child = (sig_atomic_t)pid;
    if (caught != 0) {
        (void)kill(pid, (int)caught); // it came before `child` was set
    }
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR) {
    }
    child = 0;
    if (caught != 0) {
        return interrupted(words[0]);
    }
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0) {
        return LAC_OK;
    }
    char line[LINE_SIZE];
    reason_line(log, line);
    return lac_fail(
        LAC_ERR_INVALID, "%s %s: %s %d%s%s", words[0], words[1],
        WIFEXITED(state) ? "failed with exit code" : "was killed by signal",
        WIFEXITED(state) ? WEXITSTATUS(state) : WTERMSIG(state),
        line[0] == '\0' ? "" : ": ", line);
}
