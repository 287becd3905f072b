// SPDX-License-Identifier: MIT
// The frame of a report: head, switches of the curves, sections, script. A
// switch works by a style alone. The policy in the head permits no request and
// no script but ours, by its hash, should a name ever get past the escaping.
#include "cli/page/document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/notes.h"
#include "cli/compare/settings.h"
#include "cli/page/sections.h"
#include "cli/report/markup.h"
#include "data/output.h"
#include "data/sha256.h"

enum { COLOURS = 8, HASH_BYTES = 32, HASH_SIZE = 48 };

// Writes the SHA-256 of the script in base64.
static void script_hash(char out[HASH_SIZE])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[DATA_SHA256_SIZE];
    uint32_t bytes[HASH_BYTES + 1] = {0}; // 33 is a multiple of 3
    data_sha256((const uint8_t *)page_script, strlen(page_script), text);
    for (size_t i = 0; i < HASH_BYTES; i++) {
        const char pair[] = {text[2 * i], text[2 * i + 1], '\0'};
        bytes[i] = (uint32_t)strtoul(pair, NULL, 16);
    }
    for (size_t i = 0; i <= HASH_BYTES; i += 3) {
        const uint32_t group =
            bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2];
        for (int k = 0; k < 4; k++) {
            *out++ = digits[group >> (18 - 6 * k) & 63];
        }
    }
    out[-1] = '=';
    *out = '\0';
}

static void put_page_title(FILE *f, const page_inputs *in)
{
    char title[COMPARE_TITLE_SIZE];
    if (in->runs.group_count == 1 &&
        *compare_title(in->runs.groups, title) != '\0') {
        cli_markup_text(f, title);
    } else if (in->runs.group_count > 1) {
        (void)fprintf(
            f, "%zu groups of runs, of different models or data",
            in->runs.group_count);
    } else {
        (void)fputs("Laconic report", f);
    }
}

// Curves of the same colour have different dashes: none, long ones, dots, then
// long ones with more and more dots between them.
static void put_dashes(FILE *f, size_t i)
{
    const size_t round = i / COLOURS;
    if (round == 0) {
        return;
    }
    (void)fprintf(
        f, ".r%zu{--fill:none}.r%zu path,.l%zu path{stroke-dasharray:%s", i, i,
        i, round == 2 ? "2 2.5" : "6 3");
    for (size_t dot = 2; dot < round; dot++) {
        (void)fputs(" 1.5 3", f);
    }
    (void)fputs("}\n", f);
}

// The colour of a curve, its switch, and the switch under the pointer.
static void put_style(FILE *f, size_t i)
{
    (void)fprintf(
        f,
        ".r%zu,.l%zu{--c:var(--k%zu)}"
        "body:has(#s%zu:not(:checked)) :is(.curve,.beyond).r%zu{display:none}"
        "body:has(.l%zu:hover) .curve:not(.r%zu){opacity:.12}\n",
        i, i, i % COLOURS, i, i, i, i);
    put_dashes(f, i);
}

static void put_head(FILE *f, const page_inputs *in)
{
    char hash[HASH_SIZE];
    script_hash(hash);
    (void)fprintf(
        f,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
        "<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
        "'none'; style-src 'unsafe-inline'; script-src 'sha256-%s'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n"
        "<meta name=\"generator\" content=\"laconic %s\">\n<title>",
        hash, lac_version());
    put_page_title(f, in);
    (void)fprintf(f, "</title>\n<style>\n%s", page_style);
    for (size_t i = 0; i < page_style_count(in); i++) {
        put_style(f, i);
    }
    (void)fputs("</style>\n</head>\n", f);
}

static void put_switch(
    FILE *f, size_t style, const char *name, const char *about)
{
    (void)fprintf(
        f,
        "<li class=\"l%zu\"><label><input type=\"checkbox\" id=\"s%zu\" "
        "checked><svg viewBox=\"0 0 22 10\" class=\"key\"><g class=\"line\">"
        "<path d=\"M0 5H22\"/></g></svg><span>",
        style, style);
    cli_markup_text(f, name);
    (void)fputs("<small>", f);
    cli_markup_text(f, about);
    (void)fputs("</small></span></label></li>\n", f);
}

static void put_run_switches(FILE *f, const compare_runs *c)
{
    char name[COMPARE_NAME_SIZE], text[COMPARE_DIFFERENCES_SIZE];
    for (size_t i = 0; i < c->row_count; i++) {
        const cli_run *const run = &c->runs[c->rows[i].first];
        put_switch(
            f, page_row_style(c, i), compare_row_name(c, i, name),
            compare_differences(c, run, text));
    }
}

