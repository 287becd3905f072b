// SPDX-License-Identifier: MIT
// laconic completion: the scripts with which shells complete command lines, and
// the candidates that they ask for.
#include <stdio.h>
#include <string.h>

#include "cli/complete/candidates.h"
#include "cli/complete/scripts.h"
#include "cli/options/command.h"

typedef struct settings {
    bool candidates;
} settings;

static const cli_option options[] = {
    {.name = "candidates",
     .type = CLI_OPTION_FLAG,
     .offset = offsetof(settings, candidates),
     .help = "list what the last WORD may become"},
    {0},
};

static int completion_run(
    const void *given, size_t count, char *const *arguments)
{
    static const struct {
        const char *shell, *script;
    } scripts[] = {
        {"bash", cli_script_bash},
        {"zsh", cli_script_zsh},
        {"fish", cli_script_fish},
    };
    const settings *const s = given;
    if (s->candidates) {
        cli_candidates(count, arguments, stdout);
        return CLI_GOOD;
    }
    for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
        if (count == 1 && strcmp(arguments[0], scripts[i].shell) == 0) {
            (void)fputs(scripts[i].script, stdout);
            return CLI_GOOD;
        }
    }
    (void)!lac_fail(
        LAC_ERR_INVALID,
        "completion: \"%.100s\" was given, expected bash, zsh or fish",
        arguments[count - 1]);
    return cli_misused("completion");
}

const cli_command cmd_completion = {
    .name = "completion",
    .summary = "print the script that completes commands in a shell",
    .arguments = "bash|zsh|fish | -- WORD...",
    .arguments_min = 1,
    .arguments_max = SIZE_MAX,
    .command_line = true,
    .completes = "bash|zsh|fish",
    .details =
        "Shells complete commands, options, their values and the settings of\n"
        "specs. `make install` puts the scripts where bash (with the package\n"
        "bash-completion), zsh and fish find them. Without it, such as for a\n"
        "command in a build folder, load the script in a running shell:\n"
        "\n"
        "    source <(laconic completion bash)\n"
        "    source <(laconic completion zsh)\n"
        "    laconic completion fish | source\n"
        "\n"
        "The scripts call `laconic completion --candidates -- WORD...` with\n"
        "the words after `laconic` up to the cursor. It prints a line for "
        "each\n"
        "candidate: the word, a tab, and its description; or :files or\n"
        ":folders where a path is expected.",
    .example = "List the compressors that begin with `ran`:\n"
               "\n"
               "    laconic completion --candidates -- encode --compressor ran",
    .options = options,
    .settings_size = sizeof(settings),
    .run = completion_run,
};
