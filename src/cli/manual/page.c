// SPDX-License-Identifier: MIT
// The sections of a manual page, in the order of mdoc(7).
#include "cli/manual/page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/manual/mdoc.h"
#include "cli/manual/topics.h"
#include "cli/options/commands.h"

enum { TITLE_SIZE = 64, HELP_SIZE = 512 };

// Begins a section without hyphenation, which would split names.
static void begin_section(FILE *f, const char *title)
{
    (void)fprintf(f, ".Sh %s\n.nh\n", title);
}

static void begin_list(FILE *f)
{
    (void)fputs(".Bl -tag -width Ds\n", f);
}

// Writes the first lines of the page `name`.
static void write_head(
    FILE *f, const char *name, const char *summary, time_t date)
{
    static const char *const months[] = {
        "January", "February", "March",     "April",   "May",      "June",
        "July",    "August",   "September", "October", "November", "December"};
    struct tm day = {.tm_mday = 1, .tm_year = 70};
    (void)gmtime_r(&date, &day);
    (void)fprintf(
        f, ".Dd %s %d, %d\n.Dt ", months[day.tm_mon], day.tm_mday,
        day.tm_year + 1900);
    for (const char *c = name; *c != '\0'; c++) {
        (void)fputc(toupper((unsigned char)*c), f);
    }
    (void)fprintf(
        f, " 1\n.Os Laconic %s\n.Sh NAME\n.Nm %s\n.Nd", lac_version(), name);
    mdoc_words(f, summary);
    (void)fputc('\n', f);
}

// Writes the words of an option, to follow .Fl: -name Ar VALUE.
static void write_option(FILE *f, const cli_option *o)
{
    char name[TITLE_SIZE];
    (void)snprintf(name, sizeof(name), "-%s", o->name);
    mdoc_words(f, name);
    if (o->value != NULL) {
        (void)fputs(" Ar", f);
        mdoc_words(f, o->value);
    }
}

static void write_synopsis(FILE *f, const cli_command *command)
{
    begin_section(f, "SYNOPSIS");
    (void)fprintf(f, ".Nm laconic\n.Cm %s\n", command->name);
    for (const cli_option *o = command->options; o->name != NULL; o++) {
        const bool required = o->default_value == NULL && o->value != NULL;
        if (o->help != NULL) {
            (void)fputs(required ? ".Fl" : ".Op Fl", f);
            write_option(f, o);
            (void)fputc('\n', f);
        }
    }
    if (*command->arguments != '\0') {
        (void)fputs(".Ar", f);
        mdoc_words(f, command->arguments);
        (void)fputc('\n', f);
    }
}

// Writes the entry of an option: its names, help, words and default.
static void describe_option(FILE *f, const cli_option *o)
{
    char help[HELP_SIZE];
    const bool choice = o->type == CLI_OPTION_CHOICE;
    const bool required = o->default_value == NULL && o->value != NULL;
    const bool has_default =
        o->default_value != NULL && *o->default_value != '\0';
    (void)fputs(".It Fl", f);
    write_option(f, o);
    if (o->brief != 0) {
        (void)fprintf(f, " , Fl %c", o->brief);
        if (o->value != NULL) {
            (void)fputs(" Ar", f);
            mdoc_words(f, o->value);
        }
    }
    (void)snprintf(
        help, sizeof(help), "%s%s%s%s%s%s", o->help, choice ? ": " : "",
        choice ? o->choices : "", has_default ? " (default: " : "",
        has_default ? o->default_value : "",
        has_default ? ")" : (required ? " (required)" : ""));
    (void)fputc('\n', f);
    mdoc_text(f, help);
}

// Writes what --help has at its end.
static lac_status write_notes(FILE *f, const cli_command *command)
{
    char *text = NULL;
    size_t len = 0;
    FILE *const notes = open_memstream(&text, &len);
    if (notes == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for a manual page");
    }
    command->notes(notes);
    const bool good = fclose(notes) == 0;
    if (good) {
        mdoc_literal(f, text);
    }
    free(text);
    return good ? LAC_OK
                : lac_fail(LAC_ERR_NOMEM, "no memory for a manual page");
}

static lac_status describe_options(FILE *f, const cli_command *command)
{
    begin_section(f, "OPTIONS");
    begin_list(f);
    for (const cli_option *o = command->options; o->name != NULL; o++) {
        if (o->help != NULL) {
            describe_option(f, o);
        }
    }
    (void)fputs(
        ".It Fl \\-help\nprint a short description, with\n"
        ".Fl \\-no\\-pager\nwithout a pager\n.El\n",
        f);
    return command->notes == NULL ? LAC_OK : write_notes(f, command);
}

static void write_topic(FILE *f, const cli_topic *t)
{
    static const char *const macros[] = {
        [CLI_SECTION_ENVIRONMENT] = " Ev",
        [CLI_SECTION_FILES] = " Pa",
        [CLI_SECTION_EXIT] = ""};
    (void)fprintf(f, ".It%s", macros[t->section]);
    mdoc_words(f, t->name);
    (void)fputc('\n', f);
    mdoc_text(f, t->text);
}

// Writes a section of topics, if the page has one.
static void write_topics(
    FILE *f, const char *title, cli_section section, const char *page)
{
    size_t at = 0;
    const cli_topic *t = cli_topic_next(section, page, &at);
    if (t == NULL) {
        return;
    }
    begin_section(f, title);
    begin_list(f);
    for (; t != NULL; t = cli_topic_next(section, page, &at)) {
        write_topic(f, t);
    }
    (void)fputs(".El\n", f);
}