static void put_switches(FILE *f, const page_inputs *in)
{
    (void)fputs("<nav><h2>Curves</h2>\n<ul class=\"switches\">\n", f);
    for (size_t i = 0; i < in->runs.group_count; i++) {
        put_run_switches(f, &in->runs.groups[i]);
    }
    for (size_t i = 0; i < in->trace_count; i++) {
        put_switch(f, page_trace_style(in, i), in->traces[i].path, "trace");
    }
    for (size_t i = 0; i < in->plan_count; i++) {
        if (in->plans[i].run) {
            put_switch(
                f, page_plan_style(in, i), in->plans[i].path,
                "on another network");
        }
    }
    (void)fputs("</ul></nav>\n", f);
}

// A group has a heading if there are several.
static lac_status put_group(FILE *f, const page_inputs *in, size_t group)
{
    static page_runs_section *const sections[] = {
        page_results, page_training, page_consensus,
        page_time,    page_graphs,   page_settings,
    };
    const compare_runs *const c = &in->runs.groups[group];
    if (in->runs.group_count > 1) {
        char title[COMPARE_TITLE_SIZE];
        (void)fprintf(f, "<h2 class=\"group\" id=\"group-%zu\">", group + 1);
        cli_markup_text(f, compare_title(c, title));
        (void)fputs("</h2>\n", f);
    }
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        LAC_TRY(sections[i](f, c));
    }
    return LAC_OK;
}

static lac_status put_body(FILE *f, const page_inputs *in)
{
    (void)fputs("<body>\n<header><h1>", f);
    put_page_title(f, in);
    (void)fputs("</h1></header>\n<div class=\"page\">\n", f);
    if (page_style_count(in) > 0) {
        put_switches(f, in);
    }
    (void)fputs("<main>\n", f);
    for (size_t i = 0; i < in->runs.group_count; i++) {
        LAC_TRY(put_group(f, in, i));
    }
    LAC_TRY(page_traces(f, in));
    LAC_TRY(page_plans(f, in));
    (void)fprintf(
        f,
        "</main>\n</div>\n<footer>laconic %s</footer>\n<script>%s</script>\n"
        "</body>\n</html>\n",
        lac_version(), page_script);
    return LAC_OK;
}

lac_status page_document_write(
    const page_inputs *in, const char *path, size_t *len_out)
{
    char *text = NULL;
    size_t len = 0;
    FILE *const f = open_memstream(&text, &len);
    lac_status status = LAC_OK;
    bool good = f != NULL;
    if (good) {
        put_head(f, in);
        status = put_body(f, in);
        good = ferror(f) == 0;
        good = fclose(f) == 0 && good;
    }
    if (!good) {
        status = lac_fail(LAC_ERR_NOMEM, "%s: no memory for the page", path);
    }
    if (status == LAC_OK) {
        status = data_file_write(path, (const uint8_t *)text, len);
        *len_out = len;
    }
    free(text);
    return status;
}

void page_heading(FILE *f, const char *id, const char *text)
{
    (void)fprintf(f, "<h2 id=\"%s\">%s</h2>\n", id, text);
}

void page_runs_heading(
    FILE *f, const compare_runs *c, const char *id, const char *text)
{
    if (c->group == 0) {
        page_heading(f, id, text);
    } else {
        (void)fprintf(f, "<h2 id=\"%s-%zu\">%s</h2>\n", id, c->group + 1, text);
    }
}

void page_table(FILE *f)
{
    (void)fputs("<div class=\"scroll\"><table><thead><tr>", f);
}

static void table_field(FILE *f, const char *tag, bool number, const char *text)
{
    (void)fprintf(f, "<%s%s>", tag, number ? " class=\"n\"" : "");
    cli_markup_text(f, text);
    (void)fprintf(f, "</%s>", tag);
}

void page_column(FILE *f, bool number, const char *text)
{
    table_field(f, "th", number, text);
}

void page_table_body(FILE *f)
{
    (void)fputs("</tr></thead>\n<tbody>\n", f);
}

void page_cell(FILE *f, bool number, const char *text)
{
    table_field(f, "td", number, text);
}

void page_table_end(FILE *f)
{
    (void)fputs("</tbody></table></div>\n", f);
}
