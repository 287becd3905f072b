// SPDX-License-Identifier: MIT
// Shows a text in a pager, as git does. The text is complete before the pager
// starts, in a temporary file that becomes its standard input: so there is no
// pipe that the pager can close, and the text is still there if the pager
// cannot be started.
#include "cli/report/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// The exit codes of a shell that cannot run its command.
enum { CANNOT_RUN = 126, NOT_FOUND = 127 };

// Signals of the keyboard are for the pager.
static const int keys[] = {SIGINT, SIGQUIT};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

void cli_pager_disable(void)
{
    (void)setenv(CLI_PAGER_VARIABLE, "", 1);
}

// Returns the command of the pager that the user named, else NULL.
static const char *named_pager(void)
{
    const char *const own = getenv(CLI_PAGER_VARIABLE);
    return own != NULL ? own : getenv(CLI_PAGERS_VARIABLE);
}

static bool is_wanted(void)
{
    const char *const named = named_pager();
    return isatty(STDOUT_FILENO) == 1 &&
           (named == NULL || (*named != '\0' && strcmp(named, "cat") != 0));
}

// Lets `print` write to the file instead of stdout. Returns whether the file
// has all of it.
static bool print_to_file(
    int file, void (*print)(const void *context), const void *context)
{
    (void)fflush(stdout);
    const int terminal = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (terminal < 0 || dup2(file, STDOUT_FILENO) < 0) {
        if (terminal >= 0) {
            (void)close(terminal);
        }
        return false;
    }
    print(context);
    const bool whole = fflush(stdout) == 0 && ferror(stdout) == 0;
    clearerr(stdout);
    (void)dup2(terminal, STDOUT_FILENO);
    (void)close(terminal);
    return whole;
}

// Starts the pager with the file as its standard input. A command of the user
// may have arguments, so a shell reads it.
static bool start_pager(int file, const sigset_t *restored, pid_t *out)
{
    const char *const named = named_pager();
    const char *const words[] = {
        named == NULL ? "less" : "sh", named == NULL ? NULL : "-c", named,
        NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return false;
    }
    if (posix_spawnattr_init(&attributes) != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return false;
    }
    bool good =
        posix_spawn_file_actions_adddup2(&actions, file, STDIN_FILENO) == 0 &&
        posix_spawnattr_setsigdefault(&attributes, restored) == 0 &&
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF) == 0;
    // posix_spawnp does not change the words; its type predates const.
    char *const *const argv = (char *const *)(const void *)words;
    good =
        good &&
        posix_spawnp(out, words[0], &actions, &attributes, argv, environ) == 0;
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return good;
}

// Ignores the signals of the keyboard. Writes what they did before, and which
// of them the pager gets back.
static void ignore_keys(struct sigaction before[KEYS], sigset_t *restored_out)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigemptyset(&ignore.sa_mask);
    (void)sigemptyset(restored_out);
    for (int i = 0; i < KEYS; i++) {
        (void)sigaction(keys[i], &ignore, &before[i]);
        if (before[i].sa_handler != SIG_IGN) {
            (void)sigaddset(restored_out, keys[i]);
        }
    }
}

// Returns whether the pager has shown the file.
static bool show_file(int file)
{
    struct sigaction before[KEYS];
    sigset_t restored;
    pid_t pid = 0;
    int state = 0;
    // As git: end if the text fits (F), keep colours (R) and the screen (X).
    (void)setenv("LESS", "FRX", 0);
    ignore_keys(before, &restored);
    const bool started =
        lseek(file, 0, SEEK_SET) == 0 && start_pager(file, &restored, &pid);
    while (started && waitpid(pid, &state, 0) < 0 && errno == EINTR) {
    }
    for (int i = 0; i < KEYS; i++) {
        (void)sigaction(keys[i], &before[i], NULL);
    }
    return started && !(WIFEXITED(state) && (WEXITSTATUS(state) == NOT_FOUND ||
                                             WEXITSTATUS(state) == CANNOT_RUN));
}

static void copy_file(FILE *file)
{
    char text[BUFSIZ];
    size_t len;
    rewind(file);
    while ((len = fread(text, 1, sizeof(text), file)) > 0) {
        (void)fwrite(text, 1, len, stdout);
    }
}

void cli_paged(void (*print)(const void *context), const void *context)
{
    FILE *const file = is_wanted() ? tmpfile() : NULL;
    if (file == NULL || !print_to_file(fileno(file), print, context)) {
        print(context);
    } else if (!show_file(fileno(file))) {
        copy_file(file);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}
