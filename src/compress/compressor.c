// SPDX-License-Identifier: MIT
// Compressors by name: the registry, open and close, and the properties of a
// handle.
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
    // The tables of version 0.1.0, the oldest that are accepted.
    OPS_SIZE_MIN = offsetof(lac_compressor_ops, finite),
    SPARSIFIER_SIZE_MIN = offsetof(lac_sparsifier_ops, random) + sizeof(bool),
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

static uint32_t wire_id_of(const lac_plugin *plugin)
{
    for (size_t i = 0; i < PLUGIN_COUNT; i++) {
        if (plugins[i] == plugin) {
            return wire_ids[i];
        }
    }
    return 0;
}

// Copies a table of a caller, which may have been compiled against an older or
// a newer header: members that it lacks are zero, members that this library
// does not know are left out.
static void copy_table(void *to, size_t to_size, const void *from, size_t size)
{
    memset(to, 0, to_size);
    memcpy(to, from, size < to_size ? size : to_size);
}

static lac_status check_size(
    const char *name, const char *table, size_t size, size_t least)
{
    if (size < least) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: its %s has %zu bytes, expected at least %zu",
            name, table, size, least);
    }
    return LAC_OK;
}

// Copies the ops of a caller, and the table of a sparsifier that they point to.
static lac_status copy_ops(
    const lac_compressor_ops *ops, lac_compressor_ops *own,
    lac_sparsifier_ops *own_sparsifier)
{
    const char *const name = ops->plugin.name;
    LAC_TRY(
        check_size(name, "lac_compressor_ops", ops->plugin.size, OPS_SIZE_MIN));
    copy_table(own, sizeof(*own), ops, ops->plugin.size);
    if (own->sparsifier != NULL) {
        const lac_sparsifier_ops *const s = own->sparsifier;
        LAC_TRY(check_size(
            name, "lac_sparsifier_ops", s->size, SPARSIFIER_SIZE_MIN));
        copy_table(own_sparsifier, sizeof(*own_sparsifier), s, s->size);
        own->sparsifier = own_sparsifier;
        // The framework handles the values of a sparsifier, and their memory.
        own->memory_tail = 0;
        own->encode_add = NULL;
        own->settle = NULL;
        own->residual = NULL;
    }
    return LAC_OK;
}

static lac_status check_ops(const lac_compressor_ops *ops)
{
    const lac_sparsifier_ops *const s = ops->sparsifier;
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
            ops->plugin.name);
    }
    const bool seed = ops->needs_seed != NULL;
    if ((ops->needs_key || seed) && (s != NULL || memory)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: needs_%s is set, expected no sparsifier and no encode_add",
            ops->plugin.name, ops->needs_key ? "key" : "seed");
    }
    if (ops->needs_key && seed) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: needs_key and needs_seed are set, expected one of them",
            ops->plugin.name);
    }
    return LAC_OK;
}

// Opens one part of a spec "A+B".
static lac_status open_part(
    lac_compressor **out, const laci_spec *spec, lac_form form)
{
    *out = NULL;
    lac_compressor_ops own;
    lac_sparsifier_ops own_sparsifier = {0};
    LAC_TRY(copy_ops((const void *)spec->plugin, &own, &own_sparsifier));
    LAC_TRY(check_ops(&own));
    void *handle, *state;
    LAC_TRY(laci_handle_make(spec, sizeof(lac_compressor), &handle, &state));
    lac_compressor *const c = handle;
    c->own_ops = own;
    c->own_sparsifier = own_sparsifier;
    if (own.sparsifier != NULL) {
        c->own_ops.sparsifier = &c->own_sparsifier;
    }
    c->ops = &c->own_ops;
    c->name = spec->name;
    c->wire_id = wire_id_of(spec->plugin);
    c->form = form;
    c->kernels = laci_kernels_best();
    c->state = state;
    const lac_status status =
        own.configure == NULL ? LAC_OK : own.configure(state);
    if (status != LAC_OK) {
        lac_compressor_close(c);
        return status;
    }
    *out = c;
    return LAC_OK;
}

// Opens "A+B+C" from the left; each part encodes the values that the one before
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

static lac_status check_text(const char *what, const char *text)
{
    if (text == NULL) {
        return lac_fail(LAC_ERR_INVALID, "compressor: its %s is NULL", what);
    }
    return LAC_OK;
}

