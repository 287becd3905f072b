// SPDX-License-Identifier: MIT
// Arbitrary bytes as the message that `laconic launch --hosts` sends to its
// agent on another machine: 0 and a whole message, or another byte and the
// texts of one, whose head is then put right. What is accepted can be sent
// again and is the same; of a longer input only the message is read.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/process/task.h"
#include "fuzz.h"

// The head of src/cli/process/task.c.
static const char magic[] = "laconic launch 1\n";
enum {
    MAGIC_LEN = sizeof(magic) - 1,
    HEAD_LEN = MAGIC_LEN + 4,
    PIPE_MAX = 60 * 1024, // which a pipe takes without a reader
};

// Writes a message to a new pipe and returns the end to read from.
static int open_pipe(const uint8_t *bytes, size_t len)
{
    int ends[2];
    fuzz_require(pipe(ends) == 0, "no pipe");
    fuzz_require(
        len == 0 || write(ends[1], bytes, len) == (ssize_t)len,
        "a pipe is too short");
    (void)close(ends[1]);
    return ends[0];
}

static void require_same_list(const char *const *a, const char *const *b)
{
    size_t i = 0;
    for (; a[i] != NULL && b[i] != NULL; i++) {
        fuzz_require(strcmp(a[i], b[i]) == 0, "a text differs");
    }
    fuzz_require(a[i] == b[i], "a text is missing");
}

static void send_again(const cli_task *task)
{
    int ends[2];
    cli_task again;
    fuzz_require(pipe(ends) == 0, "no pipe");
    fuzz_require(
        cli_task_send(task, ends[1]) == LAC_OK, "a task cannot be sent");
    (void)close(ends[1]);
    fuzz_require(
        cli_task_receive(&again, ends[0]) == LAC_OK,
        "a task that was sent again is refused");
    (void)close(ends[0]);
    fuzz_require(
        memcmp(task->token, again.token, CLI_TOKEN_SIZE) == 0 &&
            strcmp(task->settings, again.settings) == 0 &&
            strcmp(task->folder, again.folder) == 0,
        "a task differs");
    require_same_list(task->environment, again.environment);
    require_same_list(task->words, again.words);
    cli_task_release(&again);
}

static void receive(const uint8_t *bytes, size_t len)
{
    cli_task task = {0};
    const int file = open_pipe(bytes, len);
    const lac_status status = cli_task_receive(&task, file);
    (void)close(file);
    if (status == LAC_OK) {
        fuzz_require(task.words[0] != NULL, "there is nothing to start");
        for (size_t i = 0; task.environment[i] != NULL; i++) {
            fuzz_require(
                strchr(task.environment[i], '=') != NULL,
                "a variable has no value");
        }
        send_again(&task);
    } else {
        fuzz_require(status == LAC_ERR_CORRUPT, "another status");
        fuzz_require(lac_error_message()[0] != '\0', "no message");
        fuzz_require(
            task.environment == NULL && task.words == NULL, "a task remains");
    }
    cli_task_release(&task);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input input = {data, size};
    const bool made = fuzz_byte(&input) != 0;
    const size_t head = made ? HEAD_LEN : 0;
    if (input.size > PIPE_MAX - HEAD_LEN) {
        return 0;
    }
    uint8_t *const bytes = fuzz_alloc(head + input.size);
    if (made) {
        memcpy(bytes, magic, MAGIC_LEN);
        for (int i = 0; i < 4; i++) {
            bytes[MAGIC_LEN + i] = (uint8_t)(input.size >> 8 * i);
        }
    }
    if (input.size > 0) {
        memcpy(bytes + head, input.data, input.size);
    }
    receive(bytes, head + input.size);
    free(bytes);
    return 0;
}
