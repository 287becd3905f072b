// SPDX-License-Identifier: MIT
// What every gradient algorithm loads: its own state, also after other rounds,
// and of the state of another worker what all workers share.
#include "gradient.h"

#include "algorithm/framework/handle.h"
#include "state_reader.h"

enum { SAVED_ROUNDS = 3, SAVED_WORLD = 2 };

static lac_status save_after_rounds(gradient_worker *w)
{
    LAC_TRY(worker_open(w));
    for (uint64_t round = 0; round < SAVED_ROUNDS; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    return worker_save(w);
}

static lac_status expect_rounds(const gradient_worker *w, uint64_t next)
{
    for (size_t t = 0; t < TENSORS; t++) {
        EXPECT(lac_algorithm_round(w->a, t) == next);
    }
    return LAC_OK;
}

// Runs to the end, goes back to the saved state, and runs to the end again.
static lac_status load_in_use(gradient_worker *w)
{
    float expected[ROUNDS][VALUES];
    LAC_TRY(save_after_rounds(w));
    for (uint64_t round = SAVED_ROUNDS; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    LAC_TRY(expect_rounds(w, ROUNDS));
    memcpy(expected, w->run->results[w->rank], sizeof(expected));
    const lac_traffic before = lac_algorithm_traffic(w->a);
    LAC_TRY(worker_load(w));
    LAC_TRY(expect_rounds(w, SAVED_ROUNDS));
    const lac_traffic loaded = lac_algorithm_traffic(w->a);
    EXPECT(memcmp(&before, &loaded, sizeof(before)) == 0);
    for (uint64_t round = SAVED_ROUNDS; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    EXPECT(memcmp(expected, w->run->results[w->rank], sizeof(expected)) == 0);
    EXPECT(
        w->run->world == 1 ||
        lac_algorithm_traffic(w->a).messages > before.messages);
    return LAC_OK;
}

static void a_handle_in_use_goes_back_bit_for_bit(gradient_run *run)
{
    for (run->world = 1; run->world <= 3; run->world++) {
        run_gradient_ok(run, load_in_use);
    }
}

static lac_status load_with_flag(gradient_worker *w, uint32_t from)
{
    const saves *const saved = &w->run->saved;
    return lac_algorithm_load_with(
        w->a, saved->states[from], saved->lens[from], LAC_LOAD_OTHER_WORLD);
}

static lac_status expect_field(
    const gradient_worker *w, const lac_tensor *tensor, const laci_field *field)
{
    float values[VALUES];
    saved_field from;
    if (field->name == NULL) {
        return LAC_OK; // working memory
    }
    EXPECT(field->count <= VALUES);
    EXPECT(saved_state_find(
        w->run->saved.states[0], tensor->name, field->name, &from));
    EXPECT(from.count == field->count);
    laci_field_read(field, values);
    for (size_t i = 0; i < field->count; i++) {
        EXPECT(values[i] == (field->shared ? saved_value(&from, i) : 0));
    }
    return LAC_OK;
}

// Shared fields and rounds are those of the state of worker 0, the rest is
// zero.
static lac_status expect_shared_only(const gradient_worker *w)
{
    LAC_TRY(expect_rounds(w, SAVED_ROUNDS));
    for (size_t t = 0; t < TENSORS; t++) {
        const laci_field *const end = laci_fields_of(&w->a->fields, t + 1);
        for (const laci_field *f = laci_fields_of(&w->a->fields, t); f < end;
             f++) {
            LAC_TRY(expect_field(w, &tensors[t], f));
        }
    }
    return LAC_OK;
}

// Loads the state of worker 0 of 2 after rounds of another group, which leave
// something in every field.
static lac_status load_of_other_world(gradient_worker *w)
{
    LAC_TRY(worker_open(w));
    for (uint64_t round = 0; round < SAVED_ROUNDS + 1; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    LAC_TRY(load_with_flag(w, 0));
    if (w->rank != 0 || w->run->world != SAVED_WORLD) {
        LAC_TRY(expect_shared_only(w));
    }
    for (uint64_t round = SAVED_ROUNDS; round < ROUNDS; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    return expect_rounds(w, ROUNDS);
}

static void other_worlds_load_what_is_shared(gradient_run *run)
{
    run->world = SAVED_WORLD;
    run_gradient_ok(run, save_after_rounds);
    for (run->world = 1; run->world <= 3; run->world++) {
        run_gradient_ok(run, load_of_other_world);
        assert_same_results(run);
        assert_finite(run);
    }
}

// A worker's own state is loaded in full, with the flag too.
static lac_status load_own_with_flag(gradient_worker *w)
{
    saves again = {0};
    LAC_TRY(save_after_rounds(w));
    LAC_TRY(reduce_round(w, SAVED_ROUNDS));
    LAC_TRY(load_with_flag(w, w->rank));
    LAC_TRY(save_state(&again, w->rank, w->a));
    const size_t len = w->run->saved.lens[w->rank];
    EXPECT(again.lens[w->rank] == len);
    EXPECT(
        memcmp(again.states[w->rank], w->run->saved.states[w->rank], len) == 0);
    free_saves(&again);
    return LAC_OK;
}

static void the_own_state_is_loaded_in_full(gradient_run *run)
{
    run->world = 2;
    run_gradient_ok(run, load_own_with_flag);
}

// Zeroes the fields that belong to a worker, and saves.
static lac_status save_shared_fields(gradient_worker *w)
{
    static const float zeros[VALUES];
    LAC_TRY(save_after_rounds(w));
    for (size_t i = 0; i < w->a->fields.count; i++) {
        laci_field *const field = &w->a->fields.fields[i];
        if (field->name != NULL && !field->shared) {
            EXPECT(field->count <= VALUES);
            laci_field_write(field, zeros);
        }
    }
    return worker_save(w);
}

// What a plan calls shared has the same bits on all workers.
static void shared_fields_are_the_same_everywhere(gradient_run *run)
{
    run->world = 3;
    run_gradient_ok(run, save_shared_fields);
    for (uint32_t rank = 1; rank < run->world; rank++) {
        saved_state a = saved_state_open(run->saved.states[0]);
        saved_state b = saved_state_open(run->saved.states[rank]);
        saved_field x, y;
        while (saved_state_next(&a, &x) && saved_state_next(&b, &y)) {
            assert_memory_equal(x.values, y.values, x.count * sizeof(float));
        }
    }
}

// Rounds of tensors are counted apart.
static lac_status reduce_bias(gradient_worker *w)
{
    lac_slice slices[TENSORS];
    LAC_TRY(worker_open(w));
    LAC_TRY(expect_rounds(w, 0));
    LAC_TRY(reduce_round(w, 0));
    LAC_TRY(expect_rounds(w, 1));
    make_slices(w, 1, slices);
    LAC_TRY(lac_algorithm_reduce(w->a, 1, &slices[BIAS], 1));
    for (size_t t = 0; t < TENSORS; t++) {
        EXPECT(lac_algorithm_round(w->a, t) == (t == BIAS ? 2 : 1));
    }
    return LAC_OK;
}

static void every_tensor_has_its_round(gradient_run *run)
{
    run->world = 2;
    run_gradient_ok(run, reduce_bias);
}

DUTY(a_handle_in_use_goes_back_bit_for_bit)
DUTY(other_worlds_load_what_is_shared)
DUTY(the_own_state_is_loaded_in_full)
DUTY(shared_fields_are_the_same_everywhere)
DUTY(every_tensor_has_its_round)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_a_handle_in_use_goes_back_bit_for_bit),
        cmocka_unit_test(all_other_worlds_load_what_is_shared),
        cmocka_unit_test(all_the_own_state_is_loaded_in_full),
        cmocka_unit_test(all_shared_fields_are_the_same_everywhere),
        cmocka_unit_test(all_every_tensor_has_its_round),
    };
    return cmocka_run_group_tests_name(
        "gradient_load", tests, setup_workers, teardown_workers);
}
