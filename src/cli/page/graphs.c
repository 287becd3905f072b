// SPDX-License-Identifier: MIT
// The networks on which the runs mix their models, each drawn once, with the
// eigenvalues of its mixing matrix.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "cli/page/graph.h"
#include "cli/page/scale.h"
#include "cli/page/sections.h"
#include "cli/report/markup.h"
#include "cli/topology/network.h"

enum {
    DRAWN_MAX = 128,   // workers
    NUMBERED_MAX = 40, // workers whose ranks fit into their circles
    NETWORKS_MAX = 12, // drawn in a report
    WIDTH = 440,
    HEIGHT = 300,
    MIDDLE_X = WIDTH / 2,
    MIDDLE_Y = HEIGHT / 2,
    RADIUS = 132,
    SPECTRUM_HEIGHT = 74,
    SPECTRUM_WIDTH = 400,
};

static page_place on_picture(const page_place *place)
{
    return (page_place){
        MIDDLE_X + RADIUS * place->x, MIDDLE_Y + RADIUS * place->y};
}

// Every edge once, for the rounds of a period together.
static void put_edges(FILE *f, const lac_topology *t, const page_place *places)
{
    const uint32_t n = lac_topology_workers(t);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *peers;
        const uint32_t count = lac_topology_peers(t, i, &peers);
        for (uint32_t k = 0; k < count; k++) {
            const page_place a = on_picture(&places[i]);
            const page_place b = on_picture(&places[peers[k]]);
            if (peers[k] > i) {
                (void)fprintf(
                    f, "<path class=\"edge\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
                    a.x, a.y, b.x, b.y);
            }
        }
    }
}

static void put_workers(
    FILE *f, const lac_topology *t, const page_place *places)
{
    const uint32_t n = lac_topology_workers(t);
    const bool numbered = n <= NUMBERED_MAX;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t *peers;
        const page_place at = on_picture(&places[i]);
        (void)fprintf(
            f,
            "<g class=\"node\"><title>worker %" PRIu32 ", %" PRIu32
            " neighbours, own weight %.3g</title>"
            "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/>",
            i, lac_topology_peers(t, i, &peers),
            lac_topology_self_weight(t, i, 0), at.x, at.y, numbered ? 10 : 4);
        if (numbered) {
            (void)fprintf(
                f,
                "<text x=\"%.1f\" y=\"%.1f\" class=\"mid\">%" PRIu32 "</text>",
                at.x, at.y + 4, i);
        }
        (void)fputs("</g>\n", f);
    }
}

// A value near 0 is not printed as -0.
static double no_minus_zero(double value)
{
    return fabs(value) < 5e-5 ? 0 : value;
}

static void put_eigenvalues(FILE *f, const double *values, size_t n)
{
    const double left = (WIDTH - SPECTRUM_WIDTH) / 2.0;
    (void)fprintf(
        f,
        "<svg viewBox=\"0 0 %d %d\" class=\"spectrum\" role=\"img\" "
        "aria-label=\"Eigenvalues\">\n<path class=\"axis\" d=\"M%.0f 44h%d\"/>",
        WIDTH, SPECTRUM_HEIGHT, left, SPECTRUM_WIDTH);
    for (int i = -2; i <= 2; i++) {
        (void)fprintf(
            f,
            "<path class=\"axis\" d=\"M%.1f 44v5\"/>"
            "<text class=\"mid\" x=\"%.1f\" y=\"63\">%.1f</text>\n",
            left + SPECTRUM_WIDTH * (i + 2) / 4.0,
            left + SPECTRUM_WIDTH * (i + 2) / 4.0, i / 2.0);
    }
    for (size_t i = 0; i < n; i++) {
        const double value = fmax(-1, fmin(1, values[i]));
        (void)fprintf(
            f,
            "<path class=\"value%s\" d=\"M%.1f 12v32\">"
            "<title>eigenvalue %.4f</title></path>\n",
            i + 2 == n || i == 0 ? " bound" : "",
            left + SPECTRUM_WIDTH * (value + 1) / 2, no_minus_zero(value));
    }
    (void)fputs("</svg>\n", f);
}

// A product of rounds that is not symmetric has no spectrum to draw.
static lac_status put_spectrum(FILE *f, const lac_topology *t)
{
    const size_t n = lac_topology_workers(t);
    lac_spectrum s;
    if (cli_network_spectrum(t, &s) != LAC_OK) {
        return LAC_OK;
    }
    double *const w = calloc(n * n + n, sizeof(*w));
    if (w == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for a matrix of %zu", n);
    }
    const lac_status status = cli_network_matrix(t, w);
    if (status == LAC_OK) {
        page_eigenvalues(w, n, w + n * n);
        put_eigenvalues(f, w + n * n, n);
        (void)fprintf(
            f,
            "<p>Spectral gap <b>%.4f</b>, \xce\xbb<sub>2</sub> %.4f, "
            "\xce\xbb<sub>n</sub> %.4f, \xce\xb2 %.4f%s.</p>\n",
            s.gap, no_minus_zero(s.lambda2), no_minus_zero(s.lambdan), s.beta,
            lac_topology_is_drawn(t)     ? ", of the mean of all draws"
            : lac_topology_period(t) > 1 ? ", of the product of a period"
                                         : "");
    }
    free(w);
    return status;
}

