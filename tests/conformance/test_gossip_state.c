// SPDX-License-Identifier: MIT
// Saved states of every model algorithm: what does not belong is refused with
// a sentence and changes nothing.
#include "gossip.h"
#include "states.h"

static lac_status save_after_two_rounds(player *p)
{
    LAC_TRY(player_open(p));
    LAC_TRY(player_start(p));
    LAC_TRY(player_mix(p, 0));
    LAC_TRY(player_mix(p, 1));
    LAC_TRY(player_save(p));
    return p->piece->judge == NULL ? LAC_OK : p->piece->judge(p);
}

static lac_status alter(player *p)
{
    const holder h = holder_of(p->a, &p->piece->saved, p->rank);
    return refuse_altered(&h);
}

static void alterations_are_refused(play *piece)
{
    piece->script = save_after_two_rounds;
    piece->judge = alter;
    play_well(piece);
}

static lac_status forge(player *p)
{
    const holder h = holder_of(p->a, &p->piece->saved, p->rank);
    const size_t name_len = strcspn(p->piece->algorithm, ":");
    return p->rank == 0 ? refuse_forged(&h, NAME_AT + name_len) : LAC_OK;
}

static void forgeries_are_refused(play *piece)
{
    piece->script = save_after_two_rounds;
    piece->judge = forge;
    play_well(piece);
}

// Loads the state of worker 0 of `from` into a worker of another play.
static lac_status load_there(player *p)
{
    LAC_TRY(player_open(p));
    const play *const from = p->piece->from;
    return lac_algorithm_load(p->a, from->saved.states[0], from->saved.lens[0]);
}

static void assert_all_refuse(
    const play *from, play *piece, const char *sentence)
{
    test_worker workers[WORLD_MAX];
    piece->from = from;
    piece->script = load_there;
    play_run(piece, workers);
    assert_int_equal(workers[1].status, LAC_ERR_INVALID);
    if (strstr(workers[1].message, sentence) == NULL) {
        print_error("%s\nnot: %s\n", workers[1].message, sentence);
        fail();
    }
}

static void strangers_are_refused(play *piece)
{
    piece->script = save_after_two_rounds;
    play_well(piece);
    play other = {
        .algorithm = piece->algorithm,
        .compressor = piece->compressor,
        .topology = "ring",
        .world = 5,
        .odd = LAC_RANK_ANY,
    };
    assert_all_refuse(
        piece, &other, "state: is of worker 0 of 5, expected 1 of 5");
    other.world = 3;
    assert_all_refuse(
        piece, &other, "state: is of worker 0 of 5, expected 1 of 3");
    other.world = 5;
    if (piece->compressor != NULL) {
        other.compressor = "half";
        assert_all_refuse(piece, &other, "state: compressor is ");
    }
    other.algorithm = "dpsgd";
    other.compressor = NULL;
    if (strcmp(piece->algorithm, "dpsgd") != 0) {
        assert_all_refuse(piece, &other, "state: algorithm is ");
    }
}

static lac_status load_own(player *p)
{
    LAC_TRY(player_open(p));
    return player_load(p, p->piece->from);
}

// All load what they saved, worker 1 with another layout.
static void load_elsewhere(
    const play *piece, const char *text, test_worker *workers_out)
{
    lac_layout *layout;
    assert_ok(lac_layout_parse(&layout, text, strlen(text)));
    play other = *piece;
    other.saved = (saves){0};
    other.odd = 1;
    other.odd_options.layout = layout;
    other.from = piece;
    other.script = load_own;
    play_run(&other, workers_out);
    free_saves(&other.saved);
    lac_layout_close(layout);
}

static void other_layouts_are_refused(play *piece)
{
    piece->script = save_after_two_rounds;
    play_well(piece);
    for (size_t i = 0; i < OTHER_LAYOUTS; i++) {
        test_worker workers[WORLD_MAX];
        load_elsewhere(piece, other_layouts[i].text, workers);
        assert_int_equal(workers[0].status, LAC_OK);
        assert_int_equal(workers[1].status, LAC_ERR_INVALID);
        assert_string_equal(workers[1].message, other_layouts[i].message);
    }
}

// The order in which a layout lists its tensors does not matter.
static void order_does_not_matter(play *piece)
{
    test_worker workers[WORLD_MAX] = {0};
    piece->script = save_after_two_rounds;
    play_well(piece);
    load_elsewhere(piece, reordered_layout, workers);
    assert_all_ok(workers, piece->world);
}

DUTY(alterations_are_refused)
DUTY(forgeries_are_refused)
DUTY(strangers_are_refused)
DUTY(other_layouts_are_refused)
DUTY(order_does_not_matter)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_alterations_are_refused),
        cmocka_unit_test(all_forgeries_are_refused),
        cmocka_unit_test(all_strangers_are_refused),
        cmocka_unit_test(all_other_layouts_are_refused),
        cmocka_unit_test(all_order_does_not_matter),
    };
    return cmocka_run_group_tests_name(
        "gossip states", tests, setup_workers, teardown_workers);
}
