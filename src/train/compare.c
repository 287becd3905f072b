// SPDX-License-Identifier: MIT
// Compares what was given to the workers of a run. Processes on different
// machines have their own command lines and their own data: worker 0 sends its
// settings and a hash of its data, and every other worker compares them with
// its own.
//
// The settings are a text, name, zero byte, value, zero byte, and so on.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/file.h"
#include "train/data_hash.h"
#include "train/worker.h"

enum { TEXT_MAX = 1 << 24, VALUE_SIZE = 160, NAME_SIZE = 64 };

// A text that grows, or only its length if there is no memory yet.
typedef struct settings_text {
    char *text;
    size_t len;
} settings_text;

static void add_string(settings_text *t, const char *string)
{
    const size_t len = strlen(string) + 1;
    if (t->text != NULL) {
        memcpy(t->text + t->len, string, len);
    }
    t->len += len;
}

static void add_setting(settings_text *t, const char *name, const char *value)
{
    add_string(t, name);
    add_string(t, value);
}

static void add_all(settings_text *t, const train_plan *plan, const char *data)
{
    // Other versions may have other settings.
    add_setting(t, "the version of laconic", lac_version());
    for (size_t i = 0; i < plan->setting_count; i++) {
        char name[NAME_SIZE];
        (void)snprintf(name, sizeof(name), "--%s", plan->settings[i].name);
        add_setting(t, name, plan->settings[i].value);
    }
    add_setting(t, "the data set", data);
}

static lac_status describe_data(const data_set *set, char text[VALUE_SIZE])
{
    uint64_t hash = 0;
    const data_info *const info = data_set_info(set);
    LAC_TRY(train_data_hash(set, &hash));
    (void)snprintf(
        text, VALUE_SIZE, "%.60s, %zu + %zu + %zu %s, hash %016" PRIx64,
        info->name, info->count[DATA_TRAIN], info->count[DATA_VALID],
        info->count[DATA_TEST], info->kind == DATA_TEXT ? "words" : "examples",
        hash);
    return LAC_OK;
}

// Writes the settings of this worker; the caller frees them.
static lac_status list_settings(const train_worker *w, settings_text *out)
{
    char data[VALUE_SIZE];
    settings_text t = {0};
    LAC_TRY(describe_data(w->run->plan.set, data));
    add_all(&t, &w->run->plan, data);
    t.text = malloc(t.len);
    if (t.text == NULL) {
        return lac_fail(
            LAC_ERR_NOMEM, "no memory for the settings of worker %" PRIu32,
            w->rank);
    }
    t.len = 0;
    add_all(&t, &w->run->plan, data);
    *out = t;
    return LAC_OK;
}

// Returns the string at `*at` and moves on to the next. The text ends with a
// zero byte.
static const char *next_string(const char *text, size_t len, size_t *at)
{
    const char *const string = *at < len ? text + *at : "";
    *at += strlen(string) + 1;
    return string;
}

static lac_status compare_texts(
    const train_worker *w, const settings_text *own, const settings_text *first)
{
    for (size_t i = 0, k = 0; i < own->len || k < first->len;) {
        const char *const name = next_string(own->text, own->len, &i);
        const char *const value = next_string(own->text, own->len, &i);
        const char *const their_name = next_string(first->text, first->len, &k);
        const char *const expected = next_string(first->text, first->len, &k);
        if (strcmp(name, their_name) != 0) {
            return lac_fail(
                LAC_ERR_INVALID,
                "worker %" PRIu32 " has the setting \"%.60s\" where worker 0 "
                "has \"%.60s\", expected the same program on all workers",
                w->rank, name, their_name);
        }
        if (strcmp(value, expected) != 0) {
            return lac_fail(
                LAC_ERR_INVALID,
                "%s is \"%.120s\" on worker %" PRIu32
                ", but \"%.120s\" on worker 0, expected the same on all "
                "workers",
                name, value, w->rank, expected);
        }
    }
    return LAC_OK;
}

// Receives the settings of worker 0 into w->settings.
static lac_status receive_settings(train_worker *w)
{
    const uint64_t len = w->origin.settings_len;
    if (len == 0 || len > TEXT_MAX) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "the settings of worker 0 have %" PRIu64 " bytes, expected 1 to %d",
            len, TEXT_MAX);
    }
    w->settings = malloc((size_t)len);
    if (w->settings == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for settings");
    }
    LAC_TRY(train_sync_share(w->start_sync, w->settings, (size_t)len));
    return w->settings[len - 1] == '\0'
               ? LAC_OK
               : lac_fail(
                     LAC_ERR_CORRUPT,
                     "the settings of worker 0 do not end with a zero byte");
}

static lac_status send_settings(train_worker *w, const settings_text *own)
{
    w->origin.settings_len = own->len;
    LAC_TRY(train_worker_origin(w));
    return train_sync_share(w->start_sync, own->text, own->len);
}

static lac_status compare_own(train_worker *w, const settings_text *own)
{
    LAC_TRY(train_worker_origin(w));
    LAC_TRY(receive_settings(w));
    const settings_text first = {w->settings, (size_t)w->origin.settings_len};
    return compare_texts(w, own, &first);
}

static lac_status compare_processes(train_worker *w)
{
    settings_text own = {0};
    const train_claim claim = {0};
    const train_claim *claims = NULL;
    // Worker 0 may broadcast again only after an exchange.
    LAC_TRY(train_worker_claim(w, &claim, &claims));
    LAC_TRY(list_settings(w, &own));
    if (w->rank == 0) {
        w->settings = own.text; // the transport reads it until it is left
        return send_settings(w, &own);
    }
    const lac_status status = compare_own(w, &own);
    free(own.text);
    return status;
}

// Whether there are more workers than processors in some set of processors.
static bool share_processors(const train_claim *claims, uint32_t world)
{
    for (uint32_t k = 0; k < world; k++) {
        uint64_t workers = 0;
        for (uint32_t i = 0; i < world; i++) {
            workers += claims[i].processor_set == claims[k].processor_set;
            if (claims[k].processors != 0 && workers > claims[k].processors) {
                return true;
            }
        }
    }
    return false;
}

// Worker 0 draws the number of this start and finds out whether all workers are
// threads of one process, which have nothing to compare.
static void begin_origin(train_worker *w, const train_claim *claims)
{
    w->run->result.crowded = share_processors(claims, w->world);
    w->origin = (train_origin){.start = train_random_number()};
    for (uint32_t k = 1; k < w->world; k++) {
        w->origin.apart |= claims[k].process != claims[0].process;
    }
}

lac_status train_worker_compare(train_worker *w)
{
    const train_claim claim = {
        .process = w->run->process,
        .processor_set = w->run->processor_set,
        .processors = w->run->processors};
    const train_claim *claims = NULL;
    LAC_TRY(train_worker_claim(w, &claim, &claims));
    if (claims != NULL) {
        begin_origin(w, claims);
    }
    LAC_TRY(train_worker_origin(w));
    return w->origin.apart == 0 ? LAC_OK : compare_processes(w);
}
