// SPDX-License-Identifier: MIT
// Hashes the arrays of a data set as they lie in memory. Pixels are bytes
// there, so CIFAR-10 is 184 MB and takes some hundredths of a second.
#include "train/data_hash.h"

#include <xxhash.h>

#include "data/set.h"

static void add_array(
    XXH3_state_t *state, const void *data, size_t count, size_t size)
{
    const uint64_t len = data == NULL ? 0 : (uint64_t)count * size;
    (void)XXH3_64bits_update(state, &len, sizeof(len));
    if (len > 0) {
        (void)XXH3_64bits_update(state, data, (size_t)len);
    }
}

static void add_info(XXH3_state_t *state, const data_info *info)
{
    const uint64_t numbers[] = {
        (uint64_t)info->kind, info->channels, info->height,
        info->width,          info->classes,
    };
    add_array(state, numbers, sizeof(numbers), 1);
    add_array(state, info->blank, DATA_CHANNELS_MAX, sizeof(*info->blank));
}

static void add_part(XXH3_state_t *state, const data_set *set, data_part part)
{
    const data_part_store *const p = &set->parts[part];
    const data_info *const info = &set->info;
    const size_t count = info->count[part];
    const size_t values = (size_t)info->channels * info->height * info->width;
    const size_t in_table = p->table.start == NULL ? 0 : p->table.start[count];
    add_array(state, p->pixels, count, values);
    add_array(state, p->labels, count, sizeof(*p->labels));
    add_array(state, p->tokens, count, sizeof(*p->tokens));
    add_array(state, p->table.start, count + 1, sizeof(*p->table.start));
    add_array(state, p->table.column, in_table, sizeof(*p->table.column));
    add_array(state, p->table.value, in_table, sizeof(*p->table.value));
}

lac_status train_data_hash(const data_set *set, uint64_t *hash_out)
{
    size_t count = 0;
    const data_document *const documents = data_set_documents(set, &count);
    XXH3_state_t *const state = XXH3_createState();
    if (state == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for the hash of a data set");
    }
    (void)XXH3_64bits_reset(state);
    add_info(state, &set->info);
    for (int part = 0; part < DATA_PARTS; part++) {
        add_part(state, set, (data_part)part);
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t document[] = {
            (uint64_t)documents[i].part, documents[i].start,
            documents[i].label};
        add_array(state, document, sizeof(document), 1);
    }
    *hash_out = XXH3_64bits_digest(state);
    (void)XXH3_freeState(state);
    return LAC_OK;
}
