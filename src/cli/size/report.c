// SPDX-License-Identifier: MIT
// The output of `laconic size`, as JSON and as tables.
#include "cli/size/report.h"

#include <math.h>
#include <stdlib.h>

#include "cli/report/table.h"

enum { LARGEST = 6, DURATION_SIZE = 32 };

static double model_bytes(const cli_size *s)
{
    return (double)sizeof(float) *
           (double)lac_layout_values(s->algorithm.layout);
}

double cli_size_sent(const lac_cost *c, double bytes)
{
    return c->family == LAC_FAMILY_MODEL && c->phases > 0
               ? bytes * c->messages / c->phases
               : bytes;
}

cJSON *cli_size_json(const cli_size *s)
{
    const lac_cost *const c = &s->cost;
    const lac_layout *const layout = s->algorithm.layout;
    const bool gossip = c->family == LAC_FAMILY_MODEL;
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddItemToObject(o, "model", cli_json_text(s->model));
    cJSON_AddItemToObject(o, "layout", cli_json_text(s->layout));
    cJSON_AddItemToObject(o, "algorithm", cli_json_text(s->algorithm.spec));
    cJSON_AddItemToObject(
        o, "compressor", cli_json_text(s->algorithm.compressor));
    cJSON_AddItemToObject(
        o, "topology", cli_json_text(gossip ? s->topology : NULL));
    cJSON_AddNumberToObject(
        o, "workers", lac_topology_workers(s->algorithm.topology));
    cJSON_AddNumberToObject(o, "local_steps", (double)s->local_steps);
    cJSON_AddNumberToObject(o, "tensors", (double)lac_layout_count(layout));
    cJSON_AddNumberToObject(o, "parameters", (double)lac_layout_values(layout));
    cJSON_AddNumberToObject(o, "payload_bytes_per_step", c->payload_bytes);
    cJSON_AddNumberToObject(o, "uncompressed_bytes_per_step", model_bytes(s));
    cJSON_AddNumberToObject(
        o, "ratio",
        c->payload_bytes > 0 ? model_bytes(s) / c->payload_bytes : (double)NAN);
    if (s->algorithm.compressor != NULL) {
        cJSON_AddNumberToObject(o, "values_kept", (double)s->values_kept);
    }
    cJSON_AddNumberToObject(o, "messages_per_step", c->messages);
    cJSON_AddNumberToObject(o, "phases_per_step", c->phases);
    cJSON_AddNumberToObject(o, "memory_bytes", (double)c->memory_bytes);
    return o;
}

// "26.3 ms"
static const char *duration(double seconds, char text[DURATION_SIZE])
{
    if (seconds >= 1) {
        (void)snprintf(text, DURATION_SIZE, "%.2f s", seconds);
    } else if (seconds >= 1e-3) {
        (void)snprintf(text, DURATION_SIZE, "%.2f ms", 1e3 * seconds);
    } else {
        (void)snprintf(text, DURATION_SIZE, "%.1f us", 1e6 * seconds);
    }
    return text;
}

static void add_names(const cli_size *s, cli_table *t)
{
    char number[CLI_GROUPED_SIZE], note[CLI_CELL_SIZE];
    const lac_layout *const layout = s->algorithm.layout;
    const size_t tensors = lac_layout_count(layout);
    cli_table_row(
        t, s->model == NULL ? "layout" : "model",
        s->model == NULL ? s->layout : s->model, "");
    (void)snprintf(
        note, sizeof(note), "in %zu tensor%s", tensors,
        tensors == 1 ? "" : "s");
    cli_table_row(
        t, "parameters", cli_grouped(lac_layout_values(layout), number), note);
    cli_table_row(t, "algorithm", s->algorithm.spec, "");
    if (s->algorithm.compressor != NULL) {
        (void)snprintf(
            note, sizeof(note), "keeps %s values",
            cli_grouped(s->values_kept, number));
        cli_table_row(
            t, "compressor", s->algorithm.compressor,
            s->values_kept < lac_layout_values(layout) ? note : "");
    }
    cli_table_row(
        t, "workers",
        cli_grouped(lac_topology_workers(s->algorithm.topology), number),
        s->cost.family == LAC_FAMILY_MODEL ? s->topology : "");
}

