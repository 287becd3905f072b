// SPDX-License-Identifier: MIT
// A network from a file: each line is an edge, the ranks of two workers.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "topology/topology.h"

enum { TEXT_MIN = 1 << 16, TEXT_MAX = 1 << 28 };

typedef struct file {
    laci_weighting weighting;
    const char *path;
} file;

static const lac_param params[] = {
    {.name = "path",
     .type = LAC_PARAM_TEXT,
     .offset = offsetof(file, path),
     .default_value = "",
     .help = "text: a line an edge, such as 0 1; # begins a comment"},
    LACI_WEIGHTS_PARAM,
    {0},
};

// The content of a file while it is read.
typedef struct content {
    char *text;
    size_t len;
    size_t room;
} content;

static lac_status file_grow(content *c, const char *path)
{
    const size_t room = c->room == 0 ? TEXT_MIN : 2 * c->room;
    if (room > TEXT_MAX) {
        return lac_fail(
            LAC_ERR_INVALID, "file: %s is larger than %d bytes", path,
            TEXT_MAX);
    }
    char *const text = laci_zalloc(room);
    if (text == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "file: no memory to read %s", path);
    }
    if (c->len > 0) {
        memcpy(text, c->text, c->len);
    }
    laci_free(c->text);
    c->text = text;
    c->room = room;
    return LAC_OK;
}

// The size is not known in advance: the path may be a pipe.
static lac_status file_read_all(FILE *stream, const char *path, content *c)
{
    do {
        if (c->len == c->room) {
            LAC_TRY(file_grow(c, path));
        }
        c->len += fread(c->text + c->len, 1, c->room - c->len, stream);
    } while (c->len == c->room);
    if (ferror(stream) != 0) {
        return lac_fail(
            LAC_ERR_INVALID, "file: %s cannot be read: %s", path,
            strerror(errno));
    }
    return LAC_OK;
}

static lac_status file_build(
    const void *state, uint64_t round, laci_dice *dice, laci_graph *graph)
{
    (void)round;
    (void)dice;
    const char *const path = ((const file *)state)->path;
    if (path[0] == '\0') {
        return lac_fail(
            LAC_ERR_INVALID, "file: no path is given, expected file:PATH");
    }
    FILE *const stream = fopen(path, "rb");
    if (stream == NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "file: %s cannot be opened: %s", path,
            strerror(errno));
    }
    content c = {0};
    lac_status status = file_read_all(stream, path, &c);
    if (status == LAC_OK) {
        status = laci_edge_list_parse(c.text, c.len, graph);
    }
    laci_free(c.text);
    (void)fclose(stream);
    return status;
}

const laci_topology_ops laci_file_topology = {
    .plugin.size = sizeof(laci_topology_ops),
    .plugin.name = "file",
    .plugin.summary = "a network that a file describes, a line an edge",
    .plugin.params = params,
    .plugin.state_size = sizeof(file),
    .build = file_build,
};
