// SPDX-License-Identifier: MIT
// What manual pages have beyond the tables of options: exit codes, environment
// variables and files.
#ifndef LACONIC_CLI_MANUAL_TOPICS_H
#define LACONIC_CLI_MANUAL_TOPICS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum cli_section {
    CLI_SECTION_ENVIRONMENT,
    CLI_SECTION_FILES,
    CLI_SECTION_EXIT,
} cli_section;

typedef struct cli_topic {
    cli_section section;
    const char *pages; // names of commands, and "laconic" for its own page
    const char *name;
    const char *text; // as paragraphs
} cli_topic;

// cli_topic_next returns the next topic of a section that the page `page` has,
// or NULL. `*at_inout` is 0 at first.
const cli_topic *cli_topic_next(
    cli_section section, const char *page, size_t *at_inout);

#endif
