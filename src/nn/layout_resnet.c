// SPDX-License-Identifier: MIT
// Residual networks (He et al., arXiv:1512.03385), with the names of
// torchvision. Where a stage changes the size of its input, the way around its
// first block is a convolution of 1 x 1 with a batch norm ("downsample").
//
// For CIFAR-10: resnet8 and resnet20 have three stages of 16, 32 and 64
// channels, resnet18 four of 64 to 512; the first convolution is 3 x 3.
// resnet50 is that of ImageNet: bottlenecks, which give out four times as many
// channels as they work on, and a first convolution of 7 x 7.
#include "nn/feedforward.h"
#include "nn/layouts.h"

typedef struct resnet {
    size_t stages;
    size_t blocks[4];
    size_t width; // channels of the first stage; each next has twice as many
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
    size_t around = entry;
    if (sized) {
        nn_from(g, entry);
        conv_norm(g, "downsample.0", "downsample.1", out, 1, stride);
        around = nn_here(g);
    }
    nn_from(g, body);
    nn_join(g, around);
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
        nn_refuse(g, "images of at least 8 x 8");
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
    nn_linear(g, "fc", g->sample.classes);
}

static const nn_description resnet8_model = {
    "resnet8", describe_resnet, {3, 32, 32, 10}};
static const nn_description resnet20_model = {
    "resnet20", describe_resnet, {3, 32, 32, 10}};
static const nn_description resnet18_model = {
    "resnet18", describe_resnet, {3, 32, 32, 10}};
static const nn_description resnet50_model = {
    "resnet50", describe_resnet, {3, 224, 224, 1000}};

static const resnet resnet8 = {3, {1, 1, 1}, 16, 1, false};
static const resnet resnet20 = {3, {3, 3, 3}, 16, 1, false};
static const resnet resnet18 = {4, {2, 2, 2, 2}, 64, 1, false};
static const resnet resnet50 = {4, {3, 4, 6, 3}, 64, 4, true};

static void resnet8_list(const void *settings, nn_tensors *tensors)
{
    (void)settings;
    nn_graph_list(&resnet8_model, &resnet8, tensors);
}

static lac_status resnet8_open(
    nn_network **out, const void *settings, const nn_options *options)
{
    (void)settings;
    return nn_feedforward_open(out, &resnet8_model, &resnet8, options);
}

static void resnet20_list(const void *settings, nn_tensors *tensors)
{
    (void)settings;
    nn_graph_list(&resnet20_model, &resnet20, tensors);
}

static lac_status resnet20_open(
    nn_network **out, const void *settings, const nn_options *options)
{
    (void)settings;
    return nn_feedforward_open(out, &resnet20_model, &resnet20, options);
}

static void resnet18_list(const void *settings, nn_tensors *tensors)
{
    (void)settings;
    nn_graph_list(&resnet18_model, &resnet18, tensors);
}

static lac_status resnet18_open(
    nn_network **out, const void *settings, const nn_options *options)
{
    (void)settings;
    return nn_feedforward_open(out, &resnet18_model, &resnet18, options);
}

static void resnet50_list(const void *settings, nn_tensors *tensors)
{
    (void)settings;
    nn_graph_list(&resnet50_model, &resnet50, tensors);
}

const nn_model nn_resnet8_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "resnet8",
    .plugin.summary = "ResNet-8 for CIFAR-10, 78,042 parameters",
    .list = resnet8_list,
    .open = resnet8_open,
};

const nn_model nn_resnet20_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "resnet20",
    .plugin.summary = "ResNet-20 for CIFAR-10, 272,474 parameters",
    .list = resnet20_list,
    .open = resnet20_open,
};

const nn_model nn_resnet18_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "resnet18",
    .plugin.summary = "ResNet-18 for CIFAR-10, 11,173,962 parameters",
    .list = resnet18_list,
    .open = resnet18_open,
};

const nn_model nn_resnet50_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "resnet50",
    .plugin.summary = "ResNet-50 for ImageNet, 25,557,032 parameters",
    .list = resnet50_list,
};
