// SPDX-License-Identifier: MIT
// Compressors by name: open, close, and what can be asked of a handle.
#include "compress/compressor.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/settings.h"
#include "compress/sparse.h"

#define LAC_COMPRESSOR(id, name)                                               \
    extern const lac_compressor_ops laci_##name##_ops;
#define LAC_COMPRESSOR_ALIAS(name, target, preset)
#include "compress/compressors.def"
#undef LAC_COMPRESSOR
#undef LAC_COMPRESSOR_ALIAS

#define LAC_COMPRESSOR_ALIAS(name, target, preset)
static const lac_plugin *const plugins[] = {
#define LAC_COMPRESSOR(id, name) &laci_##name##_ops.plugin,
#include "compress/compressors.def"
#undef LAC_COMPRESSOR
};

static const uint32_t wire_ids[] = {
#define LAC_COMPRESSOR(id, name) (id),
#include "compress/compressors.def"
#undef LAC_COMPRESSOR
};
#undef LAC_COMPRESSOR_ALIAS

static const lac_alias aliases[] = {
#define LAC_COMPRESSOR(id, name)
#define LAC_COMPRESSOR_ALIAS(name, target, preset) {name, target, preset},
#include "compress/compressors.def"
#undef LAC_COMPRESSOR
#undef LAC_COMPRESSOR_ALIAS
};

enum {
    PLUGIN_COUNT = sizeof(plugins) / sizeof(plugins[0]),
    ALIAS_COUNT = sizeof(aliases) / sizeof(aliases[0]),
    PARTS_MAX = 4, // of "A+B+C", as many as a wire id has bytes
};

static const laci_registry registry = {
    .kind = "compressor",
    .plugins = plugins,
    .plugin_count = PLUGIN_COUNT,
    .aliases = aliases,
    .alias_count = ALIAS_COUNT,
};

const lac_plugin *const *lac_compressors(size_t *count_out)
{
    *count_out = PLUGIN_COUNT;
    return plugins;
}

const lac_alias *lac_compressor_aliases(size_t *count_out)
{
    *count_out = ALIAS_COUNT;
    return aliases;
}

static uint32_t wire_id_of(const lac_compressor_ops *ops)
{
    for (size_t i = 0; i < PLUGIN_COUNT; i++) {
        if (plugins[i] == &ops->plugin) {
            return wire_ids[i];
        }
    }
    return 0;
}

// Ops of a caller may be older than this library and lack later members, which
// are then NULL; they may not lack what was there from the start.
static lac_status check_ops(const lac_compressor_ops *ops)
{
    const lac_sparsifier_ops *const s = ops->sparsifier;
    const char *const name = ops->plugin.name;
    if (name == NULL || ops->plugin.size < sizeof(*ops) ||
        (s != NULL && s->size < sizeof(*s))) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: its ops have no name or a size of less than %zu bytes",
            name == NULL ? "compressor" : name, sizeof(*ops));
    }
    const bool whole = s == NULL ? ops->bound != NULL && ops->encode != NULL &&
                                       ops->check != NULL && ops->decode != NULL
                                 : s->keep != NULL && s->choose != NULL &&
                                       s->indices_bound != NULL &&
                                       s->put_indices != NULL &&
                                       s->get_indices != NULL;
    const bool memory = ops->encode_add != NULL;
    if (ops->guarantee == NULL || !whole || memory != (ops->settle != NULL) ||
        memory != (ops->residual != NULL)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: its ops lack a member that is not optional",
            name);
    }
    return LAC_OK;
}

static void copy_ops(lac_compressor *c, const lac_compressor_ops *ops)
{
    c->own_ops = *ops;
    if (ops->sparsifier != NULL) {
        c->own_sparsifier = *ops->sparsifier;
        c->own_ops.sparsifier = &c->own_sparsifier;
    }
    c->ops = &c->own_ops;
}

// Opens one compressor of a spec, without what follows a '+'.
static lac_status open_part(
    lac_compressor **out, const laci_spec *spec, lac_form form)
{
    *out = NULL;
    const lac_compressor_ops *const ops = (const void *)spec->plugin;
    void *handle, *state;
    LAC_TRY(laci_handle_make(spec, sizeof(lac_compressor), &handle, &state));
    lac_compressor *const c = handle;
    copy_ops(c, ops);
    c->name = spec->name;
    c->wire_id = wire_id_of(ops);
    c->form = form;
    c->kernels = laci_kernels_best();
    c->state = state;
    const lac_status status =
        ops->configure == NULL ? LAC_OK : ops->configure(state);
    if (status != LAC_OK) {
        lac_compressor_close(c);
        return status;
    }
    *out = c;
    return LAC_OK;
}

