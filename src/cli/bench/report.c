// SPDX-License-Identifier: MIT
// The output of `laconic bench`, as JSON and as tables.
#include "cli/bench/report.h"

#include <math.h>
#include <stdio.h>

#include "cli/report/processor.h"
#include "cli/report/table.h"
#include "cli/report/wrap.h"

enum { LINE_SIZE = 512, FIGURE_SIZE = 32 };

// The break-even assumes that uncompressed communication costs nothing but the
// transfer of its bytes.
static double entry_break_even(const cli_bench_entry *e)
{
    const cli_bench_result *const r = &e->result;
    const double bytes = sizeof(float) * (double)lac_shape_values(r->shape);
    return cli_break_even_mbit(
        bytes - (double)r->payload_len,
        r->encode.seconds + r->decode_add.seconds);
}

// Gossip saves bytes to every neighbour; a gradient is contributed once.
static double step_break_even(const cli_bench_step *s)
{
    const double saved = sizeof(float) * (double)s->values - s->payload_bytes;
    const uint32_t copies = s->family == LAC_FAMILY_MODEL ? s->degree : 1;
    return cli_break_even_mbit(copies * saved, s->seconds);
}

static double gbps(const cli_bench_entry *e, const cli_bench_time *t)
{
    return 1e-9 * sizeof(float) * (double)lac_shape_values(e->result.shape) /
           t->seconds;
}

static double bits_per_value(const cli_bench_entry *e)
{
    return 8 * (double)e->result.payload_len /
           (double)lac_shape_values(e->result.shape);
}

// Collects the memcpy times of the compressors, in seconds per value. They may
// have had fewer values than there are, see cli_bench_measure.
static size_t entry_memcpys(const cli_bench_report *r, double *times)
{
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++) {
        const cli_bench_result *const e = &r->entries[i].result;
        const double values = (double)lac_shape_values(e->shape);
        times[count++] = e->encode.memcpy / values;
        times[count++] = e->decode_add.memcpy / values;
        times[count++] = e->encode_add.memcpy / values;
    }
    return count;
}

static size_t step_memcpys(const cli_bench_report *r, double *times)
{
    for (size_t i = 0; i < r->step_count; i++) {
        times[i] = r->steps[i].memcpy / (double)r->steps[i].values;
    }
    return r->step_count;
}

static double memcpy_gbps(double *times, size_t count)
{
    return count == 0 ? (double)NAN
                      : 1e-9 * sizeof(float) / cli_bench_median(times, count);
}

static double all_memcpy_gbps(const cli_bench_report *r)
{
    double times[4 * CLI_BENCH_MAX];
    size_t count = entry_memcpys(r, times);
    count += step_memcpys(r, times + count);
    return memcpy_gbps(times, count);
}

static cJSON *entry_json(const cli_bench_entry *e)
{
    const cli_bench_result *const r = &e->result;
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "spec", e->spec);
    cJSON_AddNumberToObject(o, "encode_gbps", gbps(e, &r->encode));
    cJSON_AddNumberToObject(o, "decode_add_gbps", gbps(e, &r->decode_add));
    cJSON_AddNumberToObject(o, "encode_add_gbps", gbps(e, &r->encode_add));
    cJSON_AddNumberToObject(o, "bits_per_value", bits_per_value(e));
    cJSON_AddNumberToObject(o, "encode_memcpys", cli_bench_memcpys(&r->encode));
    cJSON_AddNumberToObject(
        o, "decode_add_memcpys", cli_bench_memcpys(&r->decode_add));
    cJSON_AddNumberToObject(
        o, "encode_add_memcpys", cli_bench_memcpys(&r->encode_add));
    cJSON_AddNumberToObject(o, "break_even_mbit", entry_break_even(e));
    cJSON_AddNumberToObject(o, "rows", (double)r->shape.rows);
    cJSON_AddNumberToObject(o, "cols", (double)r->shape.cols);
    return o;
}

