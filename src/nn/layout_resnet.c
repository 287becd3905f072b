// SPDX-License-Identifier: MIT
// Residual networks (He et al., arXiv:1512.03385), with the names of
// torchvision. Where a stage changes the size of its input, the shortcut of its
// first block is a 1 x 1 convolution with a batch norm ("downsample").
//
// For CIFAR-10: resnet8 and resnet20 have three stages of 16, 32 and 64
// channels, resnet18 four of 64 to 512; the first convolution is 3 x 3.
// resnet50 is that of ImageNet: bottlenecks, whose output has four times as
// many channels as their inner convolutions, and a first convolution of 7 x 7.
#include "nn/feedforward.h"
#include "nn/layouts.h"

typedef struct resnet {
    size_t stages;
    size_t blocks[4];
    size_t width; // channels of the first stage; they double in each stage
    size_t expansion;
    bool imagenet;
} resnet;

enum { SMALLEST = 8 };

// A convolution and its batch norm, `name` and `norm`.
static void conv_norm(
    nn_graph *g, const char *name, const char *norm, size_t out, size_t kernel,
    size_t stride)
{
    const nn_window window = {kernel, stride, kernel / 2};
    nn_conv(g, name, out, window, false);
    nn_norm(g, norm);
}

static void describe_block(
    nn_graph *g, const resnet *net, size_t width, size_t stride, bool sized)
{
    const size_t entry = nn_here(g);
    const size_t out = width * net->expansion;
    if (net->expansion == 1) {
        conv_norm(g, "conv1", "bn1", width, 3, stride);
        nn_relu(g);
        conv_norm(g, "conv2", "bn2", width, 3, 1);
    } else {
        conv_norm(g, "conv1", "bn1", width, 1, 1);
        nn_relu(g);
        conv_norm(g, "conv2", "bn2", width, 3, stride);
        nn_relu(g);
        conv_norm(g, "conv3", "bn3", out, 1, 1);
    }
    const size_t body = nn_here(g);
    size_t shortcut = entry;
    if (sized) {
        nn_from(g, entry);
        conv_norm(g, "downsample.0", "downsample.1", out, 1, stride);
        shortcut = nn_here(g);
    }
    nn_from(g, body);
    nn_residual(g, shortcut);
    nn_relu(g);
}

static void describe_stem(nn_graph *g, const resnet *net)
{
    if (net->imagenet) {
        conv_norm(g, "conv1", "bn1", net->width, 7, 2);
        nn_relu(g);
        nn_max_pool(g, (nn_window){.kernel = 3, .stride = 2, .pad = 1});
    } else {
        conv_norm(g, "conv1", "bn1", net->width, 3, 1);
        nn_relu(g);
    }
}

static void describe_resnet(nn_graph *g, const void *shape)
{
    const resnet *const net = shape;
    if (g->sample.height < SMALLEST || g->sample.width < SMALLEST) {
        nn_reject_sample(g, "images of at least 8 x 8");
        return;
    }
    describe_stem(g, net);
    size_t in = net->width;
    for (size_t stage = 0; stage < net->stages; stage++) {
        const size_t width = net->width << stage;
        const size_t out = width * net->expansion;
        for (size_t block = 0; block < net->blocks[stage]; block++) {
            const size_t stride = stage > 0 && block == 0 ? 2 : 1;
            nn_prefix(g, "layer%zu.%zu.", stage + 1, block);
            describe_block(g, net, width, stride, in != out);
            in = out;
        }
    }
    nn_prefix(g, "%s", "");
    nn_mean_pool(g);
    nn_linear(g, "fc", g->sample.classes, true);
}

const nn_model nn_resnet8_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "resnet8",
    .plugin.summary = "ResNet-8 for CIFAR-10, 78,042 parameters",
    .list = nn_graph_list,
    .open = nn_feedforward_open,
    .describe = describe_resnet,
    .shape = &(const resnet){3, {1, 1, 1}, 16, 1, false},
    .default_sample = {3, 32, 32, 10},
};

const nn_model nn_resnet20_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "resnet20",
    .plugin.summary = "ResNet-20 for CIFAR-10, 272,474 parameters",
    .list = nn_graph_list,
    .open = nn_feedforward_open,
    .describe = describe_resnet,
    .shape = &(const resnet){3, {3, 3, 3}, 16, 1, false},
    .default_sample = {3, 32, 32, 10},
};

const nn_model nn_resnet18_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "resnet18",
    .plugin.summary = "ResNet-18 for CIFAR-10, 11,173,962 parameters",
    .list = nn_graph_list,
    .open = nn_feedforward_open,
    .describe = describe_resnet,
    .shape = &(const resnet){4, {2, 2, 2, 2}, 64, 1, false},
    .default_sample = {3, 32, 32, 10},
};

const nn_model nn_resnet50_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "resnet50",
    .plugin.summary = "ResNet-50 for ImageNet, 25,557,032 parameters",
    .list = nn_graph_list,
    .describe = describe_resnet,
    .shape = &(const resnet){4, {3, 4, 6, 3}, 64, 4, true},
    .default_sample = {3, 224, 224, 1000},
};
