// SPDX-License-Identifier: MIT
// oneDNN in few words. A plan is a list of steps, primitives of oneDNN with
// their memories, that is made once and run many times:
//
//     nn_op *op = nn_plan_op(plan, "pool", &described, false, NULL);
//     const nn_desc desc = nn_op_desc(op, dnnl_query_dst_md);
//     const nn_mem y = nn_plan_buffer(plan, &desc);
//     const nn_arg args[] = {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}};
//     nn_plan_step(plan, op, 2, args);
//     nn_plan_finish(plan);
//     nn_plan_bind(plan, NN_PARAMETERS, parameters);
//     nn_plan_run(plan);
//
// A failure is kept until nn_plan_finish, which returns it; until then the
// rest of the calls do nothing.
//
// Buffers live from the first step that names them to the last, and share one
// block of memory accordingly; so steps must be added in the order they run.
#ifndef LACONIC_NN_DNNL_PLAN_H
#define LACONIC_NN_DNNL_PLAN_H

#include <dnnl.h>

#include <stdbool.h>

#include <laconic/laconic.h>

typedef struct nn_plan nn_plan;
typedef struct nn_op nn_op; // a primitive that was chosen for a description
typedef uint32_t nn_mem;    // a memory of a plan; 0 is none
typedef dnnl_memory_desc_t nn_desc;

// Vectors that the caller brings to each run.
typedef enum nn_source {
    NN_X,
    NN_PARAMETERS,
    NN_STATISTICS,
    NN_GRADIENT,
    NN_SOURCES
} nn_source;

typedef struct nn_arg {
    int role; // DNNL_ARG_SRC and the like
    nn_mem memory;
} nn_arg;

enum { NN_ARGS_MAX = 11 };

// nn_plan_open fails with LAC_ERR_NOMEM or LAC_ERR_UNSUPPORTED.
lac_status nn_plan_open(nn_plan **out);
void nn_plan_close(nn_plan *plan);

// nn_plan_check keeps a failure of oneDNN while doing `what`.
void nn_plan_check(nn_plan *plan, dnnl_status_t status, const char *what);

// nn_plan_ok returns whether nothing failed yet. oneDNN must not be given
// descriptions of memories that there are not.
bool nn_plan_ok(const nn_plan *plan);

// nn_desc_plain describes dense floats in the order of the dimensions, and
// nn_desc_any floats in the order that oneDNN likes best.
nn_desc nn_desc_plain(size_t count, const size_t *dimensions);
nn_desc nn_desc_any(const nn_desc *like);

// nn_plan_op chooses a primitive. `described` is a dnnl_..._desc_t; `relu`
// appends a ReLU to it; `hint` is the forward one of a backward one, or NULL.
nn_op *nn_plan_op(
    nn_plan *plan, const char *name, const void *described, bool relu,
    const nn_op *hint);
nn_desc nn_op_desc(const nn_op *op, dnnl_query_t what);

// nn_plan_buffer gives a memory that only the plan uses.
nn_mem nn_plan_buffer(nn_plan *plan, const nn_desc *desc);

// nn_plan_source gives values of the caller, from `offset` on.
nn_mem nn_plan_source(
    nn_plan *plan, nn_source source, size_t offset, const nn_desc *desc);
nn_desc nn_plan_desc(const nn_plan *plan, nn_mem memory);

// nn_plan_as returns `memory` in the order of `desc`: itself, or a copy.
nn_mem nn_plan_as(nn_plan *plan, nn_mem memory, const nn_desc *desc);

// nn_plan_room returns where a result in the order of `desc` may be written to
// go into `memory`: that memory, or a buffer. nn_plan_into then brings it there
// if it is not there yet.
nn_mem nn_plan_room(nn_plan *plan, nn_mem memory, const nn_desc *desc);
void nn_plan_into(nn_plan *plan, nn_mem from, nn_mem to);

// nn_plan_step runs `op` next; memories 0 are left out.
void nn_plan_step(nn_plan *plan, nn_op *op, size_t count, const nn_arg *args);

// nn_plan_call calls a function next, which uses these memories.
void nn_plan_call(
    nn_plan *plan, void (*call)(void *context), void *context, size_t count,
    const nn_mem *memories);

// nn_plan_finish allocates the memory; no steps can be added any more.
// Fails as the first call that failed, or with LAC_ERR_NOMEM.
lac_status nn_plan_finish(nn_plan *plan);

// nn_plan_memory returns the bytes of all buffers.
size_t nn_plan_memory(const nn_plan *plan);

// nn_plan_data returns where a memory is now.
float *nn_plan_data(const nn_plan *plan, nn_mem memory);

// nn_plan_bind says where the values of a source are from now on.
void nn_plan_bind(nn_plan *plan, nn_source source, const float *values);

// nn_plan_run runs the steps. Fails with LAC_ERR_UNSUPPORTED.
lac_status nn_plan_run(nn_plan *plan);

#endif
