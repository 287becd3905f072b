// SPDX-License-Identifier: MIT
// The cases of the conformance tests of algorithms, all from the registry:
// every algorithm of a family with several compressors, then with every setting
// at values that are not its default, and with every pair of settings. The
// table of settings gives the values. Nothing here names an algorithm. With
// LAC_TEST_ALGORITHM in the environment only the algorithm of this name is run,
// with LAC_TEST_SHORT every algorithm with its default settings and every third
// compressor.
#ifndef LACONIC_TESTS_CASES_H
#define LACONIC_TESTS_CASES_H

#include "algorithms.h"
#include "duty.h"

#include "algorithm/framework/algorithm.h"

enum {
    PARAMS_MAX = 16,
    OTHERS_MAX = 8,
    SETTING_SIZE = 48,
    SPEC_SIZE = 512,
};

static const char *const compressors[] = {
    "identity",  "natural",      "sign",
    "top-k:0.3", "random-k:0.5", "dithering:levels=31",
    "low-rank",
};

// Used with settings that are not the default: one that depends on the key, one
// that depends on the values, one without loss. Processes use the first.
static const char *const few_compressors[] = {
    "random-k:0.5", "top-k:0.3", "identity"};

enum {
    COMPRESSORS = sizeof(compressors) / sizeof(*compressors),
    FEW_COMPRESSORS = sizeof(few_compressors) / sizeof(*few_compressors),
};

// Returns the table of an algorithm, which states its claims.
static inline const laci_algorithm_ops *claims_of(const lac_plugin *plugin)
{
    return (const laci_algorithm_ops *)plugin;
}

// An algorithm with settings and a compressor.
typedef struct algorithm_case {
    const lac_plugin *plugin;
    const char *compressor; // NULL where the algorithm takes none
    bool plain;             // no setting differs from the base
    bool extreme;           // a setting is at the end of its range
    bool pair;              // two settings differ from the base
    bool searches;          // a word such as gamma=auto starts a search
    char values[PARAMS_MAX][SETTING_SIZE]; // of settings; empty for the default
    char spec[SPEC_SIZE];
} algorithm_case;

// The setting with which workers may stay apart is on.
static inline bool is_coarse(const algorithm_case *c)
{
    const char *const setting = claims_of(c->plugin)->coarsens;
    for (size_t i = 0; setting != NULL && c->plugin->params[i].name; i++) {
        if (strcmp(c->plugin->params[i].name, setting) == 0) {
            return c->values[i][0] != '\0';
        }
    }
    return false;
}

typedef void visit_case(const algorithm_case *c, const void *context);

static inline size_t param_count(const lac_plugin *plugin)
{
    size_t count = 0;
    while (plugin->params != NULL && plugin->params[count].name != NULL) {
        count++;
    }
    assert_true(count <= PARAMS_MAX);
    return count;
}

// The compressor transmits all values, or there is none.
static inline bool is_uncompressed(const char *compressor)
{
    return compressor == NULL || strcmp(compressor, "identity") == 0;
}

// The default is a word where a number may be given as well, such as
// gamma=auto.
static inline bool is_word(const lac_param *param)
{
    char *end;
    (void)strtod(param->default_value, &end);
    return param->type == LAC_PARAM_F64_OR_WORD && *end != '\0';
}

static inline void write_number(double value, char *out)
{
    (void)snprintf(out, SETTING_SIZE, "%.9g", value);
}

// Most cases set a number where the default is a word that stands for a search:
// a small one, such as gamma=0.3, which suits every compressor.
static inline void set_base(algorithm_case *c)
{
    for (size_t i = 0; i < param_count(c->plugin); i++) {
        const lac_param *const param = &c->plugin->params[i];
        c->values[i][0] = '\0';
        if (is_word(param)) {
            const double range = param->max - param->min;
            write_number(param->min + 0.15 * range, c->values[i]);
        }
    }
}

static inline void write_spec(algorithm_case *c)
{
    size_t len =
        (size_t)snprintf(c->spec, sizeof(c->spec), "%s", c->plugin->name);
    char separator = ':';
    for (size_t i = 0; i < param_count(c->plugin); i++) {
        if (c->values[i][0] != '\0') {
            len += (size_t)snprintf(
                c->spec + len, sizeof(c->spec) - len, "%c%s=%s", separator,
                c->plugin->params[i].name, c->values[i]);
            separator = ',';
        }
        assert_true(len < sizeof(c->spec));
    }
}

