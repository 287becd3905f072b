// SPDX-License-Identifier: MIT
#include "cli/size/fragments.h"

#include <stdlib.h>

static lac_status fragments_no_memory(const lac_algorithm_options *options)
{
    return lac_fail(
        LAC_ERR_NOMEM, "no memory for the fragments of %.60s", options->spec);
}

// Opens the layout of one fragment. `of` has that of every tensor, `room` room
// for all tensors.
static lac_status open_fragment(
    cli_fragments *f, uint32_t fragment, const lac_algorithm_options *options,
    const uint32_t *of, lac_tensor *room)
{
    size_t count = 0;
    for (size_t t = 0; t < lac_layout_count(options->layout); t++) {
        if (of[t] == fragment) {
            room[count++] = *lac_layout_tensor(options->layout, t);
        }
    }
    if (count == 0) {
        return LAC_OK;
    }
    lac_algorithm_options alone = *options;
    LAC_TRY(lac_layout_open(&f->layouts[fragment], room, count));
    alone.layout = f->layouts[fragment];
    return lac_algorithm_cost(&alone, &f->costs[fragment]);
}

static lac_status open_all(
    cli_fragments *f, const lac_algorithm_options *options)
{
    const size_t tensors = lac_layout_count(options->layout);
    uint32_t *const of = calloc(tensors + 1, sizeof(*of));
    lac_tensor *const room = calloc(tensors + 1, sizeof(*room));
    f->layouts = calloc(f->count, sizeof(*f->layouts));
    f->costs = calloc(f->count, sizeof(*f->costs));
    const bool complete =
        of != NULL && room != NULL && f->layouts != NULL && f->costs != NULL;
    lac_status status = complete ? lac_algorithm_fragments(options, of)
                                 : fragments_no_memory(options);
    for (uint32_t k = 0; complete && status == LAC_OK && k < f->count; k++) {
        status = open_fragment(f, k, options, of, room);
    }
    free(room);
    free(of);
    return status;
}

lac_status cli_fragments_open(
    cli_fragments *out, const lac_algorithm_options *options)
{
    lac_cost cost;
    *out = (cli_fragments){0};
    LAC_TRY(lac_algorithm_cost(options, &cost));
    out->count = cost.fragments;
    const lac_status status = open_all(out, options);
    if (status != LAC_OK) {
        cli_fragments_close(out);
    }
    return status;
}

void cli_fragments_close(cli_fragments *f)
{
    for (uint32_t k = 0; f->layouts != NULL && k < f->count; k++) {
        lac_layout_close(f->layouts[k]);
    }
    free(f->layouts);
    free(f->costs);
    *f = (cli_fragments){0};
}

lac_status cli_fragments_cost(
    const lac_algorithm_options *options, lac_cost *out)
{
    cli_fragments f;
    lac_cost cost;
    LAC_TRY(lac_algorithm_cost(options, &cost));
    LAC_TRY(cli_fragments_open(&f, options));
    cost.payload_bytes = cost.messages = cost.phases = 0;
    for (uint32_t k = 0; k < f.count; k++) {
        cost.payload_bytes += f.costs[k].payload_bytes;
        cost.messages += f.costs[k].messages;
        cost.phases += f.costs[k].phases;
    }
    cli_fragments_close(&f);
    *out = cost;
    return LAC_OK;
}
