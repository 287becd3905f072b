// SPDX-License-Identifier: MIT
// Saved states of every model algorithm: a handle in use continues from one bit
// for bit, and a state that does not fit is refused with a message and changes
// nothing.
#include "gossip.h"
#include "states.h"

static lac_status save_after_two_rounds(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    LAC_TRY(worker_start(w));
    LAC_TRY(worker_mix(w, 0));
    LAC_TRY(worker_mix(w, 1));
    LAC_TRY(worker_save(w));
    return w->run->check == NULL ? LAC_OK : w->run->check(w);
}

// Mixes two rounds more, twice from the same state and model.
static lac_status mix_again(gossip_worker *w)
{
    float x[VALUES], expected[VALUES];
    memcpy(x, w->x, sizeof(x));
    LAC_TRY(worker_mix(w, 2));
    LAC_TRY(worker_mix(w, 3));
    EXPECT(lac_algorithm_round(w->a, BIAS) == 4);
    memcpy(expected, w->x, sizeof(expected));
    memcpy(w->x, x, sizeof(x));
    LAC_TRY(worker_load(w, w->run));
    EXPECT(lac_algorithm_round(w->a, BIAS) == 2);
    LAC_TRY(worker_mix(w, 2));
    LAC_TRY(worker_mix(w, 3));
    EXPECT(memcmp(expected, w->x, sizeof(expected)) == 0);
    return LAC_OK;
}

static void a_handle_in_use_goes_back_bit_for_bit(gossip_run *run)
{
    run->check = mix_again;
    run_gossip_ok(run, save_after_two_rounds);
}

static lac_status alter(gossip_worker *w)
{
    const holder h = holder_of(w->a, &w->run->saved, w->rank);
    return refuse_altered(&h);
}

static void alterations_are_refused(gossip_run *run)
{
    run->check = alter;
    run_gossip_ok(run, save_after_two_rounds);
}

static lac_status forge(gossip_worker *w)
{
    const holder h = holder_of(w->a, &w->run->saved, w->rank);
    const size_t name_len = strcspn(w->run->algorithm, ":");
    return w->rank == 0 ? refuse_forged(&h, NAME_AT + name_len) : LAC_OK;
}

static void forgeries_are_refused(gossip_run *run)
{
    run->check = forge;
    run_gossip_ok(run, save_after_two_rounds);
}

// Loads the state of worker 0 of `from` into a worker of another run.
static lac_status load_state_of_worker_0(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    return load_state(&w->run->from->saved, 0, w->a);
}

static void assert_all_refuse(
    const gossip_run *from, gossip_run *run, const char *message)
{
    test_worker workers[WORLD_MAX];
    run->from = from;
    run->body = load_state_of_worker_0;
    run_gossip(run, workers);
    assert_int_equal(workers[1].status, LAC_ERR_INVALID);
    if (strstr(workers[1].message, message) == NULL) {
        print_error("%s\nnot: %s\n", workers[1].message, message);
        fail();
    }
}

static void states_of_other_workers_are_refused(gossip_run *run)
{
    run_gossip_ok(run, save_after_two_rounds);
    gossip_run other = {
        .algorithm = run->algorithm,
        .compressor = run->compressor,
        .topology = "ring",
        .world = 5,
        .odd = LAC_RANK_ANY,
    };
    assert_all_refuse(
        run, &other, "state: is of worker 0 of 5, expected 1 of 5");
    other.world = 3;
    assert_all_refuse(
        run, &other, "state: is of worker 0 of 5, expected 1 of 3");
    other.world = 5;
    if (run->compressor != NULL) {
        other.compressor = "half";
        assert_all_refuse(run, &other, "state: compressor is ");
    }
    other.algorithm = "dpsgd";
    other.compressor = NULL;
    if (strcmp(run->algorithm, "dpsgd") != 0) {
        assert_all_refuse(run, &other, "state: algorithm is ");
    }
    free_saves(&other.saved);
}

static lac_status load_own(gossip_worker *w)
{
    LAC_TRY(worker_open(w));
    return worker_load(w, w->run->from);
}

// All workers load the states they saved, worker 1 with another layout.
static void load_elsewhere(
    const gossip_run *run, const char *text, test_worker *workers_out)
{
    lac_layout *layout;
    assert_ok(lac_layout_parse(&layout, text, strlen(text)));
    gossip_run other = *run;
    other.saved = (saves){0};
    other.odd = 1;
    other.odd_options.layout = layout;
    other.from = run;
    other.body = load_own;
    run_gossip(&other, workers_out);
    free_saves(&other.saved);
    lac_layout_close(layout);
}

static void other_layouts_are_refused(gossip_run *run)
{
    run_gossip_ok(run, save_after_two_rounds);
    for (size_t i = 0; i < OTHER_LAYOUTS; i++) {
        test_worker workers[WORLD_MAX];
        load_elsewhere(run, other_layouts[i].text, workers);
        assert_int_equal(workers[0].status, LAC_OK);
        assert_int_equal(workers[1].status, LAC_ERR_INVALID);
        assert_string_equal(workers[1].message, other_layouts[i].message);
    }
}

static void the_order_of_tensors_does_not_matter(gossip_run *run)
{
    test_worker workers[WORLD_MAX] = {0};
    run_gossip_ok(run, save_after_two_rounds);
    load_elsewhere(run, reordered_layout, workers);
    assert_all_ok(workers, run->world);
}

DUTY(a_handle_in_use_goes_back_bit_for_bit)
DUTY(alterations_are_refused)
DUTY(forgeries_are_refused)
DUTY(states_of_other_workers_are_refused)
DUTY(other_layouts_are_refused)
DUTY(the_order_of_tensors_does_not_matter)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_a_handle_in_use_goes_back_bit_for_bit),
        cmocka_unit_test(all_alterations_are_refused),
        cmocka_unit_test(all_forgeries_are_refused),
        cmocka_unit_test(all_states_of_other_workers_are_refused),
        cmocka_unit_test(all_other_layouts_are_refused),
        cmocka_unit_test(all_the_order_of_tensors_does_not_matter),
    };
    return cmocka_run_group_tests_name(
        "gossip states", tests, setup_workers, teardown_workers);
}
