// SPDX-License-Identifier: MIT
// Saved states of every model algorithm: what does not belong is refused with
// a sentence and changes nothing.
#include "gossip.h"

#include <xxhash.h>

#include "base/bytes.h"

enum { NAME_AT = 24, SUM_SIZE = 8 };

static lac_status save_after_two_rounds(player *p)
{
    TRY(player_open(p));
    TRY(player_start(p));
    TRY(player_mix(p, 0));
    TRY(player_mix(p, 1));
    TRY(player_save(p));
    return p->piece->judge == NULL ? LAC_OK : p->piece->judge(p);
}

// The checksum over altered bytes, so that they are looked at.
static void sign_again(uint8_t *state, size_t len)
{
    laci_put_u64(state + len - SUM_SIZE, XXH3_64bits(state, len - SUM_SIZE));
}

// Whether `state` is refused and the algorithm stays as it was.
static bool refused(player *p, const uint8_t *state, size_t len)
{
    const size_t size = p->piece->saved.lens[p->rank];
    uint8_t *const exact = malloc(len + 1);
    uint8_t *const after = malloc(size);
    bool good = exact != NULL && after != NULL;
    if (good) {
        memcpy(exact, state, len);
        good = lac_algorithm_load(p->a, exact, len) != LAC_OK &&
               lac_error_message()[0] != '\0';
        lac_algorithm_save(p->a, after);
        good =
            good && memcmp(after, p->piece->saved.states[p->rank], size) == 0;
    }
    free(after);
    free(exact);
    return good;
}

static lac_status refuse_altered(player *p)
{
    uint8_t *const state = p->piece->saved.states[p->rank];
    const size_t len = p->piece->saved.lens[p->rank];
    for (size_t i = 0; i < len; i++) {
        state[i] ^= 0x10;
        lac_status status = lac_algorithm_load(p->a, state, len);
        state[i] ^= 0x10;
        if (status != LAC_ERR_CORRUPT) {
            return LAC_ERR_INVALID;
        }
        if (!refused(p, state, i)) {
            return LAC_ERR_SPACE;
        }
    }
    return refused(p, state, len) ? LAC_ERR_INVALID : LAC_OK;
}

static void alterations_are_refused(play *piece)
{
    piece->script = save_after_two_rounds;
    piece->judge = refuse_altered;
    play_well(piece);
}

// Every cut with a right checksum, and every byte changed in the same way:
// nothing crashes, and what is refused changes nothing.
static lac_status survive_forged(player *p)
{
    const size_t len = p->piece->saved.lens[p->rank];
    uint8_t *const state = malloc(len);
    if (state == NULL || p->rank != 0) {
        free(state);
        return LAC_OK;
    }
    bool good = true;
    for (size_t cut = SUM_SIZE; good && cut < len; cut++) {
        memcpy(state, p->piece->saved.states[p->rank], cut);
        sign_again(state, cut);
        good = refused(p, state, cut);
    }
    const size_t head = NAME_AT + strcspn(p->piece->algorithm, ":");
    for (size_t i = 0; good && i < head; i++) {
        memcpy(state, p->piece->saved.states[p->rank], len);
        state[i] ^= 0x81;
        sign_again(state, len);
        good = refused(p, state, len);
    }
    free(state);
    return good ? LAC_OK : LAC_ERR_INVALID;
}

static void forgeries_are_refused(play *piece)
{
    piece->script = save_after_two_rounds;
    piece->judge = survive_forged;
    play_well(piece);
}

// Loads the state of worker 0 of `from` into a worker of another play.
static lac_status load_there(player *p)
{
    TRY(player_open(p));
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
    if (strstr(workers[1].sentence, sentence) == NULL) {
        print_error("%s\nnot: %s\n", workers[1].sentence, sentence);
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

// Gives worker 1 the state of worker 1 but another layout.
static lac_status load_own(player *p)
{
    TRY(player_open(p));
    return player_load(p, p->piece->from);
}

static void other_layouts_are_refused(play *piece)
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
    piece->script = save_after_two_rounds;
    play_well(piece);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        test_worker workers[WORLD_MAX];
        play other = *piece;
        other.saved = (saves){0};
        lac_layout *layout;
        assert_ok(
            lac_layout_parse(&layout, cases[i].text, strlen(cases[i].text)));
        other.odd = 1;
        other.odd_options.layout = layout;
        other.from = piece;
        other.script = load_own;
        play_run(&other, workers);
        assert_int_equal(workers[0].status, LAC_OK);
        assert_int_equal(workers[1].status, LAC_ERR_INVALID);
        assert_string_equal(workers[1].sentence, cases[i].sentence);
        lac_layout_close(layout);
    }
}

// The order in which a layout lists its tensors does not matter.
static void order_does_not_matter(play *piece)
{
    static const char text[] = "row 1 9\nbias 13\nweight 7 5\none 1\nempty 0 3";
    test_worker workers[WORLD_MAX];
    lac_layout *layout;
    piece->script = save_after_two_rounds;
    play_well(piece);
    assert_ok(lac_layout_parse(&layout, text, strlen(text)));
    play other = *piece;
    other.saved = (saves){0};
    other.odd = 1;
    other.odd_options.layout = layout;
    other.from = piece;
    other.script = load_own;
    play_run(&other, workers);
    assert_all_ok(workers, other.world);
    free_saves(&other.saved);
    lac_layout_close(layout);
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
        "gossip states", tests, muster_workers, dismiss_workers);
}
