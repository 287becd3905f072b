// SPDX-License-Identifier: MIT
// The start of a run: from workers that are open to the first step.
//
// Workers may share a folder or have folders of their own, on different
// machines. Each folder has one owner among its workers, which locks it before
// anything is read, and commits checkpoints there. No folder changes before all
// workers have loaded their part of the checkpoint: a worker that cannot leaves
// everything as it was.
//
// Which checkpoint? A set is committed in a folder when all workers have
// written their files of it, so every worker has a file of the newest set that
// is committed anywhere, even if a kill came before the commit in its own
// folder. Without its file, because someone removed it, the newest older set is
// taken of which all workers have files.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "train/checkpoint.h"
#include "train/worker.h"

lac_status train_worker_claim(
    train_worker *w, const train_claim *claim, const train_claim **claims_out)
{
    const void *claims = NULL;
    const float *const *rows = NULL;
    *claims_out = NULL;
    LAC_TRY(train_sync_gather(w->start_sync, claim, NULL, 0, &claims, &rows));
    *claims_out = claims;
    return LAC_OK;
}

lac_status train_worker_origin(train_worker *w)
{
    return train_sync_broadcast(w->start_sync, &w->origin, NULL, 0);
}

// Returns when all workers have called it.
static lac_status start_barrier(train_worker *w)
{
    const train_claim claim = {0};
    const train_claim *claims = NULL;
    LAC_TRY(train_worker_claim(w, &claim, &claims));
    return train_worker_origin(w);
}

// Finds out whether this worker has the lowest rank of those in its folder.
// Threads of one process have one folder.
static lac_status find_owner(train_worker *w)
{
    uint32_t first = 0;
    if (w->origin.apart != 0) {
        // No folder is made before all workers are open.
        LAC_TRY(start_barrier(w));
        LAC_TRY(train_mark_create(
            &w->mark, w->run->plan.folder, (uint32_t)w->origin.start, w->rank));
        LAC_TRY(start_barrier(w));
        LAC_TRY(train_mark_first(&w->mark, &first));
        LAC_TRY(start_barrier(w));
        train_mark_remove(&w->mark);
    }
    w->owner = w->rank == first;
    return LAC_OK;
}

static lac_status start_lock(train_worker *w)
{
    const train_hooks *const hooks = &w->run->hooks;
    if (w->owner && hooks->lock != NULL) {
        LAC_TRY(hooks->lock(hooks->context));
    }
    return start_barrier(w);
}

static lac_status make_claim(const train_worker *w, train_claim *out)
{
    const train_plan *const plan = &w->run->plan;
    const train_place place = {plan->folder, 0, w->rank, w->world};
    train_claim claim = {.run_id = plan->run_id};
    if (plan->resume) {
        const lac_status status =
            train_checkpoint_latest(plan->folder, &claim.latest);
        if (status != LAC_OK && status != LAC_ERR_NOTFOUND) {
            return status;
        }
        claim.has_latest = status == LAC_OK;
        claim.step_count = train_checkpoint_list(&place, claim.steps);
    }
    *out = claim;
    return LAC_OK;
}

// Rejects folders of different runs.
static lac_status choose_run(train_worker *w, const train_claim *claims)
{
    uint32_t known = 0;
    while (known < w->world && claims[known].run_id == 0) {
        known++;
    }
    if (known == w->world) {
        w->origin.run_id = train_random_number() | 1;
        return LAC_OK;
    }
    w->origin.run_id = claims[known].run_id;
    for (uint32_t k = known + 1; k < w->world; k++) {
        if (claims[k].run_id != 0 && claims[k].run_id != w->origin.run_id) {
            return lac_fail(
                LAC_ERR_INVALID,
                "the folder of worker %" PRIu32 " holds run %016" PRIx64
                ", that of worker %" PRIu32 " run %016" PRIx64
                ", expected folders of one run",
                k, claims[k].run_id, known, claims[known].run_id);
        }
    }
    return LAC_OK;
}

static bool claims_step(const train_claim *claim, uint64_t step)
{
    for (uint32_t i = 0; i < claim->step_count && i < TRAIN_SETS_MAX; i++) {
        if (claim->steps[i] == step) {
            return true;
        }
    }
    return false;
}