// The names of the rows that use a network.
static void put_users(FILE *f, const compare_runs *c, uint64_t hash)
{
    char name[COMPARE_NAME_SIZE];
    bool first = true;
    for (size_t i = 0; i < c->row_count; i++) {
        const cli_run *const run = &c->runs[c->rows[i].first];
        lac_topology *t = NULL;
        if (run->gradient || run->workers > DRAWN_MAX ||
            cli_network_recorded(run->topology, run->workers, run->seed, &t) !=
                LAC_OK) {
            continue;
        }
        if (lac_topology_hash(t) == hash) {
            (void)fputs(first ? "" : ", ", f);
            cli_markup_text(f, compare_row_name(c, i, name));
            first = false;
        }
        lac_topology_close(t);
    }
}

static lac_status put_network(
    FILE *f, const compare_runs *c, const cli_run *run, const lac_topology *t)
{
    const size_t n = lac_topology_workers(t);
    page_place *const places = calloc(n, sizeof(*places));
    if (places == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for a graph of %zu", n);
    }
    lac_status status = page_graph_layout(t, places);
    if (status == LAC_OK) {
        (void)fputs("<figure class=\"graph\"><figcaption>", f);
        cli_markup_text(f, run->topology);
        (void)fprintf(
            f,
            "<small> %zu workers, %zu edges</small></figcaption>\n"
            "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"Network\">\n",
            n, lac_topology_edge_count(t), WIDTH, HEIGHT);
        put_edges(f, t, places);
        put_workers(f, t, places);
        (void)fputs("</svg>\n", f);
        status = put_spectrum(f, t);
        (void)fputs("<p class=\"users\">", f);
        put_users(f, c, lac_topology_hash(t));
        (void)fputs("</p></figure>\n", f);
    }
    free(places);
    return status;
}

// The networks that were drawn, and the runs whose network was not.
typedef struct drawn_networks {
    uint64_t hashes[NETWORKS_MAX];
    size_t count, left_out;
} drawn_networks;

static bool is_known_network(const drawn_networks *drawn, uint64_t hash)
{
    for (size_t i = 0; i < drawn->count; i++) {
        if (drawn->hashes[i] == hash) {
            return true;
        }
    }
    return false;
}

// Draws the network of a run unless another run has it too.
static lac_status put_new_network(
    FILE *f, const compare_runs *c, const cli_run *run, drawn_networks *drawn)
{
    lac_topology *t = NULL;
    if (run->workers > DRAWN_MAX ||
        cli_network_recorded(run->topology, run->workers, run->seed, &t) !=
            LAC_OK) {
        drawn->left_out++;
        return LAC_OK;
    }
    const uint64_t hash = lac_topology_hash(t);
    lac_status status = LAC_OK;
    if (!is_known_network(drawn, hash)) {
        if (drawn->count == NETWORKS_MAX) {
            drawn->left_out++;
        } else {
            drawn->hashes[drawn->count++] = hash;
            status = put_network(f, c, run, t);
        }
    }
    lac_topology_close(t);
    return status;
}

static bool has_gossip(const compare_runs *c)
{
    for (size_t i = 0; i < c->count; i++) {
        if (!c->runs[i].gradient) {
            return true;
        }
    }
    return false;
}

lac_status page_graphs(FILE *f, const compare_runs *c)
{
    drawn_networks drawn = {.count = 0};
    if (!has_gossip(c)) {
        return LAC_OK;
    }
    page_runs_heading(f, c, "network", "Network");
    (void)fputs(
        "<p>Workers exchange models with their neighbours. The farther the "
        "eigenvalues of the mixing matrix, except the 1, are from 1 and -1, "
        "the faster the models approach their mean.</p>\n"
        "<div class=\"charts\">\n",
        f);
    lac_status status = LAC_OK;
    for (size_t i = 0; i < c->count && status == LAC_OK; i++) {
        if (!c->runs[i].gradient) {
            status = put_new_network(f, c, &c->runs[i], &drawn);
        }
    }
    (void)fputs("</div>\n", f);
    if (drawn.left_out > 0) {
        (void)fprintf(
            f,
            "<p>Not drawn: %zu, because they are unknown here, have more than "
            "%d workers, or are too many.</p>\n",
            drawn.left_out, DRAWN_MAX);
    }
    return status;
}
