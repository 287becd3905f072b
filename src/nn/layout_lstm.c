// SPDX-License-Identifier: MIT
// A language model of words: an embedding, LSTM layers of the same width, and a
// decoder with the weights of the embedding (tied weights). Of the decoder only
// the bias is a parameter of its own.
#include "nn/layouts.h"
#include "nn/lstm.h"

enum { LAYERS_MAX = 1000, HIDDEN_MAX = 1 << 20 };

static const lac_param lstm_params[] = {
    {.name = "vocabulary",
     .type = LAC_PARAM_U32,
     .offset = offsetof(nn_lstm_settings, vocabulary),
     .default_value = "28869",
     .min = 1,
     .max = UINT32_MAX,
     .help = "words of the layout, WikiText-2 by default; training uses "
             "those of the data"},
    {.name = "hidden",
     .type = LAC_PARAM_U32,
     .offset = offsetof(nn_lstm_settings, hidden),
     .default_value = "650",
     .min = 1,
     .max = HIDDEN_MAX,
     .help = "width of the embedding and of the layers"},
    {.name = "layers",
     .type = LAC_PARAM_U32,
     .offset = offsetof(nn_lstm_settings, layers),
     .default_value = "3",
     .min = 1,
     .max = LAYERS_MAX,
     .help = "LSTM layers"},
    {.name = "dropout",
     .type = LAC_PARAM_F64,
     .offset = offsetof(nn_lstm_settings, dropout),
     .default_value = "0.4",
     .min = 0,
     .max = 0.99,
     .help = "share of each layer's input that training sets to 0"},
    {0},
};

static void lstm_list(
    const nn_model *model, const void *settings, nn_tensors *tensors)
{
    (void)model;
    const nn_lstm_settings *const l = settings;
    const size_t gates = (size_t)NN_LSTM_GATES * l->hidden;
    nn_list_add(tensors, l->vocabulary, l->hidden, "encoder.weight");
    for (uint32_t k = 0; k < l->layers; k++) {
        nn_list_add(tensors, gates, l->hidden, "rnn.weight_ih_l%u", k);
        nn_list_add(tensors, gates, l->hidden, "rnn.weight_hh_l%u", k);
        nn_list_add(tensors, gates, 1, "rnn.bias_ih_l%u", k);
        nn_list_add(tensors, gates, 1, "rnn.bias_hh_l%u", k);
    }
    nn_list_add(tensors, l->vocabulary, 1, "decoder.bias");
}

const nn_model nn_lstm_model = {
    .plugin.size = sizeof(nn_model),
    .plugin.name = "lstm",
    .plugin.summary = "LSTM language model with tied weights",
    .plugin.params = lstm_params,
    .plugin.param_size = sizeof(lac_param),
    .plugin.state_size = sizeof(nn_lstm_settings),
    .list = lstm_list,
    .open = nn_lstm_open,
};
