// SPDX-License-Identifier: MIT
// Records how the models of two neighbours differ: the singular values of
// W_0 - W_k for every matrix W of the model, where k is the first neighbour of
// worker 0. A line of DIR/differences.jsonl for each test:
//
//     {"epoch": 1, "step": 100, "workers": [0, 1],
//      "tensors": {"fc1.weight": [largest, ..., smallest], ...}}
//
// PowerGossip relies on a fast decay of these values. Vectors are left out.
#include <stdlib.h>

#include "train/lines.h"
#include "train/singular.h"
#include "train/worker.h"

static const char differences_file[] = "differences.jsonl";

static lac_status differences_no_memory(void)
{
    return lac_fail(LAC_ERR_NOMEM, "no memory for the differences of models");
}

static lac_status add_spectrum(
    cJSON *tensors, const lac_tensor *tensor, const float *difference)
{
    const lac_shape shape = tensor->shape;
    const size_t count = shape.rows < shape.cols ? shape.rows : shape.cols;
    double *const values = malloc(count * sizeof(*values));
    if (values == NULL) {
        return differences_no_memory();
    }
    const lac_status status =
        train_singular_values(difference + tensor->offset, shape, values);
    cJSON_AddItemToObject(
        tensors, tensor->name, cJSON_CreateDoubleArray(values, (int)count));
    free(values);
    return status;
}

static lac_status append_line(
    const train_worker *w, uint32_t peer, const float *difference)
{
    const lac_layout *const layout =
        nn_network_layout(train_compute_learner(w->compute));
    const int workers[] = {0, (int)peer};
    cJSON *const object = cJSON_CreateObject();
    cJSON_AddNumberToObject(
        object, "epoch", (double)w->step / (double)w->epoch_steps);
    cJSON_AddNumberToObject(object, "step", (double)w->step);
    cJSON_AddItemToObject(object, "workers", cJSON_CreateIntArray(workers, 2));
    cJSON *const tensors = cJSON_AddObjectToObject(object, "tensors");
    for (size_t t = 0; t < w->tensors; t++) {
        const lac_tensor *const tensor = lac_layout_tensor(layout, t);
        lac_status status = LAC_OK;
        if (tensor->shape.rows > 1 && tensor->shape.cols > 1) {
            status = add_spectrum(tensors, tensor, difference);
        }
        if (status != LAC_OK) {
            cJSON_Delete(object);
            return status;
        }
    }
    const char *const folder = w->run->plan.folder;
    return train_checkpoint_explain(
        folder, train_lines_append(folder, differences_file, object));
}

lac_status train_worker_differences(train_worker *w)
{
    const uint32_t *peers = NULL;
    (void)lac_topology_peers(w->run->plan.algorithm.topology, 0, &peers);
    float *const difference =
        w->rank == 0 ? malloc((w->n + 1) * sizeof(*difference)) : NULL;
    if (w->rank == 0 && difference == NULL) {
        return differences_no_memory();
    }
    lac_status status =
        train_sync_difference(w->sync, peers[0], w->x, w->n, difference);
    if (status == LAC_OK && w->rank == 0) {
        status = append_line(w, peers[0], difference);
    }
    free(difference);
    return status;
}

lac_status train_differences_cut(const char *folder, uint64_t step)
{
    return train_lines_cut(folder, differences_file, step);
}