static void write_exit_status(FILE *f, const char *page)
{
    size_t at = 0;
    const cli_topic *t = NULL;
    begin_section(f, "EXIT STATUS");
    begin_list(f);
    (void)fprintf(
        f,
        ".It %d\nsuccess\n"
        ".It %d\nfailure; the message on standard error has the reason\n"
        ".It %d\nwrong command line, nothing was done\n",
        CLI_GOOD, CLI_FAILED, CLI_USAGE);
    while ((t = cli_topic_next(CLI_SECTION_EXIT, page, &at)) != NULL) {
        write_topic(f, t);
    }
    (void)fputs(".El\n", f);
}

// Whether the texts of a command mention `laconic NAME`.
static bool mentions(const cli_command *command, const char *name)
{
    char text[TITLE_SIZE];
    (void)snprintf(text, sizeof(text), "laconic %s", name);
    bool found = strstr(command->details, text) != NULL;
    for (const cli_option *o = command->options; o->name != NULL; o++) {
        found = found || (o->help != NULL && strstr(o->help, text) != NULL);
    }
    return found;
}

// Returns the command whose name follows `name` in the order of the alphabet,
// or NULL.
static const cli_command *next_command(const char *name)
{
    size_t count = 0;
    const cli_command *const *const commands = cli_commands(&count);
    const cli_command *next = NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(commands[i]->name, name) > 0 &&
            (next == NULL || strcmp(commands[i]->name, next->name) < 0)) {
            next = commands[i];
        }
    }
    return next;
}

// Writes the references of a page; of laconic(1) where `command` is NULL.
static void write_references(FILE *f, const cli_command *command)
{
    const char *separator = command == NULL ? "" : " ,\n";
    begin_section(f, "SEE ALSO");
    (void)fputs(command == NULL ? "" : ".Xr laconic 1", f);
    for (const cli_command *other = next_command(""); other != NULL;
         other = next_command(other->name)) {
        if (command == NULL ||
            (other != command && mentions(command, other->name))) {
            (void)fprintf(f, "%s.Xr laconic\\-%s 1", separator, other->name);
            separator = " ,\n";
        }
    }
    (void)fputc('\n', f);
}

lac_status manual_command(FILE *f, const cli_command *command, time_t date)
{
    char name[TITLE_SIZE];
    (void)snprintf(name, sizeof(name), "laconic-%s", command->name);
    write_head(f, name, command->summary, date);
    write_synopsis(f, command);
    begin_section(f, "DESCRIPTION");
    mdoc_text(f, command->details);
    LAC_TRY(describe_options(f, command));
    write_topics(f, "ENVIRONMENT", CLI_SECTION_ENVIRONMENT, command->name);
    write_topics(f, "FILES", CLI_SECTION_FILES, command->name);
    write_exit_status(f, command->name);
    if (command->example != NULL) {
        begin_section(f, "EXAMPLES");
        mdoc_text(f, command->example);
    }
    write_references(f, command);
    return LAC_OK;
}

static void write_commands(FILE *f)
{
    size_t count = 0;
    const cli_command *const *const commands = cli_commands(&count);
    (void)fputs(".Bl -tag -width completion -compact\n", f);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(f, ".It Cm %s\n", commands[i]->name);
        mdoc_text(f, commands[i]->summary);
    }
    (void)fputs(".El\n", f);
}

static void describe_program(FILE *f)
{
    begin_section(f, "DESCRIPTION");
    mdoc_text(
        f, "Workers that train one model together exchange gradients or models "
           "in every\nstep. Laconic compresses what they send. It trains with "
           "threads, MPI\nprocesses or machines on any network, and measures "
           "when compression does\nnot pay. Each command has a page of its "
           "own, such as laconic-train(1).\n\nThe commands are:");
    write_commands(f);
    (void)fputs(".Pp\n", f);
    mdoc_text(
        f, "Algorithms, compressors, topologies, transports, models and data "
           "sets are\nnamed by specs:\n\n    name:key=value,key=value\n\n"
           "The first key may be omitted, as in `top-k:0.01`.\n"
           "`laconic list` prints all names, their settings and defaults.\n\n"
           "Results go to standard output, as tables or with `--json` as one "
           "object;\nprogress and messages go to standard error.");
}

void manual_program(FILE *f, time_t date)
{
    write_head(
        f, "laconic", "compressed communication for distributed training",
        date);
    begin_section(f, "SYNOPSIS");
    (void)fputs(
        ".Nm\n.Op Fl \\-no\\-pager\n.Ar command\n"
        ".Op Fl \\-option Ar value\n.Op Ar argument ...\n"
        ".Nm\n.Fl \\-help\n.Nm\n.Fl \\-version\n",
        f);
    describe_program(f);
    begin_section(f, "OPTIONS");
    begin_list(f);
    (void)fputs(
        ".It Fl \\-help\nlist the commands\n"
        ".It Fl \\-no\\-pager\nshow help and lists without a pager\n"
        ".It Fl \\-version\nprint the version\n.El\n",
        f);
    write_topics(f, "ENVIRONMENT", CLI_SECTION_ENVIRONMENT, "laconic");
    write_topics(f, "FILES", CLI_SECTION_FILES, "laconic");
    write_exit_status(f, "laconic");
    begin_section(f, "EXAMPLES");
    mdoc_text(
        f, "Train without and with compression, and compare the two runs:\n\n"
           "    laconic train --algorithm dpsgd --out runs/exact\n"
           "    laconic train --algorithm powergossip --out runs/small\n"
           "    laconic compare runs/exact runs/small");
    write_references(f, NULL);
}