static void add_costs(const cli_size *s, cli_table *t)
{
    char number[CLI_GROUPED_SIZE], text[CLI_BYTES_SIZE], note[CLI_CELL_SIZE];
    const lac_cost *const c = &s->cost;
    const bool gossip = c->family == LAC_FAMILY_MODEL;
    (void)snprintf(
        note, sizeof(note), "%s, %s%s", cli_bytes(c->payload_bytes, text),
        s->algorithm.compressor == NULL ? "" : "at most, ",
        gossip ? "to each neighbour" : "from each worker");
    cli_table_row(
        t, "bytes per step", cli_grouped((uint64_t)c->payload_bytes, number),
        note);
    cli_table_row(
        t, "uncompressed", cli_grouped((uint64_t)model_bytes(s), number),
        cli_bytes(model_bytes(s), text));
    if (c->payload_bytes > 0) {
        (void)snprintf(
            text, sizeof(text), "%.1f x", model_bytes(s) / c->payload_bytes);
        cli_table_row(t, "fewer bytes", text, "than uncompressed");
    }
    (void)snprintf(text, sizeof(text), "%g", c->messages);
    (void)snprintf(
        note, sizeof(note), "per step, in %g consecutive exchange%s", c->phases,
        c->phases == 1 ? "" : "s");
    cli_table_row(t, "messages", text, c->phases > 1 ? note : "per step");
    if (s->local_steps > 1) {
        cli_table_row(
            t, "local steps", cli_grouped(s->local_steps, number),
            "from one round to the next");
    }
    cli_table_row(
        t, "memory", cli_grouped(c->memory_bytes, number),
        cli_bytes((double)c->memory_bytes, text));
}

static void print_times(const cli_size *s, FILE *stream)
{
    static const struct {
        const char *name;
        double bits;
    } links[] = {
        {"100 Mbit/s", 1e8},
        {"1 Gbit/s", 1e9},
        {"10 Gbit/s", 1e10},
    };
    char text[DURATION_SIZE];
    const bool gossip = s->cost.family == LAC_FAMILY_MODEL;
    if (!(cli_size_sent(&s->cost, model_bytes(s)) > 0)) {
        return; // a single worker sends nothing
    }
    cli_table t = cli_table_make("lrr", NULL);
    cli_table_row(
        &t, gossip ? "time to send over" : "time to send once over",
        "compressed", "uncompressed");
    for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        const double scale = 8 / links[i].bits;
        cli_table_add(&t, "%s", links[i].name);
        cli_table_add(
            &t, "%s",
            duration(
                scale * cli_size_sent(&s->cost, s->cost.payload_bytes), text));
        cli_table_add(
            &t, "%s",
            duration(scale * cli_size_sent(&s->cost, model_bytes(s)), text));
    }
    (void)fputc('\n', stream);
    cli_table_print(&t, stream);
    if (!gossip) {
        (void)fprintf(
            stream, "A worker's contribution counts once; an all-reduce "
                    "transmits it about twice.\n`laconic plan` has the time of "
                    "a whole exchange.\n");
    }
}

// Returns the tensor with the most bytes that is not yet shown, the first of
// several, or `count` if all are.
static size_t next_largest(const double *bytes, size_t count, const bool *shown)
{
    size_t best = count;
    for (size_t i = 0; i < count; i++) {
        if (!shown[i] && (best == count || bytes[i] > bytes[best])) {
            best = i;
        }
    }
    return best;
}

static void add_tensor_row(const cli_size *s, size_t index, cli_table *t)
{
    char number[CLI_GROUPED_SIZE];
    const lac_tensor *const tensor =
        lac_layout_tensor(s->algorithm.layout, index);
    const lac_shape shape = tensor->shape;
    const double bytes = s->tensor_bytes[index];
    const double exact = sizeof(float) * (double)lac_shape_values(shape);
    cli_table_add(t, "%s", tensor->name);
    cli_table_add(t, "%zu x %zu", shape.rows, shape.cols);
    cli_table_add(t, "%s", cli_grouped((uint64_t)bytes, number));
    cli_table_add(t, "%.1f %%", 100 * bytes / s->cost.payload_bytes);
    if (bytes > 0) {
        cli_table_add(t, "%.1f x", exact / bytes);
    } else {
        cli_table_add(t, "-");
    }
}

static void print_tensors(const cli_size *s, FILE *stream)
{
    static const char *const heads[] = {
        "largest tensors", "shape", "bytes", "share", "fewer"};
    const size_t count = lac_layout_count(s->algorithm.layout);
    bool *const shown = calloc(count + 1, sizeof(*shown));
    if (s->tensor_bytes == NULL || shown == NULL || count < 2 ||
        !(s->cost.payload_bytes > 0)) {
        free(shown);
        return;
    }
    cli_table t = cli_table_make("lrrrr", NULL);
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        cli_table_add(&t, "%s", heads[i]);
    }
    for (size_t row = 0; row < LARGEST && row < count; row++) {
        const size_t index = next_largest(s->tensor_bytes, count, shown);
        shown[index] = true;
        add_tensor_row(s, index, &t);
    }
    (void)fputc('\n', stream);
    cli_table_print(&t, stream);
    free(shown);
}

void cli_size_table(const cli_size *s, FILE *stream)
{
    cli_table t = cli_table_make("lrl", NULL);
    add_names(s, &t);
    add_costs(s, &t);
    cli_table_print(&t, stream);
    print_times(s, stream);
    print_tensors(s, stream);
}