// The values of a setting that a test tries, none of them its default.
typedef struct other_values {
    char inner[OTHERS_MAX][SETTING_SIZE];
    size_t inner_count;
    size_t words;               // of the inner values, the first ones
    char ends[2][SETTING_SIZE]; // of its range; an algorithm may refuse them
    size_t end_count;
} other_values;

static inline void add_inner(other_values *v, const char *value)
{
    assert_true(v->inner_count < OTHERS_MAX);
    (void)snprintf(v->inner[v->inner_count++], SETTING_SIZE, "%s", value);
}

static inline void add_words(const lac_param *param, other_values *v)
{
    for (const char *word = param->choices; *word != '\0';) {
        const size_t len = strcspn(word, "|");
        char value[SETTING_SIZE];
        (void)snprintf(value, sizeof(value), "%.*s", (int)len, word);
        // Where a word stands for a search, the base has a number instead.
        if (is_word(param) || strcmp(value, param->default_value) != 0) {
            add_inner(v, value);
            v->words++;
        }
        word += len + (word[len] == '|');
    }
}

static inline void add_numbers(const lac_param *param, other_values *v)
{
    char value[SETTING_SIZE];
    const bool whole = param->type == LAC_PARAM_U32;
    const double given = is_word(param) ? (param->min + param->max) / 2
                                        : strtod(param->default_value, NULL);
    for (int step = 1; whole && step <= 2; step++) {
        if (given + step < param->max) {
            write_number(given + step, value);
            add_inner(v, value);
        }
    }
    if (!whole) {
        const double end = given > param->min ? param->min : param->max;
        write_number((given + end) / 2, value);
        add_inner(v, value);
    }
    if (!param->above_min && given != param->min) {
        write_number(param->min, v->ends[v->end_count++]);
    }
    if (given != param->max) {
        write_number(param->max, v->ends[v->end_count++]);
    }
}

// The name of an algorithm of the model family that is exact gossip.
static inline const char *baseline_name(void)
{
    size_t count, i = 0;
    const lac_plugin *const *const plugins = lac_algorithms(&count);
    while (i < count && (!claims_of(plugins[i])->baseline ||
                         claims_of(plugins[i])->family != LAC_FAMILY_MODEL)) {
        i++;
    }
    assert_true(i < count);
    return plugins[i]->name;
}

// A spec is that of a compressor, or of an inner algorithm.
static inline void add_spec(const lac_plugin *plugin, other_values *v)
{
    char value[SETTING_SIZE] = "(natural)";
    if (claims_of(plugin)->inner != NULL) {
        (void)snprintf(value, sizeof(value), "(%s)", baseline_name());
    }
    add_inner(v, value);
}

static inline other_values other_values_of(const lac_plugin *plugin, size_t i)
{
    const lac_param *const param = &plugin->params[i];
    other_values v = {0};
    switch (param->type) {
    case LAC_PARAM_BOOL:
        add_inner(&v, strcmp(param->default_value, "yes") == 0 ? "no" : "yes");
        break;
    case LAC_PARAM_CHOICE:
        add_words(param, &v);
        break;
    case LAC_PARAM_F64_OR_WORD:
        add_words(param, &v);
        add_numbers(param, &v);
        break;
    case LAC_PARAM_U32:
    case LAC_PARAM_F64:
        add_numbers(param, &v);
        break;
    case LAC_PARAM_SPEC:
        add_spec(plugin, &v);
        break;
    case LAC_PARAM_TEXT: // no value is known to be valid
        break;
    }
    return v;
}

// Asks the library for the cost of a case, as a round of five workers on a
// ring. Fails where the library refuses the case.
static inline lac_status cost_of(const algorithm_case *c, lac_cost *out)
{
    lac_layout *layout;
    lac_topology *topology;
    assert_ok(lac_layout_open(&layout, tensors, TENSORS));
    assert_ok(lac_topology_open(&topology, "ring", 5, 3));
    lac_algorithm_options o = lac_algorithm_options_default();
    o.spec = c->spec;
    o.compressor = c->compressor;
    o.layout = layout;
    o.topology = topology;
    const lac_status status = lac_algorithm_cost(&o, out);
    lac_topology_close(topology);
    lac_layout_close(layout);
    return status;
}

static inline void visit_spec(
    algorithm_case *c, visit_case *visit, const void *context)
{
    lac_cost ignored;
    write_spec(c);
    if ((c->extreme || c->pair) && cost_of(c, &ignored) != LAC_OK) {
        return; // such as a momentum of 1, or settings that exclude each other
    }
    char relation[SETTING_SIZE + sizeof(", compressor ")] = "";
    if (c->compressor != NULL) {
        (void)snprintf(
            relation, sizeof(relation), ", compressor %s", c->compressor);
    }
    duty_begin(c->spec, relation);
    visit(c, context);
    duty_end();
}