// Returns the first worker without a file of this step, `world` if all have
// one.
static uint32_t who_lacks(
    const train_worker *w, const train_claim *claims, uint64_t step)
{
    uint32_t k = 0;
    while (k < w->world && claims_step(&claims[k], step)) {
        k++;
    }
    return k;
}

// Writes the newest step up to `limit` that any worker has a file of.
static bool newest_claim(
    const train_worker *w, const train_claim *claims, uint64_t limit,
    uint64_t *step_out)
{
    bool found = false;
    for (uint32_t k = 0; k < w->world; k++) {
        for (uint32_t i = 0; i < claims[k].step_count && i < TRAIN_SETS_MAX;
             i++) {
            const uint64_t step = claims[k].steps[i];
            if (step <= limit && (!found || step > *step_out)) {
                *step_out = step;
                found = true;
            }
        }
    }
    return found;
}

// Worker 0 chooses the checkpoint. Sets after the newest committed one are
// incomplete.
static void start_choose_step(train_worker *w, const train_claim *claims)
{
    train_origin *const o = &w->origin;
    uint64_t limit = 0;
    bool committed = false;
    for (uint32_t k = 0; k < w->world; k++) {
        if (claims[k].has_latest != 0) {
            limit = claims[k].latest > limit ? claims[k].latest : limit;
            committed = true;
        }
    }
    o->lacking = UINT32_MAX;
    o->resumed = 0;
    o->newest = o->step = limit;
    if (!committed) {
        return;
    }
    uint64_t step = 0;
    o->lacking = 0; // if nobody has a file
    for (bool first = true; newest_claim(w, claims, limit, &step);
         first = false) {
        const uint32_t lacks = who_lacks(w, claims, step);
        if (first) {
            o->newest = step;
            o->lacking = lacks == w->world ? UINT32_MAX : lacks;
        }
        if (lacks == w->world) {
            o->step = step;
            o->resumed = 1;
            return;
        }
        if (step == 0) {
            return;
        }
        limit = step - 1;
    }
}

// Fails if there are checkpoints, but none that all workers have.
static lac_status check_origin(const train_worker *w)
{
    const train_origin *const o = &w->origin;
    if (o->resumed != 0 || o->lacking == UINT32_MAX) {
        return LAC_OK;
    }
    const bool known = o->lacking == w->rank || o->apart == 0;
    return lac_fail(
        LAC_ERR_INVALID,
        "worker %" PRIu32 " has no checkpoint of step %" PRIu64
        "%s%s, nor is there an older one that all workers have; copy "
        "step-%" PRIu64 " to its --out, or start again with an empty --out on "
        "all workers",
        o->lacking, o->newest, known ? " in " : "",
        known ? w->run->plan.folder : "", o->newest);
}

static lac_status choose_origin(train_worker *w)
{
    train_claim claim;
    const train_claim *claims = NULL;
    LAC_TRY(make_claim(w, &claim));
    LAC_TRY(train_worker_claim(w, &claim, &claims));
    if (claims != NULL) {
        w->origin.rate = w->run->plan.schedule.rate;
        LAC_TRY(choose_run(w, claims));
        start_choose_step(w, claims);
    }
    LAC_TRY(train_worker_origin(w));
    return check_origin(w);
}

// All workers start from the same model.
static lac_status start_model(train_worker *w)
{
    nn_network_initialise(
        train_compute_learner(w->compute), w->run->plan.seed, w->x, w->running);
    return lac_algorithm_family(w->algorithm) == LAC_FAMILY_MODEL
               ? lac_algorithm_start(w->algorithm, w->model_slices, w->tensors)
               : LAC_OK;
}

