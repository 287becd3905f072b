// SPDX-License-Identifier: MIT
// What a plan is made of; only the files dnnl_*.c look inside.
#ifndef LACONIC_NN_DNNL_PLAN_STATE_H
#define LACONIC_NN_DNNL_PLAN_STATE_H

#include "nn/arena.h"
#include "nn/dnnl_plan.h"

struct nn_op {
    nn_op *next; // all ops of a plan
    const char *name;
    dnnl_primitive_desc_t pd;
};

typedef struct nn_step {
    const char *name;
    dnnl_primitive_t primitive; // or NULL and a function
    void (*call)(void *context);
    void *context;
    dnnl_exec_arg_t args[NN_ARGS_MAX + 1];
    int count;
} nn_step;

typedef struct nn_memory {
    dnnl_memory_t handle;
    nn_desc desc;
    nn_source source; // or NN_SOURCES for a buffer
    size_t place;     // offset in the source, or number of the span
} nn_memory;

typedef struct nn_count {
    size_t count, room;
} nn_count;

struct nn_plan {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    nn_op *ops;
    nn_step *steps;
    nn_memory *memories;
    nn_span *spans;
    nn_count step_list, memory_list, span_list;
    void *block;
    size_t bytes;
    lac_status status;
};

#endif
