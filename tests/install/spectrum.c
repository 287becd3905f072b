// SPDX-License-Identifier: MIT
// A program outside the tree that asks for a spectrum. LAPACK must not be in
// the process before, and must be after.
#include <laconic/laconic.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static int has_lapack(void)
{
    char line[4096];
    int found = 0;
    FILE *const maps = fopen("/proc/self/maps", "r");
    if (maps == NULL) {
        return -1;
    }
    while (fgets(line, sizeof(line), maps) != NULL) {
        found |= strstr(line, "/liblapack") != NULL ||
                 strstr(line, "/libblas") != NULL ||
                 strstr(line, "/libopenblas") != NULL;
    }
    (void)fclose(maps);
    return found;
}

int main(void)
{
    lac_topology *t = NULL;
    lac_spectrum s = {0};
    if (has_lapack() != 0) {
        (void)fprintf(stderr, "LAPACK is loaded before the first spectrum\n");
        return 1;
    }
    if (lac_topology_open(&t, "ring", 4, 1) != LAC_OK ||
        lac_topology_spectrum(t, &s) != LAC_OK) {
        (void)fprintf(stderr, "%s\n", lac_error_message());
        return 1;
    }
    lac_topology_close(t);
    if (has_lapack() != 1 || fabs(s.gap - 2.0 / 3) > 1e-12) {
        (void)fprintf(stderr, "the spectral gap is %g\n", s.gap);
        return 1;
    }
    return 0;
}
