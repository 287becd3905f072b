// SPDX-License-Identifier: MIT
// What every gradient algorithm owes its callers when values are not finite or
// a round fails.
#include "gradient.h"

enum { SICK_ROUND = 1, ILLS = 3 };

// A value that is not finite.
typedef struct ill {
    uint32_t worker;
    size_t tensor;
    size_t at;
    float value;
} ill;

// In a matrix and a vector, in vectors, in a matrix alone, and in much of what
// one worker has. The first ill of each is the one that a sentence names.
static const ill plagues[][ILLS] = {
    {{2, WEIGHT, 17, NAN}, {3, BIAS, 1, NAN}, {4, WEIGHT, 34, INFINITY}},
    {{3, BIAS, 5, NAN}, {4, BIAS, 0, INFINITY}, {4, ROW, 2, -INFINITY}},
    {{4, WEIGHT, 0, -INFINITY}, {4, WEIGHT, 12, NAN}, {4, WEIGHT, 13, 1}},
    {{0, WEIGHT, 6, INFINITY}, {0, BIAS, 12, NAN}, {0, ONE, 0, INFINITY}},
};

enum { PLAGUES = WORKERS_ARE_THREADS ? sizeof(plagues) / sizeof(*plagues) : 1 };

static void infect(crewman *m)
{
    fill_gradient(m->rank, SICK_ROUND, m->gradient);
    for (size_t i = 0; i < ILLS; i++) {
        const ill *const x = &plagues[m->v->plague][i];
        if (x->worker == m->rank) {
            m->gradient[offsets[x->tensor] + x->at] = x->value;
        }
    }
}

static bool is_sick(const voyage *v, size_t tensor)
{
    bool sick = false;
    for (size_t i = 0; i < ILLS; i++) {
        const ill *const x = &plagues[v->plague][i];
        sick = sick || (x->tensor == tensor && !isfinite(x->value));
    }
    return sick;
}

static void mark_result(crewman *m, uint64_t round)
{
    for (size_t i = 0; i < VALUES; i++) {
        result_of(m, round)[i] = 77;
    }
}

static bool result_is(const crewman *m, uint64_t round, float value)
{
    for (size_t i = 0; i < VALUES; i++) {
        if (result_of(m, round)[i] != value) {
            return false;
        }
    }
    return true;
}

// The fields of all tensors before and after something.
typedef struct snapshot {
    float values[TENSORS][8][64];
    size_t count;
} snapshot;

static lac_status take_snapshot(const crewman *m, snapshot *out)
{
    const laci_field_table *const memory = &m->a->fields;
    memset(out, 0, sizeof(*out));
    for (size_t t = 0; t < TENSORS; t++) {
        for (size_t f = memory->first[t]; f < memory->first[t + 1]; f++) {
            EXPECT(f - memory->first[t] < 8 && memory->fields[f].count <= 64);
            laci_field_read(
                &memory->fields[f], out->values[t][f - memory->first[t]]);
        }
    }
    return LAC_OK;
}

// Saved fields are as they were, but an error memory may have had the gradient
// added: what was not delivered stays in it. Bad tensors added zeros.
static lac_status compare_field(
    const crewman *m, size_t t, const laci_field *field, const float *old,
    const float *now)
{
    const float *const g = m->gradient + offsets[t];
    bool fit = true;
    if (field->name == NULL ||
        memcmp(old, now, field->count * sizeof(*now)) == 0) {
        return LAC_OK;
    }
    for (size_t i = 0; i < offsets[t + 1] - offsets[t]; i++) {
        fit = fit && isfinite(g[i]);
    }
    EXPECT(strcmp(field->name, "error") == 0);
    for (size_t i = 0; i < field->count; i++) {
        EXPECT(now[i] == old[i] + (fit ? g[i] : 0));
    }
    return LAC_OK;
}

static lac_status compare(
    const crewman *m, const snapshot *before, const snapshot *after)
{
    const laci_field_table *const memory = &m->a->fields;
    for (size_t t = 0; t < TENSORS; t++) {
        for (size_t f = memory->first[t]; f < memory->first[t + 1]; f++) {
            const size_t i = f - memory->first[t];
            LAC_TRY(compare_field(
                m, t, &memory->fields[f], before->values[t][i],
                after->values[t][i]));
        }
    }
    return LAC_OK;
}

static lac_status expect_rounds(const crewman *m, uint64_t next)
{
    for (size_t t = 0; t < TENSORS; t++) {
        EXPECT(m->a->progress[t].next_round == next);
    }
    return LAC_OK;
}

