// SPDX-License-Identifier: MIT
// laconic version: the versions of everything that a report of a defect needs.
#include <stdio.h>
#include <string.h>

#include <gnu/libc-version.h>
#include <zlib.h>

#include "cli/options/command.h"
#include "cli/report/processor.h"
#include "cli/report/system.h"
#include "cli/report/table.h"
#include "cli/version/onednn.h"

// clang names itself in its version.
#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

enum {
    PROBLEM_SIZE = 512,
    KERNELS_SIZE = 64,
    SYSTEM_SIZE = 2 * CLI_SYSTEM_SIZE + 2,
};

typedef struct settings {
    bool json;
} settings;

static const cli_option options[] = {
    CLI_OPTION_JSON(settings),
    {0},
};

// The library that a transport uses, or why its module cannot be loaded.
typedef struct library {
    const char *name; // for the table, and in JSON that of an MPI
    const char *spec;
    bool found;
    char version[LAC_LIBRARY_SIZE];
    char problem[PROBLEM_SIZE];
} library;

enum {
    TCP,
    OPENMPI,
    MPICH,
#ifdef LACI_SMPI
    SIMGRID,
#endif
    LIBRARY_COUNT,
    FIRST_MPI = OPENMPI,
};

typedef struct versions {
    char kernels[KERNELS_SIZE];
    bool prefetch;
    char processor[CLI_PROCESSOR_SIZE];
    char onednn[CLI_ONEDNN_SIZE];
    char headers[CLI_ONEDNN_SIZE];
    char instructions[CLI_ONEDNN_SIZE];
    char system[SYSTEM_SIZE];
    library libraries[LIBRARY_COUNT];
} versions;

static void find_library(library *l)
{
    l->found = lac_transport_library(l->spec, l->version, sizeof(l->version)) ==
               LAC_OK;
    if (!l->found) {
        (void)snprintf(
            l->problem, sizeof(l->problem), "%s", lac_error_message());
    }
}

// A compressor names the kernels that the library chose for this processor.
static lac_status find_kernels(versions *v)
{
    lac_compressor *c = NULL;
    LAC_TRY(lac_compressor_open(&c, "identity", LAC_FORM_PLAIN));
    (void)snprintf(
        v->kernels, sizeof(v->kernels), "%s", lac_compressor_kernels(c));
    v->prefetch = lac_compressor_prefetches(c);
    lac_compressor_close(c);
    return LAC_OK;
}

static void find_system(versions *v)
{
    char name[CLI_SYSTEM_SIZE], kernel[CLI_SYSTEM_SIZE];
    cli_system_name(name);
    cli_system_kernel(kernel);
    (void)snprintf(
        v->system, sizeof(v->system), "%s%s%s", name,
        *kernel == '\0' ? "" : ", ", kernel);
}

static lac_status find_versions(versions *v)
{
    *v = (versions){
        .libraries =
            {
                [TCP] = {.name = "tcp", .spec = "tcp"},
                [OPENMPI] = {.name = "openmpi", .spec = "mpi:library=openmpi"},
                [MPICH] = {.name = "mpich", .spec = "mpi:library=mpich"},
#ifdef LACI_SMPI
                [SIMGRID] = {.name = "simgrid", .spec = "smpi"},
#endif
            },
    };
    LAC_TRY(find_kernels(v));
    cli_processor(v->processor);
    cli_onednn_version(v->onednn);
    cli_onednn_headers(v->headers);
    cli_onednn_instructions(v->instructions);
    find_system(v);
    for (size_t i = 0; i < LIBRARY_COUNT; i++) {
        find_library(&v->libraries[i]);
    }
    return LAC_OK;
}

static cJSON *onednn_json(const versions *v)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "version", v->onednn);
    cJSON_AddStringToObject(o, "headers", v->headers);
    cJSON_AddStringToObject(o, "instructions", v->instructions);
    return o;
}

// Either the version or the problem is null.
static cJSON *library_json(const library *l, bool named)
{
    cJSON *const o = cJSON_CreateObject();
    if (named) {
        cJSON_AddStringToObject(o, "name", l->name);
    }
    cJSON_AddItemToObject(
        o, "version", cli_json_text(l->found ? l->version : NULL));
    cJSON_AddItemToObject(
        o, "problem", cli_json_text(l->found ? NULL : l->problem));
    return o;
}

