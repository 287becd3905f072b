// SPDX-License-Identifier: MIT
// Models for images of 28 x 28, and logistic regression on anything.
#include "nn/feedforward.h"
#include "nn/layouts.h"

typedef struct logistic {
    uint32_t features;
    uint32_t classes;
    uint32_t outputs; // 0: as many as classes
    bool bias;
} logistic;

static const lac_param logistic_params[] = {
    {.name = "features",
     .type = LAC_PARAM_U32,
     .offset = offsetof(logistic, features),
     .default_value = "784",
     .min = 1,
     .max = UINT32_MAX,
     .help = "values of an example"},
    {.name = "classes",
     .type = LAC_PARAM_U32,
     .offset = offsetof(logistic, classes),
     .default_value = "10",
     .min = 1,
     .max = UINT32_MAX,
     .help = "classes of the examples"},
    {.name = "outputs",
     .type = LAC_PARAM_CHOICE,
     .offset = offsetof(logistic, outputs),
     .default_value = "classes",
     .choices = "classes|1",
     .help = "1: the loss log(1 + exp(-y x.w)) of two classes"},
    {.name = "bias",
     .type = LAC_PARAM_BOOL,
     .offset = offsetof(logistic, bias),
     .default_value = "yes",
     .help = "add a constant to every output"},
    {0},
};

static void describe_logistic(nn_graph *g, const void *shape)
{
    const logistic *const l = shape;
    if (l->outputs == 1 && g->sample.classes != 2) {
        g->status = lac_fail(
            LAC_ERR_INVALID,
            "%s: examples have %u classes, expected 2 for one output", g->model,
            g->sample.classes);
        return;
    }
    nn_linear(g, "fc", l->outputs == 1 ? 1 : g->sample.classes, l->bias);
}

static lac_status logistic_open(
    nn_network **out, const nn_model *model, const void *settings,
    const nn_options *options)
{
    nn_model shaped = *model;
    shaped.shape = settings;
    return nn_feedforward_open(out, &shaped, settings, options);
}

static void logistic_list(
    const nn_model *model, const void *settings, nn_tensors *tensors)
{
    const logistic *const l = settings;
    const uint32_t classes = l->outputs == 1 ? 2 : l->classes;
    nn_model sized = *model;
    sized.shape = settings;
    sized.default_sample = (nn_sample){1, 1, l->features, classes};
    nn_graph_list(&sized, settings, tensors);
}

const nn_model nn_logistic_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "logistic",
    .plugin.summary = "logistic regression",
    .plugin.params = logistic_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(logistic),
    .list = logistic_list,
    .open = logistic_open,
    .describe = describe_logistic,
};

static void describe_mlp(nn_graph *g, const void *shape)
{
    (void)shape;
    nn_linear(g, "fc1", 512, true);
    nn_relu(g);
    nn_linear(g, "fc2", g->sample.classes, true);
}

const nn_model nn_mlp_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "mlp",
    .plugin.summary = "two fully connected layers, 784-512-10",
    .list = nn_graph_list,
    .open = nn_feedforward_open,
    .describe = describe_mlp,
    .default_sample = {1, 28, 28, 10},
};

// LeNet-5 (LeCun et al. 1998) in its usual modern form: ReLU, max pooling, and
// every channel of the second convolution reads all of the first. Images of 28
// x 28 are padded to the 32 x 32 of the paper.
static void describe_lenet(nn_graph *g, const void *shape)
{
    const uint32_t size = g->sample.height;
    const nn_window half = {.kernel = 2, .stride = 2};
    nn_window five = {.kernel = 5, .stride = 1};
    (void)shape;
    if (g->sample.width != size || (size != 28 && size != 32)) {
        nn_reject_sample(g, "images of 28 x 28 or 32 x 32");
        return;
    }
    five.pad = (32 - size) / 2;
    nn_conv(g, "conv1", 6, five, true);
    nn_relu(g);
    nn_max_pool(g, half);
    five.pad = 0;
    nn_conv(g, "conv2", 16, five, true);
    nn_relu(g);
    nn_max_pool(g, half);
    nn_linear(g, "fc1", 120, true);
    nn_relu(g);
    nn_linear(g, "fc2", 84, true);
    nn_relu(g);
    nn_linear(g, "fc3", g->sample.classes, true);
}

const nn_model nn_lenet_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "lenet",
    .plugin.summary = "LeNet-5 for 28 x 28 images, 61,706 parameters",
    .list = nn_graph_list,
    .open = nn_feedforward_open,
    .describe = describe_lenet,
    .default_sample = {1, 28, 28, 10},
};
