// SPDX-License-Identifier: MIT
// The output of `laconic average`, as JSON and as a table.
#include "cli/average/report.h"

#include <math.h>

#include "train/uncompressed.h"

enum { SPEC_COLUMNS = 48 };

double cli_average_fewer(const cli_average *a)
{
    const double payload = (double)a->result.traffic.payload_bytes;
    const double uncompressed = train_uncompressed_bytes(
        a->result.family, a->algorithm.topology,
        lac_layout_values(a->algorithm.layout), a->result.rounds);
    return payload > 0 ? uncompressed / payload : (double)NAN;
}

// The shape of the values of a worker if they are one matrix.
static bool is_matrix(const cli_average *a, lac_shape *out)
{
    const lac_layout *const layout = a->algorithm.layout;
    if (lac_layout_count(layout) != 1) {
        return false;
    }
    *out = lac_layout_tensor(layout, 0)->shape;
    return out->rows > 1 && out->cols > 1;
}

static void add_shape(const cli_average *a, cJSON *o)
{
    lac_shape shape;
    if (is_matrix(a, &shape)) {
        cJSON_AddNumberToObject(o, "rows", (double)shape.rows);
        cJSON_AddNumberToObject(o, "columns", (double)shape.cols);
    }
    if (a->low_rank > 0) {
        cJSON_AddNumberToObject(o, "low_rank", (double)a->low_rank);
    }
}

cJSON *cli_average_json(const cli_average *a)
{
    const cli_average_result *const r = &a->result;
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "algorithm", a->algorithm.spec);
    cJSON_AddItemToObject(
        o, "compressor", cli_json_text(a->algorithm.compressor));
    cJSON_AddStringToObject(o, "topology", a->topology);
    cJSON_AddNumberToObject(o, "workers", a->world);
    cJSON_AddNumberToObject(
        o, "dimension", (double)lac_layout_values(a->algorithm.layout));
    add_shape(a, o);
    cJSON_AddNumberToObject(o, "seed", (double)a->algorithm.seed);
    cJSON_AddNumberToObject(o, "rounds", (double)r->rounds);
    cJSON_AddNumberToObject(o, "initial_error", r->initial_error);
    cJSON_AddNumberToObject(o, "final_error", r->final_error);
    cJSON_AddNumberToObject(o, "mean_drift", r->mean_drift);
    cJSON_AddBoolToObject(o, "diverged", r->diverged);
    cJSON_AddNumberToObject(
        o, "payload_bytes", (double)r->traffic.payload_bytes);
    cJSON_AddNumberToObject(o, "wire_bytes", (double)r->traffic.wire_bytes);
    cJSON_AddNumberToObject(o, "messages", (double)r->traffic.messages);
    cJSON_AddNumberToObject(o, "seconds", r->seconds);
    if (a->time_only) {
        cJSON_AddNumberToObject(o, "round_seconds", r->round_seconds);
    }
    if (!isnan(r->gamma)) {
        cJSON_AddNumberToObject(o, "gamma", r->gamma);
    }
    return o;
}

// Writes what each worker has: "1,000 values" or "100 x 100 values of rank 5".
static const char *values_text(const cli_average *a, char text[CLI_CELL_SIZE])
{
    char number[CLI_GROUPED_SIZE];
    lac_shape shape;
    if (!is_matrix(a, &shape)) {
        (void)snprintf(
            text, CLI_CELL_SIZE, "%s values",
            cli_grouped(lac_layout_values(a->algorithm.layout), number));
    } else if (a->low_rank == 0) {
        (void)snprintf(
            text, CLI_CELL_SIZE, "%zu x %zu values", shape.rows, shape.cols);
    } else {
        (void)snprintf(
            text, CLI_CELL_SIZE, "%zu x %zu values of rank %zu", shape.rows,
            shape.cols, a->low_rank);
    }
    return text;
}

void cli_average_describe(const cli_average *a, cli_table *t)
{
    char text[CLI_CELL_SIZE];
    // Specs are long: in the column of values they would push the notes out.
    cli_table_row(
        t, "algorithm", "", cli_fitted(a->algorithm.spec, SPEC_COLUMNS, text));
    if (a->algorithm.compressor != NULL) {
        cli_table_row(
            t, "compressor", "",
            cli_fitted(a->algorithm.compressor, SPEC_COLUMNS, text));
    }
    cli_table_add(t, "workers");
    cli_table_add(t, "%u", a->world);
    cli_table_add(
        t, "%s of %s each",
        a->result.family == LAC_FAMILY_MODEL ? a->topology : "all",
        values_text(a, text));
    if (!isnan(a->result.gamma)) {
        cli_table_add(t, "gamma");
        cli_table_add(t, "%.4g", a->result.gamma);
        cli_table_add(t, "%s", "");
    }
}

