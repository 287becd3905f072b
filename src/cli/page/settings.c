// SPDX-License-Identifier: MIT
// The settings of runs: a table of those that differ, and a list of the others.
#include "cli/compare/settings.h"

#include "cli/page/sections.h"

static void put_differing(FILE *f, const compare_runs *c)
{
    char name[COMPARE_NAME_SIZE], text[COMPARE_SETTING_SIZE];
    page_table(f);
    page_column(f, false, "run");
    for (size_t i = 0; i < c->differing_count; i++) {
        page_column(f, false, c->differing[i]);
    }
    page_table_body(f);
    for (size_t i = 0; i < c->row_count; i++) {
        (void)fprintf(f, "<tr class=\"r%zu\">", page_row_style(c, i));
        page_cell(f, false, compare_row_name(c, i, name));
        for (size_t k = 0; k < c->differing_count; k++) {
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
    if (c->differing_count > 0) {
        put_differing(f, c);
    }
    put_shared(f, c);
    return LAC_OK;
}
