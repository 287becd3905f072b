// SPDX-License-Identifier: MIT
// Meetings, as two exchanges: everybody to worker 0, worker 0 to everybody.
// Reports and verdicts are structs as they lie in memory: the workers run the
// same program.
#include "cli/meeting.h"

#include <stdlib.h>
#include <string.h>

// The library's own messages have tag 0.
enum { TAG_REPORT = 1, TAG_VALUES = 2, TAG_VERDICT = 3 };

// What is sent stays as it is until the next exchange, so all of it is here.
struct cli_meeting {
    lac_transport *transport;
    size_t n;
    double timeout;
    uint32_t rank, world;
    cli_report report;
    cli_verdict verdict;
    // Worker 0 only, `world` of each but for the receives, which are twice.
    cli_report *reports;
    const float **rows;
    lac_send *sends;
    lac_receive *receives;
};

lac_status cli_meeting_open(
    cli_meeting **out, lac_transport *transport, size_t n, double timeout)
{
    *out = NULL;
    cli_meeting *const m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for meetings");
    }
    m->transport = transport;
    m->n = n;
    m->timeout = timeout;
    m->rank = lac_transport_rank(transport);
    m->world = lac_transport_world(transport);
    if (m->rank == 0) {
        m->reports = calloc(m->world, sizeof(*m->reports));
        m->rows = calloc(m->world, sizeof(*m->rows));
        m->sends = calloc(m->world, sizeof(*m->sends));
        m->receives = calloc(m->world, 2 * sizeof(*m->receives));
        if (m->reports == NULL || m->rows == NULL || m->sends == NULL ||
            m->receives == NULL) {
            const uint32_t world = m->world;
            cli_meeting_close(m);
            return lac_fail(
                LAC_ERR_NOMEM, "no memory for meetings of %u workers", world);
        }
    }
    *out = m;
    return LAC_OK;
}

void cli_meeting_close(cli_meeting *m)
{
    if (m != NULL) {
        free(m->reports);
        free(m->rows);
        free(m->sends);
        free(m->receives);
        free(m);
    }
}

static double deadline(const cli_meeting *m)
{
    return lac_transport_now(m->transport) + m->timeout;
}

// Worker 0 came later and has to run out of patience first: it knows who is
// missing.
static double late_deadline(const cli_meeting *m)
{
    return deadline(m) + m->timeout / 8 + 0.5;
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

static lac_status send_up(cli_meeting *m, const float *values)
{
    const lac_send sends[] = {
        {0, TAG_REPORT, &m->report, sizeof(m->report)},
        {0, TAG_VALUES, values, m->n * sizeof(float)},
    };
    return lac_transport_exchange(
        m->transport, sends, values == NULL ? 1 : 2, NULL, 0, deadline(m));
}

static lac_status take_in(cli_meeting *m, bool with_values)
{
    size_t count = 0;
    for (uint32_t peer = 1; peer < m->world; peer++) {
        m->receives[count++] = (lac_receive){
            .peer = peer,
            .tag = TAG_REPORT,
            .buffer = &m->reports[peer],
            .cap = sizeof(m->reports[peer]),
        };
        if (with_values) {
            m->receives[count++] =
                (lac_receive){.peer = peer, .tag = TAG_VALUES};
        }
    }
    lac_status status = lac_transport_exchange(
        m->transport, NULL, 0, m->receives, count, deadline(m));
    for (size_t i = 0; i < count && status == LAC_OK; i++) {
        const lac_receive *const receive = &m->receives[i];
        if (receive->tag == TAG_REPORT) {
            status = check_length(receive, "the report", sizeof(cli_report));
        } else {
            status = check_length(receive, "x", m->n * sizeof(float));
            m->rows[receive->peer] = receive->data;
        }
    }
    return status;
}

lac_status cli_meeting_gather(
    cli_meeting *m, const cli_report *report, const float *values,
    const cli_report **reports_out, const float *const **rows_out)
{
    *reports_out = NULL;
    *rows_out = NULL;
    m->report = *report;
    if (m->rank != 0) {
        return send_up(m, values);
    }
    memset(m->rows, 0, m->world * sizeof(*m->rows));
    m->reports[0] = *report;
    m->rows[0] = values;
    const lac_status status =
        m->world == 1 ? LAC_OK : take_in(m, values != NULL);
    if (status == LAC_OK) {
        *reports_out = m->reports;
        *rows_out = m->rows;
    }
    return status;
}

lac_status cli_meeting_decide(cli_meeting *m, cli_verdict *verdict_inout)
{
    if (m->rank == 0) {
        m->verdict = *verdict_inout;
        for (uint32_t peer = 1; peer < m->world; peer++) {
            m->sends[peer - 1] =
                (lac_send){peer, TAG_VERDICT, &m->verdict, sizeof(m->verdict)};
        }
        return m->world == 1 ? LAC_OK
                             : lac_transport_exchange(
                                   m->transport, m->sends, m->world - 1, NULL,
                                   0, deadline(m));
    }
    lac_receive receive = {
        .peer = 0,
        .tag = TAG_VERDICT,
        .buffer = &m->verdict,
        .cap = sizeof(m->verdict),
    };
    lac_status status = lac_transport_exchange(
        m->transport, NULL, 0, &receive, 1, late_deadline(m));
    if (status == LAC_OK) {
        status = check_length(&receive, "the verdict", sizeof(m->verdict));
    }
    if (status == LAC_OK) {
        *verdict_inout = m->verdict;
    }
    return status;
}
