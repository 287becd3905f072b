// SPDX-License-Identifier: MIT
// Finds and loads modules, and forwards the calls of their transports.
#define _GNU_SOURCE // dladdr
#include "transport/loader.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"

enum { PATH_SIZE = 4096 };

// The only setting of a process: a transport spec that every worker passes on
// would have to be changed in each program that links the static library. The
// lock protects `folder`, which is empty or ends with a slash.
static struct {
    pthread_mutex_t lock;
    char folder[PATH_SIZE];
} modules = {.lock = PTHREAD_MUTEX_INITIALIZER};

lac_status lac_modules_path(const char *folder)
{
    const char *const path = folder == NULL ? "" : folder;
    const size_t len = strlen(path);
    if (folder != NULL && path[0] != '/') {
        return lac_fail(
            LAC_ERR_INVALID,
            "modules: the folder is \"%s\", expected a path "
            "that begins with /",
            path);
    }
    if (len > sizeof(modules.folder) - 2) {
        return lac_fail(
            LAC_ERR_INVALID,
            "modules: the folder has %zu characters, expected at most %zu", len,
            sizeof(modules.folder) - 2);
    }
    (void)pthread_mutex_lock(&modules.lock);
    (void)snprintf(
        modules.folder, sizeof(modules.folder), "%s%s", path,
        len == 0 || path[len - 1] == '/' ? "" : "/");
    (void)pthread_mutex_unlock(&modules.lock);
    return LAC_OK;
}

// Copies the folder that the program named; returns whether it did.
static bool named_folder(char out[PATH_SIZE])
{
    (void)pthread_mutex_lock(&modules.lock);
    memcpy(out, modules.folder, PATH_SIZE);
    (void)pthread_mutex_unlock(&modules.lock);
    return out[0] != '\0';
}

// Writes the folder that this code was loaded from, with a slash at the end.
static bool own_folder(char out[PATH_SIZE])
{
    static const char here = 0;
    Dl_info info;
    if (dladdr(&here, &info) == 0 || info.dli_fname == NULL) {
        return false;
    }
    const char *path = info.dli_fname;
    char program[PATH_SIZE] = "";
    if (strchr(path, '/') == NULL) {
        // The library is in a program that was found by PATH. Modules are never
        // loaded from the working folder.
        const ssize_t len =
            readlink("/proc/self/exe", program, sizeof(program) - 1);
        path = len > 0 ? program : "";
    }
    const char *const slash = strrchr(path, '/');
    if (slash == NULL) {
        return false;
    }
    const int length = (int)(slash + 1 - path);
    const int written = snprintf(out, PATH_SIZE, "%.*s", length, path);
    return written >= 0 && written < PATH_SIZE;
}

static bool find_folder(char out[PATH_SIZE])
{
    return named_folder(out) || own_folder(out);
}

// Writes the path of a module and returns whether it exists.
static bool find_module(
    const char *folder, const char *name, char *out, size_t cap)
{
    static const char *const places[] = {"", "laconic/"};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const int written =
            snprintf(out, cap, "%s%slaconic_%s.so", folder, places[i], name);
        if (written >= 0 && (size_t)written < cap && access(out, R_OK) == 0) {
            return true;
        }
    }
    return false;
}

bool laci_module_exists(const char *name)
{
    char folder[PATH_SIZE], path[PATH_SIZE + 64];
    return find_folder(folder) && find_module(folder, name, path, sizeof(path));
}

lac_status laci_module_load(
    const char *transport, const char *name, const char *entry,
    const laci_transport_ops **out)
{
    char folder[PATH_SIZE], path[PATH_SIZE + 64];
    if (!find_folder(folder)) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED,
            "%s: the folder of the library, where its modules are, is unknown",
            transport);
    }
    if (!find_module(folder, name, path, sizeof(path))) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED, "%s: there is no laconic_%s.so in %s",
            transport, name, folder);
    }
    void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) {
        return lac_fail(LAC_ERR_UNSUPPORTED, "%s: %s", transport, dlerror());
    }
    // The conversion from dlsym's pointer to a function that POSIX suggests.
    laci_module_entry *function = NULL;
    void *const symbol = dlsym(handle, entry);
    memcpy(&function, &symbol, sizeof(function));
    const laci_transport_ops *const ops = function == NULL ? NULL : function();
    if (ops == NULL || ops->abi != LACI_TRANSPORT_ABI) {
        return lac_fail(
            LAC_ERR_UNSUPPORTED, "%s: %s belongs to another build of laconic",
            transport, path);
    }
    *out = ops;
    return LAC_OK;
}

lac_status laci_module_library(
    const char *transport, const char *name, const char *entry,
    char out[LAC_LIBRARY_SIZE])
{
    const laci_transport_ops *ops = NULL;
    LAC_TRY(laci_module_load(transport, name, entry, &ops));
    return ops->library(NULL, out);
}

lac_status laci_module_join(
    laci_module_state *m, const laci_transport_ops *ops, const void *settings,
    size_t settings_size, laci_membership *membership)
{
    m->ops = ops;
    m->services = membership->services;
    m->state = m->services->zalloc(ops->plugin.state_size);
    if (m->state == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "%s: no memory for a session", ops->plugin.name);
    }
    memcpy(m->state, settings, settings_size);
    const lac_status status = ops->join(m->state, membership);
    if (status != LAC_OK) {
        m->services->free(m->state);
    }
    return status;
}

bool laci_module_leave(void *state)
{
    const laci_module_state *const m = state;
    const bool idle = m->ops->leave(m->state);
    m->services->free(m->state);
    return idle;
}

lac_status laci_module_exchange(
    void *state, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline)
{
    const laci_module_state *const m = state;
    return m->ops->exchange(
        m->state, sends, send_count, receives, receive_count, deadline);
}

void laci_module_abort(void *state, const char *why)
{
    const laci_module_state *const m = state;
    m->ops->abort(m->state, why);
}

void laci_module_kill_job(void *state, int code)
{
    const laci_module_state *const m = state;
    m->ops->kill_job(m->state, code);
}

size_t laci_module_sockets(void *state, int *out, size_t cap)
{
    const laci_module_state *const m = state;
    return m->ops->sockets(m->state, out, cap);
}

lac_status laci_module_allreduce(
    void *state, float *x, size_t n, double deadline)
{
    const laci_module_state *const m = state;
    return m->ops->allreduce_sum(m->state, x, n, deadline);
}
