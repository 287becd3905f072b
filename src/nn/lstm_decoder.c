// SPDX-License-Identifier: MIT
// From the last layer to the loss: logits over the vocabulary, softmax, cross
// entropy with the next words, and backwards. A vocabulary is large and a call
// has thousands of words, so only a block of lines has its logits in memory.
#include <math.h>
#include <string.h>

#include "nn/loss.h"
#include "nn/lstm.h"
#include "nn/lstm_kernels.h"
#include "nn/multiply.h"

typedef struct block {
    const nn_lstm_call *call;
    size_t first, count; // lines
    const float *x;
} block;

static const lac_tensor *bias_of(const nn_lstm *net)
{
    const lac_layout *const layout = net->network.layout;
    return lac_layout_tensor(layout, lac_layout_count(layout) - 1);
}

// Whether `label` is the prediction: the first of the highest logits.
static bool is_predicted(const float *logits, size_t label, float highest)
{
    if (logits[label] != highest) {
        return false;
    }
    size_t j = 0;
    while (logits[j] != highest) {
        j++;
    }
    return j == label;
}

// Scores a line. For gradients it replaces the logits by theirs.
static void score_line(
    const nn_lstm_call *call, size_t line, float *logits, nn_score *score)
{
    const nn_lstm *const net = call->net;
    const nn_kernels *const kernels = nn_lstm_kernels();
    const size_t n = net->vocabulary;
    const size_t label = call->batch->labels[line];
    const size_t bias = bias_of(net)->offset;
    const float highest =
        kernels->add_bias(logits, call->state->parameters + bias, n);
    const float logit = logits[label];
    if (call->batch->guesses != NULL) {
        call->batch->guesses[line] = nn_loss_guess(logits, n);
    }
    score->correct += is_predicted(logits, label, highest) ? 1 : 0;
    const double sum = kernels->exponentials(logits, highest, n);
    score->loss += log(sum) + ((double)highest - (double)logit);
    if (call->gradient_out != NULL) {
        const double weight = 1 / (double)call->lines;
        float *const gradient = call->gradient_out + bias;
        kernels->scale(logits, (float)(weight / sum), gradient, n);
        logits[label] -= (float)weight;
        gradient[label] -= (float)weight;
    }
}

static lac_status decode_logits(const block *b)
{
    const nn_lstm *const net = b->call->net;
    return nn_multiply(&(nn_product){
        .m = b->count,
        .n = net->vocabulary,
        .k = net->hidden,
        .a = b->x,
        .b = b->call->state->parameters,
        .b_transposed = true,
        .c = net->logits});
}

static lac_status decode_backward(const block *b)
{
    const nn_lstm *const net = b->call->net;
    LAC_TRY(nn_multiply(&(nn_product){
        .m = net->vocabulary,
        .n = net->hidden,
        .k = b->count,
        .a = net->logits,
        .a_transposed = true,
        .b = b->x,
        .add = b->first > 0,
        .c = b->call->gradient_out}));
    return nn_multiply(&(nn_product){
        .m = b->count,
        .n = net->hidden,
        .k = net->vocabulary,
        .a = net->logits,
        .b = b->call->state->parameters,
        .c = net->gradient + b->first * net->hidden});
}

static lac_status decode_block(const block *b, nn_score *score)
{
    const nn_lstm *const net = b->call->net;
    LAC_TRY(decode_logits(b));
    for (size_t i = 0; i < b->count; i++) {
        score_line(
            b->call, b->first + i, net->logits + i * net->vocabulary, score);
    }
    return b->call->gradient_out == NULL ? LAC_OK : decode_backward(b);
}

lac_status nn_lstm_decode(const nn_lstm_call *call, nn_score *out)
{
    const nn_lstm *const net = call->net;
    const float *const x = nn_lstm_input(call, net->layers);
    nn_score score = {.count = call->lines};
    if (call->gradient_out != NULL) {
        const lac_tensor *const bias = bias_of(net);
        memset(
            call->gradient_out + bias->offset, 0,
            net->vocabulary * sizeof(float));
    }
    for (size_t i = 0; i < call->lines; i += net->block) {
        const size_t left = call->lines - i;
        const block b = {
            .call = call,
            .first = i,
            .count = left < net->block ? left : net->block,
            .x = x + i * net->hidden};
        LAC_TRY(decode_block(&b, &score));
    }
    *out = score;
    return LAC_OK;
}
