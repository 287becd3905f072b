// SPDX-License-Identifier: MIT
// The name and version of the MPI library, from its own description of itself,
// which begins with "Open MPI v4.1.4, package: ..." or with "MPICH
// Version:\t4.0.2\n...". MPI may be asked for it before MPI_Init.
#include <stdio.h>
#include <string.h>

#include "transport/mpi/session.h"

// Copies the words of `text`, except "Version:", with one space between them.
static void library_words(const char *text, char out[LAC_LIBRARY_SIZE])
{
    static const char label[] = "Version:", blanks[] = " \t";
    size_t used = 0;
    for (text += strspn(text, blanks); *text != '\0';
         text += strspn(text, blanks)) {
        const size_t len = strcspn(text, blanks);
        const bool is_label =
            len == strlen(label) && memcmp(text, label, len) == 0;
        if (!is_label) {
            (void)snprintf(
                out + used, LAC_LIBRARY_SIZE - used, "%s%.*s",
                used == 0 ? "" : " ", (int)len, text);
            used += strlen(out + used);
        }
        text += len;
    }
}

lac_status laci_mpi_library(const void *state, char out[LAC_LIBRARY_SIZE])
{
    (void)state;
    char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
    int len = 0;
    if (MPI_Get_library_version(text, &len) != MPI_SUCCESS) {
        text[0] = '\0';
    }
    text[strcspn(text, ",\n")] = '\0';
    (void)snprintf(out, LAC_LIBRARY_SIZE, "an MPI without a version");
    library_words(text, out);
    return LAC_OK;
}
