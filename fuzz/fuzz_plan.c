// SPDX-License-Identifier: MIT
// Arbitrary bytes as a file that `laconic plan` writes and a command reads. The
// first byte chooses the reader: `plan` itself, of a time in its cache, or
// `report`, of a result of `plan --json` or a trace of `average`. What `report`
// accepts, it can print.
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/page/document.h"
#include "cli/plan/cache.h"
#include "folder.h"
#include "fuzz.h"

static const char key[] = "key of a time\n";
enum { KEY_LEN = sizeof(key) - 1, READERS = 2, UNTOUCHED = -1 };

// Returns the name of the file that holds the time of `key`.
static const char *cache_file(void)
{
    static char name[FUZZ_PATH_SIZE];
    char path[FUZZ_PATH_SIZE];
    if (name[0] != '\0') {
        return name;
    }
    fuzz_require(
        setenv("XDG_CACHE_HOME", fuzz_folder(), 1) == 0, "no variable");
    plan_cache_write(key, 1);
    DIR *const dir = opendir(fuzz_path("laconic", path));
    const struct dirent *entry = NULL;
    while (dir != NULL && (entry = readdir(dir)) != NULL &&
           entry->d_name[0] == '.') {
    }
    fuzz_require(entry != NULL, "a time is not stored");
    (void)snprintf(name, sizeof(name), "laconic/%.64s", entry->d_name);
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return name;
}

// The input follows the key, which nothing gets beyond if it differs.
static void read_cache(const fuzz_input *input)
{
    uint8_t *const bytes = fuzz_alloc(KEY_LEN + input->size);
    double seconds = UNTOUCHED;
    memcpy(bytes, key, KEY_LEN);
    if (input->size > 0) {
        memcpy(bytes + KEY_LEN, input->data, input->size);
    }
    fuzz_write(cache_file(), bytes, KEY_LEN + input->size);
    free(bytes);
    if (plan_cache_read(key, &seconds)) {
        fuzz_require(isfinite(seconds) && seconds > 0, "a time is none");
    } else {
        fuzz_require(seconds == UNTOUCHED, "a refused time is written");
    }
}

static void read_report(const fuzz_input *input)
{
    char path[FUZZ_PATH_SIZE];
    char *const paths[] = {path};
    page_inputs in;
    size_t len = 0;
    (void)fuzz_path("input", path);
    fuzz_write("input", input->data, input->size);
    const lac_status status = page_inputs_open(&in, paths, 1, "", "");
    if (status == LAC_OK) {
        fuzz_require(in.trace_count + in.plan_count > 0, "nothing was read");
        fuzz_require(
            page_document_write(&in, "/dev/null", &len) == LAC_OK,
            "what was read cannot be printed");
    } else {
        fuzz_require(
            status == LAC_ERR_INVALID || status == LAC_ERR_CORRUPT,
            "another status");
        fuzz_require(
            strncmp(lac_error_message(), path, strlen(path)) == 0,
            "the message does not name the file");
    }
    page_inputs_close(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[READERS])(const fuzz_input *) = {
        read_cache, read_report};
    fuzz_input input = {data, size};
    readers[fuzz_byte(&input) % READERS](&input);
    return 0;
}
