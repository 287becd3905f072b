// SPDX-License-Identifier: MIT
// Meetings, as two exchanges: everybody to worker 0, worker 0 to everybody.
// Reports and verdicts are structs as they lie in memory: the workers run the
// same program.
#include "train/meeting.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// The library's own messages have tag 0.
enum { TAG_REPORT = 1, TAG_VALUES = 2, TAG_VERDICT = 3, TAG_DECIDED = 4 };

enum { PIECE = 1 << 16 };

// What is sent stays as it is until the next exchange, so all of it is here.
struct train_meeting {
    train_meeting_options options;
    uint32_t rank, world;
    uint8_t *report;
    uint8_t *verdict;
    double distance; // of the mean; sent around
    // Worker 0 only, `world` of each but for sends and receives, which are
    // twice.
    uint8_t *reports;
    const float **rows;
    lac_send *sends;
    lac_receive *receives;
};

static bool allocate(train_meeting *m)
{
    m->report = calloc(1, m->options.report_size + 1);
    m->verdict = calloc(1, m->options.verdict_size + 1);
    if (m->report == NULL || m->verdict == NULL) {
        return false;
    }
    if (m->rank != 0) {
        return true;
    }
    m->reports = calloc(m->world, m->options.report_size + 1);
    m->rows = calloc(m->world, sizeof(*m->rows));
    m->sends = calloc(m->world, 2 * sizeof(*m->sends));
    m->receives = calloc(m->world, 2 * sizeof(*m->receives));
    return m->reports != NULL && m->rows != NULL && m->sends != NULL &&
           m->receives != NULL;
}

lac_status train_meeting_open(
    train_meeting **out, const train_meeting_options *options)
{
    *out = NULL;
    train_meeting *const m = calloc(1, sizeof(*m));
    const uint32_t world = lac_transport_world(options->transport);
    if (m != NULL) {
        m->options = *options;
        m->rank = lac_transport_rank(options->transport);
        m->world = world;
    }
    if (m == NULL || !allocate(m)) {
        train_meeting_close(m);
        return lac_fail(
            LAC_ERR_NOMEM, "no memory for meetings of %u workers", world);
    }
    *out = m;
    return LAC_OK;
}

void train_meeting_close(train_meeting *m)
{
    if (m != NULL) {
        free(m->report);
        free(m->verdict);
        free(m->reports);
        free(m->rows);
        free(m->sends);
        free(m->receives);
        free(m);
    }
}

static double deadline(const train_meeting *m)
{
    return lac_transport_now(m->options.transport) + m->options.timeout;
}

