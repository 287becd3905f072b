// SPDX-License-Identifier: MIT
// Guards one process. The process is the first of a process group of its own,
// so that what it starts ends with it, and so that Ctrl-C reaches the launcher
// alone.
#include "cli/process/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "cli/launch/launch.h"
#include "cli/options/commands.h"
#include "cli/process/clock.h"
#include "cli/process/signals.h"

enum {
    NOT_FOUND = 127,
    SIGNAL_CODE = 128,
    FILE_PATH_SIZE = 4096,
    SPEC_SIZE = 2048
};

typedef struct guard {
    pid_t process;
    double deadline; // for SIGKILL; 0: none
    bool ending;
    int state; // as waitpid reports it
} guard;

// ---- In the new process ----

// Ends this process with its parent. Without it, a guard that is killed leaves
// its process behind.
static void die_with(pid_t parent)
{
#ifdef __linux__
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(CLI_FAILED); // it was gone before
    }
#else
    (void)parent;
#endif
}

static void use_no_input(void)
{
    const int empty = open("/dev/null", O_RDONLY);
    if (empty > 0) {
        (void)dup2(empty, STDIN_FILENO);
        (void)close(empty);
    }
}

// Runs this program again with the words of a subcommand.
static void run_subcommand(char **words)
{
    char self[FILE_PATH_SIZE];
    size_t count = 0;
    while (words[count] != NULL) {
        count++;
    }
    char **const all = calloc(count + 2, sizeof(*all));
    const ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char name[] = "laconic";
    if (all == NULL) {
        return;
    }
    all[0] = name;
    memcpy(all + 1, words, count * sizeof(*all));
    if (len > 0) {
        self[len] = '\0';
        (void)execv(self, all);
    } else {
        (void)execvp(name, all);
    }
}

_Noreturn static void become(const cli_task *task, pid_t parent)
{
    // exec does not change the words; its type predates const.
    char **const words = (char **)(uintptr_t)task->words;
    (void)setpgid(0, 0);
    die_with(parent);
    cli_signals_restore();
    (void)signal(SIGCHLD, SIG_DFL);
    use_no_input();
    if (cli_command_find(words[0]) != NULL) {
        run_subcommand(words);
    } else {
        (void)execvp(words[0], words);
    }
    (void)fprintf(
        stderr, "laconic: launch: cannot start \"%s\": %s\n", words[0],
        strerror(errno));
    _exit(NOT_FOUND);
}

// ---- In the guard ----

static lac_status guard_failed(const char *what, const char *name)
{
    return lac_fail(
        LAC_ERR_INVALID, "launch: cannot %s %s: %s", what, name,
        strerror(errno));
}

static lac_status set_variable(const char *text)
{
    char name[64];
    const size_t len = strcspn(text, "=");
    (void)snprintf(name, sizeof(name), "%.*s", len < 63 ? (int)len : 63, text);
    return setenv(name, text + len + 1, 1) == 0
               ? LAC_OK
               : guard_failed("set the variable", name);
}

static lac_status prepare_process(const cli_task *task, const char *token)
{
    char spec[SPEC_SIZE];
    (void)snprintf(spec, sizeof(spec), "tcp:token=%s%s", token, task->settings);
    for (size_t i = 0; task->environment[i] != NULL; i++) {
        LAC_TRY(set_variable(task->environment[i]));
    }
    if (setenv(CLI_TRANSPORT_VARIABLE, spec, 1) != 0) {
        return guard_failed("set the variable", CLI_TRANSPORT_VARIABLE);
    }
    return chdir(task->folder) == 0
               ? LAC_OK
               : guard_failed("enter the working folder", task->folder);
}

static void begin_end(guard *g)
{
    if (!g->ending) {
        g->ending = true;
        g->deadline = cli_clock() + CLI_END_SECONDS;
        (void)kill(-g->process, SIGTERM);
        (void)kill(-g->process, SIGCONT); // a stopped process takes no signal
    }
}

