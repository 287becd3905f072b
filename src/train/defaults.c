// SPDX-License-Identifier: MIT
// The table of defaults. Rows are from the particular to the general.
//
// Signs have no size, so the step of signum is the rate itself, for every
// parameter, and its momentum is in the algorithm. Adam divides by the size of
// the gradient and is similar. Error feedback delays gradients, and what is
// sent at last adds up: it needs a smaller step than the exact method, the more
// so the less is sent at a time. unbiased-rank is far noisier than the
// gradient: with the usual rate LeNet diverges. beer takes no momentum, and so
// larger steps; ef21 and outer have a momentum of their own, and with a second
// one they diverge. An outer step is 7 times a local one in the long run.
#include "train/defaults.h"

#include <stdbool.h>
#include <string.h>

static const train_default rows[] = {
    {"signum", NULL, TRAIN_SGD, TRAIN_IMAGES, 0.0007, 0, 0},
    {"signum", NULL, TRAIN_SGD, TRAIN_RESNET, 0.002, 0, 0},
    {"signum", NULL, TRAIN_SGD, TRAIN_TEXT, 0.002, 0, 0},
    {"signum", NULL, TRAIN_SGD, TRAIN_LINEAR, 0.001, 0, 0},
    {"compressed", "terngrad", TRAIN_SGD, TRAIN_IMAGES, 0.005, 0.9, 0},
    {"compressed", "terngrad", TRAIN_SGD, TRAIN_RESNET, 0.005, 0.9, 0},
    {"error-feedback", "sign", TRAIN_SGD, TRAIN_IMAGES, 0.03, 0.9, 0},
    {"error-feedback", "unbiased-rank", TRAIN_SGD, TRAIN_IMAGES, 0.003, 0.9, 0},
    {"powersgd", NULL, TRAIN_SGD, TRAIN_RESNET, 0.2, 0.9, 0},
    {"ef21", "natural", TRAIN_SGD, TRAIN_RESNET, 2, 0, 0},
    {"ef21", NULL, TRAIN_SGD, TRAIN_IMAGES, 0.3, 0, 0},
    {"ef21", NULL, TRAIN_SGD, TRAIN_RESNET, 1, 0, 0},
    {"ef21", NULL, TRAIN_SGD, TRAIN_LINEAR, 0.1, 0, 0},
    {"outer", NULL, TRAIN_SGD, TRAIN_IMAGES, 0.07, 0, 0},
    {"outer", NULL, TRAIN_SGD, TRAIN_RESNET, 0.15, 0, 0},
    {"outer", NULL, TRAIN_SGD, TRAIN_TEXT, 0.4, 0, 0},
    {"outer", NULL, TRAIN_SGD, TRAIN_LINEAR, 0.01, 0, 0},
    {"beer", "qsgd", TRAIN_SGD, TRAIN_IMAGES, 0.2, 0, 0},
    {"beer", "qsgd", TRAIN_SGD, TRAIN_RESNET, 1, 0, 0},
    {"beer", NULL, TRAIN_SGD, TRAIN_IMAGES, 0.1, 0, 0},
    {"beer", NULL, TRAIN_SGD, TRAIN_RESNET, 0.2, 0, 0},
    {"beer", NULL, TRAIN_SGD, TRAIN_LINEAR, 0.05, 0, 0},
    {NULL, NULL, TRAIN_SGD, TRAIN_IMAGES, 0.05, 0.9, 0},
    {NULL, NULL, TRAIN_SGD, TRAIN_RESNET, 0.1, 0.9, 0},
    {NULL, NULL, TRAIN_SGD, TRAIN_TEXT, 3, 0, 0},
    {NULL, NULL, TRAIN_SGD, TRAIN_LINEAR, 0.01, 0.9, 0},
    {NULL, NULL, TRAIN_ADAM, TRAIN_IMAGES, 0.001, 0, 0},
    {NULL, NULL, TRAIN_ADAM, TRAIN_RESNET, 0.001, 0, 0},
    {NULL, NULL, TRAIN_ADAM, TRAIN_TEXT, 0.002, 0, 0},
    {NULL, NULL, TRAIN_ADAM, TRAIN_LINEAR, 0.001, 0, 0},
};

// Whether `names` has the name with which a spec begins.
static bool fits(const char *names, const char *spec)
{
    if (names == NULL) {
        return true;
    }
    if (spec == NULL) {
        return false;
    }
    const size_t len = strcspn(spec, ":+");
    for (const char *at = names; at != NULL;) {
        const size_t name_len = strcspn(at, "|");
        if (name_len == len && memcmp(at, spec, len) == 0) {
            return true;
        }
        at = at[name_len] == '|' ? at + name_len + 1 : NULL;
    }
    return false;
}

train_kind train_kind_of(const char *model, data_kind data)
{
    if (data == DATA_TEXT) {
        return TRAIN_TEXT;
    }
    if (fits("logistic", model)) {
        return TRAIN_LINEAR;
    }
    static const char resnet[] = "resnet";
    return strncmp(model, resnet, sizeof(resnet) - 1) == 0 ? TRAIN_RESNET
                                                           : TRAIN_IMAGES;
}

const char *train_kind_name(train_kind kind)
{
    static const char *const names[] = {"images", "resnet", "text", "linear"};
    return names[kind];
}

const train_default *train_default_of(const train_subject *subject)
{
    const train_default *row = rows;
    while (row->rule != subject->rule || row->kind != subject->kind ||
           !fits(row->algorithms, subject->algorithm) ||
           !fits(row->compressors, subject->compressor)) {
        row++; // the last row of a rule and a kind fits all
    }
    return row;
}

const train_default *train_defaults(size_t *count_out)
{
    *count_out = sizeof(rows) / sizeof(rows[0]);
    return rows;
}