static void report_errors(const cli_average_result *r, cli_table *t)
{
    char text[CLI_GROUPED_SIZE];
    cli_table_row(
        t, "rounds", cli_grouped(r->rounds, text),
        r->diverged ? "stopped: the values diverge" : "");
    if (isnan(r->initial_error)) {
        return;
    }
    cli_table_add(t, "initial error");
    cli_table_add(t, "%.4g", r->initial_error);
    cli_table_add(t, "squared distance to the mean, mean over workers");
    cli_table_add(t, "final error");
    if (isfinite(r->final_error)) {
        cli_table_add(t, "%.4g", r->final_error);
        if (r->initial_error > 0) {
            cli_table_add(
                t, "%.3g times the initial one",
                r->final_error / r->initial_error);
        } else {
            cli_table_add(t, "%s", "");
        }
        cli_table_add(t, "drift of the mean");
        cli_table_add(t, "%.4g", r->mean_drift);
        cli_table_add(t, "squared distance from the initial mean");
    } else {
        cli_table_add(t, "none");
        cli_table_add(t, "the values grow without bound");
    }
}

static void report_bytes(const cli_average *a, cli_table *t)
{
    const cli_average_result *const r = &a->result;
    char text[CLI_GROUPED_SIZE];
    const double turns = (double)r->rounds * a->world;
    const double payload = (double)r->traffic.payload_bytes;
    if (turns > 0) {
        cli_table_row(
            t, "bytes", cli_grouped((uint64_t)llround(payload / turns), text),
            "of payload per worker and round");
    }
    if (payload > 0) {
        cli_table_add(t, "fewer bytes");
        cli_table_add(t, "%.1f x", cli_average_fewer(a));
        cli_table_add(
            t, "than uncompressed %s",
            r->family == LAC_FAMILY_MODEL ? "gossip" : "all-reduce");
    }
    cli_table_add(t, "time");
    cli_table_add(t, "%.2f s", r->seconds);
    if (a->time_only) {
        cli_table_add(t, "%.4g ms per round", 1e3 * r->round_seconds);
    } else {
        cli_table_add(t, "%s", "");
    }
}

// Whether an error has a place on a logarithmic axis.
static bool is_drawn(double error)
{
    return isfinite(error) && error > 0;
}

// Errors fall, or grow, by a factor each round: on a logarithmic axis they are
// a line.
static void print_curve(const cli_average *a, FILE *stream)
{
    const double *const curve = a->result.curve;
    char high_text[CLI_GROUPED_SIZE], low_text[CLI_GROUPED_SIZE];
    char rounds[CLI_GROUPED_SIZE];
    double low = (double)NAN, high = (double)NAN;
    cli_plot plot = cli_plot_make();
    for (size_t i = 0; i < CLI_AVERAGE_CURVE; i++) {
        low = is_drawn(curve[i]) ? fmin(low, curve[i]) : low;
        high = is_drawn(curve[i]) ? fmax(high, curve[i]) : high;
    }
    if (!(low < high)) {
        return; // nothing was traced, or nothing changed
    }
    for (size_t i = 0; i < CLI_AVERAGE_CURVE; i++) {
        if (is_drawn(curve[i])) {
            cli_plot_put(
                &plot, (double)i / (CLI_AVERAGE_CURVE - 1),
                log(curve[i] / low) / log(high / low), '*');
        }
    }
    (void)snprintf(high_text, sizeof(high_text), "%.2g", high);
    (void)snprintf(low_text, sizeof(low_text), "%.2g", low);
    (void)fprintf(stream, "\nerror over rounds, the error logarithmic\n");
    cli_plot_print(
        &plot,
        &(cli_plot_labels){
            high_text, low_text, "0", cli_grouped(a->rounds, rounds)},
        stream);
}

void cli_average_table(const cli_average *a, FILE *stream)
{
    cli_table t = cli_table_make("lrl", NULL);
    cli_average_describe(a, &t);
    report_errors(&a->result, &t);
    report_bytes(a, &t);
    cli_table_print(&t, stream);
    print_curve(a, stream);
}
