// SPDX-License-Identifier: MIT
// The options of `laconic train`, and the plan that they define.
#include "cli/train/settings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/launch/place.h"
#include "cli/options/units.h"
#include "cli/train/tests.h"
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
#define OPEN(field, option, words, most, about)                                \
    {.name = (option), .type = CLI_OPTION_F64_OR_WORD,                         \
     .offset = offsetof(settings, field), .value = "X",                        \
     .default_value = "", .choices = (words), .high = (most),                  \
     .help = (about)}
#define CHOICE(field, option, words, otherwise, about)                         \
    {.name = (option), .type = CLI_OPTION_CHOICE,                              \
     .offset = offsetof(settings, field), .value = "NAME",                     \
     .default_value = (otherwise), .choices = (words), .help = (about)}
#define FLAG(field, option, words)                                             \
    {.name = (option), .type = CLI_OPTION_FLAG,                                \
     .offset = offsetof(settings, field), .help = (words)}

const cli_option cli_train_options[] = {
    TEXT(model, "model", "SPEC", "lenet",
         "model to train; see `laconic list`"),
    TEXT(data, "data", "NAME", "fashion-mnist", "data set"),
    TEXT(data_dir, "data-dir", "DIR", "",
         "folder of the data set (that of its package)"),
    TEXT(algorithm, "algorithm", "SPEC", "powergossip",
         "how the workers communicate"),
    CLI_OPTION_COMPRESSOR(settings),
    CLI_OPTION_TOPOLOGY(settings),
    WHOLE(epochs, "epochs", "5", 1, UINT32_MAX,
          "passes over the training set"),
    WHOLE(batch, "batch", "32", 1, BATCH_MAX,
          "examples per worker and step; rows of a text"),
    WHOLE(bptt, "bptt", "30", 1, BATCH_MAX,
          "words of back-propagation through time"),
    TEXT(local_steps, "local-steps", "H[:H@E]", "1",
         "steps from one round to the next (see above)"),
    CHOICE(optimizer, "optimizer", "sgd|adam", "sgd",
           "adam needs a gradient algorithm"),
    OPEN(lr, "lr", "default|auto", 1e6,
         "learning rate; auto: try a few (see below)"),
    OPEN(momentum, "momentum", "default", 1,
         "of sgd (see below)"),
    CHOICE(momentum_kind, "momentum-kind", "local|quasi-global", "local",
           "of gradients, or of the gossiped model's steps"),
    CHOICE(nesterov, "nesterov", "torch|powersgd|no", "torch",
           "form of the momentum"),
    NUMBER(weight_decay, "weight-decay", "0", 0, 1e6,
           "L2 penalty; batch norms have none"),
    NUMBER(clip, "clip", "0", 0, 1e30,
           "largest norm of a worker's gradient; 0: none"),
    {.name = "schedule", .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, schedule), .value = "RULE",
     .default_value = "constant", .choices = "constant|step|cosine|inverse:",
     .help = "constant, step, cosine or inverse:A,B"},
    OPEN(warmup, "warmup", "default", 1e6,
         "epochs of linear warm-up (see below)"),
    TEXT(milestones, "milestones", "E,E,...", "",
         "epochs after which `step` divides the rate by 10"),
    {.name = "split", .type = CLI_OPTION_TEXT,
     .offset = offsetof(settings, split), .value = "RULE",
     .default_value = "shuffle", .choices = "shuffle|fixed|sorted|dirichlet:",
     .help = "shuffle, fixed, sorted, dirichlet:A[,balanced]"},
    FLAG(augment, "augment", "crop and mirror the training images"),
    WHOLE(limit, "limit", "0", 0, UINT32_MAX,
          "train on the first N examples only; 0: all"),
    TEXT(test_every, "test-every", "N[e]", "1e",
         "steps, or epochs, between tests; 0: at the end"),
    TEXT(test_limit, "test-limit", "N", "auto",
         "examples of the sample; 0: all; auto: see above"),
    FLAG(train_objective, "train-objective",
         "test the averaged model on the training set too"),
    FLAG(differences, "differences",
         "record the singular values of a model difference"),
    WHOLE(checkpoint_every, "checkpoint-every", "0", 0, UINT32_MAX,
          "steps between checkpoints; 0: one per epoch"),
    FLAG(overlap, "overlap", "gossip while gradients are computed"),
    TEXT(hostile, "hostile", "RANK", "",
         "a worker that sends huge values (see above)"),
    CLI_OPTION_STEP_TIME(settings),
    TEXT(out, "out", "DIR", "",
         "folder for metrics and checkpoints (required to train)"),
    FLAG(resume, "resume", "continue the run in DIR, with its settings"),
    TEXT(config, "config", "FILE", "",
         "take settings from a manifest.json; options go before"),
    FLAG(dry_run, "dry-run", "print steps, bytes, memory and settings only"),
    CLI_OPTION_SEED(settings),
    TEXT(seeds, "seeds", "N,N,...", "",
         "a run for each seed, in DIR/seed-N"),
    CLI_OPTIONS_LAUNCH(settings),
    CLI_OPTION_THREADS(settings),
    CLI_OPTION_JSON(settings),
    FLAG(quiet, "quiet", "print no progress, only results and warnings"),
    {0},
};
// clang-format on

