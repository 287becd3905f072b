// SPDX-License-Identifier: MIT
// Saved states of every gradient algorithm: what does not belong is refused
// with a sentence and changes nothing, and the order in which a layout lists
// its tensors does not matter.
#include "gradient.h"
#include "states.h"

enum { SAVED_ROUNDS = 2 };

static lac_status save_after_two_rounds(crewman *m)
{
    LAC_TRY(crewman_open(m));
    for (uint64_t round = 0; round < SAVED_ROUNDS; round++) {
        LAC_TRY(reduce_round(m, round));
    }
    return crewman_save(m);
}

static lac_status alter(crewman *m)
{
    LAC_TRY(save_after_two_rounds(m));
    const holder h = holder_of(m->a, &m->v->saved, m->rank);
    return refuse_altered(&h);
}

static void alterations_are_refused(voyage *v)
{
    v->world = 2;
    voyage_well(v, alter);
}

static lac_status forge(crewman *m)
{
    LAC_TRY(save_after_two_rounds(m));
    const holder h = holder_of(m->a, &m->v->saved, m->rank);
    return refuse_forged(&h, NAME_AT + strlen(m->v->algorithm));
}

static void forgeries_are_refused(voyage *v)
{
    v->world = 2;
    voyage_well(v, forge);
}

// Every float of the state once as a NaN. Where no float is, four bytes that
// look like one change something else.
static lac_status refuse_poison(crewman *m)
{
    LAC_TRY(save_after_two_rounds(m));
    const holder h = holder_of(m->a, &m->v->saved, m->rank);
    const laci_field_table *const memory = &m->a->fields;
    uint8_t state[STATE_MAX];
    size_t floats = 0, refused = 0;
    EXPECT(h.len <= sizeof(state));
    for (size_t f = 0; f < memory->count; f++) {
        floats += memory->fields[f].name == NULL ? 0 : memory->fields[f].count;
    }
    for (size_t i = NAME_AT; i + 4 <= h.len - SUM_SIZE; i++) {
        memcpy(state, h.saved, h.len);
        laci_put_u32(state + i, 0x7fc00000);
        sign_again(state, h.len);
        const lac_status status = lac_algorithm_load(m->a, state, h.len);
        refused += status == LAC_ERR_CORRUPT &&
                   strstr(lac_error_message(), "that is not finite") != NULL;
        if (status == LAC_OK) { // a round number, say
            LAC_TRY(lac_algorithm_load(m->a, h.saved, h.len));
        }
    }
    EXPECT(refused >= floats);
    return LAC_OK;
}

static void poison_is_refused(voyage *v)
{
    v->world = 2;
    voyage_well(v, refuse_poison);
}

// Opens the algorithm with another layout and loads the state there.
static lac_status load_elsewhere(crewman *m, const char *text)
{
    lac_algorithm_options o = crewman_options(m);
    lac_layout *layout;
    lac_algorithm *other;
    LAC_TRY(lac_layout_parse(&layout, text, strlen(text)));
    o.layout = layout;
    lac_status status = lac_algorithm_open(&other, &o);
    if (status == LAC_OK) {
        status = lac_algorithm_load(
            other, m->v->saved.states[m->rank], m->v->saved.lens[m->rank]);
    }
    lac_algorithm_close(other);
    lac_layout_close(layout);
    return status;
}

static lac_status refuse_layouts(crewman *m)
{
    LAC_TRY(save_after_two_rounds(m));
    for (size_t i = 0; i < OTHER_LAYOUTS; i++) {
        const char *const sentence = other_layouts[i].message;
        EXPECT(load_elsewhere(m, other_layouts[i].text) == LAC_ERR_INVALID);
        EXPECT(strcmp(lac_error_message(), sentence) == 0);
    }
    return LAC_OK;
}

static void other_layouts_are_refused(voyage *v)
{
    v->world = 2;
    voyage_well(v, refuse_layouts);
}

// Worker 1 of 3 loads what worker 0 of 2 saved.
static lac_status load_a_strangers(crewman *m)
{
    LAC_TRY(crewman_open(m));
    EXPECT(
        lac_algorithm_load(m->a, m->v->saved.states[0], m->v->saved.lens[0]) ==
        LAC_ERR_INVALID);
    char sentence[128];
    (void)snprintf(
        sentence, sizeof(sentence),
        "state: is of worker 0 of 2, expected %u of %u", m->rank, m->v->world);
    EXPECT(strcmp(lac_error_message(), sentence) == 0);
    return LAC_OK;
}

static void strangers_are_refused(voyage *v)
{
    v->world = 2;
    voyage_well(v, save_after_two_rounds);
    voyage other = *v;
    other.world = 3;
    voyage_well(&other, load_a_strangers);
    other.world = 1;
    voyage_well(&other, load_a_strangers);
    v->saved = other.saved; // still the same bytes
}

static lac_status resume_in_another_order(crewman *m)
{
    static const size_t order[TENSORS] = {ROW, BIAS, WEIGHT, ONE, EMPTY};
    LAC_TRY(save_after_two_rounds(m));
    lac_algorithm *const old = m->a;
    lac_layout *const old_layout = m->layout;
    LAC_TRY(lac_layout_parse(
        &m->layout, reordered_layout, strlen(reordered_layout)));
    LAC_TRY(crewman_open(m));
    LAC_TRY(lac_algorithm_load(
        m->a, m->v->saved.states[m->rank], m->v->saved.lens[m->rank]));
    for (uint64_t round = SAVED_ROUNDS; round < ROUNDS; round++) {
        lac_slice slices[TENSORS], there[TENSORS];
        fill_gradient(m->rank, round, m->gradient);
        make_slices(m, round, slices);
        for (size_t i = 0; i < TENSORS; i++) {
            there[i] = slices[order[i]];
            there[i].tensor = i;
        }
        LAC_TRY(lac_algorithm_reduce(m->a, round, there, TENSORS));
    }
    lac_algorithm_close(old);
    lac_layout_close(old_layout);
    return LAC_OK;
}

static void order_does_not_matter(voyage *v)
{
    voyage other = *v;
    voyage_well(v, reduce_rounds);
    voyage_well(&other, resume_in_another_order);
    assert_memory_equal(
        v->results, other.results, v->world * sizeof(*v->results));
    free_saves(&other.saved);
}

DUTY(alterations_are_refused)
DUTY(forgeries_are_refused)
DUTY(poison_is_refused)
DUTY(other_layouts_are_refused)
DUTY(strangers_are_refused)
DUTY(order_does_not_matter)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_alterations_are_refused),
        cmocka_unit_test(all_forgeries_are_refused),
        cmocka_unit_test(all_poison_is_refused),
        cmocka_unit_test(all_other_layouts_are_refused),
        cmocka_unit_test(all_strangers_are_refused),
        cmocka_unit_test(all_order_does_not_matter),
    };
    return cmocka_run_group_tests_name(
        "gradient states", tests, setup_workers, teardown_workers);
}
