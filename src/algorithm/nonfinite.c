// SPDX-License-Identifier: MIT
#include "algorithm/nonfinite.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "base/fail.h"

// Tells the framework, by way of the algorithm.
static lac_status expect_none(laci_worker *w, bool some)
{
    w->not_finite = some;
    return some ? lac_fail(LAC_ERR_INVALID, "a value is not finite") : LAC_OK;
}

lac_status laci_first_sum(
    laci_worker *w, const laci_round *round, float *x, size_t n)
{
    x[n] = (float)round->unfit;
    LAC_TRY(laci_group_sum_noting(
        w->group, round->number, 0, x, n, LACI_SUM_NOTES));
    return expect_none(w, x[n] != 0);
}

laci_writer *laci_first_message(
    laci_worker *w, const laci_round *round, uint32_t slot)
{
    laci_writer *const message = laci_group_message(w->group, slot);
    uint8_t count[4];
    laci_put_u32(count, round->unfit);
    laci_writer_note(message, count, sizeof(count));
    return message;
}

static lac_status take_count(laci_reader *reader, uint32_t *out)
{
    const uint8_t *count;
    size_t len;
    LAC_TRY(laci_reader_next(reader, &count, &len));
    if (len != sizeof(uint32_t)) {
        return lac_fail(
            LAC_ERR_CORRUPT,
            "message from worker %" PRIu32
            ": the count of tensors that are not finite has %zu bytes, "
            "expected %zu",
            reader->peer, len, sizeof(uint32_t));
    }
    *out = laci_get_u32(count);
    return LAC_OK;
}

lac_status laci_first_counts(
    laci_worker *w, const laci_round *round, laci_reader *readers,
    uint32_t count)
{
    bool some = round->unfit > 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t theirs = 0;
        LAC_TRY(laci_group_abort_on_failure(
            w->group, take_count(&readers[i], &theirs)));
        some = some || theirs > 0;
    }
    return expect_none(w, some);
}

lac_status laci_first_gather(laci_worker *w, const laci_round *round)
{
    LAC_TRY(laci_group_gather(w->group, round->number, 0, w->readers));
    return laci_first_counts(w, round, w->readers, w->world);
}
