// SPDX-License-Identifier: MIT
// Loads the modules of transports that need a library which not everybody has.
//
// Modules are in the folder of the library, or the one that lac_modules_path
// sets, or in laconic/ below it. They are loaded privately (RTLD_LOCAL),
// because the symbols of two MPIs have the same names. They are never unloaded,
// because no MPI survives that.
#ifndef LACONIC_TRANSPORT_LOADER_H
#define LACONIC_TRANSPORT_LOADER_H

#include <stdbool.h>

#include "transport/transport.h"

// laci_module_exists returns whether laconic_NAME.so is where modules are.
bool laci_module_exists(const char *name);

// laci_module_load loads laconic_NAME.so for `transport` and returns the table
// that its function `entry` returns. The table begins with the transport's ops;
// one of another build is refused. Fails with LAC_ERR_UNSUPPORTED.
lac_status laci_module_load(
    const char *transport, const char *name, const char *entry,
    const laci_transport_ops **out);

// The function that a module exports.
typedef const laci_transport_ops *laci_module_entry(void);

// laci_module_library loads a module and writes the library that it uses, as
// `library` of its ops does. Fails like laci_module_load.
lac_status laci_module_library(
    const char *transport, const char *name, const char *entry,
    char out[LAC_LIBRARY_SIZE]);

// The state of a transport in a module. It is the first member of the state in
// the library, which forwards every call to it.
typedef struct laci_module_state {
    const laci_services *services;
    const laci_transport_ops *ops;
    void *state; // of the module; begins with `settings_size` bytes of settings
} laci_module_state;

// laci_module_join makes the module's state, which begins with a copy of the
// settings, and joins.
lac_status laci_module_join(
    laci_module_state *m, const laci_transport_ops *ops, const void *settings,
    size_t settings_size, laci_membership *membership);

// The calls of a transport whose state begins with laci_module_state, for its
// table.
bool laci_module_leave(void *state);
lac_status laci_module_exchange(
    void *state, const lac_send *sends, size_t send_count,
    lac_receive *receives, size_t receive_count, double deadline);
void laci_module_abort(void *state, const char *why);
void laci_module_kill_job(void *state, int code);
size_t laci_module_sockets(void *state, int *out, size_t cap);
lac_status laci_module_allreduce(
    void *state, float *x, size_t n, double deadline);

#endif
