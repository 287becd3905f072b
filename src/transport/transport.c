// SPDX-License-Identifier: MIT
// Transports by name: join, leave, and the parts that all transports share. The
// arguments are checked here. A handle that has failed once repeats its error
// in every later call, and the error is announced to the other workers.
#define _POSIX_C_SOURCE 200809L
#include "transport/transport.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "base/settings.h"

#define LAC_TRANSPORT(name)                                                    \
    extern const laci_transport_ops laci_##name##_transport;
#include "transport/transports.def"
#undef LAC_TRANSPORT

static const lac_plugin *const plugins[] = {
#define LAC_TRANSPORT(name) &laci_##name##_transport.plugin,
#include "transport/transports.def"
#undef LAC_TRANSPORT
};

enum {
    PLUGIN_COUNT = sizeof(plugins) / sizeof(plugins[0]),
    ERROR_SIZE = 512,
};

struct lac_transport {
    const laci_transport_ops *ops;
    void *state;
    uint32_t rank;
    uint32_t world;
    uint64_t exchanges;            // that were begun
    laci_deferred_block *deferred; // released by an exchange or after leave
    size_t expected;     // blocks that were announced and not handed over
    bool left;           // only this struct remains
    bool in_use;         // after leave: lent memory may still be used
    atomic_bool aborted; // by lac_transport_abort
    lac_status failure;  // of the first exchange that failed
    char error[ERROR_SIZE];
};

static const laci_registry registry = {
    .kind = "transport",
    .plugins = plugins,
    .plugin_count = PLUGIN_COUNT,
};

const lac_plugin *const *lac_transports(size_t *count_out)
{
    *count_out = PLUGIN_COUNT;
    return plugins;
}

double laci_monotonic_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

const laci_services laci_transport_services = {
    .fail = lac_fail,
    .zalloc = laci_zalloc_aligned,
    .free = laci_free_aligned,
    .now = laci_monotonic_now,
    .error = lac_error_message,
};

lac_status laci_transport_find(const char *name, const laci_transport_ops **out)
{
    laci_spec found = {0};
    LAC_TRY(laci_spec_find(&registry, name, strlen(name), &found));
    *out = (const void *)found.plugin;
    return LAC_OK;
}

lac_status laci_transport_settings(
    const laci_transport_ops *ops, const char *spec, void **handle_out,
    void **state_out)
{
    laci_spec found = {0};
    LAC_TRY(laci_spec_find(&registry, spec, strlen(spec), &found));
    if (found.plugin != &ops->plugin) {
        return lac_fail(
            LAC_ERR_INVALID, "the transport is %s, expected %s",
            found.plugin->name, ops->plugin.name);
    }
    return laci_handle_make(&found, 0, handle_out, state_out);
}

static lac_status join_found(
    lac_transport **out, const laci_spec *found, laci_membership *membership)
{
    const laci_transport_ops *const ops = (const void *)found->plugin;
    void *handle, *state;
    LAC_TRY(laci_handle_make(found, sizeof(lac_transport), &handle, &state));
    membership->services = &laci_transport_services;
    const lac_status status = ops->join(state, membership);
    if (status != LAC_OK) {
        laci_free_aligned(handle);
        return status;
    }
    lac_transport *const t = handle;
    t->ops = ops;
    t->state = state;
    t->rank = membership->rank;
    t->world = membership->world;
    *out = t;
    return LAC_OK;
}

lac_status laci_transport_join(
    lac_transport **out, const char *spec, laci_membership *membership)
{
    *out = NULL;
    laci_spec found = {0};
    LAC_TRY(laci_spec_find(&registry, spec, strlen(spec), &found));
    return join_found(out, &found, membership);
}

lac_status laci_transport_join_ops(
    lac_transport **out, const laci_transport_ops *ops,
    laci_membership *membership)
{
    *out = NULL;
    const laci_spec found = {
        .plugin = &ops->plugin,
        .name = ops->plugin.name,
        .preset = "",
        .params = "",
    };
    return join_found(out, &found, membership);
}

lac_status lac_transport_join(
    lac_transport **out, const char *spec, lac_hub *hub, uint32_t rank,
    uint32_t world)
{
    laci_membership membership = {.hub = hub, .rank = rank, .world = world};
    return laci_transport_join(out, spec, &membership);
}

lac_status lac_transport_library(const char *spec, char *out, size_t cap)
{
    laci_spec found = {0};
    void *handle = NULL, *state = NULL;
    char text[LAC_LIBRARY_SIZE] = "";
    LAC_TRY(laci_spec_find(&registry, spec, strlen(spec), &found));
    LAC_TRY(laci_handle_make(&found, 0, &handle, &state));
    const laci_transport_ops *const ops = (const void *)found.plugin;
    const lac_status status =
        ops->library == NULL ? LAC_OK : ops->library(state, text);
    laci_free_aligned(handle);
    LAC_TRY(status);
    const size_t size = strlen(text) + 1;
    if (size > cap) {
        return lac_fail(
            LAC_ERR_SPACE,
            "%s: the name of its library has %zu bytes, but there is room for "
            "%zu",
            ops->plugin.name, size, cap);
    }
    memcpy(out, text, size);
    return LAC_OK;
}

// Memory that is still in use is left to the process.
static void release_block(const lac_transport *t, laci_deferred_block *block)
{
    if (!t->in_use) {
        laci_free_aligned(block);
    }
}

static void release_deferred(lac_transport *t)
{
    while (t->deferred != NULL) {
        laci_deferred_block *const block = t->deferred;
        t->deferred = block->next;
        release_block(t, block);
    }
}

