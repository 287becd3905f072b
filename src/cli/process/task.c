// SPDX-License-Identifier: MIT
// A task as a message:
//
//     "laconic launch 1\n"     17 bytes: what follows, and its version
//     u32                      the number of bytes that follow
//     texts                    each a u32, its length with the NUL, and bytes:
//                              settings, folder, each variable, "", each word
//     32 bytes                 the token
//
// Numbers are little-endian. A message comes from a person who may start any
// program here, yet it is checked as if it were hostile.
#include "cli/process/task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char magic[] = "laconic launch 1\n";

enum {
    MAGIC_LEN = sizeof(magic) - 1,
    HEAD_LEN = MAGIC_LEN + 4,
    // Fits into a pipe, so that sending does not wait for ssh to connect.
    BODY_MAX = 48 * 1024,
    TEXTS_MAX = BODY_MAX / 5,
};

// ---- Sending ----

typedef struct writer {
    uint8_t *bytes; // NULL: only their number is wanted
    size_t len;     // may exceed BODY_MAX; nothing is written there
} writer;

static void task_put_bytes(writer *w, const void *bytes, size_t len)
{
    if (w->bytes != NULL && w->len + len <= BODY_MAX) {
        memcpy(w->bytes + HEAD_LEN + w->len, bytes, len);
    }
    w->len += len;
}

static void store_u32(uint8_t out[4], size_t number)
{
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(number >> 8 * i);
    }
}

static void task_put_text(writer *w, const char *text)
{
    uint8_t number[4];
    const size_t len = strlen(text) + 1;
    store_u32(number, len);
    task_put_bytes(w, number, sizeof(number));
    task_put_bytes(w, text, len);
}

static void put_task(writer *w, const cli_task *task)
{
    task_put_text(w, task->settings);
    task_put_text(w, task->folder);
    for (size_t i = 0; task->environment[i] != NULL; i++) {
        task_put_text(w, task->environment[i]);
    }
    task_put_text(w, "");
    for (size_t i = 0; task->words[i] != NULL; i++) {
        task_put_text(w, task->words[i]);
    }
    task_put_bytes(w, task->token, CLI_TOKEN_SIZE);
}

static lac_status task_write_all(int file, const uint8_t *bytes, size_t len)
{
    while (len > 0) {
        const ssize_t written = write(file, bytes, len);
        if (written < 0 && errno != EINTR) {
            return lac_fail(
                LAC_ERR_PEER, "launch: the command cannot be sent: %s",
                strerror(errno));
        }
        bytes += written < 0 ? 0 : written;
        len -= written < 0 ? 0 : (size_t)written;
    }
    return LAC_OK;
}

lac_status cli_task_check(const cli_task *task)
{
    writer w = {0};
    put_task(&w, task);
    if (w.len > BODY_MAX) {
        return lac_fail(
            LAC_ERR_INVALID,
            "launch: the command, with its folder and variables, has %zu "
            "bytes, expected at most %d with --hosts",
            w.len, BODY_MAX);
    }
    return LAC_OK;
}

lac_status cli_task_send(const cli_task *task, int file)
{
    LAC_TRY(cli_task_check(task));
    writer w = {.bytes = malloc(HEAD_LEN + BODY_MAX)};
    if (w.bytes == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for the command");
    }
    put_task(&w, task);
    memcpy(w.bytes, magic, MAGIC_LEN);
    store_u32(w.bytes + MAGIC_LEN, w.len);
    const lac_status status = task_write_all(file, w.bytes, HEAD_LEN + w.len);
    free(w.bytes);
    return status;
}

// ---- Receiving ----

typedef struct reader {
    const uint8_t *bytes;
    size_t left;
} reader;

static size_t load_u32(const uint8_t bytes[4])
{
    size_t number = 0;
    for (int i = 0; i < 4; i++) {
        number |= (size_t)bytes[i] << 8 * i;
    }
    return number;
}

static lac_status corrupt(const char *what)
{
    return lac_fail(
        LAC_ERR_CORRUPT,
        "launch: %s, expected the message of `laconic launch --hosts` of the "
        "same version",
        what);
}

// Takes a text, which has its NUL and no other.
static bool take_text(reader *r, const char **out)
{
    const size_t len = r->left < 4 ? 0 : load_u32(r->bytes);
    if (len == 0 || len > r->left - 4 ||
        memchr(r->bytes + 4, 0, len) != r->bytes + 4 + len - 1) {
        return false;
    }
    *out = (const char *)r->bytes + 4;
    r->bytes += 4 + len;
    r->left -= 4 + len;
    return true;
}

// Texts are left where they are, behind the lists of pointers to them.
typedef struct box {
    const char *lists[TEXTS_MAX + 2];
    uint8_t body[BODY_MAX];
} box;

static bool take_task(box *b, size_t len, cli_task *out)
{
    reader r = {b->body, len - CLI_TOKEN_SIZE};
    size_t count = 0;
    bool sound = take_text(&r, &out->settings) && take_text(&r, &out->folder);
    out->environment = b->lists;
    while ((sound = sound && take_text(&r, &b->lists[count])) &&
           b->lists[count][0] != '\0') {
        sound = strchr(b->lists[count], '=') != NULL;
        count++;
    }
    b->lists[count++] = NULL;
    out->words = b->lists + count;
    while (sound && r.left > 0) {
        sound = take_text(&r, &b->lists[count]);
        count += sound;
    }
    b->lists[count] = NULL;
    memcpy(out->token, b->body + len - CLI_TOKEN_SIZE, CLI_TOKEN_SIZE);
    return sound && out->words[0] != NULL;
}

static bool task_read_all(int file, uint8_t *into, size_t len)
{
    while (len > 0) {
        const ssize_t got = read(file, into, len);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        into += got < 0 ? 0 : got;
        len -= got < 0 ? 0 : (size_t)got;
    }
    return true;
}

lac_status cli_task_receive(cli_task *out, int file)
{
    uint8_t head[HEAD_LEN];
    if (!task_read_all(file, head, sizeof(head)) ||
        memcmp(head, magic, MAGIC_LEN) != 0) {
        return corrupt("standard input does not begin with a command");
    }
    const size_t len = load_u32(head + MAGIC_LEN);
    if (len < CLI_TOKEN_SIZE || len > BODY_MAX) {
        return corrupt("the length of the command is out of range");
    }
    box *const b = calloc(1, sizeof(*b));
    if (b == NULL) {
        return lac_fail(LAC_ERR_NOMEM, "no memory for the command");
    }
    lac_status status = LAC_OK;
    if (!task_read_all(file, b->body, len)) {
        status = corrupt("the command ends early");
    } else if (!take_task(b, len, out)) {
        status = corrupt("the command breaks the format");
    }
    if (status != LAC_OK) {
        free(b);
        *out = (cli_task){0};
    }
    return status;
}

void cli_task_release(cli_task *task)
{
    // The lists are the first member of the block.
    free((void *)(uintptr_t)task->environment);
    *task = (cli_task){0};
}
