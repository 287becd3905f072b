// SPDX-License-Identifier: MIT
// Models for images of 28 x 28, and logistic regression on anything.
#include "nn/feedforward.h"
#include "nn/layouts.h"

typedef struct logistic {
    uint32_t features;
    uint32_t classes;
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
     .help = "classes of the examples; 1 for yes or no"},
    {0},
};

static void describe_logistic(nn_graph *g, const void *shape)
{
    (void)shape;
    nn_linear(g, "fc", g->sample.classes);
}

static void logistic_list(
    const nn_model *model, const void *settings, nn_tensors *tensors)
{
    const logistic *const l = settings;
    nn_model sized = *model;
    sized.default_sample = (nn_sample){1, 1, l->features, l->classes};
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
    .open = nn_feedforward_open,
    .describe = describe_logistic,
};

static void describe_mlp(nn_graph *g, const void *shape)
{
    (void)shape;
    nn_linear(g, "fc1", 512);
    nn_relu(g);
    nn_linear(g, "fc2", g->sample.classes);
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
    nn_linear(g, "fc1", 120);
    nn_relu(g);
    nn_linear(g, "fc2", 84);
    nn_relu(g);
    nn_linear(g, "fc3", g->sample.classes);
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
