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

cJSON *train_metrics_json(const train_metrics *m)
{
    cJSON *const o = cJSON_CreateObject();
    add_identity(o, &m->identity);
    const struct {
        const char *key;
        double value;
        bool present;
    } numbers[] = {
        {"epoch", m->epoch, true},
        {"step", (double)m->step, true},
        {"train_loss", m->train_loss, true},
        {"test_loss", m->test_loss, true},
        {"test_accuracy", m->test_accuracy, true},
        {"worst_accuracy", m->worst_accuracy, true},
        {"test_examples", (double)m->test_examples, true},
        {"averaged_loss", m->averaged_loss, true},
        {"averaged_accuracy", m->averaged_accuracy, true},
        {"train_objective", m->train_objective, m->has_objective},
        {"test_perplexity", exp(m->test_loss), m->text},
        {"averaged_perplexity", exp(m->averaged_loss), m->text},
        {"payload_bytes", (double)m->usage.traffic.payload_bytes, true},
        {"wire_bytes", (double)m->usage.traffic.wire_bytes, true},
        {"messages", (double)m->usage.traffic.messages, true},
        {"consensus", m->consensus, true},
        {"compute_seconds", m->usage.compute_seconds, true},
        {"compress_seconds", m->usage.compress_seconds, true},
        {"wait_seconds", m->usage.wait_seconds, true},
        {"test_seconds", m->usage.test_seconds, true},
    };
    // cJSON writes a non-finite number as null.
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i].present) {
            cJSON_AddNumberToObject(o, numbers[i].key, numbers[i].value);
        }
    }
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
