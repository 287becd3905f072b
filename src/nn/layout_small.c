// SPDX-License-Identifier: MIT
// Models for images of 28 x 28, and logistic regression on anything.
#include "nn/layouts.h"

typedef struct logistic {
    uint32_t features;
    uint32_t classes;
} logistic;

static const lac_param logistic_params[] = {
    {.name = "features",
     .type = LAC_PARAM_U32,
     .offset = offsetof(logistic, features),
     .fallback = "784",
     .min = 1,
     .max = UINT32_MAX,
     .help = "values of an example"},
    {.name = "classes",
     .type = LAC_PARAM_U32,
     .offset = offsetof(logistic, classes),
     .fallback = "10",
     .min = 1,
     .max = UINT32_MAX,
     .help = "what to tell apart; 1 for yes or no"},
    {0},
};

static void logistic_list(const void *settings, nn_tensors *tensors)
{
    const logistic *const l = settings;
    nn_add_linear(tensors, "fc", l->features, l->classes);
}

const nn_model nn_logistic_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "logistic",
    .plugin.summary = "logistic regression",
    .plugin.params = logistic_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(logistic),
    .list = logistic_list,
};

static void mlp_list(const void *settings, nn_tensors *tensors)
{
    (void)settings;
    nn_add_linear(tensors, "fc1", 784, 512);
    nn_add_linear(tensors, "fc2", 512, 10);
}

const nn_model nn_mlp_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "mlp",
    .plugin.summary = "two fully connected layers, 784-512-10",
    .list = mlp_list,
};

static void lenet_list(const void *settings, nn_tensors *tensors)
{
    (void)settings;
    nn_add_linear(tensors, "conv1", 1 * 5 * 5, 6);
    nn_add_linear(tensors, "conv2", 6 * 5 * 5, 16);
    nn_add_linear(tensors, "fc1", 16 * 5 * 5, 120);
    nn_add_linear(tensors, "fc2", 120, 84);
    nn_add_linear(tensors, "fc3", 84, 10);
}

const nn_model nn_lenet_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "lenet",
    .plugin.summary = "LeNet-5 for 28 x 28 images, 61,706 parameters",
    .list = lenet_list,
};
