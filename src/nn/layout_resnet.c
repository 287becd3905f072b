// SPDX-License-Identifier: MIT
// Residual networks (He et al., arXiv:1512.03385), with the names of
// torchvision. Where a stage changes the size of its input, the way around its
// first block is a convolution of 1 x 1 with a batch norm ("downsample").
//
// For CIFAR-10: resnet8 and resnet20 have three stages of 16, 32 and 64
// channels, resnet18 four of 64 to 512; the first convolution is 3 x 3.
// resnet50 is that of ImageNet: bottlenecks, which give out four times as many
// channels as they work on, and a first convolution of 7 x 7.
#include "nn/layouts.h"

#include <stdio.h>

typedef struct resnet {
    size_t stages;
    size_t blocks[4];
    size_t width;  // channels of the first stage; each next has twice as many
    size_t kernel; // height and width of the first convolution
    size_t expansion;
    size_t classes;
} resnet;

enum { COLOURS = 3, PREFIX_SIZE = 32 };

// A convolution has no bias: the batch norm after it has one.
static void add_conv(
    nn_tensors *tensors, const char *prefix, const char *name, size_t in,
    size_t out, size_t kernel)
{
    nn_add(tensors, out, in * kernel * kernel, "%s%s.weight", prefix, name);
}

static void add_norm(
    nn_tensors *tensors, const char *prefix, const char *name, size_t channels)
{
    nn_add(tensors, channels, 1, "%s%s.weight", prefix, name);
    nn_add(tensors, channels, 1, "%s%s.bias", prefix, name);
}

static void add_basic(
    nn_tensors *tensors, const char *prefix, size_t in, size_t width)
{
    add_conv(tensors, prefix, "conv1", in, width, 3);
    add_norm(tensors, prefix, "bn1", width);
    add_conv(tensors, prefix, "conv2", width, width, 3);
    add_norm(tensors, prefix, "bn2", width);
}

static void add_bottleneck(
    nn_tensors *tensors, const char *prefix, size_t in, size_t width,
    size_t out)
{
    add_conv(tensors, prefix, "conv1", in, width, 1);
    add_norm(tensors, prefix, "bn1", width);
    add_conv(tensors, prefix, "conv2", width, width, 3);
    add_norm(tensors, prefix, "bn2", width);
    add_conv(tensors, prefix, "conv3", width, out, 1);
    add_norm(tensors, prefix, "bn3", out);
}

static void list_resnet(const resnet *net, nn_tensors *tensors)
{
    char prefix[PREFIX_SIZE];
    size_t in = net->width;
    add_conv(tensors, "", "conv1", COLOURS, net->width, net->kernel);
    add_norm(tensors, "", "bn1", net->width);
    for (size_t stage = 0; stage < net->stages; stage++) {
        const size_t width = net->width << stage;
        const size_t out = width * net->expansion;
        for (size_t block = 0; block < net->blocks[stage]; block++) {
            (void)snprintf(
                prefix, sizeof(prefix), "layer%zu.%zu.", stage + 1, block);
            if (net->expansion == 1) {
                add_basic(tensors, prefix, in, width);
            } else {
                add_bottleneck(tensors, prefix, in, width, out);
            }
            if (in != out) {
                add_conv(tensors, prefix, "downsample.0", in, out, 1);
                add_norm(tensors, prefix, "downsample.1", out);
            }
            in = out;
        }
    }
    nn_add_linear(tensors, "fc", in, net->classes);
}

static void resnet8_list(const void *settings, nn_tensors *tensors)
{
    (void)settings;
    list_resnet(&(resnet){3, {1, 1, 1}, 16, 3, 1, 10}, tensors);
}

static void resnet20_list(const void *settings, nn_tensors *tensors)
{
    (void)settings;
    list_resnet(&(resnet){3, {3, 3, 3}, 16, 3, 1, 10}, tensors);
}

static void resnet18_list(const void *settings, nn_tensors *tensors)
{
    (void)settings;
    list_resnet(&(resnet){4, {2, 2, 2, 2}, 64, 3, 1, 10}, tensors);
}

static void resnet50_list(const void *settings, nn_tensors *tensors)
{
    (void)settings;
    list_resnet(&(resnet){4, {3, 4, 6, 3}, 64, 7, 4, 1000}, tensors);
}

const nn_model nn_resnet8_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "resnet8",
    .plugin.summary = "ResNet-8 for CIFAR-10, 78,042 parameters",
    .list = resnet8_list,
};

const nn_model nn_resnet20_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "resnet20",
    .plugin.summary = "ResNet-20 for CIFAR-10, 272,474 parameters",
    .list = resnet20_list,
};

const nn_model nn_resnet18_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "resnet18",
    .plugin.summary = "ResNet-18 for CIFAR-10, 11,173,962 parameters",
    .list = resnet18_list,
};

const nn_model nn_resnet50_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "resnet50",
    .plugin.summary = "ResNet-50 for ImageNet, 25,557,032 parameters",
    .list = resnet50_list,
};
