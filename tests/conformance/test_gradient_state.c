// SPDX-License-Identifier: MIT
// Saved states of every gradient algorithm: a state that does not fit is
// refused with a message and changes nothing, and the order in which a layout
// lists its tensors does not matter. test_gradient_load.c shows what is loaded.
#include "gradient.h"
#include "state_reader.h"
#include "states.h"

enum { SAVED_ROUNDS = 3 };

static lac_status save_after_rounds(gradient_worker *w)
{
    LAC_TRY(worker_open(w));
    for (uint64_t round = 0; round < SAVED_ROUNDS; round++) {
        LAC_TRY(reduce_round(w, round));
    }
    return worker_save(w);
}

static lac_status alter(gradient_worker *w)
{
    LAC_TRY(save_after_rounds(w));
    holder h = holder_of(w->a, &w->run->saved, w->rank);
    LAC_TRY(refuse_altered(&h));
    h.flags = LAC_LOAD_OTHER_WORLD;
    return refuse_altered(&h);
}

static void alterations_are_refused(gradient_run *run)
{
    run->world = 2;
    run_gradient_ok(run, alter);
}

static lac_status forge(gradient_worker *w)
{
    LAC_TRY(save_after_rounds(w));
    const size_t head = NAME_AT + strlen(w->run->algorithm);
    holder h = holder_of(w->a, &w->run->saved, w->rank);
    LAC_TRY(refuse_forged(&h, head));
    h.flags = LAC_LOAD_OTHER_WORLD;
    return refuse_forged(&h, head);
}

static void forgeries_are_refused(gradient_run *run)
{
    run->world = 2;
    run_gradient_ok(run, forge);
}

// Makes every float of the state a NaN in turn. Other four bytes are tried as
// well, which change something else.
static lac_status refuse_nonfinite(gradient_worker *w)
{
    LAC_TRY(save_after_rounds(w));
    const holder h = holder_of(w->a, &w->run->saved, w->rank);
    uint8_t state[STATE_MAX];
    size_t floats = 0, refused = 0;
    EXPECT(h.saved != NULL && h.len <= sizeof(state));
    saved_state fields = saved_state_open(h.saved);
    for (saved_field field; saved_state_next(&fields, &field);) {
        floats += field.count;
    }
    for (size_t i = NAME_AT; i + 4 <= h.len - SUM_SIZE; i++) {
        memcpy(state, h.saved, h.len);
        laci_put_u32(state + i, 0x7fc00000);
        write_checksum(state, h.len);
        const lac_status status = lac_algorithm_load(w->a, state, h.len);
        refused += status == LAC_ERR_CORRUPT &&
                   strstr(lac_error_message(), "that is not finite") != NULL;
        if (status == LAC_OK) { // such as a round number
            LAC_TRY(lac_algorithm_load(w->a, h.saved, h.len));
        }
    }
    EXPECT(refused >= floats);
    return LAC_OK;
}

static void nonfinite_fields_are_refused(gradient_run *run)
{
    run->world = 2;
    run_gradient_ok(run, refuse_nonfinite);
}

// Opens the algorithm with another layout and loads the state there.
static lac_status load_elsewhere(gradient_worker *w, const char *text)
{
    lac_algorithm_options o = worker_options(w);
    lac_layout *layout;
    lac_algorithm *other;
    LAC_TRY(lac_layout_parse(&layout, text, strlen(text)));
    o.layout = layout;
    lac_status status = lac_algorithm_open(&other, &o);
    if (status == LAC_OK) {
        status = load_state(&w->run->saved, w->rank, other);
    }
    lac_algorithm_close(other);
    lac_layout_close(layout);
    return status;
}

static lac_status refuse_layouts(gradient_worker *w)
{
    LAC_TRY(save_after_rounds(w));
    for (size_t i = 0; i < OTHER_LAYOUTS; i++) {
        const char *const message = other_layouts[i].message;
        EXPECT(load_elsewhere(w, other_layouts[i].text) == LAC_ERR_INVALID);
        EXPECT(strcmp(lac_error_message(), message) == 0);
    }
    return LAC_OK;
}

static void other_layouts_are_refused(gradient_run *run)
{
    run->world = 2;
    run_gradient_ok(run, refuse_layouts);
}

// Worker 1 of 3 loads what worker 0 of 2 saved.
static lac_status load_state_of_worker_0(gradient_worker *w)
{
    LAC_TRY(worker_open(w));
    EXPECT(load_state(&w->run->saved, 0, w->a) == LAC_ERR_INVALID);
    char message[128];
    (void)snprintf(
        message, sizeof(message),
        "state: is of worker 0 of 2, expected %u of %u; LAC_LOAD_OTHER_WORLD "
        "loads what all workers share",
        w->rank, w->run->world);
    EXPECT(strcmp(lac_error_message(), message) == 0);
    return LAC_OK;
}

static void states_of_other_workers_are_refused(gradient_run *run)
{
    run->world = 2;
    run_gradient_ok(run, save_after_rounds);
    gradient_run other = *run;
    other.world = 3;
    run_gradient_ok(&other, load_state_of_worker_0);
    other.world = 1;
    run_gradient_ok(&other, load_state_of_worker_0);
    run->saved = other.saved; // still the same bytes
}

static lac_status resume_in_another_order(gradient_worker *w)
{
    static const size_t order[TENSORS] = {ROW, BIAS, WEIGHT, ONE, EMPTY};
    LAC_TRY(save_after_rounds(w));
    lac_algorithm *const old = w->a;
    lac_layout *const old_layout = w->layout;
    LAC_TRY(lac_layout_parse(
        &w->layout, reordered_layout, strlen(reordered_layout)));
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_load(w));
    for (uint64_t round = SAVED_ROUNDS; round < ROUNDS; round++) {
        lac_slice slices[TENSORS], there[TENSORS];
        fill_gradient(w->rank, round, w->gradient);
        make_slices(w, round, slices);
        for (size_t i = 0; i < TENSORS; i++) {
            there[i] = slices[order[i]];
            there[i].tensor = i;
        }
        LAC_TRY(lac_algorithm_reduce(w->a, round, there, TENSORS));
    }
    lac_algorithm_close(old);
    lac_layout_close(old_layout);
    return LAC_OK;
}

static void the_order_of_tensors_does_not_matter(gradient_run *run)
{
    gradient_run other = *run;
    run_gradient_ok(run, reduce_rounds);
    run_gradient_ok(&other, resume_in_another_order);
    assert_memory_equal(
        run->results, other.results, run->world * sizeof(*run->results));
    free_saves(&other.saved);
}

DUTY(alterations_are_refused)
DUTY(forgeries_are_refused)
DUTY(nonfinite_fields_are_refused)
DUTY(other_layouts_are_refused)
DUTY(states_of_other_workers_are_refused)
DUTY(the_order_of_tensors_does_not_matter)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_alterations_are_refused),
        cmocka_unit_test(all_forgeries_are_refused),
        cmocka_unit_test(all_nonfinite_fields_are_refused),
        cmocka_unit_test(all_other_layouts_are_refused),
        cmocka_unit_test(all_states_of_other_workers_are_refused),
        cmocka_unit_test(all_the_order_of_tensors_does_not_matter),
    };
    return cmocka_run_group_tests_name(
        "gradient states", tests, setup_workers, teardown_workers);
}
