// SPDX-License-Identifier: MIT
// Traces of `laconic average`: the error over rounds and over bytes. It falls
// by a factor a round, which is a straight line on a logarithmic axis.
#include <math.h>
#include <stdlib.h>

#include "cli/page/chart.h"
#include "cli/page/sections.h"

typedef enum trace_over {
    TRACE_ROUNDS,
    TRACE_BYTES,
} trace_over;

static const page_axis trace_axes[] = {
    [TRACE_ROUNDS] =
        {.label = "round",
         .before = "round ",
         .kind = PAGE_COUNT,
         .form = PAGE_FROM_ZERO},
    [TRACE_BYTES] =
        {.label = "sent by all workers",
         .before = "",
         .kind = PAGE_BYTES,
         .form = PAGE_WIDE},
};

static page_point trace_point(const page_round *r, trace_over x, bool drift)
{
    return (page_point){
        .x = x == TRACE_ROUNDS ? r->round : r->payload,
        .y = drift ? r->drift : r->error,
        .spread = (double)NAN,
    };
}

static size_t count_rounds(const page_inputs *in)
{
    size_t rounds = 0;
    for (size_t i = 0; i < in->trace_count; i++) {
        rounds += in->traces[i].count;
    }
    return rounds;
}

static lac_status put_trace_chart(
    FILE *f, const page_inputs *in, const char *title, trace_over x, bool drift)
{
    page_curve *const curves = calloc(in->trace_count, sizeof(*curves));
    page_point *const points = calloc(count_rounds(in) + 1, sizeof(*points));
    const bool good = curves != NULL && points != NULL;
    size_t used = 0;
    for (size_t i = 0; good && i < in->trace_count; i++) {
        const page_trace *const t = &in->traces[i];
        curves[i] = (page_curve){
            .name = t->path,
            .style = page_trace_style(in, i),
            .points = points + used,
            .count = t->count,
        };
        for (size_t k = 0; k < t->count; k++) {
            points[used++] = trace_point(&t->rounds[k], x, drift);
        }
    }
    const page_chart chart = {
        .title = title,
        .x = trace_axes[x],
        .y = {.kind = PAGE_NUMBER, .form = PAGE_LOG},
        .curves = curves,
        .count = in->trace_count,
    };
    const lac_status status =
        good ? page_chart_put(f, &chart)
             : lac_fail(LAC_ERR_NOMEM, "no memory for curves");
    free(curves);
    free(points);
    return status;
}

static void put_trace_table(FILE *f, const page_inputs *in)
{
    char text[PAGE_VALUE_SIZE];
    page_table(f);
    page_column(f, false, "trace");
    page_column(f, true, "rounds");
    page_column(f, true, "initial error");
    page_column(f, true, "final error");
    page_column(f, true, "drift of the mean");
    page_column(f, true, "bytes");
    page_table_body(f);
    for (size_t i = 0; i < in->trace_count; i++) {
        const page_trace *const t = &in->traces[i];
        const page_round *const last = &t->rounds[t->count - 1];
        (void)fprintf(f, "<tr class=\"r%zu\">", page_trace_style(in, i));
        page_cell(f, false, t->path);
        page_cell(f, true, page_value(PAGE_COUNT, last->round, text));
        page_cell(f, true, page_value(PAGE_NUMBER, t->rounds[0].error, text));
        page_cell(f, true, page_value(PAGE_NUMBER, last->error, text));
        page_cell(f, true, page_value(PAGE_NUMBER, last->drift, text));
        page_cell(f, true, page_value(PAGE_BYTES, last->payload, text));
        (void)fputs("</tr>\n", f);
    }
    page_table_end(f);
}

lac_status page_traces(FILE *f, const page_inputs *in)
{
    if (in->trace_count == 0) {
        return LAC_OK;
    }
    page_heading(f, "averaging", "Averaging");
    (void)fputs(
        "<p>Traces of <code>laconic average</code>: the mean over workers of "
        "the squared distance to the initial mean, and the squared distance "
        "of the mean from there.</p>\n<div class=\"charts\">\n",
        f);
    LAC_TRY(put_trace_chart(f, in, "Error over rounds", TRACE_ROUNDS, false));
    LAC_TRY(put_trace_chart(f, in, "Error over bytes", TRACE_BYTES, false));
    LAC_TRY(put_trace_chart(f, in, "Drift over rounds", TRACE_ROUNDS, true));
    (void)fputs("</div>\n", f);
    put_trace_table(f, in);
    return LAC_OK;
}
