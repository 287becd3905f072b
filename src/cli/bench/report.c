// SPDX-License-Identifier: MIT
// What `laconic bench` found, as JSON and for people.
#include "cli/bench/report.h"

#include <math.h>
#include <stdio.h>

#include "cli/report/table.h"

// Link speed, in Mbit/s, at which the time to send the bytes saved equals the
// time to compress. NaN when nothing is saved. It is honest in that the
// uncompressed way is taken to cost nothing but its bytes.
static double break_even(double values, double payload_bytes, double seconds)
{
    const double saved = sizeof(float) * values - payload_bytes;
    return saved > 0 ? 8e-6 * saved / seconds : (double)NAN;
}

static double entry_break_even(const cli_bench_entry *e)
{
    const cli_bench_result *const r = &e->result;
    return break_even(
        (double)(r->shape.rows * r->shape.cols), (double)r->payload_len,
        r->encode.seconds + r->decode_add.seconds);
}

static double step_break_even(const cli_bench_step *s)
{
    return break_even((double)s->values, s->payload_bytes, s->seconds);
}

static double gbps(const cli_bench_entry *e, const cli_bench_time *t)
{
    const lac_shape shape = e->result.shape;
    return 1e-9 * sizeof(float) * (double)(shape.rows * shape.cols) /
           t->seconds;
}

static double memcpys(const cli_bench_time *t)
{
    return t->seconds / t->memcpy;
}

static double bits_per_value(const cli_bench_entry *e)
{
    const lac_shape shape = e->result.shape;
    return 8 * (double)e->result.payload_len /
           (double)(shape.rows * shape.cols);
}

// Of all values: the median over everything of its median, which may be of
// fewer or more values.
static double memcpy_seconds(const cli_bench_report *r)
{
    double times[4 * CLI_BENCH_MOST];
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++) {
        const cli_bench_result *const e = &r->entries[i].result;
        const double values = (double)(e->shape.rows * e->shape.cols);
        times[count++] = e->encode.memcpy / values;
        times[count++] = e->decode_add.memcpy / values;
        times[count++] = e->encode_add.memcpy / values;
    }
    for (size_t i = 0; i < r->step_count; i++) {
        times[count++] = r->steps[i].memcpy / (double)r->steps[i].values;
    }
    return count == 0 ? (double)NAN
                      : (double)r->values * cli_bench_median(times, count);
}

static double memcpy_gbps(const cli_bench_report *r)
{
    return 1e-9 * sizeof(float) * (double)r->values / memcpy_seconds(r);
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
    cJSON_AddNumberToObject(o, "encode_memcpys", memcpys(&r->encode));
    cJSON_AddNumberToObject(o, "decode_add_memcpys", memcpys(&r->decode_add));
    cJSON_AddNumberToObject(o, "encode_add_memcpys", memcpys(&r->encode_add));
    cJSON_AddNumberToObject(o, "break_even_mbit", entry_break_even(e));
    cJSON_AddNumberToObject(o, "rows", (double)r->shape.rows);
    cJSON_AddNumberToObject(o, "cols", (double)r->shape.cols);
    return o;
}

static cJSON *step_json(const cli_bench_step *step)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "spec", step->spec);
    cJSON_AddStringToObject(o, "layout", step->layout);
    cJSON_AddNumberToObject(o, "ms", 1e3 * step->seconds);
    cJSON_AddNumberToObject(o, "memcpy_ratio", step->seconds / step->memcpy);
    cJSON_AddNumberToObject(o, "break_even_mbit", step_break_even(step));
    cJSON_AddNumberToObject(o, "payload_bytes", step->payload_bytes);
    return o;
}

cJSON *cli_bench_json(const cli_bench_report *r)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "values", (double)r->values);
    cJSON_AddNumberToObject(o, "runs", (double)r->runs);
    cJSON_AddStringToObject(o, "kernels", r->kernels);
    cJSON_AddNumberToObject(o, "memcpy_gbps", memcpy_gbps(r));
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

// Both figures in one cell, so that one heading stands above them.
static void add_speed(
    cli_table *t, const cli_bench_entry *e, const cli_bench_time *time)
{
    cli_table_add(t, "%6.1f  %7.2f", gbps(e, time), memcpys(time));
}

static void add_words(cli_table *t, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cli_table_add(t, "%s", words[i]);
    }
}

static void add_speed_limit(cli_table *t, double mbit)
{
    if (isnan(mbit)) {
        cli_table_add(t, "-");
    } else {
        cli_table_add(t, "%.1f", mbit / 1000);
    }
}

static void report_compressors(const cli_bench_report *r)
{
    static const char *const heads[] = {
        "",
        "bits a",
        "encode    ",
        "decode-add  ",
        "with memory ",
        "break-even",
        "compressor",
        "value",
        "GB/s  memcpys",
        "GB/s  memcpys",
        "GB/s  memcpys",
        "Gbit/s"};
    cli_table t = cli_table_make("lrrrrr", NULL);
    add_words(&t, heads, sizeof(heads) / sizeof(heads[0]));
    for (size_t i = 0; i < r->count; i++) {
        const cli_bench_entry *const e = &r->entries[i];
        cli_table_add(&t, "%s", e->spec);
        cli_table_add(&t, "%.2f", bits_per_value(e));
        add_speed(&t, e, &e->result.encode);
        add_speed(&t, e, &e->result.decode_add);
        add_speed(&t, e, &e->result.encode_add);
        add_speed_limit(&t, entry_break_even(e));
    }
    cli_table_print(&t, stdout);
    printf(
        "\nGB/s counts the floats, 4 bytes each; memcpys is the time next to "
        "copies of them\nthat took turns with it: 1.00 is as fast, less is "
        "faster. With memory is encoding\nwith error memory, settled. Over a "
        "link slower than the break-even, sending less\noutweighs encode and "
        "decode-add.\n");
}

static void report_steps(const cli_bench_report *r)
{
    cli_table t = cli_table_make("llrrr", NULL);
    cli_table_add(&t, "a whole step of");
    cli_table_add(&t, "on");
    cli_table_add(&t, "ms");
    cli_table_add(&t, "memcpys");
    cli_table_add(&t, "break-even Gbit/s");
    for (size_t i = 0; i < r->step_count; i++) {
        const cli_bench_step *const s = &r->steps[i];
        cli_table_add(&t, "%s", s->spec);
        cli_table_add(&t, "%s", s->layout);
        cli_table_add(&t, "%.2f", 1e3 * s->seconds);
        cli_table_add(&t, "%.2f", s->seconds / s->memcpy);
        add_speed_limit(&t, step_break_even(s));
    }
    cli_table_print(&t, stdout);
    printf(
        "\nA step is what one worker computes, with one neighbour if it mixes "
        "models, and\nwithout the time it waits. Over a link slower than the "
        "break-even, sending less\noutweighs it.\n");
}

void cli_bench_table(const cli_bench_report *r)
{
    char processor[CLI_PROCESSOR_SIZE], values[CLI_GROUPED_SIZE];
    bool several = false;
    for (size_t i = 0; i < r->step_count; i++) {
        several = several || r->steps[i].workers > 1;
    }
    cli_processor(processor);
    printf(
        "%s, %s kernels, one thread%s\n", processor, r->kernels,
        several ? " a worker" : "");
    printf(
        "%s value%s, medians of %zu run%s; a memcpy takes %.2f ms, %.1f GB/s"
        "\n\n",
        cli_grouped(r->values, values), r->values == 1 ? "" : "s", r->runs,
        r->runs == 1 ? "" : "s", 1e3 * memcpy_seconds(r), memcpy_gbps(r));
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
