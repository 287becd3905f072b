// SPDX-License-Identifier: MIT
// Networks by name: forwards each call to the engine of the network.
#include "nn/network.h"

#include "nn/engine.h"
#include "nn/headroom.h"
#include "nn/layouts.h"
#include "nn/multiply.h"

// From libgomp, the OpenMP library that oneDNN uses; the omp.h of another
// compiler would declare that of another library.
void omp_set_num_threads(int count);

// oneDNN generates its code for products with the first of them. Here there is
// enough memory for it.
static lac_status prepare_products(void)
{
    enum { SIDE = 32 };
    static const float zeros[SIDE * SIDE];
    float c[SIDE * SIDE] = {0};
    for (int variant = 0; variant < 3; variant++) {
        const nn_product product = {
            .m = SIDE,
            .n = SIDE,
            .k = SIDE,
            .a = zeros,
            .b = zeros,
            .a_transposed = variant == 1,
            .b_transposed = variant == 2,
            .c = c,
        };
        LAC_TRY(nn_headroom_check());
        LAC_TRY(nn_multiply(&product));
    }
    return LAC_OK;
}

static lac_status open_model(
    nn_network **out, const nn_model *model, const void *settings,
    const nn_options *options)
{
    if (model->open == NULL) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%s: only its shapes are known, expected a model that can be "
            "trained",
            model->plugin.name);
    }
    // By default oneDNN divides the work of every worker among all processors.
    // This setting belongs to the thread and is not inherited.
    omp_set_num_threads(1);
    nn_headroom_lock();
    lac_status status = prepare_products();
    if (status == LAC_OK) {
        status = model->open(out, model, settings, options);
    }
    nn_headroom_unlock();
    return status;
}

lac_status nn_network_open(nn_network **out, const nn_options *options)
{
    lac_settings *settings = NULL;
    *out = NULL;
    LAC_TRY(nn_model_open(&settings, options->model));
    const nn_model *const model = (const void *)settings->plugin;
    const lac_status status = open_model(out, model, settings->state, options);
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
    LAC_TRY(nn_headroom_check());
    return net->engine->gradient(net, state, batch, noise, gradient_out, out);
}

lac_status nn_network_evaluate(
    nn_network *net, const nn_state *state, const nn_batch *batch,
    nn_score *out)
{
    LAC_TRY(nn_headroom_check());
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
