// SPDX-License-Identifier: MIT
// Comparison with guessing, and with the initial model.
//
// Accuracy. A model that ignores its input is right on at most the share p of
// the most frequent class. On n examples of the test set, the first of a
// shuffle, that share has a standard deviation of at most sqrt(p (1 - p) / n).
// A model that guesses exceeds p by three of them in one run of 700.
//
// Loss. An initial model is not exactly at chance: that of LeNet may be a
// little below the loss of equal probabilities, and may prefer the right class.
// So the loss must also have fallen since the first steps, by more than noise.
// If nothing is learned, all steps have the same model, and the losses of all
// labels are draws with one variance v. The mean loss of the first m labels
// minus that of the last n then has the variance v (1/m + 1/n), or less if
// they have labels in common; three standard deviations of it are noise. The
// means of two consecutive steps of b labels differ by a number of variance
// 2 v / b, so b / 2 times the squared difference is an estimate of v; learning
// changes the loss slowly, so it hardly adds to it. The mean over all steps is
// taken. Losses are sums of floats: a relative difference of less than 1e-6 may
// be rounding.
#include "train/learned.h"

#include <math.h>
#include <stdlib.h>

enum {
    DEVIATIONS = 3,
    FIRST_LABELS = 256, // the least number of labels of the first steps
};

#define ROUNDING 1e-6

// The share of the most frequent class in the test set. NaN if there is none,
// or no memory to count.
static double largest_share(const data_set *set)
{
    const data_info *const info = data_set_info(set);
    const uint32_t *const labels = data_set_labels(set, DATA_TEST);
    const size_t count = info->count[DATA_TEST];
    size_t *const counts = calloc((size_t)info->classes + 1, sizeof(*counts));
    size_t most = 0;
    for (size_t i = 0; labels != NULL && counts != NULL && i < count; i++) {
        const size_t seen = ++counts[labels[i]];
        most = seen > most ? seen : most;
    }
    free(counts);
    return most == 0 ? (double)NAN : (double)most / (double)count;
}

train_chance train_chance_of(const data_set *set)
{
    const data_info *const info = data_set_info(set);
    return (train_chance){
        .loss = log(info->classes),
        .accuracy = info->kind == DATA_TEXT ? (double)NAN : largest_share(set),
    };
}

void train_trace_add(train_trace *t, double loss, uint64_t labels, bool first)
{
    const double mean = loss / (double)labels;
    if (first) {
        t->first_loss += loss;
        t->first_labels += labels;
    }
    if (t->last > 0) { // the first step has none before it
        const double difference = mean - t->last;
        t->noise += difference * difference * (double)labels / 2;
        t->pairs++;
    }
    t->last = mean;
}

uint64_t train_first_steps(uint64_t labels, uint64_t epoch_steps)
{
    const uint64_t steps = (FIRST_LABELS + labels - 1) / labels;
    const uint64_t half = (epoch_steps + 1) / 2;
    return steps < half ? steps : half;
}

void train_trace_merge(train_trace *sum, const train_trace *t)
{
    sum->first_loss += t->first_loss;
    sum->first_labels += t->first_labels;
    sum->noise += t->noise;
    sum->pairs += t->pairs;
}

void train_trace_judge(
    const train_trace *all, uint64_t labels, train_metrics *m)
{
    const double variance = all->noise / (double)all->pairs;
    const double first = (double)all->first_labels;
    m->first_loss =
        all->first_labels == 0 ? (double)NAN : all->first_loss / first;
    m->loss_luck =
        DEVIATIONS * sqrt(variance / first + variance / (double)labels);
}

static bool loss_fell(const train_metrics *m)
{
    const double luck = m->loss_luck + ROUNDING * m->first_loss;
    return isnan(m->first_loss) || m->first_loss - m->train_loss > luck;
}

static bool guesses(const train_metrics *m, const train_chance *chance)
{
    const double p = chance->accuracy;
    const double luck =
        DEVIATIONS * sqrt(p * (1 - p) / (double)m->test_examples);
    return p + luck < 1 && m->test_accuracy <= p + luck; // not with NaN
}

bool train_has_learned(const train_metrics *m, const train_chance *chance)
{
    return m->train_loss < chance->loss && loss_fell(m) && !guesses(m, chance);
}