void lac_transport_leave(lac_transport *t)
{
    if (t == NULL) {
        return;
    }
    t->in_use = !t->ops->leave(t->state);
    release_deferred(t);
    t->left = true;
    if (t->expected == 0) {
        laci_free_aligned(t);
    }
}

void laci_transport_expect_block(lac_transport *t)
{
    t->expected++;
}

void laci_transport_lend(lac_transport *t, laci_deferred_block *block)
{
    block->lent = t->exchanges + 1;
}

// Whether parts of the block may be in use. All exchanges of a healthy
// transport have succeeded.
static bool is_lent(const lac_transport *t, const laci_deferred_block *block)
{
    const bool healthy = t->failure == LAC_OK && !atomic_load(&t->aborted);
    return !healthy || (block->lent > 0 && block->lent >= t->exchanges);
}

void laci_transport_release(lac_transport *t, laci_deferred_block *block)
{
    t->expected--;
    if (!t->left && is_lent(t, block)) {
        block->next = t->deferred;
        t->deferred = block;
        return;
    }
    release_block(t, block);
    if (t->left && t->expected == 0) {
        laci_free_aligned(t);
    }
}

uint32_t lac_transport_rank(const lac_transport *t)
{
    return t->rank;
}

uint32_t lac_transport_world(const lac_transport *t)
{
    return t->world;
}

double lac_transport_now(const lac_transport *t)
{
    (void)t;
    return laci_monotonic_now();
}

bool lac_transport_failed(const lac_transport *t)
{
    return t->failure != LAC_OK;
}

void lac_transport_abort(lac_transport *t, const char *why)
{
    atomic_store(&t->aborted, true);
    t->ops->abort(t->state, why);
}

size_t lac_transport_sockets(lac_transport *t, int *out, size_t cap)
{
    return t->ops->sockets == NULL ? 0 : t->ops->sockets(t->state, out, cap);
}

void lac_transport_kill_job(lac_transport *t, int code)
{
    if (t->ops->kill_job != NULL) {
        t->ops->kill_job(t->state, code);
    }
}

// Records the first failure and announces it to the other workers.
static lac_status record(lac_transport *t, lac_status status)
{
    if (status != LAC_OK) {
        t->failure = status;
        memcpy(t->error, lac_error_message(), ERROR_SIZE - 1);
        t->ops->abort(t->state, t->error);
    }
    return status;
}

static lac_status check_peer(
    const lac_transport *t, uint32_t peer, const uint64_t reserved[2],
    const char *what)
{
    if (reserved[0] != 0 || reserved[1] != 0) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %s sets reserved members, expected 0",
            t->ops->plugin.name, what);
    }
    if (peer >= t->world) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %s names worker %u, expected one below %u",
            t->ops->plugin.name, what, peer, t->world);
    }
    if (peer == t->rank) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: %s names worker %u, which is this one",
            t->ops->plugin.name, what, peer);
    }
    return LAC_OK;
}

static lac_status check_arguments(
    const lac_transport *t, const lac_send *sends, size_t send_count,
    const lac_receive *receives, size_t receive_count)
{
    for (size_t i = 0; i < send_count; i++) {
        LAC_TRY(check_peer(t, sends[i].peer, sends[i].reserved, "a send"));
        if (sends[i].data == NULL && sends[i].len > 0) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s: a send of %zu bytes to worker %u has no data",
                t->ops->plugin.name, sends[i].len, sends[i].peer);
        }
    }
    for (size_t i = 0; i < receive_count; i++) {
        LAC_TRY(
            check_peer(t, receives[i].peer, receives[i].reserved, "a receive"));
    }
    return LAC_OK;
}

static lac_status check_deadline(const lac_transport *t, double deadline)
{
    if (isnan(deadline)) {
        return lac_fail(
            LAC_ERR_INVALID, "%s: the deadline is not a number",
            t->ops->plugin.name);
    }
    return LAC_OK;
}

static lac_status check_health(lac_transport *t)
{
    if (t->failure == LAC_OK) {
        return LAC_OK;
    }
    // Announces a failure that another thread could not announce.
    t->ops->abort(t->state, t->error);
    return lac_fail(t->failure, "%s", t->error);
}

lac_status lac_transport_exchange(
    lac_transport *t, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline)
{
    LAC_TRY(check_health(t));
    t->exchanges++;
    lac_status status = check_deadline(t, deadline);
    if (status == LAC_OK) {
        status = check_arguments(t, sends, send_count, receives, receive_count);
    }
    if (status == LAC_OK) {
        status = t->ops->exchange(
            t->state, sends, send_count, receives, receive_count, deadline);
    }
    if (status == LAC_OK) {
        release_deferred(t);
    }
    return record(t, status);
}

bool laci_transport_has_allreduce(const lac_transport *t)
{
    return t->ops->allreduce_sum != NULL;
}

size_t laci_transport_sum_piece(const lac_transport *t)
{
    return t->ops->sum_piece;
}

bool laci_transport_is_intact(const lac_transport *t)
{
    return t->ops->intact;
}

lac_status laci_transport_allreduce(
    lac_transport *t, float *x, size_t n, double deadline)
{
    LAC_TRY(check_health(t));
    lac_status status = check_deadline(t, deadline);
    if (status == LAC_OK && t->world > 1 && n > 0) {
        status = t->ops->allreduce_sum(t->state, x, n, deadline);
    }
    return record(t, status);
}
