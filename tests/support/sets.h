// SPDX-License-Identifier: MIT
// Checkpoints in the folder "out", whose samples depend on worker and step.
#ifndef LACONIC_TESTS_SETS_H
#define LACONIC_TESTS_SETS_H

#include <sys/stat.h>

#include "folder.h"
#include "lac_test.h"
#include "tensors.h"
#include "train/checkpoint.h"

enum { WORLD = 3 };

static inline lac_status write_worker(uint64_t step, uint32_t rank)
{
    sample in;
    const train_place place = {"out", step, rank, WORLD};
    sample_fill(&in, 10 * step + rank);
    return train_checkpoint_write(&place, &in.record);
}

static inline lac_status write_set(uint64_t step)
{
    lac_status status = LAC_OK;
    for (uint32_t rank = 0; status == LAC_OK && rank < WORLD; rank++) {
        status = write_worker(step, rank);
    }
    uint64_t previous = step;
    if (status == LAC_OK) {
        status = train_checkpoint_commit("out", step, &previous);
    }
    if (status == LAC_OK) {
        train_checkpoint_prune("out", step, previous);
    }
    return status;
}

// Asserts that the latest set has an intact file for every worker. Returns its
// step.
static inline uint64_t assert_latest_is_complete(void)
{
    uint64_t step = UINT64_MAX;
    assert_ok(train_checkpoint_latest("out", &step));
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        sample in, out;
        const train_place place = {"out", step, rank, WORLD};
        sample_fill(&in, 10 * step + rank);
        sample_clear(&out);
        assert_ok(train_checkpoint_read(&place, &out.record));
        assert_same_sample(&in, &out);
    }
    return step;
}

static inline int make_out(void **state)
{
    (void)state;
    return mkdir("out", 0777);
}

static inline int empty_out(void **state)
{
    (void)state;
    (void)empty_folder();
    return 0;
}

#endif
