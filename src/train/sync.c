// SPDX-License-Identifier: MIT
// Gather and broadcast, one exchange each: all workers to worker 0, worker 0 to
// all workers. Reports and decisions are sent as they lie in memory, since all
// workers run the same program.
#include "train/sync.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// The library's own messages have tag 0.
enum { TAG_REPORT = 1, TAG_VALUES = 2, TAG_DECISION = 3, TAG_BROADCAST = 4 };

enum { PIECE = 1 << 16 };

// A message must not change until the next exchange, so all of them are here.
struct train_sync {
    train_sync_options options;
    uint32_t rank, world;
    uint8_t *report;
    uint8_t *decision;
    double distance; // of the mean; broadcast
    // Worker 0 only: `world` reports and rows, twice as many messages.
    uint8_t *reports;
    const float **rows;
    lac_send *sends;
    lac_receive *receives;
};

static bool sync_allocate(train_sync *s)
{
    s->report = calloc(1, s->options.report_size + 1);
    s->decision = calloc(1, s->options.decision_size + 1);
    if (s->report == NULL || s->decision == NULL) {
        return false;
    }
    if (s->rank != 0) {
        return true;
    }
    s->reports = calloc(s->world, s->options.report_size + 1);
    s->rows = calloc(s->world, sizeof(*s->rows));
    s->sends = calloc(s->world, 2 * sizeof(*s->sends));
    s->receives = calloc(s->world, 2 * sizeof(*s->receives));
    return s->reports != NULL && s->rows != NULL && s->sends != NULL &&
           s->receives != NULL;
}

lac_status train_sync_open(train_sync **out, const train_sync_options *options)
{
    *out = NULL;
    train_sync *const s = calloc(1, sizeof(*s));
    const uint32_t world = lac_transport_world(options->transport);
    if (s != NULL) {
        s->options = *options;
        s->rank = lac_transport_rank(options->transport);
        s->world = world;
    }
    if (s == NULL || !sync_allocate(s)) {
        train_sync_close(s);
        return lac_fail(
            LAC_ERR_NOMEM, "no memory to synchronise %u workers", world);
    }
    *out = s;
    return LAC_OK;
}

void train_sync_close(train_sync *s)
{
    if (s != NULL) {
        free(s->report);
        free(s->decision);
        free(s->reports);
        free(s->rows);
        free(s->sends);
        free(s->receives);
        free(s);
    }
}

static double deadline(const train_sync *s)
{
    return lac_transport_now(s->options.transport) + s->options.timeout;
}

// Worker 0 starts to wait later than the others. Its timeout must still expire
// first, because it knows which worker is missing.
static double late_deadline(const train_sync *s)
{
    return deadline(s) + s->options.timeout / 8 + 0.5;
}

static lac_status check_length(
    const lac_receive *receive, const char *what, size_t expected)
{
    if (receive->len != expected) {
        return lac_fail(
            LAC_ERR_CORRUPT, "%s of worker %u has %zu bytes, expected %zu",
            what, receive->peer, receive->len, expected);
    }
    return LAC_OK;
}

static lac_status send_report(train_sync *s, const float *values, size_t n)
{
    const lac_send sends[] = {
        {.peer = 0,
         .tag = TAG_REPORT,
         .data = s->report,
         .len = s->options.report_size},
        {.peer = 0,
         .tag = TAG_VALUES,
         .data = values,
         .len = n * sizeof(float)},
    };
    return lac_transport_exchange(
        s->options.transport, sends, values == NULL ? 1 : 2, NULL, 0,
        deadline(s));
}

static lac_status receive_reports(train_sync *s, bool with_values, size_t n)
{
    const size_t size = s->options.report_size;
    size_t count = 0;
    for (uint32_t peer = 1; peer < s->world; peer++) {
        s->receives[count++] = (lac_receive){
            .peer = peer,
            .tag = TAG_REPORT,
            .buffer = s->reports + peer * size,
            .cap = size,
        };
        if (with_values) {
            s->receives[count++] =
                (lac_receive){.peer = peer, .tag = TAG_VALUES};
        }
    }
    LAC_TRY(lac_transport_exchange(
        s->options.transport, NULL, 0, s->receives, count, deadline(s)));
    for (size_t i = 0; i < count; i++) {
        const lac_receive *const receive = &s->receives[i];
        if (receive->tag == TAG_REPORT) {
            LAC_TRY(check_length(receive, "the report", size));
        } else {
            LAC_TRY(check_length(receive, "x", n * sizeof(float)));
            s->rows[receive->peer] = receive->data;
        }
    }
    return LAC_OK;
}