// Worker 0 came later and has to run out of patience first: it knows who is
// missing.
static double late_deadline(const train_meeting *m)
{
    return deadline(m) + m->options.timeout / 8 + 0.5;
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

static lac_status send_up(train_meeting *m, const float *values, size_t n)
{
    const lac_send sends[] = {
        {.peer = 0,
         .tag = TAG_REPORT,
         .data = m->report,
         .len = m->options.report_size},
        {.peer = 0,
         .tag = TAG_VALUES,
         .data = values,
         .len = n * sizeof(float)},
    };
    return lac_transport_exchange(
        m->options.transport, sends, values == NULL ? 1 : 2, NULL, 0,
        deadline(m));
}

static lac_status take_in(train_meeting *m, bool with_values, size_t n)
{
    const size_t size = m->options.report_size;
    size_t count = 0;
    for (uint32_t peer = 1; peer < m->world; peer++) {
        m->receives[count++] = (lac_receive){
            .peer = peer,
            .tag = TAG_REPORT,
            .buffer = m->reports + peer * size,
            .cap = size,
        };
        if (with_values) {
            m->receives[count++] =
                (lac_receive){.peer = peer, .tag = TAG_VALUES};
        }
    }
    lac_status status = lac_transport_exchange(
        m->options.transport, NULL, 0, m->receives, count, deadline(m));
    for (size_t i = 0; i < count && status == LAC_OK; i++) {
        const lac_receive *const receive = &m->receives[i];
        if (receive->tag == TAG_REPORT) {
            status = check_length(receive, "the report", size);
        } else {
            status = check_length(receive, "x", n * sizeof(float));
            m->rows[receive->peer] = receive->data;
        }
    }
    return status;
}

lac_status train_meeting_gather(
    train_meeting *m, const void *report, const float *values, size_t n,
    const void **reports_out, const float *const **rows_out)
{
    *reports_out = NULL;
    *rows_out = NULL;
    memmove(m->report, report, m->options.report_size);
    if (m->rank != 0) {
        return send_up(m, values, n);
    }
    assert(m->rows != NULL && m->reports != NULL);
    memset(m->rows, 0, m->world * sizeof(*m->rows));
    memcpy(m->reports, report, m->options.report_size);
    m->rows[0] = values;
    const lac_status status =
        m->world == 1 ? LAC_OK : take_in(m, values != NULL, n);
    if (status == LAC_OK) {
        *reports_out = m->reports;
        *rows_out = m->rows;
    }
    return status;
}

static lac_status tell_all(
    train_meeting *m, const void *verdict, size_t size, const float *values,
    size_t n)
{
    size_t count = 0;
    for (uint32_t peer = 1; peer < m->world; peer++) {
        m->sends[count++] = (lac_send){
            .peer = peer, .tag = TAG_VERDICT, .data = verdict, .len = size};
        if (values != NULL) {
            m->sends[count++] = (lac_send){
                .peer = peer,
                .tag = TAG_DECIDED,
                .data = values,
                .len = n * sizeof(float)};
        }
    }
    return m->world == 1 ? LAC_OK
                         : lac_transport_exchange(
                               m->options.transport, m->sends, count, NULL, 0,
                               deadline(m));
}

static lac_status hear(
    train_meeting *m, void *verdict, size_t size, float *values, size_t n)
{
    lac_receive receives[] = {
        {.peer = 0, .tag = TAG_VERDICT, .buffer = verdict, .cap = size},
        {.peer = 0,
         .tag = TAG_DECIDED,
         .buffer = values,
         .cap = n * sizeof(float)},
    };
    lac_status status = lac_transport_exchange(
        m->options.transport, NULL, 0, receives, values == NULL ? 1 : 2,
        late_deadline(m));
    if (status == LAC_OK) {
        status = check_length(&receives[0], "the verdict", size);
    }
    if (status == LAC_OK && values != NULL) {
        status = check_length(&receives[1], "the mean", n * sizeof(float));
    }
    return status;
}

static lac_status spread(
    train_meeting *m, void *verdict, size_t size, float *values, size_t n)
{
    return m->rank == 0 ? tell_all(m, verdict, size, values, n)
                        : hear(m, verdict, size, values, n);
}

lac_status train_meeting_decide(
    train_meeting *m, void *verdict_inout, float *values, size_t n)
{
    const size_t size = m->options.verdict_size;
    memcpy(m->verdict, verdict_inout, size);
    const lac_status status = spread(m, m->verdict, size, values, n);
    if (status == LAC_OK) {
        memcpy(verdict_inout, m->verdict, size);
    }
    return status;
}

// The mean of a piece, and what it adds to the sum of squared distances.
static double average(
    const train_meeting *m, const float *const *rows, size_t n, float *mean_out)
{
    const double world = m->world;
    double distance = 0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint32_t k = 0; k < m->world; k++) {
            sum += (double)rows[k][i];
        }
        const double mean = sum / world;
        for (uint32_t k = 0; k < m->world; k++) {
            const double d = (double)rows[k][i] - mean;
            distance += d * d;
        }
        mean_out[i] = (float)mean;
    }
    return distance / world;
}

lac_status train_meeting_mean(
    train_meeting *m, const float *x, size_t n, float *mean_out,
    double *distance_out)
{
    double distance = 0;
    for (size_t at = 0; at < n; at += PIECE) {
        const size_t count = n - at < PIECE ? n - at : PIECE;
        const void *reports = NULL;
        const float *const *rows = NULL;
        lac_status status =
            train_meeting_gather(m, m->report, x + at, count, &reports, &rows);
        if (status == LAC_OK && reports != NULL) {
            distance += average(m, rows, count, mean_out + at);
            m->distance = distance;
        }
        if (status == LAC_OK) {
            status = spread(
                m, &m->distance, sizeof(m->distance), mean_out + at, count);
        }
        if (status != LAC_OK) {
            return status;
        }
    }
    *distance_out = n == 0 ? 0 : m->distance;
    return LAC_OK;
}
