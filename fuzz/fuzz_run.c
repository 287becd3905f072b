// SPDX-License-Identifier: MIT
// Arbitrary bytes as a file of a run of `laconic train`. The first byte chooses
// the file: the manifest, the metrics, or the name of the latest checkpoint.
// The other files are sound. All commands that read runs read it: train
// --config and --resume, compare, report and plan --run. What one accepts, it
// can print; what it refuses has a message.
#include <stdio.h>
#include <string.h>

#include "cli/compare/report.h"
#include "cli/page/document.h"
#include "cli/plan/run_report.h"
#include "cli/train/config.h"
#include "cli/train/manifest.h"
#include "cli/train/settings.h"
#include "folder.h"
#include "fuzz.h"
#include "train/checkpoint.h"
#include "train/lines.h"

enum { FILES = 3, WORKERS_MAX = 64 };

static const char *const names[FILES] = {
    "manifest.json", "metrics.jsonl", "latest"};

// Its algorithm averages gradients, so that `report` draws no network.
static const char *const sound[FILES] = {
    "{\"run\": \"0123456789abcdef\", \"settings\": {\"model\": \"lenet\", "
    "\"data\": \"mnist\", \"algorithm\": \"error-feedback\", "
    "\"compressor\": \"sign\", \"topology\": \"ring\", \"epochs\": 2, "
    "\"seed\": 1, \"workers\": 4}, \"facts\": {\"parameters\": 61706, "
    "\"family\": \"gradient\"}}\n",
    "{\"epoch\": 1, \"step\": 10, \"test_accuracy\": 0.5, "
    "\"payload_bytes\": 100, \"compute_seconds\": 4, "
    "\"compress_seconds\": 2, \"wait_seconds\": 1}\n"
    "{\"epoch\": 2, \"step\": 20, \"test_accuracy\": 0.75, "
    "\"payload_bytes\": 200, \"compute_seconds\": 8, "
    "\"compress_seconds\": 4, \"wait_seconds\": 2}\n",
    "step-20",
};

static FILE *nowhere(void)
{
    static FILE *file;
    file = file == NULL ? fopen("/dev/null", "w") : file;
    fuzz_require(file != NULL, "no file to print to");
    return file;
}

static void require_refusal(lac_status status)
{
    fuzz_require(
        status == LAC_ERR_INVALID || status == LAC_ERR_CORRUPT ||
            status == LAC_ERR_NOTFOUND || status == LAC_ERR_UNSUPPORTED,
        "another status");
    fuzz_require(lac_error_message()[0] != '\0', "no message");
}

// The settings of a train command without options.
static cli_train_settings default_settings(void)
{
    cli_train_settings s = {.out = ""};
    for (const cli_option *o = cli_train_options; o->name != NULL; o++) {
        const char *const given = o->default_value;
        fuzz_require(
            given == NULL || (*given == '\0' && o->type != CLI_OPTION_TEXT) ||
                cli_option_store(o, given, &s) == LAC_OK,
            "a default is refused");
    }
    return s;
}

static void read_config(const char *path)
{
    cli_train_settings s = default_settings();
    cli_config config = {cli_train_options, &s, 0};
    cJSON *file = NULL;
    const lac_status status = cli_config_read(&config, path, &file);
    if (status != LAC_OK) {
        require_refusal(status);
    }
    cJSON_Delete(file);
}

static void resume(void)
{
    static const char *const none[] = {NULL};
    const cli_train_settings s = default_settings();
    cJSON *const settings = cli_manifest_settings(cli_train_options, &s);
    cli_manifest_found found;
    uint64_t step = 0;
    lac_status status = cli_manifest_check(
        fuzz_folder(), cli_train_options, settings, none, &found);
    fuzz_require(found.found, "there is no manifest");
    if (status != LAC_OK) {
        require_refusal(status);
    }
    cJSON_Delete(settings);
    status = train_checkpoint_latest(fuzz_folder(), &step);
    if (status != LAC_OK) {
        require_refusal(status);
    }
    status = train_lines_cut(fuzz_folder(), names[1], step);
    if (status != LAC_OK) {
        require_refusal(status);
    }
}

static void check_epochs(const cli_run *run)
{
    for (size_t i = 1; i < run->count; i++) {
        fuzz_require(
            run->epochs[i].epoch > run->epochs[i - 1].epoch &&
                run->epochs[i].step > run->epochs[i - 1].step,
            "an epoch is not later than the one before");
    }
}

static void compare(void)
{
    compare_set set;
    compare_set_open(&set);
    lac_status status = compare_set_add(&set, fuzz_folder());
    if (status == LAC_OK) {
        fuzz_require(
            set.count == 1 && compare_set_arrange(&set) == LAC_OK,
            "a run cannot be arranged");
        check_epochs(&set.runs[0]);
        compare_report_print(&set, nowhere());
        cJSON_Delete(compare_report_json(&set));
    } else {
        require_refusal(status);
    }
    compare_set_close(&set);
}

static void report(void)
{
    char path[FUZZ_PATH_SIZE];
    char *const paths[] = {path};
    page_inputs in;
    size_t len = 0;
    (void)snprintf(path, sizeof(path), "%s", fuzz_folder());
    const lac_status status = page_inputs_open(&in, paths, 1, "", "");
    if (status == LAC_OK) {
        fuzz_require(
            page_document_write(&in, "/dev/null", &len) == LAC_OK,
            "what was read cannot be printed");
    } else {
        require_refusal(status);
    }
    page_inputs_close(&in);
}

static void plan_network_time(void)
{
    const cli_texts folders = {.items = {fuzz_folder()}, .count = 1};
    const plan_run_options common = {
        .network = {PLAN_STAR, 1e9 / 8, 1e-4}, .transport = "local"};
    plan_runs runs;
    const lac_status status = plan_runs_open(&runs, &folders, &common, "");
    if (status == LAC_OK) {
        plan_run_print(&runs, nowhere());
        cJSON_Delete(plan_run_json(&runs));
    } else {
        require_refusal(status);
    }
    plan_runs_close(&runs);
}

// Whether a network of the run is small: larger ones only take long.
static bool is_small(void)
{
    cli_run run;
    const bool small = cli_run_open(&run, fuzz_folder()) != LAC_OK ||
                       run.workers <= WORKERS_MAX;
    cli_run_close(&run);
    return small;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[FUZZ_PATH_SIZE];
    fuzz_input input = {data, size};
    const size_t chosen = fuzz_byte(&input) % FILES;
    for (size_t i = 0; i < FILES; i++) {
        fuzz_write(names[i], sound[i], strlen(sound[i]));
    }
    fuzz_write(names[chosen], input.data, input.size);
    read_config(fuzz_path(names[0], path));
    compare();
    if (is_small()) {
        report();
        plan_network_time();
    }
    resume(); // the last: it shortens the metrics
    return 0;
}