lac_status train_sync_gather(
    train_sync *s, const void *report, const float *values, size_t n,
    const void **reports_out, const float *const **rows_out)
{
    *reports_out = NULL;
    *rows_out = NULL;
    memmove(s->report, report, s->options.report_size);
    if (s->rank != 0) {
        return send_report(s, values, n);
    }
    assert(s->rows != NULL && s->reports != NULL);
    memset(s->rows, 0, s->world * sizeof(*s->rows));
    memcpy(s->reports, report, s->options.report_size);
    s->rows[0] = values;
    if (s->world > 1) {
        LAC_TRY(receive_reports(s, values != NULL, n));
    }
    *reports_out = s->reports;
    *rows_out = s->rows;
    return LAC_OK;
}

static lac_status send_decision(
    train_sync *s, const void *decision, size_t size, const float *values,
    size_t n)
{
    size_t count = 0;
    for (uint32_t peer = 1; peer < s->world; peer++) {
        s->sends[count++] = (lac_send){
            .peer = peer, .tag = TAG_DECISION, .data = decision, .len = size};
        if (values != NULL) {
            s->sends[count++] = (lac_send){
                .peer = peer,
                .tag = TAG_BROADCAST,
                .data = values,
                .len = n * sizeof(float)};
        }
    }
    return s->world == 1 ? LAC_OK
                         : lac_transport_exchange(
                               s->options.transport, s->sends, count, NULL, 0,
                               deadline(s));
}

static lac_status receive_decision(
    train_sync *s, void *decision, size_t size, float *values, size_t n)
{
    lac_receive receives[] = {
        {.peer = 0, .tag = TAG_DECISION, .buffer = decision, .cap = size},
        {.peer = 0,
         .tag = TAG_BROADCAST,
         .buffer = values,
         .cap = n * sizeof(float)},
    };
    LAC_TRY(lac_transport_exchange(
        s->options.transport, NULL, 0, receives, values == NULL ? 1 : 2,
        late_deadline(s)));
    LAC_TRY(check_length(&receives[0], "the decision", size));
    return values == NULL
               ? LAC_OK
               : check_length(&receives[1], "the mean", n * sizeof(float));
}

static lac_status broadcast(
    train_sync *s, void *decision, size_t size, float *values, size_t n)
{
    return s->rank == 0 ? send_decision(s, decision, size, values, n)
                        : receive_decision(s, decision, size, values, n);
}

lac_status train_sync_broadcast(
    train_sync *s, void *decision_inout, float *values, size_t n)
{
    const size_t size = s->options.decision_size;
    memcpy(s->decision, decision_inout, size);
    LAC_TRY(broadcast(s, s->decision, size, values, n));
    memcpy(decision_inout, s->decision, size);
    return LAC_OK;
}

lac_status train_sync_share(train_sync *s, void *bytes, size_t len)
{
    return broadcast(s, bytes, len, NULL, 0);
}

static bool is_included(const train_sync *s, uint32_t rank)
{
    return s->options.excluded != rank + 1;
}

// Writes the mean of the rows and returns the mean over workers of their
// squared distance to it.
static double mean_of_rows(
    const train_sync *s, const float *const *rows, size_t n, float *mean_out)
{
    const double count = s->world - (s->options.excluded == 0 ? 0 : 1);
    double distance = 0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < s->world; k++) {
            sum += is_included(s, k) ? (double)rows[k][i] : 0;
        }
        const double mean = sum / count;
        for (uint32_t k = 0; k < s->world; k++) {
            const double d = (double)rows[k][i] - mean;
            distance += is_included(s, k) ? d * d : 0;
        }
        mean_out[i] = (float)mean;
    }
    return distance / count;
}

lac_status train_sync_mean(
    train_sync *s, const float *x, size_t n, float *mean_out,
    double *distance_out)
{
    double distance = 0;
    for (size_t at = 0; at < n; at += PIECE) {
        const size_t count = n - at < PIECE ? n - at : PIECE;
        const void *reports = NULL;
        const float *const *rows = NULL;
        LAC_TRY(
            train_sync_gather(s, s->report, x + at, count, &reports, &rows));
        if (reports != NULL) {
            distance += mean_of_rows(s, rows, count, mean_out + at);
            s->distance = distance;
        }
        LAC_TRY(broadcast(
            s, &s->distance, sizeof(s->distance), mean_out + at, count));
    }
    *distance_out = n == 0 ? 0 : s->distance;
    return LAC_OK;
}

lac_status train_sync_difference(
    train_sync *s, uint32_t peer, const float *x, size_t n, float *out)
{
    for (size_t at = 0; at < n; at += PIECE) {
        const size_t count = n - at < PIECE ? n - at : PIECE;
        const void *reports = NULL;
        const float *const *rows = NULL;
        LAC_TRY(
            train_sync_gather(s, s->report, x + at, count, &reports, &rows));
        for (size_t i = 0; reports != NULL && i < count; i++) {
            out[at + i] = rows[0][i] - rows[peer][i];
        }
        // The others wait: worker 0 reads their values until here.
        LAC_TRY(broadcast(s, &s->distance, sizeof(s->distance), NULL, 0));
    }
    return LAC_OK;
}
