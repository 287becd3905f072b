// SPDX-License-Identifier: MIT
// A report: one HTML page without any other file, which a browser opens from
// disk. It is a function of the inputs only.
#ifndef LACONIC_CLI_PAGE_DOCUMENT_H
#define LACONIC_CLI_PAGE_DOCUMENT_H

#include <stddef.h>

#include "cli/page/inputs.h"

// page_document_write makes a report the content of `path` and writes its
// length. Fails with LAC_ERR_INVALID or LAC_ERR_NOMEM, leaving nothing behind.
lac_status page_document_write(
    const page_inputs *in, const char *path, size_t *len_out);

// The texts of style.css and script.js.
extern const char page_style[], page_script[];

#endif
