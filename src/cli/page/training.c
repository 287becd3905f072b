// SPDX-License-Identifier: MIT
// The curves of training: each metric over epochs, bytes and time. Runs that
// differ by their seed are faint, and their mean is the curve.
#include <math.h>
#include <stdlib.h>

#include "cli/compare/notes.h"
#include "cli/page/chart.h"
#include "cli/page/sections.h"

// What x is.
typedef enum over {
    OVER_EPOCHS,
    OVER_BYTES,
    OVER_TIME,
    OVERS,
} over;

static const page_axis x_axes[OVERS] = {
    [OVER_EPOCHS] = {.label = "epoch", .before = "epoch ", .kind = PAGE_COUNT},
    [OVER_BYTES] =
        {.label = "sent by all workers",
         .before = "",
         .kind = PAGE_BYTES,
         .form = PAGE_WIDE},
    [OVER_TIME] =
        {.label = "time of a worker",
         .before = "",
         .kind = PAGE_SECONDS,
         .form = PAGE_FROM_ZERO},
};

// The metric of a group of charts.
typedef struct quantity {
    cli_metric metric;
    page_kind kind;
    const char *titles[OVERS]; // NULL: no such chart
} quantity;

// Memory for the curves of one chart.
typedef struct drawing {
    const compare_runs *c;
    char (*names)[COMPARE_NAME_SIZE];
    page_curve *curves;
    page_point *points;
    size_t count, used;
} drawing;

static lac_status drawing_open(drawing *d, const compare_runs *c)
{
    size_t points = 0;
    for (size_t i = 0; i < c->count; i++) {
        points += 2 * c->runs[i].count; // their own, and those of a mean
    }
    *d = (drawing){
        .c = c,
        .names = calloc(c->row_count + 1, sizeof(*d->names)),
        .curves = calloc(2 * c->count + 1, sizeof(*d->curves)),
        .points = calloc(points + 1, sizeof(*d->points)),
    };
    if (d->names == NULL || d->curves == NULL || d->points == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for %zu points", points);
    }
    for (size_t i = 0; i < c->row_count; i++) {
        (void)compare_row_name(c, i, d->names[i]);
    }
    return LAC_OK;
}

static void drawing_close(drawing *d)
{
    free(d->names);
    free(d->curves);
    free(d->points);
}

static double x_of(const cli_run_epoch *e, over x)
{
    return x == OVER_EPOCHS  ? e->epoch
           : x == OVER_BYTES ? e->values[CLI_METRIC_PAYLOAD_BYTES]
                             : e->values[CLI_METRIC_SECONDS];
}

// The mean over the runs of a row, which have equally many epochs.
static page_point mean_point(
    const compare_runs *c, const compare_row *r, size_t epoch, over x,
    cli_metric y)
{
    page_point mean = {0};
    double squares = 0;
    for (size_t i = 0; i < r->count; i++) {
        const cli_run_epoch *const e = &c->runs[r->first + i].epochs[epoch];
        mean.x += x_of(e, x) / (double)r->count;
        mean.y += e->values[y] / (double)r->count;
    }
    for (size_t i = 0; i < r->count; i++) {
        const cli_run_epoch *const e = &c->runs[r->first + i].epochs[epoch];
        squares += (e->values[y] - mean.y) * (e->values[y] - mean.y);
    }
    mean.spread =
        r->count < 2 ? (double)NAN : sqrt(squares / (double)(r->count - 1));
    return mean;
}

// Adds the curve of some runs of a row: of one, or the mean of all.
static void add_curve(
    drawing *d, size_t row, compare_row of, over x, const quantity *q)
{
    page_point *const points = d->points + d->used;
    const size_t count = d->c->runs[of.first].count;
    for (size_t i = 0; i < count; i++) {
        points[i] = mean_point(d->c, &of, i, x, q->metric);
    }
    d->used += count;
    d->curves[d->count++] = (page_curve){
        .name = d->names[row],
        .style = page_row_style(d->c, row),
        .faint = of.count < d->c->rows[row].count,
        .points = points,
        .count = count,
    };
}

