// SPDX-License-Identifier: MIT
// Comparison with guessing, and with the initial model.
//
// Accuracy. A model that ignores its input is right on at most the share p of
// the most frequent class. On n examples of the test set, the first of a
// shuffle, that share has a standard deviation of at most sqrt(p (1 - p) / n).
// A model that guesses exceeds p by three of them in one run of 700. But an
// initial model is not exactly at chance: that of LeNet has an accuracy of 19 %
// for some seeds. So an accuracy above chance is a proof only if the losses
// show that the model is another one: the training loss has fallen by two
// standard deviations of its noise, or that of the test is clearly below those
// of the first steps and of chance.
//
// Loss. Without that proof the training loss must be below that of chance, and
// must have fallen since the first steps, by three standard deviations. The
// loss of the test must be below chance too: a run that diverges near its end
// may have a low mean.
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
    DEVIATIONS_WITH_PROOF = 2, // if the accuracy is above chance
    FIRST_LABELS = 256,        // the least number of labels of the first steps
};

#define ROUNDING 1e-6

// The share of the most frequent class in a part of the set, and the entropy of
// the shares. Both are NaN without examples, or without memory to count.
typedef struct class_shares {
    double largest, entropy;
} class_shares;

static class_shares count_classes(const data_set *set, data_part part)
{
    const data_info *const info = data_set_info(set);
    const uint32_t *const labels = data_set_labels(set, part);
    const size_t count = labels == NULL ? 0 : info->count[part];
    size_t *const counts = calloc((size_t)info->classes + 1, sizeof(*counts));
    class_shares s = {0, 0};
    if (count == 0 || counts == NULL) {
        free(counts);
        return (class_shares){(double)NAN, (double)NAN};
    }
    for (size_t i = 0; i < count; i++) {
        counts[labels[i]]++;
    }
    for (size_t k = 0; k < info->classes; k++) {
        const double share = (double)counts[k] / (double)count;
        s.largest = fmax(s.largest, share);
        s.entropy -= counts[k] == 0 ? 0 : share * log(share);
    }
    free(counts);
    return s;
}

train_chance train_chance_of(const data_set *set)
{
    const data_info *const info = data_set_info(set);
    const double equal = log(info->classes);
    if (info->kind == DATA_TEXT) {
        return (train_chance){.loss = equal, .accuracy = (double)NAN};
    }
    return (train_chance){
        .loss = fmin(count_classes(set, DATA_TRAIN).entropy, equal),
        .accuracy = count_classes(set, DATA_TEST).largest,
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

// Whether the loss has fallen by more than so many standard deviations.
static bool loss_fell(const train_metrics *m, double deviations)
{
    const double noise = m->loss_luck * deviations / DEVIATIONS;
    const double least = noise + ROUNDING * m->first_loss;
    return isnan(m->first_loss) || m->first_loss - m->train_loss > least;
}

// Whether the loss of the test cannot be that of the initial model. It has
// noise of its own, so the difference must be twice as large.
static bool tests_better(const train_metrics *m, const train_chance *chance)
{
    return train_metrics_quality(m)->loss <
           fmin(m->first_loss, chance->loss) - 2 * m->loss_luck;
}

// The accuracy that guessing may reach; 1 or more if no accuracy is above it.
static double lucky_accuracy(const train_metrics *m, double p)
{
    return p +
           DEVIATIONS *
               sqrt(p * (1 - p) / (double)train_metrics_quality(m)->examples);
}

train_verdict train_judge(const train_metrics *m, const train_chance *chance)
{
    const double lucky = lucky_accuracy(m, chance->accuracy);
    const train_quality *const q = train_metrics_quality(m);
    const bool known = lucky < 1 && !isnan(q->accuracy);
    const bool above = known && q->accuracy > lucky;
    const bool low_loss = m->train_loss < chance->loss;
    // Without the first steps nothing shows that the loss has fallen.
    const bool unknown_start = isnan(m->first_loss);
    const bool proven =
        above && (unknown_start ? low_loss
                                : loss_fell(m, DEVIATIONS_WITH_PROOF) ||
                                      tests_better(m, chance));
    const bool high_loss = !low_loss || q->loss >= chance->loss;
    const bool flat_loss = !loss_fell(m, DEVIATIONS);
    return (train_verdict){
        .learned = proven || !(high_loss || flat_loss ||
                               (unknown_start && known && !above)),
        .low_accuracy = known && !above,
        .high_loss = high_loss,
        .flat_loss = flat_loss,
    };
}
