// SPDX-License-Identifier: MIT
// The laconic program: finds a subcommand and runs it.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef LACI_SMPI
#include <unistd.h>
#endif

#include "cli/options/commands.h"
#include "cli/report/pager.h"

static void usage(FILE *stream)
{
    (void)fprintf(
        stream, "usage: laconic COMMAND [--option VALUE]... [ARGUMENT]...\n\n"
                "Compressed communication for distributed training.\n\n");
    size_t count;
    const cli_command *const *const commands = cli_commands(&count);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(
            stream, "  %-10s  %s\n", commands[i]->name, commands[i]->summary);
    }
    (void)fprintf(
        stream, "\n`laconic COMMAND --help` describes a command; "
                "`laconic --version` prints\nthe version. Help and lists are "
                "shown in a pager on a terminal, unless\n"
                "--no-pager is given.\n");
}

static void print_program_help(const void *unused)
{
    (void)unused;
    usage(stdout);
}

static void print_command_help(const void *command)
{
    cli_help(command);
}

static int unknown_command(const char *word)
{
    const char *closest = NULL;
    size_t distance = CLI_CLOSE + 1, count;
    const cli_command *const *const commands = cli_commands(&count);
    for (size_t i = 0; i < count; i++) {
        if (cli_closer(word, commands[i]->name, &distance)) {
            closest = commands[i]->name;
        }
    }
    (void)fprintf(
        stderr, "laconic: unknown command \"%s\"%s%s%s\n", word,
        closest == NULL ? "" : "; did you mean ",
        closest == NULL ? "" : closest, closest == NULL ? "" : "?");
    (void)fprintf(stderr, "try `laconic --help`\n");
    return CLI_USAGE;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool has_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (is_help(argv[i])) {
            return true;
        }
    }
    return false;
}

// Shows the help of a command, or of the program if it is NULL.
static int show_help(const cli_command *command, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], CLI_NO_PAGER) == 0) {
            cli_pager_disable();
        }
    }
    cli_paged(
        command == NULL ? print_program_help : print_command_help, command);
    return CLI_GOOD;
}

static int run_command(const cli_command *command, int argc, char **argv)
{
    if (has_help(argc, argv)) {
        return show_help(command, argc, argv);
    }
    void *const settings = calloc(1, command->settings_size);
    if (settings == NULL) {
        (void)fprintf(stderr, "laconic: no memory for the settings\n");
        return CLI_FAILED;
    }
    size_t count = 0;
    const int code = cli_parse(command, argc, argv, settings, &count) == LAC_OK
                         ? command->run(settings, count, argv)
                         : cli_misused(command->name);
    free(settings);
    return code;
}

// The library reads no environment variables.
static lac_status set_modules(void)
{
    const char *const folder = getenv("LACONIC_MODULES");
    return folder == NULL ? LAC_OK : lac_modules_path(folder);
}

static int run_program(int argc, char **argv)
{
    while (argc > 1 && strcmp(argv[1], CLI_NO_PAGER) == 0) {
        cli_pager_disable();
        argc--;
        argv++;
    }
    if (argc < 2) {
        usage(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("laconic %s\n", lac_version());
        return CLI_GOOD;
    }
    const bool help = strcmp(argv[1], "help") == 0;
    if (is_help(argv[1]) || (help && argc == 2) ||
        (help && strcmp(argv[2], CLI_NO_PAGER) == 0)) {
        return show_help(NULL, argc - 2, argv + 2);
    }
    const char *const name = argv[help ? 2 : 1];
    const cli_command *const command = cli_command_find(name);
    if (command == NULL) {
        return unknown_command(name);
    }
    if (help) {
        return show_help(command, argc - 3, argv + 3);
    }
    if (set_modules() != LAC_OK) {
        cli_print_message("LACONIC_MODULES: ");
        return CLI_USAGE;
    }
    return run_command(command, argc - 2, argv + 2);
}

static int run_and_flush(int argc, char **argv)
{
    const int code = run_program(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        (void)fprintf(
            stderr, "laconic: cannot write to standard output: %s\n",
            strerror(errno));
        return CLI_FAILED;
    }
    return code;
}

int main(int argc, char **argv)
{
    // Exceeding a file-size limit then fails in write, which is reported and
    // cleaned up.
    (void)signal(SIGXFSZ, SIG_IGN);
    const int code = run_and_flush(argc, argv);
#ifdef LACI_SMPI
    // smpirun calls main for every rank, all in this process. The first rank
    // that fails ends it, so that its message is the only one.
    if (code != CLI_GOOD) {
        _exit(code);
    }
#endif
    return code;
}