// Whether workers may have different values: where one runs, and its output.
static bool is_local(const char *name)
{
    static const char *const names[] = {"data-dir",  "transport", "timeout",
                                        "step-time", "out",       "json",
                                        "config",    "quiet",     "threads"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

lac_status cli_train_shared(
    const cJSON *all, train_setting **out, size_t *count_out)
{
    const int most = cJSON_GetArraySize(all);
    size_t count = 0;
    train_setting *const list = calloc((size_t)most + 1, sizeof(*list));
    if (list == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for the settings");
    }
    for (const cJSON *o = all->child; o != NULL; o = o->next) {
        if (!is_local(o->string)) {
            list[count++] = (train_setting){o->string, o->valuestring};
        }
    }
    *out = list;
    *count_out = count;
    return LAC_OK;
}

// Quasi-global momentum is that of a model that gossips.
static lac_status check_momentum(
    const cli_train_settings *s, const train_plan *p, bool gradient)
{
    if (p->optimiser.kind != TRAIN_MOMENTUM_QUASI_GLOBAL) {
        return LAC_OK;
    }
    if (p->optimiser.rule == TRAIN_ADAM) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--momentum-kind quasi-global: adam has its own momentum, expected "
            "--optimizer sgd");
    }
    if (gradient) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--momentum-kind quasi-global: %s averages gradients, expected a "
            "model algorithm",
            s->algorithm);
    }
    return LAC_OK;
}

static lac_status check_tests(
    const cli_train_settings *s, const train_plan *p, bool gradient)
{
    const data_info *const info = data_set_info(p->set);
    if (s->train_objective && info->kind == DATA_TEXT) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--train-objective: %s is a text, expected images or a table",
            info->name);
    }
    if (s->differences && (gradient || s->launch.workers == 1)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--differences: %s with %llu workers has no two models that "
            "differ, expected a model algorithm with two workers or more",
            s->algorithm, (unsigned long long)s->launch.workers);
    }
    return LAC_OK;
}

// An algorithm with fragments or a delay has its rounds between local steps.
static lac_status settings_check_stream(
    const cli_train_settings *s, const train_plan *p, const lac_cost *cost)
{
    const size_t tensors = lac_layout_count(p->algorithm.layout);
    if (cost->fragments > tensors) {
        return lac_fail(
            LAC_ERR_INVALID,
            "%.60s: fragments is %u, expected at most %zu, the number of "
            "tensors",
            s->algorithm, cost->fragments, tensors);
    }
    if (train_local_steps_streams(&p->local_steps) &&
        p->optimiser.kind == TRAIN_MOMENTUM_QUASI_GLOBAL) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--momentum-kind quasi-global: %.60s has fragments or a delay, "
            "expected rounds of all tensors at the same time",
            s->algorithm);
    }
    if (train_local_steps_streams(&p->local_steps) && *s->hostile != '\0') {
        return lac_fail(
            LAC_ERR_INVALID,
            "--hostile %.40s: %.60s has fragments or a delay, expected rounds "
            "of all tensors at the same time",
            s->hostile, s->algorithm);
    }
    return LAC_OK;
}

