// SPDX-License-Identifier: MIT
// The table of measured losses, and which of its lines counts.
#include "cli/plan/losses.h"

#include <stdio.h>
#include <string.h>

#include "cli/options/spec.h"

#define LENET   "LeNet", PLAN_KIND_CONVOLUTIONAL, false
#define RESNET8 "ResNet-8", PLAN_KIND_CONVOLUTIONAL, false
#define LSTM    "LSTM", PLAN_KIND_RECURRENT, true
#define PLAN_LOSS(algorithm, compressor, network, lost, epochs, page)          \
    {algorithm, compressor, network, lost, epochs, page},
static const plan_loss losses[] = {
#include "cli/plan/losses.def"
};
enum { COUNT = sizeof(losses) / sizeof(losses[0]) };

plan_near plan_near_of(const char *model)
{
    static const struct {
        const char *name;
        plan_near near;
    } models[] = {
        {"logistic", {NULL, PLAN_KIND_FULLY_CONNECTED}},
        {"mlp", {NULL, PLAN_KIND_FULLY_CONNECTED}},
        {"lenet", {"LeNet", PLAN_KIND_CONVOLUTIONAL}},
        {"resnet8", {"ResNet-8", PLAN_KIND_CONVOLUTIONAL}},
        {"resnet20", {"ResNet-8", PLAN_KIND_CONVOLUTIONAL}},
        {"resnet18", {"ResNet-8", PLAN_KIND_CONVOLUTIONAL}},
        {"resnet50", {"ResNet-8", PLAN_KIND_CONVOLUTIONAL}},
        {"lstm", {"LSTM", PLAN_KIND_RECURRENT}},
    };
    for (size_t i = 0; model != NULL && i < sizeof(models) / sizeof(models[0]);
         i++) {
        if (cli_spec_names(model, models[i].name)) {
            return models[i].near;
        }
    }
    return (plan_near){NULL, PLAN_KIND_UNKNOWN};
}

static bool same_text(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

const plan_loss *plan_loss_next(
    const plan_choice *choice, const plan_loss *last)
{
    for (size_t i = last == NULL ? 0 : (size_t)(last - losses) + 1; i < COUNT;
         i++) {
        if (same_text(losses[i].algorithm, choice->algorithm) &&
            same_text(losses[i].compressor, choice->compressor)) {
            return &losses[i];
        }
    }
    return NULL;
}

int plan_loss_distance(const plan_loss *l, const plan_near *near)
{
    if (near->network != NULL && strcmp(l->network, near->network) == 0) {
        return 0;
    }
    return l->kind == near->kind ? 1 : 2;
}

const plan_loss *plan_loss_nearest(
    const plan_choice *choice, const plan_near *near)
{
    const plan_loss *nearest = plan_loss_next(choice, NULL);
    for (const plan_loss *l = nearest; l != NULL;
         l = plan_loss_next(choice, l)) {
        const int gain =
            plan_loss_distance(nearest, near) - plan_loss_distance(l, near);
        if (gain > 0 || (gain == 0 && l->lost > nearest->lost)) {
            nearest = l;
        }
    }
    return nearest;
}

const char *plan_loss_text(const plan_loss *l, char text[PLAN_LOSS_SIZE])
{
    (void)snprintf(
        text, PLAN_LOSS_SIZE, "%+.1f %s on %s",
        l->perplexity ? l->lost : 0.0 - l->lost,
        l->perplexity ? "% perplexity" : "points", l->network);
    return text;
}