static cJSON *step_json(const cli_bench_step *step)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "spec", step->spec);
    cJSON_AddItemToObject(o, "compressor", cli_json_text(step->compressor));
    cJSON_AddStringToObject(o, "layout", step->layout);
    cJSON_AddItemToObject(o, "model", cli_json_text(step->model));
    cJSON_AddNumberToObject(o, "values", (double)step->values);
    cJSON_AddNumberToObject(o, "degree", step->degree);
    cJSON_AddNumberToObject(o, "ms", 1e3 * step->seconds);
    cJSON_AddNumberToObject(o, "memcpy_ratio", step->seconds / step->memcpy);
    cJSON_AddNumberToObject(o, "break_even_mbit", step_break_even(step));
    cJSON_AddNumberToObject(o, "payload_bytes", step->payload_bytes);
    return o;
}

static void add_machine(cJSON *o)
{
    char name[CLI_PROCESSOR_SIZE], id[CLI_PROCESSOR_SIZE];
    cli_processor(name);
    cli_processor_id(id);
    cJSON_AddStringToObject(o, "version", lac_version());
    cJSON_AddStringToObject(o, "processor", name);
    cJSON_AddStringToObject(o, "processor_id", id);
    cJSON_AddNumberToObject(o, "processors", (double)cli_processor_count());
}

cJSON *cli_bench_json(const cli_bench_report *r)
{
    cJSON *const o = cJSON_CreateObject();
    add_machine(o);
    cJSON_AddNumberToObject(o, "values", (double)r->values);
    cJSON_AddNumberToObject(o, "runs", (double)r->runs);
    cJSON_AddStringToObject(o, "kernels", r->kernels);
    cJSON_AddBoolToObject(o, "prefetch", r->prefetch);
    cJSON_AddNumberToObject(o, "threads", r->threads);
    cJSON_AddNumberToObject(o, "memcpy_gbps", all_memcpy_gbps(r));
    cJSON *const compressors = cJSON_AddArrayToObject(o, "compressors");
    for (size_t i = 0; i < r->count; i++) {
        cJSON_AddItemToArray(compressors, entry_json(&r->entries[i]));
    }
    cJSON *const algorithms = cJSON_AddArrayToObject(o, "algorithms");
    for (size_t i = 0; i < r->step_count; i++) {
        cJSON_AddItemToArray(algorithms, step_json(&r->steps[i]));
    }
    return o;
}

// Three digits or all before the point: "14800", "43.1", "0.52". Compressors
// differ by a factor of thousands.
static const char *figure(double value, char text[FIGURE_SIZE])
{
    const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    (void)snprintf(text, FIGURE_SIZE, "%.*f", decimals, value);
    return text;
}

// Both figures are in one cell, so that they share a heading.
static void add_speed(
    cli_table *t, const cli_bench_entry *e, const cli_bench_time *time)
{
    char text[FIGURE_SIZE];
    cli_table_add(
        t, "%5s %7.2f", figure(1e3 * gbps(e, time), text),
        cli_bench_memcpys(time));
}

static void add_break_even_mbit(cli_table *t, double mbit)
{
    char text[FIGURE_SIZE];
    cli_table_add(t, "%s", isnan(mbit) ? "-" : figure(mbit, text));
}

// "25,557,032 values of resnet50, medians of 7 runs; a memcpy takes ...". The
// model is NULL where there is none.
static void print_heading(
    size_t values, const char *model, size_t runs, double gbps)
{
    char number[CLI_GROUPED_SIZE], line[LINE_SIZE];
    (void)snprintf(
        line, sizeof(line),
        "%s value%s%s%s, medians of %zu run%s; a memcpy takes %.2f ms, %.1f "
        "GB/s",
        cli_grouped(values, number), values == 1 ? "" : "s",
        model == NULL ? "" : " of ", model == NULL ? "" : model, runs,
        runs == 1 ? "" : "s", 1e-6 * sizeof(float) * (double)values / gbps,
        gbps);
    cli_wrap(line, 0, stdout);
    printf("\n");
}