static int print_json(const versions *v)
{
    cJSON *const o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "laconic", lac_version());
    cJSON_AddStringToObject(o, "compiler", COMPILER);
    cJSON_AddStringToObject(o, "build", LACI_BUILD_TYPE);
    cJSON_AddStringToObject(o, "kernels", v->kernels);
    cJSON_AddBoolToObject(o, "prefetch", v->prefetch);
    cJSON_AddStringToObject(o, "processor", v->processor);
    cJSON_AddNumberToObject(o, "processors", (double)cli_processor_count());
    cJSON_AddItemToObject(o, "onednn", onednn_json(v));
    cJSON *const mpis = cJSON_AddArrayToObject(o, "mpi");
    for (size_t i = FIRST_MPI; i < LIBRARY_COUNT; i++) {
        cJSON_AddItemToArray(mpis, library_json(&v->libraries[i], true));
    }
    cJSON_AddItemToObject(
        o, "openssl", library_json(&v->libraries[TCP], false));
    cJSON_AddStringToObject(o, "zlib", zlibVersion());
    cJSON_AddStringToObject(o, "cjson", cJSON_Version());
    cJSON_AddStringToObject(o, "glibc", gnu_get_libc_version());
    cJSON_AddStringToObject(o, "system", v->system);
    return cli_json_print(o, stdout);
}

// A message may quote a path of any length.
static void add_library(cli_table *table, const library *l)
{
    char problem[CLI_CELL_SIZE];
    cli_table_add(table, "%s", l->name);
    cli_table_add(
        table, "%s",
        l->found ? l->version
                 : cli_fitted(l->problem, CLI_CELL_SIZE - 1, problem));
}

static void print_table(const versions *v)
{
    cli_table t = cli_table_make("ll", NULL);
    cli_table_add(&t, "laconic");
    cli_table_add(&t, "%s", lac_version());
    cli_table_add(&t, "compiler");
    cli_table_add(&t, "%s, %s", COMPILER, LACI_BUILD_TYPE);
    cli_table_add(&t, "processor");
    cli_table_add(&t, "%s, %ld usable", v->processor, cli_processor_count());
    cli_table_add(&t, "kernels");
    cli_table_add(
        &t, "%s%s", v->kernels, v->prefetch ? ", with prefetching" : "");
    cli_table_add(&t, "oneDNN");
    cli_table_add(
        &t, "%s for %s, compiled with headers of %s", v->onednn,
        v->instructions, v->headers);
    for (size_t i = 0; i < LIBRARY_COUNT; i++) {
        add_library(&t, &v->libraries[i]);
    }
    cli_table_add(&t, "others");
    cli_table_add(
        &t, "glibc %s, zlib %s, cJSON %s", gnu_get_libc_version(),
        zlibVersion(), cJSON_Version());
    cli_table_add(&t, "system");
    cli_table_add(&t, "%s", v->system);
    cli_table_print(&t, stdout);
}

static int version_run(const void *given, size_t count, char *const *arguments)
{
    (void)count;
    (void)arguments;
    const settings *const s = given;
    versions v;
    if (find_versions(&v) != LAC_OK) {
        return cli_failed();
    }
    if (s->json) {
        return print_json(&v);
    }
    print_table(&v);
    return CLI_GOOD;
}

const cli_command cmd_version = {
    .name = "version",
    .summary = "print the versions that a report of a defect needs",
    .arguments = "",
    .details =
        "Print the version of laconic, the compiler and the type of build,\n"
        "the processor and the kernels that suit it, oneDNN, the libraries of\n"
        "the modules for MPI and tcp, and the system. Where a module is "
        "missing\n"
        "or cannot be loaded, its line has the reason. Nothing is started.\n"
        "Please add this output to a report of a defect. `laconic --version`\n"
        "prints the first line only.",
    .example = "Write the versions to a file, for programs:\n"
               "\n"
               "    laconic version --json > versions.json",
    .options = options,
    .settings_size = sizeof(settings),
    .run = version_run,
};
