// SPDX-License-Identifier: MIT
// Writes inputs for a fuzzer to begin with: for every compressor floats to
// encode and a true payload, its name and settings as a spec, a layout, and the
// state of every algorithm. usage: fuzz_seeds FOLDER, which must have the
// folders decode, spec, layout and state
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algorithm/framework/handle.h"
#include "fuzz.h"

enum {
    ROWS = 12,
    COLUMNS = 4,
    COLUMNS_BYTE = 5, // which the target takes for 4
    VALUES = ROWS * COLUMNS,
    HEAD_MAX = 64,
};

static void write_seed(
    const char *folder, const char *name, const void *bytes, size_t len)
{
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *const file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes, 1, len, file) != len ||
        fclose(file) != 0) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
}

static size_t setting_count(const lac_plugin *plugin)
{
    size_t count = 0;
    for (const lac_param *p = plugin->params; p != NULL && p->name; p++) {
        count++;
    }
    return count;
}

// The head that makes the target choose compressor `index` with `setting` for
// every one of its settings, and nothing after it.
static size_t put_head(
    uint8_t *out, int encode, uint8_t scope, size_t index, uint8_t setting)
{
    size_t count;
    const lac_plugin *const plugin = lac_compressors(&count)[index];
    const lac_compressor_ops *const ops = (const void *)plugin;
    const uint8_t head[] = {
        (uint8_t)encode, scope, ROWS, COLUMNS_BYTE, (uint8_t)index};
    memcpy(out, head, sizeof(head));
    size_t len = sizeof(head);
    for (size_t i = 0; i < setting_count(plugin) && len < HEAD_MAX - 1; i++) {
        out[len++] = setting;
    }
    if (ops->sparsifier != NULL) {
        out[len++] = 0;
    }
    return len;
}

static void write_payload(
    const char *folder, size_t index, uint8_t scope, uint8_t setting,
    const float *x)
{
    uint8_t bytes[HEAD_MAX + 1 + 64 * VALUES];
    char spec[FUZZ_SPEC_SIZE], name[64];
    const size_t head = put_head(bytes, 0, scope, index, setting);
    fuzz_input input = {bytes + 4, head - 4};
    fuzz_spec(&input, spec);
    const lac_shape shape = {ROWS, COLUMNS};
    const lac_key key = fuzz_key(scope);
    lac_compressor *c = NULL;
    size_t len = 0;
    if (lac_compressor_open(&c, spec, LAC_FORM_PLAIN) != LAC_OK) {
        return; // settings that do not go together
    }
    fuzz_require(
        lac_compressor_reserve(c, shape) == LAC_OK &&
            lac_compressor_encode(
                c, &key, shape, x, bytes + head, sizeof(bytes) - head, &len) ==
                LAC_OK,
        spec);
    lac_compressor_close(c);
    (void)snprintf(
        name, sizeof(name), "payload-%zu-%u-%u", index, scope, setting);
    write_seed(folder, name, bytes, head + len);
}

static void write_floats(const char *folder, size_t index, const float *x)
{
    uint8_t bytes[HEAD_MAX + sizeof(float) * VALUES];
    char name[64];
    const size_t head = put_head(bytes, 1, 0, index, 0);
    memcpy(bytes + head, x, sizeof(float) * VALUES);
    (void)snprintf(name, sizeof(name), "floats-%zu", index);
    write_seed(folder, name, bytes, head + sizeof(float) * VALUES);
}

static void write_decode(const char *root)
{
    char folder[4000];
    size_t count;
    float x[VALUES];
    const lac_key key = fuzz_key(0);
    (void)lac_compressors(&count);
    (void)snprintf(folder, sizeof(folder), "%s/decode", root);
    for (uint32_t i = 0; i < VALUES; i++) {
        x[i] = lac_key_normal(&key, i);
    }
    for (size_t index = 0; index < count; index++) {
        write_floats(folder, index, x);
        for (uint8_t pick = 0; pick < 24; pick++) {
            write_payload(folder, index, pick % 3, pick / 3, x);
        }
    }
}

static void write_specs(const char *root)
{
    char folder[4000], name[64], spec[FUZZ_SPEC_SIZE];
    (void)snprintf(folder, sizeof(folder), "%s/spec", root);
    for (uint8_t i = 0; i < 64; i++) {
        const uint8_t bytes[16] = {
            (uint8_t)(i % 16), (uint8_t)(i / 16), i, 1, i, 2, i, 1, i};
        fuzz_input input = {bytes, sizeof(bytes)};
        fuzz_spec(&input, spec);
        (void)snprintf(name, sizeof(name), "spec-%u", i);
        write_seed(folder, name, spec, strlen(spec));
    }
}

static void write_layout(const char *root)
{
    static const char text[] = "# two layers\n"
                               "conv1.weight 64 147\n"
                               "conv1.bias\t64\r\n"
                               "\n"
                               "fc.weight, 10, 512 # the last\n"
                               "fc.bias 10 1";
    char folder[4000];
    (void)snprintf(folder, sizeof(folder), "%s/layout", root);
    write_seed(folder, "two-layers", text, sizeof(text) - 1);
}

// The state of algorithm `index`, as fuzz_state.c opens it.
static void write_state(
    const char *folder, uint8_t index, const lac_algorithm_options *options)
{
    lac_algorithm_options o = *options;
    lac_algorithm *a = NULL;
    char name[64];
    if (lac_algorithm_open(&a, &o) != LAC_OK) {
        o.compressor = "sign";
        if (lac_algorithm_open(&a, &o) != LAC_OK) {
            return; // not a model algorithm
        }
    }
    const size_t len = lac_algorithm_state_size(a);
    uint8_t *const bytes = fuzz_alloc(1 + len);
    bytes[0] = index;
    a->started = true; // a start would exchange values with another worker
    if (a->ops->step != NULL) {
        a->ops->step(a->state)->value = 0.5;
    }
    if (lac_algorithm_save(a, bytes + 1, len) == LAC_OK) {
        (void)snprintf(name, sizeof(name), "state-%u", index);
        write_seed(folder, name, bytes, 1 + len - sizeof(uint64_t));
    }
    free(bytes);
    lac_algorithm_close(a);
}

static void write_states(const char *root)
{
    static const char text[] = "weight 3 2\nempty 0 3\nbias 2";
    char folder[4000];
    size_t count;
    const lac_plugin *const *const table = lac_algorithms(&count);
    lac_layout *layout = NULL;
    lac_topology *topology = NULL;
    lac_hub *hub = NULL;
    lac_transport *transport = NULL;
    fuzz_require(
        lac_layout_parse(&layout, text, sizeof(text) - 1) == LAC_OK &&
            lac_topology_open(&topology, "complete", 2, 1) == LAC_OK &&
            lac_hub_open(&hub, 2) == LAC_OK &&
            lac_transport_join(&transport, "local", hub, 0, 2) == LAC_OK,
        "no group");
    (void)snprintf(folder, sizeof(folder), "%s/state", root);
    lac_algorithm_options o = lac_algorithm_options_default();
    o.layout = layout;
    o.topology = topology;
    o.transport = transport;
    for (size_t i = 0; i < count; i++) {
        o.spec = table[i]->name;
        write_state(folder, (uint8_t)i, &o);
    }
    lac_transport_leave(transport);
    lac_hub_close(hub);
    lac_topology_close(topology);
    lac_layout_close(layout);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
        return 2;
    }
    write_decode(argv[1]);
    write_specs(argv[1]);
    write_layout(argv[1]);
    write_states(argv[1]);
    return 0;
}