static void obey(guard *g, char byte)
{
    switch (byte) {
    case CLI_GUARD_INTERRUPT:
        (void)kill(-g->process, SIGINT);
        break;
    case CLI_GUARD_TERMINATE:
        (void)kill(-g->process, SIGTERM);
        break;
    case CLI_GUARD_HANG_UP:
        (void)kill(-g->process, SIGHUP);
        break;
    default:
        begin_end(g);
    }
}

// Returns whether more can come.
static bool read_lifeline(guard *g, int lifeline)
{
    char bytes[16];
    const ssize_t len = read(lifeline, bytes, sizeof(bytes));
    if (len < 0 && (errno == EINTR || errno == EAGAIN)) {
        return true;
    }
    for (ssize_t i = 0; i < len; i++) {
        obey(g, bytes[i]);
    }
    if (len <= 0) {
        begin_end(g);
    }
    return len > 0;
}

// The launcher speaks through the lifeline. A signal that a service manager
// sends to all processes reaches the launcher too, so only SIGCHLD matters
// here.
static bool has_ended(guard *g)
{
    while (cli_signals_next() != 0) {
    }
    return waitpid(g->process, &g->state, WNOHANG) == g->process;
}

static void await(guard *g, int lifeline, int signals)
{
    struct pollfd files[] = {
        {.fd = signals, .events = POLLIN}, {.fd = lifeline, .events = POLLIN}};
    while (!has_ended(g)) {
        (void)poll(files, 2, cli_clock_poll(g->deadline));
        if (files[1].fd >= 0 && files[1].revents != 0 &&
            !read_lifeline(g, lifeline)) {
            files[1].fd = -1;
        }
        if (g->deadline != 0 && cli_clock() >= g->deadline) {
            g->deadline = 0;
            (void)kill(-g->process, SIGKILL);
        }
    }
    (void)kill(-g->process, SIGKILL); // what it left behind
}

static lac_status guard_start(
    const cli_task *task, const char *token, int lifeline, guard *g)
{
    LAC_TRY(prepare_process(task, token));
    const int signals = cli_signals_open();
    const pid_t self = getpid();
    if (signals < 0) {
        return guard_failed("make", "a pipe");
    }
    g->process = fork();
    if (g->process == 0) {
        become(task, self);
    }
    if (g->process < 0) {
        return guard_failed("start", task->words[0]);
    }
    (void)setpgid(g->process, g->process); // the process may be late
    await(g, lifeline, signals);
    return LAC_OK;
}

int cli_guard_run(const cli_task *task, int lifeline, int *signal_out)
{
    *signal_out = 0;
    char token[CLI_TOKEN_PATH_SIZE];
    int file;
    guard g = {0};
    if (cli_token_open(task->token, token, &file) != LAC_OK) {
        return cli_failed();
    }
    const lac_status status = guard_start(task, token, lifeline, &g);
    (void)close(file);
    if (status != LAC_OK) {
        return cli_failed();
    }
    if (WIFEXITED(g.state)) {
        return WEXITSTATUS(g.state);
    }
    *signal_out = WTERMSIG(g.state);
    return SIGNAL_CODE + *signal_out;
}

static bool can_start(const char *folder, size_t len, const char *word)
{
    char path[FILE_PATH_SIZE];
    struct stat about;
    const int written = snprintf(
        path, sizeof(path), "%.*s%s%s", (int)len, folder, len == 0 ? "" : "/",
        word);
    return written > 0 && (size_t)written < sizeof(path) &&
           access(path, X_OK) == 0 && stat(path, &about) == 0 &&
           S_ISREG(about.st_mode);
}

bool cli_guard_finds(const char *word)
{
    const char *path = getenv("PATH");
    if (cli_command_find(word) != NULL) {
        return true;
    }
    if (strchr(word, '/') != NULL || path == NULL) {
        return can_start("", 0, word);
    }
    for (;;) {
        const size_t len = strcspn(path, ":");
        if (can_start(path, len, word)) {
            return true;
        }
        if (path[len] == '\0') {
            return false;
        }
        path += len + 1;
    }
}
