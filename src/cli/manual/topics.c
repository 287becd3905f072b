// SPDX-License-Identifier: MIT
// The table of topics.
#include "cli/manual/topics.h"

#include <string.h>

#include "cli/launch/launch.h"
#include "cli/report/pager.h"

#define WORKERS "train average plan laconic"
#define KEYS    "key peers laconic"
#define RUNS    "train compare report plan"
#define CACHED  "train evaluate data plan laconic"

static const cli_topic topics[] = {
    {CLI_SECTION_EXIT, "train", "130",
     "SIGINT (Ctrl-C) stopped the run after a checkpoint;\n"
     "`laconic train --resume --out DIR` continues it"},
    {CLI_SECTION_EXIT, "train", "138",
     "SIGUSR1 stopped the run after a checkpoint; sent to mpirun, it reaches\n"
     "all workers"},
    {CLI_SECTION_EXIT, "train", "143",
     "SIGTERM stopped the run after a checkpoint"},
    {CLI_SECTION_ENVIRONMENT, WORKERS, CLI_TRANSPORT_VARIABLE,
     "what `--transport auto` means; `laconic launch` sets it"},
    {CLI_SECTION_ENVIRONMENT, WORKERS,
     "OMPI_COMM_WORLD_SIZE, PMI_SIZE, PMIX_RANK",
     "set by mpirun and srun: the process is a worker of an MPI job"},
    {CLI_SECTION_ENVIRONMENT, WORKERS,
     "MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE",
     "set by torchrun and `laconic launch`: where the workers of a tcp job\n"
     "find worker 0, the number of this worker, and their number"},
    {CLI_SECTION_ENVIRONMENT, WORKERS " key peers launch version",
     "LACONIC_MODULES",
     "folder of the modules for MPI and tcp, instead of the installed one"},
    {CLI_SECTION_ENVIRONMENT, "train plan laconic", "NO_COLOR, TERM",
     "no colours if NO_COLOR is set and not empty, or TERM is dumb or not set"},
    {CLI_SECTION_ENVIRONMENT, "list laconic",
     CLI_PAGER_VARIABLE ", " CLI_PAGERS_VARIABLE,
     "the pager of help and lists on a terminal, instead of less; the first\n"
     "that is set counts, and an empty one or cat is none"},
    {CLI_SECTION_ENVIRONMENT, "list laconic", "LESS",
     "options of less; FRX if it is not set"},
    {CLI_SECTION_ENVIRONMENT, CACHED, "XDG_CACHE_HOME",
     "folder for `laconic/`, the cache, instead of ~/.cache"},
    {CLI_SECTION_ENVIRONMENT, WORKERS " key peers", "XDG_CONFIG_HOME",
     "folder for `laconic/key` instead of ~/.config"},
    {CLI_SECTION_ENVIRONMENT, "launch laconic", "TMPDIR",
     "folder for the token of a job, which is removed at its end, instead of\n"
     "/tmp"},
    {CLI_SECTION_ENVIRONMENT, "manual", "SOURCE_DATE_EPOCH",
     "date of the page, in seconds since 1970, instead of today"},
    {CLI_SECTION_FILES, RUNS, "DIR/manifest.json",
     "all settings of the run, versions and the machine"},
    {CLI_SECTION_FILES, RUNS, "DIR/metrics.jsonl",
     "loss, accuracy, bytes and times, an object per test"},
    {CLI_SECTION_FILES, "train", "DIR/differences.jsonl",
     "with --differences: singular values, an object per test"},
    {CLI_SECTION_FILES, "train evaluate predict", "DIR/model.safetensors",
     "the averaged model, at the end of a run"},
    {CLI_SECTION_FILES, "train", "DIR/step-N/worker-R.safetensors, DIR/latest",
     "the last two checkpoints, a file per worker, and the name of the newest"},
    {CLI_SECTION_FILES, CACHED, "~/.cache/laconic",
     "data sets that `laconic data fetch` downloaded, and measurements of\n"
     "`laconic plan --measure`"},
    {CLI_SECTION_FILES, KEYS, "~/.config/laconic/key",
     "the secret key of this user on this machine, for tcp"},
};

// Whether a list of words has `word`.
static bool topic_has_page(const char *list, const char *word)
{
    const size_t len = strlen(word);
    while (*list != '\0') {
        const size_t word_len = strcspn(list, " ");
        if (word_len == len && memcmp(list, word, len) == 0) {
            return true;
        }
        list += word_len + strspn(list + word_len, " ");
    }
    return false;
}

const cli_topic *cli_topic_next(
    cli_section section, const char *page, size_t *at_inout)
{
    while (*at_inout < sizeof(topics) / sizeof(topics[0])) {
        const cli_topic *const t = &topics[(*at_inout)++];
        if (t->section == section && topic_has_page(t->pages, page)) {
            return t;
        }
    }
    return NULL;
}
