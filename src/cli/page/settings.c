// SPDX-License-Identifier: MIT
// The settings of runs: tables of those that differ, and a list of the others.
#include "cli/compare/settings.h"

#include "cli/page/sections.h"

enum { COLUMNS_MAX = 8 }; // settings that fit a window of 1,200 pixels

// A table of some of the settings, from number `first` to before `end`.
static void put_differing(
    FILE *f, const compare_runs *c, size_t first, size_t end)
{
    char name[COMPARE_NAME_SIZE], text[COMPARE_SETTING_SIZE];
    page_table(f);
    page_column(f, false, "run");
    for (size_t i = first; i < end; i++) {
        page_column(f, false, c->differing[i]);
    }
    page_table_body(f);
    for (size_t i = 0; i < c->row_count; i++) {
        (void)fprintf(f, "<tr class=\"r%zu\">", page_row_style(c, i));
        page_cell(f, false, compare_row_name(c, i, name));
        for (size_t k = first; k < end; k++) {
            const char *const value = compare_setting(
                &c->runs[c->rows[i].first], c->differing[k], text);
            page_cell(f, false, value == NULL ? "" : value);
        }
        (void)fputs("</tr>\n", f);
    }
    page_table_end(f);
}

static void put_shared(FILE *f, const compare_runs *c)
{
    char text[COMPARE_SETTING_SIZE];
    const cli_run *const run = &c->runs[0];
    const cJSON *item;
    (void)fprintf(
        f, "<details%s><summary>Settings that all runs share</summary>\n",
        c->differing_count == 0 ? " open" : "");
    page_table(f);
    page_column(f, false, "setting");
    page_column(f, false, "value");
    page_table_body(f);
    cJSON_ArrayForEach(item, run->settings)
    {
        if (compare_setting_counts(item->string) &&
            !compare_setting_differs(c, item->string) &&
            compare_setting(run, item->string, text) != NULL) {
            (void)fputs("<tr>", f);
            page_cell(f, false, item->string);
            page_cell(f, false, text);
            (void)fputs("</tr>\n", f);
        }
    }
    page_table_end(f);
    (void)fputs("</details>\n", f);
}

lac_status page_settings(FILE *f, const compare_runs *c)
{
    page_runs_heading(f, c, "settings", "Settings");
    for (size_t i = 0; i < c->differing_count; i += COLUMNS_MAX) {
        const size_t left = c->differing_count - i;
        put_differing(f, c, i, i + (left < COLUMNS_MAX ? left : COLUMNS_MAX));
    }
    put_shared(f, c);
    return LAC_OK;
}
