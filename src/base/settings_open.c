// SPDX-License-Identifier: MIT
// Settings for the plug-ins of a program's own: the spec is read by the same
// tables and with the same sentences as those of the library.
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/settings.h"

lac_status lac_settings_open(
    lac_settings **out, const char *kind, const lac_plugin *const *plugins,
    size_t count, const char *spec)
{
    const laci_registry registry = {
        .kind = kind, .plugins = plugins, .plugin_count = count};
    laci_spec found = {0};
    *out = NULL;
    LAC_TRY(laci_spec_find(&registry, spec, strlen(spec), &found));
    const size_t head = laci_aligned(sizeof(lac_settings));
    const size_t state = laci_aligned(found.plugin->state_size);
    unsigned char *const block =
        laci_zalloc_aligned(head + state + laci_settings_texts_size(&found));
    if (block == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for its settings", found.name);
    }
    lac_settings *const settings = (void *)block;
    *settings = (lac_settings){found.plugin, block + head};
    const lac_status status = laci_settings_read(
        &found, settings->state, (char *)block + head + state);
    if (status != LAC_OK) {
        lac_settings_close(settings);
        return status;
    }
    *out = settings;
    return LAC_OK;
}

void lac_settings_close(lac_settings *settings)
{
    laci_free_aligned(settings);
}