lac_status lac_compressor_open(
    lac_compressor **out, const char *spec, lac_form form)
{
    *out = NULL;
    LAC_TRY(check_form(form));
    LAC_TRY(check_text("spec", spec));
    return open_parts(out, spec, strlen(spec), form, 1);
}

lac_status lac_compressor_open_with(
    lac_compressor **out, const lac_compressor_ops *ops, const char *params,
    lac_form form)
{
    *out = NULL;
    LAC_TRY(check_form(form));
    LAC_TRY(check_text("text of params", params));
    if (ops == NULL || ops->plugin.name == NULL) {
        return lac_fail(
            LAC_ERR_INVALID, "compressor: %s is NULL",
            ops == NULL ? "its ops table" : "the name in its ops");
    }
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
        laci_pool_close(c->own_pool);
        laci_free_aligned(c->scratch);
        laci_free_aligned(c);
    }
}

lac_status lac_compressor_use_kernels(lac_compressor *c, const char *name)
{
    LAC_TRY(check_text("name of kernels", name));
    const laci_kernels *kernels = NULL;
    LAC_TRY(laci_kernels_find(name, &kernels));
    for (; c != NULL; c = c->inner) {
        c->kernels = kernels;
    }
    return LAC_OK;
}

lac_status lac_compressor_use_threads(lac_compressor *c, uint32_t threads)
{
    laci_pool *pool = NULL;
    LAC_TRY(laci_pool_open(&pool, threads));
    laci_pool_close(c->own_pool);
    c->own_pool = pool;
    c->pool = pool;
    return LAC_OK;
}

const char *lac_compressor_kernels(const lac_compressor *c)
{
    return c->kernels->name;
}

bool lac_compressor_prefetches(const lac_compressor *c)
{
    return c->kernels->prefetch;
}

uint32_t lac_compressor_wire_id(const lac_compressor *c)
{
    return c->inner == NULL
               ? c->wire_id
               : c->wire_id + 256 * lac_compressor_wire_id(c->inner);
}

static size_t most_values(const lac_compressor *c)
{
    return c->ops->max_values == 0 ? LAC_VALUES_MAX : c->ops->max_values;
}

// The part of "A+B" that does not accept the shape, which becomes that part's
// shape; NULL if all do.
static const lac_compressor *find_refusal(
    const lac_compressor *c, lac_shape *shape_inout)
{
    for (; c != NULL; c = c->inner) {
        size_t values;
        if (!laci_mul(shape_inout->rows, shape_inout->cols, &values) ||
            values > most_values(c)) {
            return c;
        }
        if (values == 0) {
            return NULL;
        }
        if (c->inner != NULL) {
            *shape_inout = laci_sparse_kept(c, *shape_inout);
        }
    }
    return NULL;
}

bool laci_shape_accepted(const lac_compressor *c, lac_shape shape)
{
    return find_refusal(c, &shape) == NULL;
}

lac_status laci_shape_check(const lac_compressor *c, lac_shape shape)
{
    const lac_compressor *const part = find_refusal(c, &shape);
    if (part != NULL) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: a tensor of %zu x %zu has too many values, at most %zu fit",
            part->name, shape.rows, shape.cols, most_values(part));
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
    if (c->ops->sparsifier != NULL) {
        return laci_sparse_traits(c, scope);
    }
    const bool sends_key = (c->ops->needs_key || c->ops->needs_seed != NULL) &&
                           scope == LAC_SCOPE_WORKER;
    return sends_key ? c->ops->traits & ~(unsigned)LAC_TRAIT_LINEAR
                     : c->ops->traits;
}

size_t lac_compressor_group(const lac_compressor *c)
{
    const unsigned traits = lac_compressor_traits(c, LAC_SCOPE_WORKER);
    if (c->ops->group != NULL && c->ops->sparsifier == NULL) {
        return c->ops->group(c->state);
    }
    return (traits & LAC_TRAIT_ELEMENTWISE) != 0 ? 1 : 0;
}

lac_guarantee lac_compressor_guarantee(const lac_compressor *c, lac_shape shape)
{
    if (!laci_shape_accepted(c, shape)) {
        return (lac_guarantee){.unbiased = false, .error = (double)INFINITY};
    }
    if (lac_shape_values(shape) == 0) {
        return (lac_guarantee){.unbiased = true, .error = 0};
    }
    return c->ops->sparsifier == NULL
               ? c->ops->guarantee(c->state, shape, c->form)
               : laci_sparse_guarantee(c, shape);
}
