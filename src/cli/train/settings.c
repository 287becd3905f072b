// SPDX-License-Identifier: MIT
// The options of `laconic train`, and the plan they make.
#include "cli/train/settings.h"

#include <stddef.h>

#include "train/feed.h"

typedef cli_train_settings settings;

enum { BATCH_MAX = 1 << 20 };

// clang-format off
#define TEXT(field, option, shown, otherwise, words)                           \
    {.name = (option), .type = CLI_OPTION_TEXT,                                \
     .offset = offsetof(settings, field), .value = (shown),                    \
     .default_value = (otherwise), .help = (words)}
#define WHOLE(field, option, otherwise, least, most, words)                    \
    {.name = (option), .type = CLI_OPTION_U64,                                 \
     .offset = offsetof(settings, field), .value = "N",                        \
     .default_value = (otherwise), .min = (least), .max = (most),              \
     .help = (words)}
#define NUMBER(field, option, otherwise, least, most, words)                   \
    {.name = (option), .type = CLI_OPTION_F64,                                 \
     .offset = offsetof(settings, field), .value = "X",                        \
     .default_value = (otherwise), .low = (least), .high = (most),             \
     .help = (words)}
#define CHOICE(field, option, words, otherwise, about)                         \
    {.name = (option), .type = CLI_OPTION_CHOICE,                              \
     .offset = offsetof(settings, field), .value = (words),                    \
     .default_value = (otherwise), .choices = (words), .help = (about)}
#define FLAG(field, option, words)                                             \
    {.name = (option), .type = CLI_OPTION_FLAG,                                \
     .offset = offsetof(settings, field), .help = (words)}

const cli_option cli_train_options[] = {
    TEXT(model, "model", "SPEC", "lenet",
         "what to train; see `laconic list`"),
    TEXT(data, "data", "NAME", "fashion-mnist", "what to train it on"),
    TEXT(data_dir, "data-dir", "DIR", "",
         "where its files are, if not where packages put them"),
    TEXT(algorithm, "algorithm", "SPEC", "powergossip",
         "how the workers come to agree"),
    CLI_OPTION_COMPRESSOR(settings),
    CLI_OPTION_TOPOLOGY(settings),
    WHOLE(epochs, "epochs", "5", 1, UINT32_MAX,
          "how often all examples are seen"),
    WHOLE(batch, "batch", "32", 1, BATCH_MAX,
          "examples a worker and step; of a text, rows"),
    WHOLE(bptt, "bptt", "30", 1, BATCH_MAX,
          "words of a text that gradients reach back"),
    CHOICE(optimizer, "optimizer", "sgd|adam", "sgd",
           "adam goes with gradient algorithms"),
    NUMBER(lr, "lr", "0.1", 0, 1e6, "learning rate"),
    NUMBER(momentum, "momentum", "0.9", 0, 1, "of sgd, local"),
    CHOICE(nesterov, "nesterov", "torch|powersgd|no", "torch",
           "form of the momentum"),
    NUMBER(weight_decay, "weight-decay", "0", 0, 1e6,
           "pull towards 0; batch norms are spared"),
    NUMBER(clip, "clip", "0", 0, 1e30,
           "largest norm of a worker's gradient; 0: any"),
    CHOICE(schedule, "schedule", "constant|step|cosine", "constant",
           "of the learning rate"),
    NUMBER(warmup, "warmup", "0", 0, 1e6,
           "epochs in which the rate rises linearly"),
    TEXT(milestones, "milestones", "E,E,...", "",
         "epochs after which `step` divides it by 10"),
    TEXT(split, "split", "RULE", "shuffle",
         "shuffle, fixed, sorted or dirichlet:ALPHA"),
    FLAG(augment, "augment", "crop and mirror the training images"),
    WHOLE(limit, "limit", "0", 0, UINT32_MAX,
          "use the first N training examples; 0: all"),
    WHOLE(checkpoint_every, "checkpoint-every", "0", 0, UINT32_MAX,
          "steps; 0: at the end of every epoch"),
    FLAG(overlap, "overlap", "gossip beside the computation of gradients"),
    TEXT(out, "out", "DIR", NULL, "where metrics and checkpoints go"),
    FLAG(resume, "resume", "continue the run in DIR"),
    CLI_OPTION_SEED(settings),
    CLI_OPTIONS_LAUNCH(settings),
    CLI_OPTION_JSON(settings),
    {0},
};
// clang-format on

// What does not go together.
static lac_status check(const cli_train_settings *s, const train_plan *p)
{
    lac_cost cost;
    const lac_status status = lac_algorithm_cost(&p->algorithm, &cost);
    if (status != LAC_OK) {
        return status;
    }
    const bool gradient = cost.family == LAC_FAMILY_GRADIENT;
    if (gradient && s->overlap) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--overlap: %s averages gradients, which have to be there first; "
            "expected a model algorithm",
            s->algorithm);
    }
    if (!gradient && p->optimiser.rule == TRAIN_ADAM) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--optimizer adam: %s mixes models, expected a gradient algorithm "
            "such as allreduce or powersgd",
            s->algorithm);
    }
    return s->augment ? train_feed_can_augment(data_set_info(p->set)) : LAC_OK;
}

lac_status cli_train_plan(
    const cli_train_settings *s, const data_set *set,
    const lac_topology *topology, const lac_layout *layout, train_plan *out)
{
    train_plan *const p = out;
    *p = (train_plan){
        .model = s->model,
        .set = set,
        .batch = (uint32_t)s->batch,
        .steps = (uint32_t)s->bptt,
        .augment = s->augment,
        .optimiser =
            {
                .rule = (train_rule)s->optimizer,
                .nesterov = (train_nesterov)s->nesterov,
                .momentum = s->momentum,
                .weight_decay = s->weight_decay,
            },
        .schedule =
            {
                .course = (train_course)s->schedule,
                .rate = s->lr,
                .warmup = s->warmup,
                .epochs = (double)s->epochs,
            },
        .clip = s->clip,
        .epochs = s->epochs,
        .overlap = s->overlap,
        .algorithm = lac_algorithm_options_default(),
        .seed = s->seed,
        .folder = s->out,
        .checkpoint_every = s->checkpoint_every,
        .resume = s->resume,
    };
    p->algorithm.spec = s->algorithm;
    p->algorithm.compressor = cli_given(s->compressor);
    p->algorithm.topology = topology;
    p->algorithm.layout = layout;
    p->algorithm.seed = s->seed;
    p->algorithm.timeout = s->launch.timeout;
    p->algorithm.training = true;
    lac_status status = data_split_parse(s->split, &p->split);
    if (status == LAC_OK) {
        status = train_milestones_parse(s->milestones, &p->schedule);
    }
    return status == LAC_OK ? check(s, p) : status;
}
