// SPDX-License-Identifier: MIT
// The choices come from the registry of algorithms; the table below has the
// settings and compressors that users combine them with. The controls are left
// out: they do not converge, so their time is of no use. qsgd is dithering with
// 127 levels, 8 bits a value. The last three of outer are rotated deltas,
// SparseLoCo and, on random matchings, NoLoCo.
#include "cli/plan/candidates.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <laconic/laconic.h>

#include "cli/options/spec.h"

static const plan_choice usual[] = {
    {"allreduce", NULL, false},
    {"compressed", "natural", false},
    {"compressed", "qsgd:bucket=512", false},
    {"compressed", "rotated", false},
    {"error-feedback", "sign", false},
    {"error-feedback", "rotated:1", false},
    {"error-feedback", "top-k:0.01", false},
    {"ef21", "sign", false},
    {"ef21", "top-k:0.01", false},
    {"signum:tie=zero", NULL, false},
    {"integer", NULL, false},
    {"integer:bits=16", NULL, false},
    {"powersgd:rank=1", NULL, false},
    {"powersgd:rank=2", NULL, false},
    {"powersgd:rank=4", NULL, false},
    {"powersgd:rank=1,high=2", NULL, false},
    {"dpsgd", NULL, false},
    {"dcd", "qsgd:bucket=512", false},
    {"ecd", "dithering:32767", false},
    {"choco", "sign", false},
    {"choco", "top-k:0.01", false},
    {"beer", "sign", false},
    {"beer", "top-k:0.01", false},
    {"deepsqueeze", "sign", false},
    {"deepsqueeze", "top-k:0.01", false},
    {"powergossip", NULL, false},
    {"powergossip:iterations=2", NULL, false},
    {"outer", NULL, false},
    {"outer:inner=(powersgd:rank=2)", NULL, false},
    {"outer:inner=(error-feedback),lr=1,momentum=0", "rotated:1", false},
    {"outer:inner=(error-feedback:decay=0.95),lr=1,momentum=0",
     "top-k:0.015625,chunk=4096+two-bit", false},
    {"outer:inner=(dpsgd),momentum=0.5,nesterov=no", NULL, false},
};

// Of Streaming DiLoCo: at most so many fragments, and the delay and the alpha
// of the paper.
enum { FRAGMENTS_MOST = 4, DELAY_MOST = 5 };

static bool left_out(const char *name)
{
    return strcmp(name, "naive") == 0 || strcmp(name, "moniqua") == 0;
}

// Adds the usual choices of an algorithm. Returns their new number.
static size_t add_usual(const char *name, size_t count, plan_choice *out)
{
    const size_t all = sizeof(usual) / sizeof(usual[0]);
    for (size_t i = 0; i < all && count < PLAN_CHOICES_MAX; i++) {
        if (cli_spec_names(usual[i].algorithm, name)) {
            out[count++] = usual[i];
        }
    }
    return count;
}

size_t plan_choices(plan_choice out[PLAN_CHOICES_MAX])
{
    size_t algorithms = 0, count = 0;
    const lac_plugin *const *const plugins = lac_algorithms(&algorithms);
    for (size_t i = 0; i < algorithms; i++) {
        const char *const name = plugins[i]->name;
        const size_t before = count;
        count = add_usual(name, count, out);
        if (count == before && !left_out(name) && count < PLAN_CHOICES_MAX) {
            out[count++] = (plan_choice){name, "sign", true};
        }
    }
    return count;
}

bool plan_streaming(
    uint64_t local_steps, const char *settings, char out[PLAN_STREAMING_SIZE])
{
    if (local_steps < 2) {
        return false;
    }
    uint64_t fragments = FRAGMENTS_MOST;
    while (local_steps % fragments != 0 || local_steps / fragments < 2) {
        fragments--;
    }
    const uint64_t turn = local_steps / fragments;
    const uint64_t delay = turn > DELAY_MOST ? DELAY_MOST : turn - 1;
    (void)snprintf(
        out, PLAN_STREAMING_SIZE,
        "outer:%sfragments=%" PRIu64 ",delay=%" PRIu64 ",alpha=0.5", settings,
        fragments, delay);
    return true;
}