static lac_status stop_and_go_on(crewman *m)
{
    snapshot before, after;
    char sentence[256];
    LAC_TRY(crewman_open(m));
    LAC_TRY(reduce_round(m, 0));
    LAC_TRY(take_snapshot(m, &before));
    infect(m);
    mark_result(m, SICK_ROUND);
    EXPECT(reduce_given(m, SICK_ROUND) == LAC_ERR_INVALID);
    (void)snprintf(
        sentence, sizeof(sentence),
        "%.*s: worker %u has a value in %s that is not finite",
        (int)strcspn(m->v->algorithm, ":"), m->v->algorithm,
        plagues[m->v->plague][0].worker,
        tensors[plagues[m->v->plague][0].tensor].name);
    EXPECT(strcmp(sentence, lac_error_message()) == 0);
    EXPECT(result_is(m, SICK_ROUND, 77));
    LAC_TRY(take_snapshot(m, &after));
    LAC_TRY(compare(m, &before, &after));
    LAC_TRY(expect_rounds(m, SICK_ROUND));
    for (uint64_t round = SICK_ROUND; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(m, round));
    }
    return LAC_OK;
}

static void stop_at_nonfinite(voyage *v)
{
    for (v->plague = 0; v->plague < PLAGUES; v->plague++) {
        voyage_well(v, stop_and_go_on);
        assert_agreement(v);
        assert_finite(v);
    }
}

static lac_status skip_one(crewman *m)
{
    snapshot before, after;
    LAC_TRY(crewman_open(m));
    LAC_TRY(reduce_round(m, 0));
    LAC_TRY(take_snapshot(m, &before));
    infect(m);
    mark_result(m, SICK_ROUND);
    LAC_TRY(reduce_given(m, SICK_ROUND));
    EXPECT(result_is(m, SICK_ROUND, 0));
    LAC_TRY(take_snapshot(m, &after));
    LAC_TRY(compare(m, &before, &after));
    LAC_TRY(expect_rounds(m, SICK_ROUND + 1));
    for (uint64_t round = SICK_ROUND + 1; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(m, round));
    }
    return LAC_OK;
}

static void skip_nonfinite(voyage *v)
{
    v->nonfinite = LAC_NONFINITE_SKIP;
    for (v->plague = 0; v->plague < PLAGUES; v->plague++) {
        voyage_well(v, skip_one);
        assert_agreement(v);
        assert_finite(v);
    }
}

static lac_status send_raw(crewman *m)
{
    snapshot before, after;
    LAC_TRY(crewman_open(m));
    LAC_TRY(reduce_round(m, 0));
    LAC_TRY(take_snapshot(m, &before));
    infect(m);
    LAC_TRY(reduce_given(m, SICK_ROUND));
    LAC_TRY(take_snapshot(m, &after));
    const laci_field_table *const memory = &m->a->fields;
    for (size_t t = 0; t < TENSORS; t++) {
        for (size_t f = memory->first[t];
             is_sick(m->v, t) && f < memory->first[t + 1]; f++) {
            const size_t i = f - memory->first[t];
            EXPECT(
                memory->fields[f].name == NULL ||
                memcmp(
                    before.values[t][i], after.values[t][i],
                    sizeof(after.values[t][i])) == 0);
        }
    }
    LAC_TRY(expect_rounds(m, SICK_ROUND + 1));
    for (uint64_t round = SICK_ROUND + 1; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(m, round));
    }
    return LAC_OK;
}

// The mean of the raw values; 5 normal numbers have ten roundings of 2^-21.
static void assert_raw_mean(voyage *v, size_t tensor)
{
    for (size_t i = offsets[tensor]; i < offsets[tensor + 1]; i++) {
        double sum = 0;
        for (uint32_t rank = 0; rank < v->world; rank++) {
            crewman m = {.v = v, .rank = rank};
            infect(&m);
            sum += (double)m.gradient[i];
        }
        const double expected = sum / v->world;
        const double got = (double)v->results[0][SICK_ROUND][i];
        if (isfinite(expected)) {
            assert_true(fabs(got - expected) < 10 * 0x1p-21);
        } else {
            assert_true(isnan(expected) ? isnan(got) : got == expected);
        }
    }
}