// Finds out which worker is hostile. Gradient algorithms have no rule against
// one: its values would reach all workers in the first step.
static lac_status check_hostile(
    const cli_train_settings *s, bool gradient, uint32_t *out)
{
    char *end = NULL;
    if (*s->hostile == '\0') {
        return LAC_OK;
    }
    const unsigned long rank = strtoul(s->hostile, &end, 10);
    if (*s->hostile < '0' || *s->hostile > '9' || *end != '\0' ||
        rank >= s->launch.workers) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--hostile is \"%.40s\", expected the rank of a worker, 0 to %llu",
            s->hostile, (unsigned long long)s->launch.workers - 1);
    }
    if (s->launch.workers == 1) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--hostile %lu: there is no other worker, expected two or more",
            rank);
    }
    if (gradient) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--hostile %lu: %.60s averages gradients over all workers, "
            "expected a model algorithm such as dpsgd:clip=1",
            rank, s->algorithm);
    }
    if (s->differences) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--hostile %lu: --differences compares the models of two workers "
            "that train, expected a run without it",
            rank);
    }
    *out = (uint32_t)rank + 1;
    return LAC_OK;
}

// Rejects settings that contradict each other.
static lac_status check_plan(const cli_train_settings *s, train_plan *p)
{
    lac_cost cost;
    LAC_TRY(lac_algorithm_cost(&p->algorithm, &cost));
    const bool gradient = cost.family == LAC_FAMILY_GRADIENT;
    LAC_TRY(
        train_local_steps_stream(&p->local_steps, cost.fragments, cost.delay));
    LAC_TRY(settings_check_stream(s, p, &cost));
    if (gradient && s->overlap && cost.delay == 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--overlap: %s averages gradients, so it must wait for them; "
            "expected a model algorithm, or outer with a delay",
            s->algorithm);
    }
#ifdef LACI_SMPI
    if (s->overlap) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--overlap: a rank of a simulated cluster has one thread, expected "
            "a run without it");
    }
#endif
    LAC_TRY(check_momentum(s, p, gradient));
    if ((cost.flags & LAC_COST_LOCAL_STEPS) == 0 &&
        train_local_steps_any(&p->local_steps)) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--local-steps %.60s: %.60s averages gradients in every step, "
            "expected a model algorithm, such as outer:inner=(%.60s)",
            s->local_steps, s->algorithm, s->algorithm);
    }
    if ((cost.flags & LAC_COST_PLAIN_UPDATES) != 0 &&
        p->optimiser.momentum > 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--momentum %g: %s tracks gradients, not momenta, expected 0",
            p->optimiser.momentum, s->algorithm);
    }
    if (!gradient && p->optimiser.rule == TRAIN_ADAM) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--optimizer adam: %s mixes models, expected a gradient algorithm "
            "such as allreduce or powersgd",
            s->algorithm);
    }
    LAC_TRY(check_tests(s, p, gradient));
    LAC_TRY(check_hostile(s, gradient, &p->hostile));
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
                .momentum = s->momentum.value,
                .kind = (train_momentum_kind)s->momentum_kind,
                .weight_decay = s->weight_decay,
            },
        .schedule =
            {
                .rate = s->lr.value,
                .warmup = s->warmup.value,
                .epochs = (double)s->epochs,
            },
        .usual_rate = s->usual_rate,
        .searches_rate = s->lr.word == CLI_TRAIN_AUTO,
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
    p->topology = s->topology;
    p->algorithm.layout = layout;
    p->algorithm.seed = s->seed;
    p->algorithm.timeout = s->launch.timeout;
    p->algorithm.threads =
        cli_place_threads(&s->launch, lac_topology_workers(topology));
    p->algorithm.training = true;
    if (*s->step_time != '\0') {
        LAC_TRY(units_seconds(s->step_time, "step-time", &p->step_time));
    }
    LAC_TRY(cli_train_tests(
        s->test_every, s->test_limit, data_set_info(set), s->bptt, s->limit,
        &p->tests));
    p->tests.objective = s->train_objective;
    p->tests.spectra = s->differences;
    LAC_TRY(train_local_steps_parse(s->local_steps, &p->local_steps));
    LAC_TRY(data_split_parse(s->split, &p->split));
    LAC_TRY(train_course_parse(s->schedule, &p->schedule));
    LAC_TRY(train_milestones_parse(s->milestones, &p->schedule));
    return check_plan(s, p);
}
