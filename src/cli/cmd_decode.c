// SPDX-License-Identifier: MIT
// laconic decode: writes the values of a .lac file as a .npy file.
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files/lac_file.h"
#include "cli/options/command.h"
#include "cli/report/table.h"
#include "data/file.h"
#include "data/output.h"

typedef struct settings {
    uint64_t max_values;
    bool json;
} settings;

static const cli_option options[] = {
    {.name = "max-values",
     .type = CLI_OPTION_U64,
     .offset = offsetof(settings, max_values),
     .value = "N",
     .default_value = "1073741824",
     .max = UINT64_MAX,
     .help = "largest number of values to decode; 0: no limit"},
    CLI_OPTION_JSON(settings),
    {0},
};

// One run of the command. Everything is NULL or owned by it.
typedef struct job {
    const char *in, *out;
    data_bytes data;
    cli_lac lac; // points into data
    lac_compressor *c;
    uint8_t *file;
    size_t file_len;
} job;

// Decodes the values in place in the file to be written: its header is a
// multiple of 64 bytes, so they are aligned.
static lac_status decompress(job *j)
{
    uint8_t header[CLI_NPY_HEADER_MAX];
    const size_t offset =
        cli_npy_header(CLI_NPY_F32, &j->lac.dimensions, header);
    const size_t n = lac_shape_values(j->lac.shape);
    j->file_len = offset + sizeof(float) * n;
    j->file = calloc(j->file_len, 1);
    if (j->file == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for %zu values", j->in, n);
    }
    memcpy(j->file, header, offset);
    float *const values = (void *)(j->file + offset);
    const lac_status status = lac_compressor_decode(
        j->c, &j->lac.key, j->lac.shape, j->lac.payload, j->lac.payload_len,
        values);
    cli_npy_put_values(values, n);
    return status;
}

static cJSON *decode_json(const job *j, const char *spec)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "compressor", spec);
    cJSON *const shape = cJSON_AddArrayToObject(o, "shape");
    for (size_t i = 0; i < j->lac.dimensions.count; i++) {
        cJSON_AddItemToArray(
            shape, cJSON_CreateNumber((double)j->lac.dimensions.size[i]));
    }
    cJSON_AddNumberToObject(
        o, "values", (double)lac_shape_values(j->lac.shape));
    cJSON_AddNumberToObject(o, "input_bytes", (double)j->data.len);
    cJSON_AddNumberToObject(o, "output_bytes", (double)j->file_len);
    cJSON_AddNumberToObject(o, "payload_bytes", (double)j->lac.payload_len);
    return o;
}

static void decode_table(const job *j, const char *spec, FILE *stream)
{
    char text[CLI_GROUPED_SIZE], shape[CLI_DIMENSIONS_SIZE];
    cli_table t = cli_table_make("lrl", NULL);
    cli_table_row(
        &t, "values", cli_grouped(lac_shape_values(j->lac.shape), text),
        j->lac.dimensions.count < 2
            ? ""
            : cli_dimensions_text(&j->lac.dimensions, shape));
    cli_table_add(&t, "bytes in");
    cli_table_add(&t, "%s", cli_grouped(j->data.len, text));
    cli_table_add(&t, "%s, made with %s", j->in, spec);
    cli_table_row(&t, "bytes out", cli_grouped(j->file_len, text), j->out);
    cli_table_print(&t, stream);
}

// A sparsifier encodes any number of values in few bytes, so a small file could
// require all memory.
static lac_status check_values(const job *j, uint64_t most)
{
    const uint64_t n = lac_shape_values(j->lac.shape);
    if (most != 0 && n > most) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: holds %" PRIu64 " values, expected at most %" PRIu64
            "; --max-values allows more",
            j->in, n, most);
    }
    return LAC_OK;
}

static int decode_file(job *j, const settings *s)
{
    char spec[CLI_LAC_SPEC_MAX + 1] = "";
    if (cli_check_apart(j->in, j->out) != LAC_OK) {
        return cli_misused("decode");
    }
    if (cli_lac_read(j->in, &j->data) != LAC_OK ||
        cli_lac_parse(j->in, j->data.data, j->data.len, &j->lac) != LAC_OK ||
        check_values(j, s->max_values) != LAC_OK ||
        cli_lac_open(j->in, &j->lac, &j->c) != LAC_OK) {
        return cli_failed();
    }
    memcpy(spec, j->lac.spec, j->lac.spec_len);
    const bool to_stdout = data_file_is_stdout(j->out);
    if (decompress(j) != LAC_OK ||
        data_file_write(j->out, j->file, j->file_len) != LAC_OK) {
        return cli_failed();
    }
    FILE *const stream = to_stdout ? stderr : stdout;
    if (s->json) {
        return cli_json_print(decode_json(j, spec), stream);
    }
    decode_table(j, spec, stream);
    return CLI_GOOD;
}

static int decode_run(const void *given, size_t count, char *const *arguments)
{
    (void)count;
    job j = {.in = arguments[0], .out = arguments[1]};
    const int code = decode_file(&j, given);
    free(j.file);
    lac_compressor_close(j.c);
    data_bytes_free(&j.data);
    return code;
}

const cli_command cmd_decode = {
    .name = "decode",
    .summary = "decompress a .lac file into a .npy file",
    .arguments = "IN.lac OUT.npy",
    .arguments_min = 2,
    .arguments_max = 2,
    .details =
        "Write the values of IN.lac to OUT.npy, as float32 in C order. A file\n"
        "that is altered or truncated is rejected, and so is one with more\n"
        "than --max-values values (2^30 are 4 GiB), before memory for them is\n"
        "allocated. On failure OUT.npy is unchanged.",
    .example = "Decompress what `laconic encode` wrote:\n"
               "\n"
               "    laconic decode x.lac y.npy",
    .options = options,
    .settings_size = sizeof(settings),
    .run = decode_run,
};
