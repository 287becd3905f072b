// SPDX-License-Identifier: MIT
// Results of `laconic plan`: the time of a step for each candidate, and the
// accuracy of runs over the time that they take on another network.
#include <math.h>
#include <stdlib.h>

#include "cli/page/bars.h"
#include "cli/page/chart.h"
#include "cli/page/sections.h"
#include "cli/report/markup.h"

enum { NAME_SIZE = 256 };

static double number_of(const cJSON *o, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(o, name));
}

// "" if there is no such text.
static const char *plan_text_of(const cJSON *o, const char *name)
{
    const char *const text =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name));
    return text == NULL ? "" : text;
}

static const char *candidate_name(const cJSON *o, char name[NAME_SIZE])
{
    const char *const compressor = plan_text_of(o, "compressor");
    (void)snprintf(
        name, NAME_SIZE, "%s%s%s", plan_text_of(o, "algorithm"),
        *compressor == '\0' ? "" : " ", compressor);
    return name;
}

static void plans_network(FILE *f, const cJSON *network)
{
    char latency[PAGE_VALUE_SIZE];
    const double mbit = number_of(network, "bandwidth_mbit");
    if (page_usable(mbit)) {
        (void)fprintf(
            f, ", %.4g %s, latency %s", mbit < 1000 ? mbit : mbit / 1000,
            mbit < 1000 ? "Mbit/s" : "Gbit/s",
            page_value(
                PAGE_SECONDS, number_of(network, "latency_seconds"), latency));
    }
}

// "resnet18, choco sign, 16 workers, 1 Gbit/s, latency 1 ms (plan.json)".
static void put_subject(FILE *f, const page_plan *p)
{
    char workers[PAGE_VALUE_SIZE], name[NAME_SIZE];
    cli_markup_text(f, plan_text_of(p->object, "model"));
    cli_markup_text(f, plan_text_of(p->object, "layout"));
    if (*candidate_name(p->object, name) != '\0') {
        (void)fputs(", ", f);
        cli_markup_text(f, name);
    }
    (void)fprintf(
        f, ", %s workers",
        page_value(PAGE_COUNT, number_of(p->object, "workers"), workers));
    plans_network(f, cJSON_GetObjectItemCaseSensitive(p->object, "network"));
    (void)fputs(" (", f);
    cli_markup_text(f, p->path);
    (void)fputs(")</p>\n", f);
}

// Computation, compression, and the part of the network that shows.
static lac_status put_candidate_bars(FILE *f, const page_plan *p)
{
    static const char *const parts[] = {
        "computation", "compression", "network", NULL};
    const cJSON *const list =
        cJSON_GetObjectItemCaseSensitive(p->object, "candidates");
    const size_t count = (size_t)cJSON_GetArraySize(list);
    page_bar *const bars = calloc(count, sizeof(*bars));
    char(*const names)[NAME_SIZE] = calloc(count, sizeof(*names));
    const bool good = bars != NULL && names != NULL;
    const cJSON *item = list->child;
    for (size_t i = 0; good && item != NULL; i++, item = item->next) {
        bars[i] = (page_bar){
            .name = candidate_name(item, names[i]),
            .parts = {
                number_of(p->object, "step_seconds"),
                number_of(item, "compress_seconds"),
                number_of(item, "network_seconds") -
                    number_of(item, "hidden_seconds")}};
    }
    if (good) {
        page_bars_put(f, "Time of a step", parts, bars, count);
    }
    free(bars);
    free(names);
    return good ? LAC_OK : lac_fail(LAC_ERR_NOMEM, "no memory for bars");
}

static void put_candidate_table(FILE *f, const page_plan *p)
{
    static const struct {
        const char *heading, *key;
        page_kind kind;
    } columns[] = {
        {"step", "step_seconds", PAGE_SECONDS},
        {"times as fast", "speedup", PAGE_NUMBER},
        {"network", "network_seconds", PAGE_SECONDS},
        {"hidden", "hidden_seconds", PAGE_SECONDS},
        {"compression", "compress_seconds", PAGE_SECONDS},
        {"sent by a worker", "payload_bytes", PAGE_BYTES},
    };
    enum { COUNT = sizeof(columns) / sizeof(columns[0]) };
    char name[NAME_SIZE], text[PAGE_VALUE_SIZE];
    const cJSON *item;
    page_table(f);
    page_column(f, false, "algorithm");
    for (size_t i = 0; i < COUNT; i++) {
        page_column(f, true, columns[i].heading);
    }
    page_table_body(f);
    cJSON_ArrayForEach(
        item, cJSON_GetObjectItemCaseSensitive(p->object, "candidates"))
    {
        (void)fputs("<tr>", f);
        page_cell(f, false, candidate_name(item, name));
        for (size_t i = 0; i < COUNT; i++) {
            const double value = number_of(item, columns[i].key);
            page_cell(f, true, page_value(columns[i].kind, value, text));
        }
        (void)fputs("</tr>\n", f);
    }
    page_table_end(f);
}