// Every setting alone.
static inline void visit_settings(
    algorithm_case *c, visit_case *visit, const void *context)
{
    for (size_t i = 0; i < param_count(c->plugin); i++) {
        const other_values v = other_values_of(c->plugin, i);
        for (size_t k = 0; k < v.inner_count; k++) {
            set_base(c);
            memcpy(c->values[i], v.inner[k], SETTING_SIZE);
            c->searches = is_word(&c->plugin->params[i]) && k < v.words;
            visit_spec(c, visit, context);
        }
        c->searches = false;
        c->extreme = true;
        for (size_t k = 0; WORKERS_ARE_LOCAL && k < v.end_count; k++) {
            set_base(c);
            memcpy(c->values[i], v.ends[k], SETTING_SIZE);
            visit_spec(c, visit, context);
        }
        c->extreme = false;
    }
}

// Every pair of settings, each at its last inner value.
static inline void visit_pairs(
    algorithm_case *c, visit_case *visit, const void *context)
{
    const size_t count = param_count(c->plugin);
    c->pair = true;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = i + 1; k < count; k++) {
            const other_values a = other_values_of(c->plugin, i);
            const other_values b = other_values_of(c->plugin, k);
            if (a.inner_count == 0 || b.inner_count == 0) {
                continue;
            }
            set_base(c);
            memcpy(c->values[i], a.inner[a.inner_count - 1], SETTING_SIZE);
            memcpy(c->values[k], b.inner[b.inner_count - 1], SETTING_SIZE);
            visit_spec(c, visit, context);
        }
    }
    c->pair = false;
}

// With every compressor, and settings of the base.
static inline void visit_base(
    algorithm_case *c, visit_case *visit, const void *context)
{
    const bool takes_compressor = c->compressor != NULL;
    c->plain = true;
    const size_t step = is_short() ? 3 : 1;
    for (size_t i = 0; i < (takes_compressor ? COMPRESSORS : 1); i += step) {
        c->compressor = takes_compressor ? compressors[i] : NULL;
        set_base(c);
        visit_spec(c, visit, context);
    }
    c->plain = false;
}

static inline void visit_algorithm(
    algorithm_case *c, visit_case *visit, const void *context)
{
    const bool takes_compressor = c->compressor != NULL;
    visit_base(c, visit, context);
    const size_t most = WORKERS_ARE_LOCAL ? FEW_COMPRESSORS : 1;
    for (size_t i = 0; !is_short() && i < (takes_compressor ? most : 1); i++) {
        c->compressor = takes_compressor ? few_compressors[i] : NULL;
        visit_settings(c, visit, context);
        if (WORKERS_ARE_LOCAL) {
            visit_pairs(c, visit, context);
        }
    }
}

// The name of the only algorithm to run; NULL: all.
static inline const char *only_algorithm(void)
{
    return getenv("LAC_TEST_ALGORITHM");
}

typedef void visit_cases(
    algorithm_case *c, visit_case *visit, const void *context);

// Calls `cases` with every algorithm of a family.
static inline void visit_algorithms(
    lac_family family, visit_cases *cases, visit_case *visit,
    const void *context)
{
    const char *const wanted = only_algorithm();
    bool visited = false;
    size_t count;
    const lac_plugin *const *const plugins = lac_algorithms(&count);
    for (size_t i = 0; i < count; i++) {
        if (wanted != NULL && strcmp(plugins[i]->name, wanted) != 0) {
            continue;
        }
        algorithm_case c = {.plugin = plugins[i]};
        lac_cost cost;
        write_spec(&c);
        if (cost_of(&c, &cost) != LAC_OK) { // it needs a compressor
            c.compressor = "identity";
            assert_ok(cost_of(&c, &cost));
        }
        const bool member = claims_of(c.plugin)->family == family;
        if (member) {
            cases(&c, visit, context);
        }
        visited = visited || member || wanted != NULL;
    }
    assert_true(visited);
}

// Calls `visit` with every case of a family.
static inline void visit_family(
    lac_family family, visit_case *visit, const void *context)
{
    visit_algorithms(family, visit_algorithm, visit, context);
}

// Calls `visit` with every algorithm of a family and every compressor.
static inline void visit_plain(
    lac_family family, visit_case *visit, const void *context)
{
    visit_algorithms(family, visit_base, visit, context);
}

#endif
