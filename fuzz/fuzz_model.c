// SPDX-License-Identifier: MIT
// Arbitrary bytes as the texts of a model file that describe its network. The
// name of the model comes before them and names none, so that no network is
// opened: every file is refused, with a message.
#include <stdlib.h>

#include "folder.h"
#include "safetensors.h"
#include "train/model.h"

static const char begin[] =
    "\",\"format\":\"pt\",\"laconic\":\"" TRAIN_FORMAT_VERSION
    "\",\"model\":\"none\",";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t head = sizeof(begin) - 1;
    char path[FUZZ_PATH_SIZE];
    train_model model;
    uint8_t *const tail = fuzz_alloc(head + size);
    memcpy(tail, begin, head);
    if (size > 0) {
        memcpy(tail + head, data, size);
    }
    const fuzz_input input = {tail, head + size};
    data_bytes file = fuzz_safetensors(&input, 0, 0);
    fuzz_write("model.safetensors", file.data, file.len);
    data_bytes_free(&file);
    free(tail);
    const lac_status status =
        train_model_open(&model, fuzz_path("model.safetensors", path), 1, 1);
    fuzz_require(
        status == LAC_ERR_INVALID || status == LAC_ERR_CORRUPT ||
            status == LAC_ERR_NOTFOUND,
        "another status");
    fuzz_require(lac_error_message()[0] != '\0', "no message");
    train_model_close(&model);
    return 0;
}