static lac_status put_plan(FILE *f, const page_plan *p)
{
    (void)fputs("<p>", f);
    put_subject(f, p);
    const char *const advice = plan_text_of(p->object, "advice");
    if (*advice != '\0') {
        (void)fputs("<p class=\"advice\">", f);
        cli_markup_text(f, advice);
        (void)fputs("</p>\n", f);
    }
    LAC_TRY(put_candidate_bars(f, p));
    put_candidate_table(f, p);
    return LAC_OK;
}

static const cJSON *epochs_of(const page_plan *p)
{
    return cJSON_GetObjectItemCaseSensitive(p->object, "epochs");
}

static size_t count_epochs(const page_inputs *in)
{
    size_t epochs = 0;
    for (size_t i = 0; i < in->plan_count; i++) {
        epochs += (size_t)cJSON_GetArraySize(epochs_of(&in->plans[i]));
    }
    return epochs;
}

static size_t plan_points(const page_plan *p, const char *key, page_point *out)
{
    size_t count = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, epochs_of(p))
    {
        out[count++] = (page_point){
            number_of(item, "seconds"), number_of(item, key), (double)NAN};
    }
    return count;
}

// The curves of all runs on other networks.
static lac_status put_run_chart(
    FILE *f, const page_inputs *in, const char *title, const char *key,
    page_kind kind)
{
    page_curve *const curves = calloc(in->plan_count + 1, sizeof(*curves));
    page_point *const points = calloc(count_epochs(in) + 1, sizeof(*points));
    const bool good = curves != NULL && points != NULL;
    size_t count = 0, used = 0;
    for (size_t i = 0; good && i < in->plan_count; i++) {
        const page_plan *const p = &in->plans[i];
        if (p->run) {
            page_curve *const c = &curves[count++];
            *c = (page_curve){
                .name = p->path,
                .style = page_plan_style(in, i),
                .points = points + used,
                .count = plan_points(p, key, points + used),
            };
            used += c->count;
        }
    }
    const page_chart chart = {
        .title = title,
        .x = {"time", "", PAGE_SECONDS, PAGE_FROM_ZERO},
        .y =
            {.kind = kind,
             .form = kind == PAGE_NUMBER ? PAGE_WIDE : PAGE_LINEAR},
        .curves = curves,
        .count = count,
    };
    const lac_status status =
        good ? page_chart_put(f, &chart)
             : lac_fail(LAC_ERR_NOMEM, "no memory for curves");
    free(curves);
    free(points);
    return status;
}

static lac_status put_planned_runs(FILE *f, const page_inputs *in)
{
    page_heading(f, "networks", "On other networks");
    for (size_t i = 0; i < in->plan_count; i++) {
        if (in->plans[i].run) {
            (void)fprintf(f, "<p class=\"dot r%zu\">", page_plan_style(in, i));
            put_subject(f, &in->plans[i]);
        }
    }
    (void)fputs("<div class=\"charts\">\n", f);
    LAC_TRY(put_run_chart(
        f, in, "Accuracy over time", "test_accuracy", PAGE_PERCENT));
    LAC_TRY(put_run_chart(
        f, in, "Perplexity over time", "test_perplexity", PAGE_NUMBER));
    (void)fputs("</div>\n", f);
    return LAC_OK;
}

lac_status page_plans(FILE *f, const page_inputs *in)
{
    const size_t runs = page_style_count(in) - page_plan_style(in, 0);
    if (runs < in->plan_count) {
        page_heading(f, "plans", "Plans");
    }
    for (size_t i = 0; i < in->plan_count; i++) {
        if (!in->plans[i].run) {
            LAC_TRY(put_plan(f, &in->plans[i]));
        }
    }
    return runs == 0 ? LAC_OK : put_planned_runs(f, in);
}
