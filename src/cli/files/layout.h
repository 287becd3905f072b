// SPDX-License-Identifier: MIT
// The layouts that users name, of a model or of a file, and the options for it.
#ifndef LACONIC_CLI_FILES_LAYOUT_H
#define LACONIC_CLI_FILES_LAYOUT_H

#include <laconic/laconic.h>

// Their lines in a table of options; `settings` is the type they fill.
// clang-format off
#define CLI_OPTIONS_LAYOUT(settings)                                           \
    {.name = "model",                                                          \
     .type = CLI_OPTION_TEXT,                                                  \
     .offset = offsetof(settings, model),                                      \
     .value = "SPEC",                                                          \
     .default_value = "",                                                      \
     .help = "such as resnet18; see `laconic list`"},                          \
    {.name = "layout",                                                         \
     .type = CLI_OPTION_TEXT,                                                  \
     .offset = offsetof(settings, layout),                                     \
     .value = "FILE",                                                          \
     .default_value = "",                                                      \
     .help = "file with a line per tensor, instead of --model"}
// clang-format on

// cli_layout_open opens the layout of a model or of a file. One of the two must
// be empty, the other not. `command` is the subcommand that messages name.
// Returns an exit code; a failure has been reported, and `*out` is NULL.
int cli_layout_open(
    const char *command, const char *model, const char *file, lac_layout **out);

// cli_layout_read opens the layout of a file, which has at least one tensor.
// Fails like data_file_read and lac_layout_parse.
lac_status cli_layout_read(const char *path, lac_layout **out);

#endif
