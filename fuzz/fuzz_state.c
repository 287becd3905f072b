// SPDX-License-Identifier: MIT
// Arbitrary bytes as the saved state of every algorithm, loaded without and
// with the flag for another world. The checksum is put right, so that what
// stands before it is looked at. What is refused must change nothing; what is
// taken must be saved again as it was. An input is: which algorithm, then the
// state without its checksum.
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "fuzz.h"

enum { SUM_SIZE = 8 };

static const char layout_text[] = "weight 3 2\nempty 0 3\nbias 2";

static uint8_t *save(const lac_algorithm *a, size_t *len_out)
{
    *len_out = lac_algorithm_state_size(a);
    uint8_t *const state = fuzz_alloc(*len_out);
    // Before the start some algorithms refuse; nothing is written then.
    if (lac_algorithm_save(a, state, *len_out) != LAC_OK) {
        memset(state, 0, *len_out);
    }
    return state;
}

static void load(
    lac_algorithm *a, const uint8_t *state, size_t len, unsigned flags)
{
    size_t before_len, after_len;
    uint8_t *const before = save(a, &before_len);
    const lac_status status = lac_algorithm_load_with(a, state, len, flags);
    uint8_t *const after = save(a, &after_len);
    if (status == LAC_OK) {
        fuzz_require(len == after_len, "a state has another size");
    } else {
        fuzz_require(
            status == LAC_ERR_CORRUPT || status == LAC_ERR_INVALID,
            "a state is neither good, corrupt nor another's");
        fuzz_require(
            before_len == after_len && memcmp(before, after, after_len) == 0,
            "a state was refused after changing something");
    }
    free(after);
    free(before);
}

static void with_algorithm(
    lac_algorithm_options *o, const uint8_t *data, size_t size)
{
    lac_algorithm *a = NULL;
    o->compressor = NULL;
    if (lac_algorithm_open(&a, o) != LAC_OK) {
        o->compressor = "sign";
        if (lac_algorithm_open(&a, o) != LAC_OK) {
            return;
        }
    }
    uint8_t *const state = fuzz_alloc(size + SUM_SIZE);
    memcpy(state, data, size);
    const uint64_t sum = XXH3_64bits(state, size);
    for (int i = 0; i < SUM_SIZE; i++) {
        state[size + (size_t)i] = (uint8_t)(sum >> 8 * i);
    }
    load(a, state, size + SUM_SIZE, 0);
    load(a, state, size + SUM_SIZE, LAC_LOAD_OTHER_WORLD);
    free(state);
    lac_algorithm_close(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    size_t count;
    const lac_plugin *const *const table = lac_algorithms(&count);
    lac_layout *layout = NULL;
    lac_topology *topology = NULL;
    lac_hub *hub = NULL;
    lac_transport *transport = NULL;
    fuzz_require(
        lac_layout_parse(&layout, layout_text, sizeof(layout_text) - 1) ==
                LAC_OK &&
            lac_topology_open(&topology, "complete", 2, 1) == LAC_OK &&
            lac_hub_open(&hub, 2) == LAC_OK &&
            lac_transport_join(&transport, "local", hub, 0, 2) == LAC_OK,
        "nothing to load into");
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = table[fuzz_byte(&input) % count]->name;
    o.layout = layout;
    o.topology = topology;
    o.transport = transport;
    with_algorithm(&o, input.data, input.size);
    lac_transport_leave(transport);
    lac_hub_close(hub);
    lac_topology_close(topology);
    lac_layout_close(layout);
    return 0;
}
