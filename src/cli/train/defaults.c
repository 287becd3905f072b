// SPDX-License-Identifier: MIT
// Defaults that depend on the run.
#include "cli/train/defaults.h"

#include <math.h>

#include "cli/report/table.h"
#include "cli/train/manifest.h"
#include "train/defaults.h"

// The largest --lr.
#define RATE_MAX 1e6

static void set_default(lac_number_or_word *field, double value)
{
    if (field->word == CLI_TRAIN_DEFAULT) {
        *field = (lac_number_or_word){.value = value, .word = -1};
    }
}

// Sets the rate of an inverse schedule. A manifest has it as --lr.
static lac_status set_inverse_rate(
    cli_train_settings *s, const train_schedule *schedule)
{
    if (s->weight_decay <= 0) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--schedule is \"%.100s\", whose rate is A / (lambda (step + B)), "
            "but --weight-decay, its lambda, is 0, expected one above 0",
            s->schedule);
    }
    const double rate = train_inverse_rate(schedule, s->weight_decay);
    if (rate > RATE_MAX) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--schedule is \"%.100s\", whose first rate is %g for the weight "
            "decay of %g, expected at most %g",
            s->schedule, rate, s->weight_decay, RATE_MAX);
    }
    set_default(&s->lr, rate);
    if (s->lr.word >= 0 || s->lr.value < rate || s->lr.value > rate) {
        return lac_fail(
            LAC_ERR_INVALID,
            "--schedule is \"%.100s\", whose first rate is %g, but --lr was "
            "given too, expected it to be left out or \"default\"",
            s->schedule, rate);
    }
    return LAC_OK;
}

lac_status cli_train_apply_defaults(cli_train_settings *s, const data_set *set)
{
    const train_subject subject = {
        .algorithm = s->algorithm,
        .compressor = cli_given(s->compressor),
        .rule = (train_rule)s->optimizer,
        .kind = train_kind_of(s->model, data_set_info(set)->kind),
    };
    const train_default *const d = train_default_of(&subject);
    train_schedule schedule = {0};
    LAC_TRY(train_course_parse(s->schedule, &schedule));
    if (schedule.course == TRAIN_INVERSE) {
        LAC_TRY(set_inverse_rate(s, &schedule));
    }
    s->usual_rate = d->rate;
    if (s->lr.word == CLI_TRAIN_AUTO) {
        s->lr.value = s->resume ? cli_manifest_fact(s->out, "lr") : (double)NAN;
    }
    set_default(&s->lr, d->rate);
    set_default(&s->momentum, d->momentum);
    set_default(&s->warmup, d->warmup);
    return LAC_OK;
}

static const char *rule_name(train_rule rule)
{
    return rule == TRAIN_ADAM ? "adam" : "sgd";
}

void cli_train_print_defaults(FILE *stream)
{
    size_t count = 0;
    const train_default *const rows = train_defaults(&count);
    cli_table t = cli_table_make("llllrrr", "  ");
    const char *const head[] = {"algorithm", "compressor", "model", "optimizer",
                                "lr",        "momentum",   "warmup"};
    for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++) {
        cli_table_add(&t, "%s", head[i]);
    }
    for (size_t i = 0; i < count; i++) {
        const train_default *const d = &rows[i];
        cli_table_add(&t, "%s", d->algorithms == NULL ? "any" : d->algorithms);
        cli_table_add(
            &t, "%s", d->compressors == NULL ? "any" : d->compressors);
        cli_table_add(&t, "%s", train_kind_name(d->kind));
        cli_table_add(&t, "%s", rule_name(d->rule));
        cli_table_add(&t, "%g", d->rate);
        cli_table_add(&t, "%g", d->momentum);
        cli_table_add(&t, "%g", d->warmup);
    }
    cli_table_print(&t, stream);
}

cJSON *cli_train_defaults_json(void)
{
    size_t count = 0;
    const train_default *const rows = train_defaults(&count);
    cJSON *const array = cJSON_CreateArray();
    for (size_t i = 0; i < count; i++) {
        const train_default *const d = &rows[i];
        cJSON *const o = cJSON_CreateObject();
        cJSON_AddItemToObject(
            o, "algorithms", cli_json_words(d->algorithms, '|'));
        cJSON_AddItemToObject(
            o, "compressors", cli_json_words(d->compressors, '|'));
        cJSON_AddStringToObject(o, "model", train_kind_name(d->kind));
        cJSON_AddStringToObject(o, "optimizer", rule_name(d->rule));
        cJSON_AddNumberToObject(o, "lr", d->rate);
        cJSON_AddNumberToObject(o, "momentum", d->momentum);
        cJSON_AddNumberToObject(o, "warmup", d->warmup);
        cJSON_AddItemToArray(array, o);
    }
    return array;
}
