// SPDX-License-Identifier: MIT
// Networks of workers, printed as text and written as matrices.
#include "cli/topology/network.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/files/npy.h"
#include "cli/options/catalog.h"
#include "cli/options/command.h"
#include "cli/options/spec.h"
#include "cli/report/table.h"
#include "data/dataset.h"
#include "data/file.h"

enum {
    LISTED_MAX = 16,  // workers whose neighbours fit beside the matrix
    WEIGHED_MAX = 42, // workers whose weights fit beside the matrix
    DRAWN_MAX = 56,   // workers whose matrix fits on a screen
    MATRIX_MAX = 16384,
};

// A wrong spec is usage; a file that the spec names and that is wrong is not.
int cli_network_open(
    const char *command, const char *spec, uint32_t workers, uint64_t seed,
    lac_topology **out)
{
    const bool file = strncmp(spec, "file:", 5) == 0;
    const lac_status status = lac_topology_open(out, spec, workers, seed);
    if (status == LAC_OK) {
        return CLI_GOOD;
    }
    return status == LAC_ERR_NOMEM || (status == LAC_ERR_INVALID && file)
               ? cli_failed()
               : cli_bad_spec(command, "topologies", spec);
}

lac_status cli_network_recorded(
    const char *spec, uint32_t workers, uint64_t seed, lac_topology **out)
{
    char path[DATA_PATH_SIZE];
    if (cli_spec_names(spec, "file") &&
        cli_spec_text(spec, "path", path, sizeof(path)) &&
        !data_is_file(path)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "the network of the run is in %s, expected a regular file", path);
    }
    return lac_topology_open(out, spec, workers, seed);
}

// Whether the rounds of a network are few and differ by a rule.
static bool takes_turns(const lac_topology *t)
{
    return lac_topology_period(t) > 1 && !lac_topology_is_drawn(t);
}

// The digit of the round in which two workers of a varying network communicate.
static const char round_digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";

static void draw_row(const lac_topology *t, uint32_t rank, char *row)
{
    const uint32_t period = lac_topology_period(t);
    const bool turns = takes_turns(t);
    const lac_edge *edges;
    memset(row, '.', lac_topology_workers(t));
    row[lac_topology_workers(t)] = '\0';
    row[rank] = '\\';
    for (uint32_t round = 0; round < period; round++) {
        const uint32_t count = lac_topology_edges(t, rank, round, &edges);
        for (uint32_t k = 0; k < count; k++) {
            row[edges[k].peer] =
                turns ? round_digits[round % (sizeof(round_digits) - 1)] : '#';
        }
    }
}

// "0.2", or "0.07 to 0.2" if the weights differ.
static void add_weights(const lac_topology *t, uint32_t rank, cli_table *table)
{
    const lac_edge *edges;
    const uint32_t count = lac_topology_edges(t, rank, 0, &edges);
    double least = 1, most = 0;
    for (uint32_t k = 0; k < count; k++) {
        least = edges[k].weight < least ? edges[k].weight : least;
        most = edges[k].weight > most ? edges[k].weight : most;
    }
    if (count == 0) {
        cli_table_add(table, "none");
    } else if (least == most) {
        cli_table_add(table, "%.4f", most);
    } else {
        cli_table_add(table, "%.4f to %.4f", least, most);
    }
}

static void add_neighbours(
    const lac_topology *t, uint32_t rank, cli_table *table)
{
    const uint32_t *peers;
    char text[CLI_CELL_SIZE] = "";
    size_t used = 0;
    const uint32_t count = lac_topology_peers(t, rank, &peers);
    for (uint32_t k = 0; k < count && used < sizeof(text); k++) {
        used += (size_t)snprintf(
            text + used, sizeof(text) - used, "%s%" PRIu32, k == 0 ? "" : " ",
            peers[k]);
    }
    cli_table_add(table, "%s", text);
}

