// SPDX-License-Identifier: MIT
// laconic encode: compresses a .npy file into a .lac file, and reports the size
// and the error.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files/lac_file.h"
#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/report/table.h"
#include "data/output.h"

typedef struct settings {
    const char *compressor;
    uint32_t form;
    uint64_t seed;
    bool json;
} settings;

#define FORMS "plain|unbiased|contractive"

static const cli_option options[] = {
    {.name = "compressor",
     .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, compressor),
     .value = "SPEC",
     .help = "such as top-k:0.01+natural; see `laconic list`"},
    {.name = "form",
     .type = CLI_OPTION_CHOICE,
     .offset = offsetof(settings, form),
     .value = "FORM",
     .default_value = "plain",
     .choices = FORMS,
     .help = "scaling of the values"},
    CLI_OPTION_SEED(settings),
    CLI_OPTION_JSON(settings),
    {0},
};

// One run of the command. Everything is NULL or owned by it.
typedef struct job {
    const char *in, *out;
    cli_npy npy;
    float *values;
    float *decoded;
    lac_compressor *c;
    cli_lac lac;
    uint8_t *file;
    size_t file_len;
    double error; // |C(x) - x|^2 / |x|^2
} job;

static double relative_error(const float *x, const float *y, size_t n)
{
    double error = 0, norm = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)y[i] - (double)x[i];
        error += d * d;
        norm += (double)x[i] * (double)x[i];
    }
    return error == 0 && norm == 0 ? 0 : error / norm;
}

static lac_status encode_allocate(job *j, size_t n)
{
    const size_t bound =
        lac_compressor_bound(j->c, j->npy.shape, j->lac.key.scope);
    j->file = calloc(cli_lac_payload_offset(&j->lac) + bound + 8, 1);
    j->decoded = calloc(n == 0 ? 1 : n, sizeof(float));
    if (j->file == NULL || j->decoded == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory to compress %zu values", j->in, n);
    }
    return LAC_OK;
}

static lac_status compress(job *j)
{
    const lac_shape shape = j->npy.shape;
    const size_t n = lac_shape_values(shape);
    LAC_TRY(lac_compressor_reserve(j->c, shape));
    LAC_TRY(encode_allocate(j, n));
    uint8_t *const payload = j->file + cli_lac_payload_offset(&j->lac);
    LAC_TRY(lac_compressor_encode(
        j->c, &j->lac.key, shape, j->values, payload,
        lac_compressor_bound(j->c, shape, j->lac.key.scope),
        &j->lac.payload_len));
    LAC_TRY(lac_compressor_decode(
        j->c, &j->lac.key, shape, payload, j->lac.payload_len, j->decoded));
    j->error = relative_error(j->values, j->decoded, n);
    j->file_len = cli_lac_finish(&j->lac, j->file);
    return LAC_OK;
}

static const char *form_name(lac_form form)
{
    static const char *const names[] = {"plain", "unbiased", "contractive"};
    return names[form];
}

static cJSON *encode_json(const job *j)
{
    const lac_guarantee promise = lac_compressor_guarantee(j->c, j->npy.shape);
    const double n = (double)lac_shape_values(j->npy.shape);
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "compressor", j->lac.spec);
    cJSON_AddStringToObject(o, "form", form_name(j->lac.form));
    cJSON *const shape = cJSON_AddArrayToObject(o, "shape");
    for (size_t i = 0; i < j->npy.dimensions.count; i++) {
        cJSON_AddItemToArray(
            shape, cJSON_CreateNumber((double)j->npy.dimensions.size[i]));
    }
    cJSON_AddNumberToObject(o, "values", n);
    cJSON_AddNumberToObject(
        o, "input_bytes", (double)j->npy.offset + sizeof(float) * n);
    cJSON_AddNumberToObject(o, "output_bytes", (double)j->file_len);
    cJSON_AddNumberToObject(o, "payload_bytes", (double)j->lac.payload_len);
    cJSON_AddNumberToObject(
        o, "bits_per_value", 8 * (double)j->lac.payload_len / n);
    cJSON_AddNumberToObject(o, "relative_error", j->error);
    cJSON_AddNumberToObject(o, "promised_error", promise.error);
    cJSON_AddBoolToObject(o, "unbiased", promise.unbiased);
    return o;
}

