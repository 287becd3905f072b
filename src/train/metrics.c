// SPDX-License-Identifier: MIT
// Metrics, one line of JSON for each test.
#include "train/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "train/lines.h"

enum { SEED_SIZE = 24 };

static const char metrics_file[] = "metrics.jsonl";

static void add_text(cJSON *o, const char *key, const char *text)
{
    cJSON_AddItemToObject(
        o, key, text == NULL ? cJSON_CreateNull() : cJSON_CreateString(text));
}

static void add_identity(cJSON *o, const train_identity *i)
{
    char text[SEED_SIZE];
    if (i->model == NULL) {
        return;
    }
    add_text(o, "model", i->model);
    add_text(o, "data", i->data);
    add_text(o, "algorithm", i->algorithm);
    add_text(o, "compressor", i->compressor);
    add_text(o, "topology", i->topology);
    cJSON_AddNumberToObject(o, "workers", i->workers);
    if (i->seed <= UINT64_C(1) << 53) {
        cJSON_AddNumberToObject(o, "seed", (double)i->seed);
    } else { // not exact as a number
        (void)snprintf(text, sizeof(text), "%" PRIu64, i->seed);
        add_text(o, "seed", text);
    }
}

const train_quality *train_metrics_quality(const train_metrics *m)
{
    return m->final.examples > 0 ? &m->final : &m->test;
}

// A number of the object. cJSON writes one that is not finite as null.
typedef struct metric {
    const char *key;
    double value;
    bool present;
} metric;

static void add_metrics(cJSON *o, const metric *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (numbers[i].present) {
            cJSON_AddNumberToObject(o, numbers[i].key, numbers[i].value);
        }
    }
}

static void add_test(cJSON *o, const train_quality *q, bool text)
{
    const metric numbers[] = {
        {"test_loss", q->loss, true},
        {"test_accuracy", q->accuracy, true},
        {"worst_accuracy", q->worst_accuracy, true},
        {"test_examples", (double)q->examples, true},
        {"averaged_loss", q->averaged_loss, true},
        {"averaged_accuracy", q->averaged_accuracy, true},
        {"test_perplexity", exp(q->loss), text},
        {"averaged_perplexity", exp(q->averaged_loss), text},
    };
    add_metrics(o, numbers, sizeof(numbers) / sizeof(numbers[0]));
}

static void add_final(cJSON *o, const train_quality *q, bool text)
{
    const bool known = q->examples > 0;
    const metric numbers[] = {
        {"final_loss", q->loss, known},
        {"final_accuracy", q->accuracy, known},
        {"final_worst_accuracy", q->worst_accuracy, known},
        {"final_examples", (double)q->examples, known},
        {"final_averaged_loss", q->averaged_loss, known},
        {"final_averaged_accuracy", q->averaged_accuracy, known},
        {"final_perplexity", exp(q->loss), known && text},
        {"final_averaged_perplexity", exp(q->averaged_loss), known && text},
    };
    add_metrics(o, numbers, sizeof(numbers) / sizeof(numbers[0]));
}

cJSON *train_metrics_json(const train_metrics *m)
{
    cJSON *const o = cJSON_CreateObject();
    const metric before[] = {
        {"epoch", m->epoch, true},
        {"step", (double)m->step, true},
        {"train_loss", m->train_loss, true},
    };
    const metric after[] = {
        {"train_objective", m->train_objective, m->has_objective},
        {"payload_bytes", (double)m->usage.traffic.payload_bytes, true},
        {"wire_bytes", (double)m->usage.traffic.wire_bytes, true},
        {"messages", (double)m->usage.traffic.messages, true},
        {"consensus", m->consensus, true},
        {"compute_seconds", m->usage.compute_seconds, true},
        {"compress_seconds", m->usage.compress_seconds, true},
        {"wait_seconds", m->usage.wait_seconds, true},
        {"test_seconds", m->usage.test_seconds, true},
    };
    add_identity(o, &m->identity);
    add_metrics(o, before, sizeof(before) / sizeof(before[0]));
    add_test(o, &m->test, m->text);
    add_final(o, &m->final, m->text);
    add_metrics(o, after, sizeof(after) / sizeof(after[0]));
    return o;
}

lac_status train_metrics_append(const char *folder, const train_metrics *m)
{
    cJSON *const line = train_metrics_json(m);
    cJSON_AddNumberToObject(line, "lr", m->rate);
    return train_lines_append(folder, metrics_file, line);
}

lac_status train_metrics_cut(const char *folder, uint64_t step)
{
    return train_lines_cut(folder, metrics_file, step);
}
