// SPDX-License-Identifier: MIT
// The files that `laconic average` writes.
#include "cli/average/files.h"

#include <stdlib.h>
#include <string.h>

#include "data/output.h"

lac_status cli_trace_open(cli_trace *trace)
{
    *trace = (cli_trace){0};
    trace->stream = open_memstream(&trace->text, &trace->len);
    return trace->stream != NULL &&
                   fputs(
                       "round,error,mean_drift,payload_bytes\n",
                       trace->stream) >= 0
               ? LAC_OK
               : lac_fail(LAC_ERR_NOMEM, "no memory for a trace");
}

void cli_trace_close(cli_trace *trace)
{
    if (trace->stream != NULL) {
        (void)fclose(trace->stream);
    }
    free(trace->text);
    *trace = (cli_trace){0};
}

// Returns NULL without memory.
static char *trace_path(const char *path, const char *value)
{
    const char *const slash = strrchr(path, '/');
    const char *const dot = strrchr(slash == NULL ? path : slash, '.');
    const size_t stem = dot == NULL ? strlen(path) : (size_t)(dot - path);
    if (value == NULL) {
        return strdup(path);
    }
    const size_t size = strlen(path) + strlen(value) + 2;
    char *const out = malloc(size);
    if (out != NULL) {
        (void)snprintf(
            out, size, "%.*s-%s%s", (int)stem, path, value, path + stem);
    }
    return out;
}

lac_status cli_trace_write(
    cli_trace *trace, const char *path, const char *value)
{
    char *const name = trace_path(path, value);
    const int closed = fclose(trace->stream);
    trace->stream = NULL;
    const lac_status status =
        name == NULL || closed != 0
            ? lac_fail(LAC_ERR_NOMEM, "%s: no memory for the trace", path)
            : data_file_write(name, (const uint8_t *)trace->text, trace->len);
    free(name);
    return status;
}

lac_status cli_values_write(
    const char *path, const cli_dimensions *dimensions, float *values)
{
    uint8_t header[CLI_NPY_HEADER_MAX];
    const size_t offset = cli_npy_header(CLI_NPY_F32, dimensions, header);
    size_t n = 1;
    for (size_t i = 0; i < dimensions->count; i++) {
        n *= (size_t)dimensions->size[i];
    }
    uint8_t *const file = malloc(offset + n * sizeof(float));
    if (file == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "%s: no memory for %zu values", path, n);
    }
    cli_npy_put_values(values, n);
    memcpy(file, header, offset);
    memcpy(file + offset, values, n * sizeof(float));
    const lac_status status =
        data_file_write(path, file, offset + n * sizeof(float));
    free(file);
    return status;
}