void cli_network_print(const lac_topology *t, FILE *stream)
{
    const uint32_t n = lac_topology_workers(t);
    if (n > DRAWN_MAX) {
        return;
    }
    const bool listed = n <= LISTED_MAX, weighed = n <= WEIGHED_MAX;
    char row[DRAWN_MAX + 1];
    cli_table table = cli_table_make(
        listed    ? "rlrll"
        : weighed ? "rlrl"
                  : "rl",
        NULL);
    cli_table_add(&table, "worker");
    cli_table_add(
        &table, "%s",
        takes_turns(t)             ? "in round"
        : lac_topology_is_drawn(t) ? "in some round"
                                   : "neighbours");
    if (weighed) {
        cli_table_add(&table, "own weight");
        cli_table_add(&table, "neighbour's");
    }
    if (listed) {
        cli_table_add(&table, "ranks");
    }
    for (uint32_t i = 0; i < n; i++) {
        cli_table_add(&table, "%" PRIu32, i);
        draw_row(t, i, row);
        cli_table_add(&table, "%s", row);
        if (weighed) {
            cli_table_add(&table, "%.4f", lac_topology_self_weight(t, i, 0));
            add_weights(t, i, &table);
        }
        if (listed) {
            add_neighbours(t, i, &table);
        }
    }
    (void)fputc('\n', stream);
    cli_table_print(&table, stream);
}

// Multiplies `w` from the left by the matrix of `round`.
static lac_status multiply_round(
    const lac_topology *t, uint32_t round, double *w)
{
    const size_t n = lac_topology_workers(t);
    double *const before = malloc(n * n * sizeof(*before));
    if (before == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "topology: no memory for the matrix");
    }
    memcpy(before, w, n * n * sizeof(*w));
    for (uint32_t i = 0; i < n; i++) {
        const lac_edge *edges;
        const uint32_t count = lac_topology_edges(t, i, round, &edges);
        const double self = lac_topology_self_weight(t, i, round);
        for (size_t j = 0; j < n; j++) {
            double sum = self * before[i * n + j];
            for (uint32_t k = 0; k < count; k++) {
                sum += edges[k].weight * before[edges[k].peer * n + j];
            }
            w[i * n + j] = sum;
        }
    }
    free(before);
    return LAC_OK;
}

// OpenBLAS reads the variable when it is loaded. It is set here and not at the
// start, because programs that laconic launches have threads of their own.
lac_status cli_network_spectrum(const lac_topology *t, lac_spectrum *out)
{
    if (setenv("OPENBLAS_NUM_THREADS", "1", 0) != 0) {
        return lac_fail(
            LAC_ERR_NOMEM, "no memory for the variable OPENBLAS_NUM_THREADS");
    }
    return lac_topology_spectrum(t, out);
}

// The mean of W over all draws: its eigenvalues are all 1 - gap, but for one.
static lac_status mean_matrix(const lac_topology *t, double *w)
{
    const size_t n = lac_topology_workers(t);
    lac_spectrum s = {0};
    LAC_TRY(cli_network_spectrum(t, &s));
    for (size_t i = 0; i < n * n; i++) {
        const double own = i % (n + 1) == 0 ? 1 - s.gap : 0;
        w[i] = own + s.gap / (double)n;
    }
    return LAC_OK;
}

lac_status cli_network_matrix(const lac_topology *t, double *w)
{
    if (lac_topology_is_drawn(t) && lac_topology_workers(t) > 1) {
        return mean_matrix(t, w);
    }
    lac_topology_matrix(t, 0, w);
    for (uint32_t round = 1; round < lac_topology_period(t); round++) {
        LAC_TRY(multiply_round(t, round, w));
    }
    return LAC_OK;
}

// Converts values to the bytes of the file, in place.
static void put_values(double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        uint8_t bytes[sizeof(bits)];
        memcpy(&bits, &values[i], sizeof(bits));
        for (size_t k = 0; k < sizeof(bits); k++) {
            bytes[k] = (uint8_t)(bits >> 8 * k);
        }
        memcpy(&values[i], bytes, sizeof(bytes));
    }
}

lac_status cli_network_write(const lac_topology *t, const char *path)
{
    const size_t n = lac_topology_workers(t);
    if (n > MATRIX_MAX) {
        return lac_fail(
            LAC_ERR_INVALID,
            "topology: no matrix for %zu workers, expected at most %d", n,
            MATRIX_MAX);
    }
    const cli_dimensions dimensions = {.count = 2, .size = {n, n}};
    uint8_t header[CLI_NPY_HEADER_MAX];
    const size_t head = cli_npy_header(CLI_NPY_F64, &dimensions, header);
    const size_t len = head + n * n * sizeof(double);
    uint8_t *const data = malloc(len);
    if (data == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "topology: no memory for a matrix of %zu x %zu", n,
            n);
    }
    memcpy(data, header, head);
    double *const w = (void *)(data + head); // a multiple of 64 from the start
    lac_status status = cli_network_matrix(t, w);
    if (status == LAC_OK) {
        put_values(w, n * n);
        status = data_file_write(path, data, len);
    }
    free(data);
    return status;
}
