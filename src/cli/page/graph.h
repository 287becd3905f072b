// SPDX-License-Identifier: MIT
// A network as a picture: where its workers are drawn, and all eigenvalues.
#ifndef LACONIC_CLI_PAGE_GRAPH_H
#define LACONIC_CLI_PAGE_GRAPH_H

#include <laconic/laconic.h>

typedef struct page_place {
    double x, y; // from -1 to 1
} page_place;

// page_graph_layout writes a place for each worker, such that distances are as
// proportional as possible to the numbers of hops.
// Fails with LAC_ERR_NOMEM.
lac_status page_graph_layout(const lac_topology *t, page_place *out);

// page_eigenvalues writes the eigenvalues of a symmetric matrix of n x n in
// ascending order, and overwrites the matrix.
void page_eigenvalues(double *matrix, size_t n, double *out);

#endif