// Opens "A+B+C" from the left; each part takes the values that the one before
// it keeps.
static lac_status open_parts(
    lac_compressor **out, const char *text, size_t len, lac_form form,
    size_t parts)
{
    *out = NULL;
    size_t part = 0;
    laci_spec spec = {0};
    LAC_TRY(laci_spec_part(text, len, '+', &part));
    if (parts > PARTS_MAX) {
        return lac_fail(
            LAC_ERR_INVALID,
            "compressor: more than %d are joined with a +, expected fewer",
            (int)PARTS_MAX);
    }
    if (part == 0 && (part < len || parts > 1)) {
        return lac_fail(
            LAC_ERR_INVALID, "compressor: nothing stands %s a +",
            part < len ? "before" : "after");
    }
    LAC_TRY(laci_spec_find(&registry, text, part, &spec));
    lac_compressor *c = NULL;
    LAC_TRY(open_part(&c, &spec, form));
    if (part < len) {
        lac_status status;
        if (c->ops->sparsifier == NULL) {
            status = lac_fail(
                LAC_ERR_INVALID,
                "%s: nothing can follow with a +, expected a sparsifier such "
                "as top-k before it",
                c->name);
        } else {
            status = open_parts(
                &c->inner, text + part + 1, len - part - 1, form, parts + 1);
        }
        if (status != LAC_OK) {
            lac_compressor_close(c);
            return status;
        }
    }
    *out = c;
    return LAC_OK;
}

static lac_status check_form(lac_form form)
{
    if (form != LAC_FORM_PLAIN && form != LAC_FORM_UNBIASED &&
        form != LAC_FORM_CONTRACTIVE) {
        return lac_fail(
            LAC_ERR_INVALID, "compressor: form is %d, expected 0, 1 or 2",
            (int)form);
    }
    return LAC_OK;
}

lac_status lac_compressor_open(
    lac_compressor **out, const char *spec, lac_form form)
{
    *out = NULL;
    LAC_TRY(check_form(form));
    return open_parts(out, spec, strlen(spec), form, 1);
}

lac_status lac_compressor_open_with(
    lac_compressor **out, const lac_compressor_ops *ops, const char *params,
    lac_form form)
{
    *out = NULL;
    LAC_TRY(check_form(form));
    LAC_TRY(check_ops(ops));
    const laci_spec spec = {
        .plugin = &ops->plugin,
        .name = ops->plugin.name,
        .preset = "",
        .params = params,
        .params_len = strlen(params),
    };
    return open_part(out, &spec, form);
}

void lac_compressor_close(lac_compressor *c)
{
    if (c != NULL) {
        lac_compressor_close(c->inner);
        laci_free_aligned(c->scratch);
        laci_free_aligned(c);
    }
}

lac_status lac_compressor_use_kernels(lac_compressor *c, const char *name)
{
    const laci_kernels *kernels = NULL;
    LAC_TRY(laci_kernels_find(name, &kernels));
    for (; c != NULL; c = c->inner) {
        c->kernels = kernels;
    }
    return LAC_OK;
}

const char *lac_compressor_kernels(const lac_compressor *c)
{
    return c->kernels->name;
}

uint32_t lac_compressor_wire_id(const lac_compressor *c)
{
    return c->inner == NULL
               ? c->wire_id
               : c->wire_id + 256 * lac_compressor_wire_id(c->inner);
}

lac_status laci_shape_check(const lac_compressor *c, lac_shape shape)
{
    const size_t most =
        c->ops->max_values == 0 ? LAC_VALUES_MAX : c->ops->max_values;
    size_t values;
    if (!laci_mul(shape.rows, shape.cols, &values) || values > most) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: a tensor of %zu x %zu has too many values, at most %zu fit",
            c->name, shape.rows, shape.cols, most);
    }
    if (values > 0 && c->inner != NULL) {
        return laci_shape_check(c->inner, laci_sparse_kept(c, shape));
    }
    return LAC_OK;
}

lac_status lac_compressor_reserve(lac_compressor *c, lac_shape shape)
{
    LAC_TRY(laci_shape_check(c, shape));
    if (lac_shape_values(shape) == 0) {
        return LAC_OK;
    }
    const size_t size = laci_payload_scratch(c, shape);
    if (size <= c->scratch_size) {
        return LAC_OK;
    }
    void *const scratch = laci_zalloc_aligned(size);
    if (scratch == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for %zu bytes of scratch", c->name,
            size);
    }
    laci_free_aligned(c->scratch);
    c->scratch = scratch;
    c->scratch_size = size;
    return LAC_OK;
}

unsigned lac_compressor_traits(const lac_compressor *c, lac_scope_kind scope)
{
    return c->ops->sparsifier == NULL ? c->ops->traits
                                      : laci_sparse_traits(c, scope);
}

lac_guarantee lac_compressor_guarantee(const lac_compressor *c, lac_shape shape)
{
    if (laci_shape_check(c, shape) != LAC_OK) {
        return (lac_guarantee){.unbiased = false, .error = (double)INFINITY};
    }
    if (lac_shape_values(shape) == 0) {
        return (lac_guarantee){.unbiased = true, .error = 0};
    }
    return c->ops->sparsifier == NULL
               ? c->ops->guarantee(c->state, shape, c->form)
               : laci_sparse_guarantee(c, shape);
}