void train_worker_facts(const train_worker *w, train_facts *out)
{
    lac_algorithm_options options = w->run->plan.algorithm;
    lac_cost cost = {0};
    const train_optimiser_state state = train_optimiser_get_state(w->optimiser);
    options.layout = nn_network_layout(train_compute_learner(w->compute));
    const lac_status status = lac_algorithm_cost(&options, &cost);
    const size_t model = w->n * sizeof(float);
    const size_t copies = train_copies_fragments(&w->run->plan) ? model : 0;
    *out = (train_facts){
        .parameters = w->n,
        .epoch_steps = w->epoch_steps,
        .first_step = w->step,
        .run_id = w->origin.run_id,
        .newest_step = w->origin.newest,
        .lacking = w->origin.lacking,
        .family = cost.family,
        .gamma = w->algorithm == NULL ? (double)NAN
                                      : lac_algorithm_gamma(w->algorithm),
        .rate = w->schedule.rate,
        .rate_found = w->run->plan.searches_rate,
        .search = w->origin.search,
        .warning =
            w->algorithm == NULL ? NULL : lac_algorithm_warning(w->algorithm),
        .memory =
            {
                .parameters = model,
                .gradient = model,
                .optimiser = (state.count + state.working) * model,
                .activations = train_compute_memory(w->compute),
                .algorithm =
                    copies + (status == LAC_OK ? cost.memory_bytes : 0),
            },
    };
}

// The owner of a folder prepares it for the first step.
static lac_status begin_folder(train_worker *w, const train_facts *facts)
{
    const train_hooks *const hooks = &w->run->hooks;
    const char *const folder = w->run->plan.folder;
    // First the manifest: a folder with a latest set and without a manifest is
    // not resumed.
    if (hooks->record != NULL) {
        LAC_TRY(hooks->record(hooks->context, facts));
    }
    if (w->origin.resumed != 0) {
        return train_checkpoint_rewind(folder, w->origin.step);
    }
    train_checkpoint_clear(folder);
    return LAC_OK;
}

// Called by worker 0 when all workers have loaded. The metrics are first: a
// damaged line ends the run before anything changes.
static lac_status start_run(train_worker *w)
{
    const train_plan *const plan = &w->run->plan;
    const train_hooks *const hooks = &w->run->hooks;
    train_facts *const facts = &w->run->result.facts;
    train_worker_facts(w, facts);
    w->origin.untested = w->untested;
    // A kill may have followed the test that is made up for.
    const uint64_t tested = w->step - (w->untested ? 1 : 0);
    LAC_TRY(train_metrics_cut(plan->folder, tested));
    LAC_TRY(train_differences_cut(plan->folder, tested));
    LAC_TRY(begin_folder(w, facts));
    return hooks->ready == NULL ? LAC_OK : hooks->ready(hooks->context, facts);
}

static lac_status begin_all(train_worker *w)
{
    train_facts facts;
    const train_claim claim = {0};
    const train_claim *claims = NULL;
    LAC_TRY(train_worker_claim(w, &claim, &claims));
    if (claims != NULL) {
        LAC_TRY(start_run(w));
    }
    LAC_TRY(train_worker_origin(w));
    // A kill may have left files of before and of after the test.
    w->untested = w->origin.untested != 0;
    if (w->rank == 0 || !w->owner) {
        return LAC_OK;
    }
    train_worker_facts(w, &facts);
    return begin_folder(w, &facts);
}

// The model of the first step, and its rate, as worker 0 knows it.
static lac_status first_model(train_worker *w)
{
    const bool search = isnan(w->origin.rate);
    w->schedule = w->run->plan.schedule;
    w->schedule.rate = w->origin.rate;
    if (search || w->origin.resumed == 0) {
        LAC_TRY(start_model(w));
    }
    if (search) {
        LAC_TRY(train_worker_find_rate(w));
    }
    return w->origin.resumed != 0 && !isnan(w->origin.rate)
               ? train_worker_load(w)
               : LAC_OK;
}

// A stop ended the search for a rate. The settings are recorded, so that a
// resume begins the search again. A folder with a checkpoint has them.
static lac_status record_settings(train_worker *w)
{
    train_facts facts;
    const train_hooks *const hooks = &w->run->hooks;
    if (!w->owner || w->origin.resumed != 0 || hooks->record == NULL) {
        return LAC_OK;
    }
    train_worker_facts(w, &facts);
    return hooks->record(hooks->context, &facts);
}

lac_status train_worker_start(train_worker *w)
{
    LAC_TRY(find_owner(w));
    LAC_TRY(start_lock(w));
    LAC_TRY(choose_origin(w));
    LAC_TRY(first_model(w));
    if (isnan(w->origin.rate)) {
        return record_settings(w);
    }
    // Neither the search for a step size nor the exchange of models that some
    // algorithms start with counts as waiting.
    w->waited_before = lac_algorithm_waited(w->algorithm);
    return begin_all(w);
}
