// SPDX-License-Identifier: MIT
// Networks by name: each call goes to the engine that runs them.
#include "nn/network.h"

#include "nn/engine.h"
#include "nn/layouts.h"

// Of the OpenMP library that oneDNN itself uses, libgomp; another compiler's
// omp.h would belong to another library.
void omp_set_num_threads(int count);

lac_status nn_network_open(nn_network **out, const nn_options *options)
{
    lac_settings *settings = NULL;
    *out = NULL;
    lac_status status = nn_model_open(&settings, options->model);
    if (status != LAC_OK) {
        return status;
    }
    const nn_model *const model = (const void *)settings->plugin;
    // oneDNN would share the work of every worker among all processors; this
    // setting belongs to the thread and is not inherited.
    omp_set_num_threads(1);
    if (model->open == NULL) {
        status = lac_fail(
            LAC_ERR_INVALID,
            "%s: only its shapes are known, expected a model that can be "
            "trained",
            settings->plugin->name);
    } else {
        status = model->open(out, model, settings->state, options);
    }
    lac_settings_close(settings);
    return status;
}

void nn_network_close(nn_network *net)
{
    if (net != NULL) {
        lac_layout *const layout = net->layout;
        lac_layout *const statistics = net->statistics;
        net->engine->close(net);
        lac_layout_close(layout);
        lac_layout_close(statistics);
    }
}

const lac_layout *nn_network_layout(const nn_network *net)
{
    return net->layout;
}

const lac_layout *nn_network_statistics(const nn_network *net)
{
    return net->statistics;
}

size_t nn_network_carry(const nn_network *net)
{
    return net->carry;
}

size_t nn_network_memory(const nn_network *net)
{
    return net->memory;
}

size_t nn_network_dimensions(
    const nn_network *net, size_t tensor, size_t out[NN_DIMENSIONS_MAX])
{
    return net->engine->dimensions(net, tensor, out);
}

void nn_network_initialise(
    const nn_network *net, uint64_t seed, float *parameters, float *statistics)
{
    net->engine->initialise(net, seed, parameters, statistics);
}

lac_status nn_network_gradient(
    nn_network *net, const nn_state *state, const nn_batch *batch,
    const lac_key *noise, float *gradient_out, nn_score *out)
{
    return net->engine->gradient(net, state, batch, noise, gradient_out, out);
}

lac_status nn_network_evaluate(
    nn_network *net, const nn_state *state, const nn_batch *batch,
    nn_score *out)
{
    return net->engine->evaluate(net, state, batch, out);
}

static lac_key fill_key(uint64_t seed, const char *name)
{
    return lac_key_make(
        seed, LAC_PURPOSE_INITIAL, 0, lac_scope_shared(), lac_name_hash(name));
}

void nn_fill_uniform(
    uint64_t seed, const char *name, double bound, float *out, size_t n)
{
    const lac_key key = fill_key(seed, name);
    for (size_t i = 0; i < n; i++) {
        const double u = lac_key_draw(&key, (uint32_t)i) * 0x1p-31 - 1;
        out[i] = (float)(u * bound);
    }
}

void nn_fill_normal(
    uint64_t seed, const char *name, double deviation, float *out, size_t n)
{
    const lac_key key = fill_key(seed, name);
    for (size_t i = 0; i < n; i++) {
        out[i] = (float)((double)lac_key_normal(&key, (uint32_t)i) * deviation);
    }
}
