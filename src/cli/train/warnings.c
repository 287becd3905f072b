// SPDX-License-Identifier: MIT
// Warnings about options and about a resume. An option counts as given if its
// value is not the default.
#include "cli/train/warnings.h"

#include <string.h>

#include "cli/report/table.h"
#include "cli/train/manifest.h"
#include "cli/version/onednn.h"

static const cli_option *warnings_option(const char *name)
{
    const cli_option *o = cli_train_options;
    while (strcmp(o->name, name) != 0) {
        o++;
    }
    return o;
}

static bool is_given(const cli_train_settings *s, const char *name)
{
    const cli_option *const o = warnings_option(name);
    char text[CLI_OPTION_TEXT_SIZE];
    return strcmp(cli_option_text(o, s, text), o->default_value) != 0;
}

static bool warnings_is_text(const train_plan *p)
{
    return data_set_info(p->set)->kind == DATA_TEXT;
}

// Whether the run ends before the first milestone.
static bool ends_early(const train_schedule *s)
{
    return s->milestone_count > 0 && s->milestones[0] >= s->epochs;
}

// Returns what is allowed but hardly ever meant, or NULL.
static const char *warnings_advice(
    const cli_train_settings *s, const train_plan *plan)
{
    const bool even = s->launch.workers % 2 == 0;
    if (plan->schedule.rate <= 0) {
        return "--lr is 0: the model will not change";
    }
    if (strcmp(s->algorithm, "signum") == 0 && even) {
        return "signum: ties of an even number of workers count as +1; "
               "signum:tie=zero is more accurate";
    }
    if (strcmp(s->algorithm, "outer") == 0 &&
        strcmp(s->local_steps, "1") == 0) {
        return "outer: it saves bytes only with --local-steps above 1, such as "
               "10";
    }
    return NULL;
}

void cli_train_warn(
    const cli_train_settings *s, const train_plan *plan, lac_family family,
    FILE *stream)
{
    const bool adam = plan->optimiser.rule == TRAIN_ADAM;
    const bool step = plan->schedule.course == TRAIN_STEP;
    const size_t milestones = plan->schedule.milestone_count;
    const struct {
        bool idle; // the option does nothing
        const char *option;
        const char *why;
    } cases[] = {
        {step && milestones == 0, "schedule", "step needs --milestones"},
        {!step && milestones > 0, "milestones", "only --schedule step has any"},
        {step && ends_early(&plan->schedule), "milestones",
         "the run ends before the first"},
        {!warnings_is_text(plan), "bptt", "the data are not a text"},
        {family == LAC_FAMILY_GRADIENT, "topology",
         "the algorithm averages over all workers"},
        {family == LAC_FAMILY_MODEL && s->launch.workers == 1, "topology",
         "a single worker has no neighbours"},
        {adam && plan->optimiser.momentum > 0, "momentum",
         "adam has its own, of 0.9"},
        {adam || plan->optimiser.momentum <= 0, "nesterov",
         "there is no momentum"},
        {plan->optimiser.momentum <= 0, "momentum-kind",
         "there is no momentum"},
        {s->launch.workers == 1, "split", "there is a single worker"},
    };
    const char *const advice = warnings_advice(s, plan);
    if (advice != NULL) {
        (void)fprintf(stream, "laconic: %s\n", advice);
    }
    if (plan->schedule.warmup > plan->schedule.epochs) {
        (void)fprintf(
            stream,
            "laconic: --warmup is %g epochs, but the run ends after %g, before "
            "it has its full rate\n",
            plan->schedule.warmup, plan->schedule.epochs);
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (cases[i].idle && is_given(s, cases[i].option)) {
            (void)fprintf(
                stream, "laconic: --%s has no effect: %s\n", cases[i].option,
                cases[i].why);
        }
    }
}

static const char *version_in(const cJSON *versions, const char *name)
{
    return cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(versions, name));
}

static bool has_other(const char *before, const char *ours)
{
    return before != NULL && strcmp(before, ours) != 0;
}

void cli_train_warn_onednn(
    const char *folder, const train_facts *facts, FILE *stream)
{
    char version[CLI_ONEDNN_SIZE], code[CLI_ONEDNN_SIZE];
    char text[CLI_CELL_SIZE], code_text[CLI_CELL_SIZE];
    if (facts->first_step == 0) {
        return;
    }
    cJSON *const versions = cli_manifest_versions_copy(folder);
    const char *const before = version_in(versions, CLI_MANIFEST_ONEDNN);
    const char *const code_before =
        version_in(versions, CLI_MANIFEST_INSTRUCTIONS);
    cli_onednn_version(version);
    cli_onednn_instructions(code);
    if (has_other(before, version) || has_other(code_before, code)) {
        (void)fprintf(
            stream,
            "laconic: %s was trained with oneDNN %s%s%s and continues with "
            "oneDNN %s for %s: its bits will differ from those of a run "
            "without this change\n",
            folder,
            cli_fitted(before == NULL ? "?" : before, CLI_ONEDNN_SIZE, text),
            code_before == NULL ? "" : " for ",
            cli_fitted(
                code_before == NULL ? "" : code_before, CLI_ONEDNN_SIZE,
                code_text),
            version, code);
    }
    cJSON_Delete(versions);
}