static void report_compressors(const cli_bench_report *r)
{
    static const char *const heads[] = {
        "",
        "bits a",
        "encode   ",
        "decode-add ",
        "with memory",
        "break-even",
        "compressor",
        "value",
        "MB/s memcpys",
        "MB/s memcpys",
        "MB/s memcpys",
        "Mbit/s"};
    double times[3 * CLI_BENCH_MAX];
    const size_t count = entry_memcpys(r, times);
    print_heading(r->values, NULL, r->runs, memcpy_gbps(times, count));
    cli_table t = cli_table_make("lrrrrr", NULL);
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        cli_table_add(&t, "%s", heads[i]);
    }
    for (size_t i = 0; i < r->count; i++) {
        const cli_bench_entry *const e = &r->entries[i];
        cli_table_add(&t, "%s", e->spec);
        cli_table_add(&t, "%.2f", bits_per_value(e));
        add_speed(&t, e, &e->result.encode);
        add_speed(&t, e, &e->result.decode_add);
        add_speed(&t, e, &e->result.encode_add);
        add_break_even_mbit(&t, entry_break_even(e));
    }
    cli_table_print(&t, stdout);
    printf("\n");
    cli_wrap(
        "MB/s counts 4 bytes per value. memcpys is the time divided by that of "
        "a memcpy of the same values: 1.00 is as fast, less is faster. With "
        "memory is encoding with error memory and settling it. On a link "
        "slower than the break-even, the bytes saved outweigh encode and "
        "decode-add.",
        0, stdout);
}

// "choco with sign"
static void add_step_name(cli_table *t, const cli_bench_step *s)
{
    cli_table_add(
        t, "%s%s%s", s->spec, s->compressor == NULL ? "" : " with ",
        s->compressor == NULL ? "" : s->compressor);
}

static void print_step_note(uint32_t degree)
{
    char line[LINE_SIZE];
    char others[CLI_CELL_SIZE] =
        "A worker that mixes models has one neighbour.";
    if (degree > 1) {
        (void)snprintf(
            others, sizeof(others), "It gets the messages of %u other workers.",
            degree);
    }
    (void)snprintf(
        line, sizeof(line),
        "A step is the computation of one worker, without the time that it "
        "waits. %s On a link slower than the break-even, the bytes saved "
        "outweigh the step.",
        others);
    printf("\n");
    cli_wrap(line, 0, stdout);
}

// All steps are on the tensors of the same model.
static void report_steps(const cli_bench_report *r)
{
    double times[CLI_BENCH_MAX];
    const size_t count = step_memcpys(r, times);
    print_heading(
        r->steps[0].values, r->steps[0].layout, r->runs,
        memcpy_gbps(times, count));
    cli_table t = cli_table_make("lrrr", NULL);
    cli_table_add(&t, "whole step of");
    cli_table_add(&t, "ms");
    cli_table_add(&t, "memcpys");
    cli_table_add(&t, "break-even Mbit/s");
    for (size_t i = 0; i < r->step_count; i++) {
        const cli_bench_step *const s = &r->steps[i];
        add_step_name(&t, s);
        cli_table_add(&t, "%.2f", 1e3 * s->seconds);
        cli_table_add(&t, "%.2f", s->seconds / s->memcpy);
        add_break_even_mbit(&t, step_break_even(s));
    }
    cli_table_print(&t, stdout);
    print_step_note(r->steps[0].degree);
}

void cli_bench_table(const cli_bench_report *r)
{
    char processor[CLI_PROCESSOR_SIZE], line[LINE_SIZE];
    cli_processor(processor);
    (void)snprintf(
        line, sizeof(line), "%s, %s kernels %s prefetch, %u thread%s",
        processor, r->kernels, r->prefetch ? "with" : "without", r->threads,
        r->threads == 1 ? "" : "s");
    cli_wrap(line, 0, stdout);
    if (r->count > 0) {
        report_compressors(r);
    }
    if (r->count > 0 && r->step_count > 0) {
        printf("\n");
    }
    if (r->step_count > 0) {
        report_steps(r);
    }
}
