// SPDX-License-Identifier: MIT
// A thin layer over oneDNN. A plan is a list of steps, primitives of oneDNN
// with their memories, that is built once and run many times:
//
//     nn_op *op = nn_plan_op(plan, "pool", false);
//     if (op != NULL) {
//         nn_plan_check(
//             plan,
//             dnnl_pooling_forward_primitive_desc_create(
//                 &op->pd, op->engine, ..., op->attr),
//             op->name);
//     }
//     const nn_mem y = nn_plan_buffer(plan, nn_op_desc(op, dnnl_query_dst_md));
//     const nn_arg args[] = {{DNNL_ARG_SRC, x}, {DNNL_ARG_DST, y}};
//     nn_plan_step(plan, op, 2, args);
//     nn_plan_finish(plan);
//     nn_plan_bind(plan, NN_PARAMETERS, parameters);
//     nn_plan_run(plan);
//
// The first failure is stored and returned by nn_plan_finish; the calls after
// it do nothing.
//
// A buffer is live from the first step that uses it to the last. Buffers share
// one block of memory accordingly, so steps must be added in execution order.
#ifndef LACONIC_NN_DNNL_PLAN_H
#define LACONIC_NN_DNNL_PLAN_H

#include <dnnl.h>

#include <stdbool.h>

#include <laconic/laconic.h>

#if DNNL_VERSION_MAJOR < 3
#include "nn/dnnl_v2.h"
#endif

typedef struct nn_plan nn_plan;
typedef uint32_t nn_mem; // a memory of a plan; 0: none

// The description of a memory, which the plan owns; NULL: none.
typedef const_dnnl_memory_desc_t nn_desc;

// A primitive that oneDNN chooses. nn_plan_op sets everything but `pd`.
typedef struct nn_op {
    dnnl_primitive_desc_t pd;
    dnnl_engine_t engine;
    dnnl_primitive_attr_t attr;
    const char *name;
    struct nn_op *next; // in the list of the plan
} nn_op;

// The caller's vectors, bound before a run.
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

// nn_plan_check stores a failure of oneDNN; the message contains `what`.
void nn_plan_check(nn_plan *plan, dnnl_status_t status, const char *what);

// The order of the values in a memory.
typedef enum nn_order {
    NN_PLAIN, // dense, in the order of the dimensions
    NN_ANY    // oneDNN chooses
} nn_order;

// nn_plan_describe returns the description of floats with these dimensions, at
// most four.
nn_desc nn_plan_describe(
    nn_plan *plan, size_t count, const size_t *dimensions, nn_order order);

// nn_plan_op prepares a primitive, with a ReLU after it if `relu`. The caller
// then creates its `pd` with a function of oneDNN. Returns NULL after a
// failure. nn_op_desc returns the description of one of its memories.
nn_op *nn_plan_op(nn_plan *plan, const char *name, bool relu);
nn_desc nn_op_desc(const nn_op *op, dnnl_query_t what);

// nn_plan_buffer adds a memory of the plan itself.
nn_mem nn_plan_buffer(nn_plan *plan, nn_desc desc);

// nn_plan_source adds a memory in a vector of the caller, at `offset`.
nn_mem nn_plan_source(
    nn_plan *plan, nn_source source, size_t offset, nn_desc desc);
nn_desc nn_plan_desc(const nn_plan *plan, nn_mem memory);

// nn_plan_as returns `memory` in the order of `desc`: itself, or a copy that a
// new step makes.
nn_mem nn_plan_as(nn_plan *plan, nn_mem memory, nn_desc desc);

// nn_plan_room returns the memory for a result in the order of `desc` that
// belongs in `memory`: that memory, or a buffer. nn_plan_into then adds the
// copy from the buffer, if there is one.
nn_mem nn_plan_room(nn_plan *plan, nn_mem memory, nn_desc desc);
void nn_plan_into(nn_plan *plan, nn_mem from, nn_mem to);

// nn_plan_step adds a step that runs `op`. Arguments with memory 0 are left
// out.
void nn_plan_step(nn_plan *plan, nn_op *op, size_t count, const nn_arg *args);

// nn_plan_call adds a step that calls a function, which uses these memories.
void nn_plan_call(
    nn_plan *plan, void (*call)(void *context), void *context, size_t count,
    const nn_mem *memories);

// nn_plan_finish allocates the memory. No step may be added after it.
// Fails with the first failure of the plan, or with LAC_ERR_NOMEM.
lac_status nn_plan_finish(nn_plan *plan);

// nn_plan_memory returns the bytes of all buffers.
size_t nn_plan_memory(const nn_plan *plan);

// nn_plan_data returns the address of a memory.
float *nn_plan_data(const nn_plan *plan, nn_mem memory);

// nn_plan_bind sets the address of a source for the next runs.
void nn_plan_bind(nn_plan *plan, nn_source source, const float *values);

// nn_plan_run runs all steps. Fails with LAC_ERR_UNSUPPORTED or LAC_ERR_NOMEM.
lac_status nn_plan_run(nn_plan *plan);

#endif