static lac_status put_chart(FILE *f, drawing *d, const quantity *q, over x)
{
    const compare_runs *const c = d->c;
    d->count = 0;
    d->used = 0;
    for (size_t i = 0; i < c->row_count; i++) {
        const compare_row r = c->rows[i];
        for (size_t k = 0; k < r.count && r.count > 1; k++) {
            add_curve(d, i, (compare_row){r.first + k, 1}, x, q);
        }
        add_curve(d, i, r, x, q);
    }
    const page_chart chart = {
        .title = q->titles[x],
        .x = x_axes[x],
        .y =
            {.kind = q->kind,
             .form = q->kind == PAGE_NUMBER ? PAGE_WIDE : PAGE_LINEAR},
        .curves = d->curves,
        .count = d->count,
    };
    return page_chart_put(f, &chart);
}

static lac_status put_charts(FILE *f, const compare_runs *c, const quantity *q)
{
    drawing d;
    lac_status status = drawing_open(&d, c);
    (void)fputs("<div class=\"charts\">\n", f);
    for (over x = 0; status == LAC_OK && x < OVERS; x++) {
        if (q->titles[x] != NULL) {
            status = put_chart(f, &d, q, x);
        }
    }
    (void)fputs("</div>\n", f);
    drawing_close(&d);
    return status;
}

// Whether an epoch of a run has a finite value that is not 0.
static bool has_values(const compare_runs *c, cli_metric metric)
{
    for (size_t i = 0; i < c->count; i++) {
        for (size_t k = 0; k < c->runs[i].count; k++) {
            const double value = c->runs[i].epochs[k].values[metric];
            if (isfinite(value) && value != 0) {
                return true;
            }
        }
    }
    return false;
}

lac_status page_training(FILE *f, const compare_runs *c)
{
    static const quantity accuracy = {
        CLI_METRIC_TEST_ACCURACY,
        PAGE_PERCENT,
        {"Accuracy over epochs", "Accuracy over bytes", "Accuracy over time"}};
    static const quantity perplexity = {
        CLI_METRIC_TEST_PERPLEXITY,
        PAGE_NUMBER,
        {"Perplexity over epochs", "Perplexity over bytes",
         "Perplexity over time"}};
    static const quantity test = {
        CLI_METRIC_TEST_LOSS,
        PAGE_NUMBER,
        {"Test loss over epochs", "Test loss over bytes",
         "Test loss over time"}};
    static const quantity train = {
        CLI_METRIC_TRAIN_LOSS,
        PAGE_NUMBER,
        {"Training loss over epochs", NULL, NULL}};
    // Texts have an accuracy too; their section is that of perplexity.
    if (!compare_is_text(c) && has_values(c, CLI_METRIC_TEST_ACCURACY)) {
        page_runs_heading(f, c, "accuracy", "Accuracy");
        LAC_TRY(put_charts(f, c, &accuracy));
    }
    if (has_values(c, CLI_METRIC_TEST_PERPLEXITY)) {
        page_runs_heading(f, c, "perplexity", "Perplexity");
        LAC_TRY(put_charts(f, c, &perplexity));
    }
    if (has_values(c, CLI_METRIC_TEST_LOSS) ||
        has_values(c, CLI_METRIC_TRAIN_LOSS)) {
        page_runs_heading(f, c, "loss", "Loss");
        LAC_TRY(put_charts(f, c, &test));
        LAC_TRY(put_charts(f, c, &train));
    }
    return LAC_OK;
}

lac_status page_consensus(FILE *f, const compare_runs *c)
{
    static const quantity distance = {
        CLI_METRIC_CONSENSUS,
        PAGE_NUMBER,
        {"Distance over epochs", "Distance over bytes", NULL}};
    if (!has_values(c, CLI_METRIC_CONSENSUS)) {
        return LAC_OK;
    }
    page_runs_heading(f, c, "consensus", "Consensus");
    (void)fputs(
        "<p>The mean over workers of the squared distance to the mean model. "
        "Algorithms that average gradients keep all models equal.</p>\n",
        f);
    return put_charts(f, c, &distance);
}
