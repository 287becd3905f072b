// SPDX-License-Identifier: MIT
// Arbitrary bytes as the saved output of `laconic bench --json`. What is
// accepted has rows with usable figures, and each is found by its spec; what is
// refused leaves nothing behind and has a message that names the file.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench/saved.h"
#include "fuzz.h"

static void check_row(const cli_bench_row *row)
{
    const size_t figures = row->is_algorithm ? 1 : CLI_BENCH_FIGURES;
    fuzz_require(row->spec != NULL, "a row has no spec");
    for (size_t i = 0; i < figures; i++) {
        fuzz_require(
            isfinite(row->memcpys[i]) && row->memcpys[i] > 0,
            "a figure is out of range");
    }
    fuzz_require(
        !row->is_algorithm || (row->layout != NULL && row->values > 0),
        "an algorithm has no values");
}

static void check_saved(cli_bench_saved *saved)
{
    const size_t rows = sizeof(saved->rows) / sizeof(saved->rows[0]);
    char *spec = NULL;
    fuzz_require(saved->count > 0 && saved->count <= rows, "no rows");
    fuzz_require(
        saved->version != NULL && saved->kernels != NULL &&
            saved->threads > 0 && saved->values > 0 && saved->runs > 0,
        "a setting is missing");
    for (size_t i = 0; i < saved->count; i++) {
        check_row(&saved->rows[i]);
        spec = (char *)(uintptr_t)saved->rows[i].spec;
    }
    fuzz_require(
        cli_bench_saved_check(saved) == LAC_OK ||
            lac_error_message()[0] != '\0',
        "no message");
    const cli_bench_choice choice = {
        .specs = &spec,
        .count = 1,
        .compressor = "",
        .model = "",
        .layout = ""};
    fuzz_require(
        cli_bench_saved_choose(saved, &choice) == LAC_OK && saved->count > 0,
        "a row is not found by its spec");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cli_bench_saved saved;
    char *const text = fuzz_copy(data, size);
    const lac_status status =
        cli_bench_saved_parse("input", text, size, &saved);
    free(text); // the rows must not need it
    if (status == LAC_OK) {
        check_saved(&saved);
    } else {
        fuzz_require(status == LAC_ERR_CORRUPT, "another status");
        fuzz_require(
            strncmp(lac_error_message(), "input: ", 7) == 0,
            "the message does not name the file");
        fuzz_require(
            saved.object == NULL && saved.count == 0, "a refused file remains");
    }
    cli_bench_saved_free(&saved);
    return 0;
}