static void report_sizes(const job *j, size_t n, cli_table *t)
{
    char text[CLI_GROUPED_SIZE], shape[CLI_DIMENSIONS_SIZE];
    const size_t in = j->npy.offset + sizeof(float) * n;
    cli_table_row(
        t, "values", cli_grouped(n, text),
        j->npy.dimensions.count < 2
            ? ""
            : cli_dimensions_text(&j->npy.dimensions, shape));
    cli_table_row(t, "bytes in", cli_grouped(in, text), j->in);
    cli_table_add(t, "bytes out");
    cli_table_add(t, "%s", cli_grouped(j->file_len, text));
    if (j->file_len < in) {
        cli_table_add(
            t, "%s, %.1f times smaller", j->out,
            (double)in / (double)j->file_len);
    } else {
        cli_table_add(t, "%s", j->out);
    }
    cli_table_add(t, "bits per value");
    if (n == 0) {
        cli_table_add(t, "-");
    } else {
        cli_table_add(t, "%.4g", 8 * (double)j->lac.payload_len / (double)n);
    }
    cli_table_add(
        t, "payload of %s bytes", cli_grouped(j->lac.payload_len, text));
}

static void encode_table(const job *j, FILE *stream)
{
    const lac_guarantee promise = lac_compressor_guarantee(j->c, j->npy.shape);
    cli_table t = cli_table_make("lrl", NULL);
    report_sizes(j, lac_shape_values(j->npy.shape), &t);
    cli_table_add(&t, "squared error");
    cli_table_add(&t, "%.4g", j->error);
    cli_table_add(&t, "relative to the squared norm of the values");
    cli_table_add(&t, "bound");
    if (isfinite(promise.error)) {
        cli_table_add(&t, "%.4g", promise.error);
        cli_table_add(
            &t, "at most, on average%s", promise.unbiased ? "; unbiased" : "");
    } else {
        cli_table_add(&t, "none");
        cli_table_add(&t, "no bound is known for this shape and form");
    }
    cli_table_print(&t, stream);
}

static int encode_file(job *j, const settings *s)
{
    if (lac_compressor_open(&j->c, s->compressor, (lac_form)s->form) !=
        LAC_OK) {
        return cli_bad_spec("encode", "compressors", s->compressor);
    }
    j->lac = (cli_lac){
        .wire_id = lac_compressor_wire_id(j->c),
        .form = (lac_form)s->form,
        .key = cli_lac_key(s->seed),
        .spec = s->compressor,
        .spec_len = strlen(s->compressor),
    };
    if (cli_lac_check_spec("--compressor", j->lac.spec, j->lac.spec_len) !=
        LAC_OK) {
        return cli_misused("encode");
    }
    if (cli_check_apart(j->in, j->out) != LAC_OK) {
        return cli_misused("encode");
    }
    if (cli_npy_read(j->in, CLI_NPY_F32, &j->npy, &j->values) != LAC_OK) {
        return cli_failed();
    }
    j->lac.dimensions = j->npy.dimensions;
    const bool to_stdout = data_file_is_stdout(j->out);
    if (compress(j) != LAC_OK ||
        data_file_write(j->out, j->file, j->file_len) != LAC_OK) {
        return cli_failed();
    }
    FILE *const stream = to_stdout ? stderr : stdout;
    if (s->json) {
        return cli_json_print(encode_json(j), stream);
    }
    encode_table(j, stream);
    return CLI_GOOD;
}

static int encode_run(const void *given, size_t count, char *const *arguments)
{
    (void)count;
    job j = {.in = arguments[0], .out = arguments[1]};
    const int code = encode_file(&j, given);
    free(j.file);
    free(j.decoded);
    free(j.values);
    lac_compressor_close(j.c);
    return code;
}

const cli_command cmd_encode = {
    .name = "encode",
    .summary = "compress a .npy file into a .lac file",
    .arguments = "IN.npy OUT.lac",
    .arguments_min = 2,
    .arguments_max = 2,
    .details =
        "Compress the float32 values of IN.npy (C order, any number of\n"
        "dimensions) into OUT.lac, and report size and error. A tensor is\n"
        "compressed as a matrix: its first dimension by the product of the\n"
        "others. On failure OUT.lac is unchanged.",
    .example = "Keep the largest hundredth of the values, in half precision:\n"
               "\n"
               "    laconic encode --compressor top-k:0.01+half x.npy x.lac",
    .options = options,
    .settings_size = sizeof(settings),
    .run = encode_run,
};
