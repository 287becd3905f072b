// SPDX-License-Identifier: MIT
// Saved states of every gradient algorithm: what does not belong is refused
// with a sentence and changes nothing, and the order in which a layout lists
// its tensors does not matter.
#include "gradient.h"

#include <xxhash.h>

#include "base/bytes.h"

enum { NAME_AT = 24, SUM_SIZE = 8, SAVED_ROUNDS = 2 };

static lac_status save_after_two_rounds(crewman *m)
{
    TRY(crewman_open(m));
    for (uint64_t round = 0; round < SAVED_ROUNDS; round++) {
        TRY(reduce_round(m, round));
    }
    return crewman_save(m);
}

// The checksum over altered bytes, so that they are looked at.
static void sign_again(uint8_t *state, size_t len)
{
    laci_put_u64(state + len - SUM_SIZE, XXH3_64bits(state, len - SUM_SIZE));
}

// Loads `len` bytes that end where memory does, and expects that they are
// refused and the algorithm stays as it was.
static lac_status expect_refusal(
    crewman *m, const uint8_t *bytes, size_t len, lac_status expected)
{
    const size_t size = m->v->saved.lens[m->rank];
    uint8_t *const exact = malloc(len + (len == 0));
    uint8_t *const after = malloc(size);
    lac_status status = LAC_ERR_NOMEM;
    if (exact != NULL && after != NULL) {
        memcpy(exact, bytes, len);
        status = lac_algorithm_load(m->a, exact, len);
        lac_algorithm_save(m->a, after);
    }
    const bool kept =
        after != NULL && memcmp(after, m->v->saved.states[m->rank], size) == 0;
    free(after);
    free(exact);
    EXPECT(status == expected);
    EXPECT(kept);
    return LAC_OK;
}

static lac_status refuse_altered(crewman *m)
{
    TRY(save_after_two_rounds(m));
    uint8_t *const state = m->v->saved.states[m->rank];
    const size_t len = m->v->saved.lens[m->rank];
    for (size_t i = 0; i < len; i++) {
        state[i] ^= 0x10;
        const lac_status status = lac_algorithm_load(m->a, state, len);
        state[i] ^= 0x10;
        EXPECT(status == LAC_ERR_CORRUPT);
        TRY(expect_refusal(m, state, i, LAC_ERR_CORRUPT));
    }
    return lac_algorithm_load(m->a, state, len);
}

static void alterations_are_refused(voyage *v)
{
    v->world = 2;
    voyage_well(v, refuse_altered);
}

// Every cut with a right checksum, and every byte of the head changed in the
// same way.
static lac_status refuse_forged(crewman *m)
{
    TRY(save_after_two_rounds(m));
    const uint8_t *const saved = m->v->saved.states[m->rank];
    const size_t len = m->v->saved.lens[m->rank];
    uint8_t state[8192];
    EXPECT(len <= sizeof(state));
    for (size_t cut = SUM_SIZE; cut < len; cut++) {
        memcpy(state, saved, cut);
        sign_again(state, cut);
        TRY(expect_refusal(m, state, cut, LAC_ERR_CORRUPT));
    }
    for (size_t i = 0; i < NAME_AT + strlen(m->v->algorithm); i++) {
        memcpy(state, saved, len);
        state[i] ^= 0x81;
        sign_again(state, len);
        const lac_status status = lac_algorithm_load(m->a, state, len);
        EXPECT(status == LAC_ERR_CORRUPT || status == LAC_ERR_INVALID);
        TRY(expect_refusal(m, state, len, status));
    }
    return LAC_OK;
}

static void forgeries_are_refused(voyage *v)
{
    v->world = 2;
    voyage_well(v, refuse_forged);
}

// Every float of the state once as a NaN. Where no float is, four bytes that
// look like one change something else.
static lac_status refuse_poison(crewman *m)
{
    TRY(save_after_two_rounds(m));
    const uint8_t *const saved = m->v->saved.states[m->rank];
    const size_t len = m->v->saved.lens[m->rank];
    const laci_memory *const memory = &m->a->memory;
    uint8_t state[8192];
    size_t floats = 0, refused = 0;
    EXPECT(len <= sizeof(state));
    for (size_t f = 0; f < memory->count; f++) {
        floats += memory->fields[f].name == NULL ? 0 : memory->fields[f].count;
    }
    for (size_t i = NAME_AT; i + 4 <= len - SUM_SIZE; i++) {
        memcpy(state, saved, len);
        laci_put_u32(state + i, 0x7fc00000);
        sign_again(state, len);
        const lac_status status = lac_algorithm_load(m->a, state, len);
        refused += status == LAC_ERR_CORRUPT &&
                   strstr(lac_error_message(), "that is not finite") != NULL;
        if (status == LAC_OK) { // a round number, say
            TRY(lac_algorithm_load(m->a, saved, len));
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
    TRY(lac_layout_parse(&layout, text, strlen(text)));
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
    static const struct {
        const char *text;
        const char *sentence;
    } cases[] = {
        {"weight 5 7\nempty 0 3\nbias 13\none 1\nrow 1 9",
         "state: weight is 7 x 5, expected 5 x 7"},
        {"weight 7 5\nempty 0 3\nbiases 13\none 1\nrow 1 9",
         "state: tensor bias is not in the layout"},
        {"weight 7 5\nempty 0 3\nbias 13\none 1",
         "state: has 5 tensors, expected 4"},
    };
    TRY(save_after_two_rounds(m));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        EXPECT(load_elsewhere(m, cases[i].text) == LAC_ERR_INVALID);
        EXPECT(strcmp(lac_error_message(), cases[i].sentence) == 0);
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
    TRY(crewman_open(m));
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
    static const char text[] = "row 1 9\nbias 13\nweight 7 5\none 1\nempty 0 3";
    static const size_t order[TENSORS] = {ROW, BIAS, WEIGHT, ONE, EMPTY};
    TRY(save_after_two_rounds(m));
    lac_algorithm *const old = m->a;
    lac_layout *const old_layout = m->layout;
    TRY(lac_layout_parse(&m->layout, text, strlen(text)));
    TRY(crewman_open(m));
    TRY(lac_algorithm_load(
        m->a, m->v->saved.states[m->rank], m->v->saved.lens[m->rank]));
    for (uint64_t round = SAVED_ROUNDS; round < ROUNDS; round++) {
        lac_slice slices[TENSORS], there[TENSORS];
        fill_gradient(m->rank, round, m->gradient);
        make_slices(m, round, slices);
        for (size_t i = 0; i < TENSORS; i++) {
            there[i] = slices[order[i]];
            there[i].tensor = i;
        }
        TRY(lac_algorithm_reduce(m->a, round, there, TENSORS));
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
        "gradient states", tests, muster_workers, dismiss_workers);
}