// Tensors that no worker had trouble with never notice.
static void assert_contained(voyage *v, const voyage *healthy)
{
    assert_agreement(v);
    for (size_t t = 0; t < TENSORS; t++) {
        const size_t from = offsets[t], count = offsets[t + 1] - from;
        if (is_sick(v, t)) {
            assert_raw_mean(v, t);
            continue;
        }
        for (uint64_t round = 0; round < ROUNDS; round++) {
            assert_memory_equal(
                v->results[0][round] + from, healthy->results[0][round] + from,
                count * sizeof(float));
        }
    }
    for (size_t i = 0; i < (size_t)ROUNDS * VALUES; i++) {
        assert_true(
            i / VALUES == SICK_ROUND ||
            isfinite(v->results[0][i / VALUES][i % VALUES]));
    }
}

static void send_nonfinite_raw(voyage *v)
{
    voyage healthy = *v;
    voyage_well(&healthy, reduce_rounds);
    v->nonfinite = LAC_NONFINITE_RAW;
    for (v->plague = 0; v->plague < PLAGUES; v->plague++) {
        voyage_well(v, send_raw);
        assert_contained(v, &healthy);
    }
    free_saves(&healthy.saved);
}

static lac_status all_raw(crewman *m)
{
    lac_slice slice = {
        BIAS, LAC_F32, m->gradient + offsets[BIAS], result_of(m, 0)};
    LAC_TRY(crewman_open(m));
    m->gradient[offsets[BIAS]] = m->rank == 0 ? NAN : 1;
    LAC_TRY(lac_algorithm_reduce(m->a, 0, &slice, 1));
    EXPECT(isnan(result_of(m, 0)[0]) && result_of(m, 0)[1] == 0);
    return reduce_round(m, 0) == LAC_ERR_INVALID ? LAC_OK : LAC_ERR_SPACE;
}

static void send_all_raw(voyage *v)
{
    static const uint32_t worlds[] = {1, 2, 3};
    v->nonfinite = LAC_NONFINITE_RAW;
    for (size_t i = 0; i < 3; i++) {
        v->world = worlds[i];
        voyage_well(v, all_raw);
    }
}

// The last worker leaves a tensor out, so that nobody can finish the round.
static lac_status fail_one(crewman *m)
{
    snapshot before, after;
    lac_slice slices[TENSORS];
    LAC_TRY(crewman_open(m));
    LAC_TRY(reduce_round(m, 0));
    LAC_TRY(reduce_round(m, 1));
    LAC_TRY(take_snapshot(m, &before));
    mark_result(m, 2);
    fill_gradient(m->rank, 2, m->gradient);
    make_slices(m, 2, slices);
    // A failure of this round must not meet a worker still in the last.
    workers_barrier(m->v->world);
    const size_t left_out = m->rank == m->v->world - 1;
    EXPECT(
        lac_algorithm_reduce(m->a, 2, slices + left_out, TENSORS - left_out) !=
        LAC_OK);
    EXPECT(result_is(m, 2, 77));
    LAC_TRY(take_snapshot(m, &after));
    LAC_TRY(compare(m, &before, &after));
    LAC_TRY(expect_rounds(m, 2));
    EXPECT(lac_algorithm_reduce(m->a, 2, slices, TENSORS) != LAC_OK);
    return LAC_OK;
}

static void keep_state_in_failure(voyage *v)
{
    voyage_well(v, fail_one);
}

// One worker would stop where the others go on.
static lac_status disagree(crewman *m)
{
    lac_algorithm_options o = crewman_options(m);
    o.nonfinite = m->rank == 0 ? LAC_NONFINITE_SKIP : LAC_NONFINITE_STOP;
    LAC_TRY(lac_algorithm_open(&m->a, &o));
    return reduce_round(m, 0);
}

static void policies_must_be_equal(voyage *v)
{
    test_worker workers[WORLD_MAX];
    voyage_run(v, disagree, workers);
    for (uint32_t rank = 0; rank < v->world; rank++) {
        assert_int_equal(workers[rank].status, LAC_ERR_PEER);
    }
}

DUTY(stop_at_nonfinite)
DUTY(skip_nonfinite)
DUTY(send_nonfinite_raw)
DUTY(send_all_raw)
DUTY(keep_state_in_failure)
DUTY(policies_must_be_equal)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_stop_at_nonfinite),
        cmocka_unit_test(all_skip_nonfinite),
        cmocka_unit_test(all_send_nonfinite_raw),
        cmocka_unit_test(all_send_all_raw),
        cmocka_unit_test(all_keep_state_in_failure),
        cmocka_unit_test(all_policies_must_be_equal),
    };
    return cmocka_run_group_tests_name(
        "gradient_failures", tests, setup_workers, teardown_workers);
}
