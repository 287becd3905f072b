// SPDX-License-Identifier: MIT
// Quantities with three significant digits, names of candidates, advice.
#include "cli/plan/text.h"

#include <string.h>

// Writes `value` in the largest unit that leaves it at 1 or above. `units` are
// factors of 1000, the smallest first.
static const char *three_digits(
    double value, const char *const *units, size_t count,
    char text[PLAN_TEXT_SIZE])
{
    size_t unit = 0;
    while (value >= 999.5 && unit + 1 < count) {
        value /= 1000;
        unit++;
    }
    const int decimals = value == 0 || value >= 99.95 ? 0
                         : value >= 9.995             ? 1
                                                      : 2;
    (void)snprintf(
        text, PLAN_TEXT_SIZE, "%.*f %s", decimals, value, units[unit]);
    return text;
}

const char *plan_seconds(double seconds, char text[PLAN_TEXT_SIZE])
{
    static const char *const units[] = {"us", "ms", "s"};
    if (seconds < 999.5) {
        return three_digits(1e6 * seconds, units, 3, text);
    }
    static const struct {
        const char *name;
        double seconds;
    } longer[] = {{"h", 3600}, {"d", 86400}, {"y", 365.25 * 86400}};
    for (size_t i = 0; i < sizeof(longer) / sizeof(longer[0]); i++) {
        const double value = seconds / longer[i].seconds;
        if (value < 999.5) {
            return three_digits(value, &longer[i].name, 1, text);
        }
    }
    (void)snprintf(text, PLAN_TEXT_SIZE, ">999 y");
    return text;
}

const char *plan_bandwidth(double bytes_per_second, char text[PLAN_TEXT_SIZE])
{
    static const char *const units[] = {
        "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
    return three_digits(8 * bytes_per_second, units, 5, text);
}

const char *plan_bytes(double bytes, char text[PLAN_TEXT_SIZE])
{
    static const char *const units[] = {"B",  "kB", "MB", "GB",
                                        "TB", "PB", "EB"};
    return three_digits(bytes, units, 7, text);
}

const char *plan_name(const plan_choice *choice, char text[PLAN_NAME_SIZE])
{
    const char *const compressor = choice->compressor;
    (void)snprintf(
        text, PLAN_NAME_SIZE, "%s%s%s", choice->algorithm,
        compressor == NULL ? "" : " ", compressor == NULL ? "" : compressor);
    return text;
}

// The fastest of a family, or NULL.
static const plan_candidate *fastest_of(const plan *p, lac_family family)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->candidates[i].family == family) {
            return &p->candidates[i];
        }
    }
    return NULL;
}

// The half of the advice about algorithms that keep a common model, if a gossip
// algorithm is the fastest.
static void advise_gradient(const plan *p, char *text, size_t room)
{
    char name[PLAN_NAME_SIZE];
    const double all = plan_baseline(p)->step;
    const plan_candidate *const c = fastest_of(p, LAC_FAMILY_GRADIENT);
    if (all / c->step < PLAN_GAIN) {
        (void)snprintf(
            text, room, "; no algorithm that averages gradients gains 5 %%");
    } else {
        (void)snprintf(
            text, room,
            "; of those that average gradients, %s is the fastest, %.2f times "
            "as fast",
            plan_name(&c->choice, name), all / c->step);
    }
}

// Adds what the advised one has lost, and why a faster one is not advised.
static void advise_loss(
    const plan *p, const plan_candidate *best, char *text, size_t room)
{
    const plan_candidate *const fastest = &p->candidates[0];
    const plan_loss *const own = plan_candidate_loss(p, best);
    const plan_loss *const other = plan_candidate_loss(p, fastest);
    const double percent = 100 * (best->step / fastest->step - 1);
    char name[PLAN_NAME_SIZE], lost[PLAN_LOSS_SIZE], more[PLAN_LOSS_SIZE];
    int len = 0;
    if (own != NULL) {
        len = snprintf(
            text, room, "; measured: %s, experiments/%s.md",
            plan_loss_text(own, lost), own->page);
    }
    if (best != fastest && len >= 0 && (size_t)len < room) {
        char faster[PLAN_TEXT_SIZE] = "as fast";
        if (percent >= 0.5) {
            (void)snprintf(faster, sizeof(faster), "%.0f %% faster", percent);
        }
        (void)snprintf(
            text + len, room - (size_t)len, "; %s is %s%s%s",
            plan_name(&fastest->choice, name), faster,
            other == NULL ? " and not measured" : ": ",
            other == NULL ? "" : plan_loss_text(other, more));
    }
}

static void advise_use(
    const plan *p, const plan_candidate *best, char text[PLAN_ADVICE_SIZE])
{
    const double all = plan_baseline(p)->step;
    char name[PLAN_NAME_SIZE], step[PLAN_TEXT_SIZE], whole[PLAN_TEXT_SIZE];
    (void)snprintf(
        text, PLAN_ADVICE_SIZE,
        "use %s%s: a step takes %s instead of %s, %.2f times as fast",
        plan_name(&best->choice, name),
        strcmp(best->choice.algorithm, "dpsgd") == 0
            ? ", which does not compress"
            : "",
        plan_seconds(best->step, step), plan_seconds(all, whole),
        all / best->step);
    size_t len = strlen(text);
    advise_loss(p, best, text + len, PLAN_ADVICE_SIZE - len);
    len = strlen(text);
    if (best->family == LAC_FAMILY_MODEL) {
        advise_gradient(p, text + len, PLAN_ADVICE_SIZE - len);
    }
}

const char *plan_advice(const plan *p, char text[PLAN_ADVICE_SIZE])
{
    const plan_candidate *const fastest = &p->candidates[0];
    const double all = plan_baseline(p)->step;
    char name[PLAN_NAME_SIZE];
    if (p->task.workers == 1) {
        (void)snprintf(
            text, PLAN_ADVICE_SIZE,
            "do not compress: a single worker sends nothing");
    } else if (fastest == plan_baseline(p)) {
        (void)snprintf(
            text, PLAN_ADVICE_SIZE,
            "do not compress: an all-reduce is the fastest");
    } else if (all / fastest->step < PLAN_GAIN) {
        (void)snprintf(
            text, PLAN_ADVICE_SIZE,
            "do not compress: the fastest, %s, gains only %.1f %%",
            plan_name(&fastest->choice, name), 100 * (all / fastest->step - 1));
    } else {
        advise_use(p, plan_advised(p), text);
    }
    return text;
}
