// SPDX-License-Identifier: MIT
// Every compressor that can be opened, in every form: what the conformance
// tests run over. A new line in compressors.def is covered by all of them.
// With LAC_TEST_COMPRESSOR in the environment only specs that hold this text
// are run, at least one.
#ifndef LACONIC_TESTS_SUBJECTS_H
#define LACONIC_TESTS_SUBJECTS_H

#include "duty.h"

#include <stdio.h>
#include <string.h>

enum { SPEC_SIZE = 96, VALUES_MAX = 600, BYTES_MAX = 8 * VALUES_MAX + 64 };

// One compressor in one form, opened anew for each duty.
typedef struct subject {
    char spec[SPEC_SIZE];
    lac_form form;
    lac_compressor *c;
} subject;

typedef void duty(subject *s);

// Shapes every duty may use: a vector, matrices, one value, whole words.
static const lac_shape test_shapes[] = {
    {100, 1}, {7, 13}, {1, 1}, {1, 37}, {16, 16}, {24, 25},
};

enum { SHAPE_COUNT = sizeof(test_shapes) / sizeof(test_shapes[0]) };

static inline lac_key test_key(uint64_t round, lac_scope scope)
{
    return lac_key_make(
        42, LAC_PURPOSE_COMPRESS, round, scope, lac_name_hash("test"));
}

// Settings beside the defaults that take other ways through the code.
static const char *const variants[] = {
    "natural:bits=8",
    "natural-dithering:levels=3,norm=inf",
    "natural-dithering:levels=1",
    "dithering:levels=4",
    "dithering:levels=127,norm=inf,bucket=64",
    "dithering:levels=1000,bucket=7",
    "dithering:levels=65535,norm=inf",
    "top-k:0.3",
    "top-k:1",
    "top-k:0.1,chunk=64",
    "top-k:0.3,chunk=7+two-bit",
    "top-k:0.1,chunk=64+sign",
    "top-k:1,chunk=32",
    "random-k:0.5",
    "random-k:rank=1",
    "random-k:1",
    "random-block:0.4",
    "random-block:rank=2",
    "low-rank:rank=3,iterations=2",
    "low-rank:rank=2,fold=yes",
    "unbiased-rank:rank=4",
    "atomo:rank=3",
    "rotated:bits=1",
    "rotated:bits=2,block=64",
    "rotated:bits=3,block=256",
    "top-k:0.5+random-k:0.5+natural",
};

// Runs a duty on a spec in every form; returns how often. A compressor that
// this build lacks a library for is left out.
static inline int run_in_all_forms(const char *spec, duty *run)
{
    static const char *const forms[] = {
        ", plain", ", unbiased", ", contractive"};
    const char *const wanted = getenv("LAC_TEST_COMPRESSOR");
    if (wanted != NULL && strstr(spec, wanted) == NULL) {
        return 0;
    }
    for (int form = LAC_FORM_PLAIN; form <= LAC_FORM_CONTRACTIVE; form++) {
        subject s = {.form = (lac_form)form};
        (void)snprintf(s.spec, sizeof(s.spec), "%s", spec);
        print_message("%s%s\n", s.spec, forms[form]);
        duty_begin(s.spec, forms[form]);
        const lac_status status = lac_compressor_open(&s.c, s.spec, s.form);
        if (status == LAC_ERR_UNSUPPORTED) {
            print_message("not in this build\n");
            duty_end();
            continue;
        }
        assert_ok(status);
        for (size_t i = 0; i < SHAPE_COUNT; i++) {
            assert_ok(lac_compressor_reserve(s.c, test_shapes[i]));
        }
        run(&s);
        duty_end();
        lac_compressor_close(s.c);
    }
    return LAC_FORM_CONTRACTIVE + 1;
}

// The sparsifier of a plug-in, which is the first member of its ops, or NULL.
static inline const lac_sparsifier_ops *sparsifier_of(const lac_plugin *plugin)
{
    return ((const lac_compressor_ops *)(const void *)plugin)->sparsifier;
}

// Whether the spec names a sparsifier that leaves values out by chance.
static inline bool leaves_out_by_chance(const char *spec)
{
    size_t count;
    const lac_plugin *const *const table = lac_compressors(&count);
    while (*spec != '\0') {
        const size_t len = strcspn(spec, ":+");
        for (size_t i = 0; i < count; i++) {
            const lac_sparsifier_ops *const ops = sparsifier_of(table[i]);
            if (ops != NULL && ops->random && strlen(table[i]->name) == len &&
                memcmp(table[i]->name, spec, len) == 0) {
                return true;
            }
        }
        spec += strcspn(spec, "+");
        spec += *spec == '+';
    }
    return false;
}

// "name:key=value,...+inner" with every real number that has a range at three
// tenths of it: enough values are kept for the inner compressor to matter.
// Where such settings do not go together, "name+inner".
static inline void join_specs(
    const lac_plugin *outer, const lac_plugin *inner, char spec[SPEC_SIZE])
{
    lac_compressor *c = NULL;
    int len = snprintf(spec, SPEC_SIZE, "%s", outer->name);
    char separator = ':';
    for (const lac_param *p = outer->params; p != NULL && p->name; p++) {
        if (p->type == LAC_PARAM_F64 && p->max - p->min < 1e6) {
            len += snprintf(
                spec + len, SPEC_SIZE - (size_t)len, "%c%s=%g", separator,
                p->name, p->min + 0.3 * (p->max - p->min));
            separator = ',';
            assert_true(len < SPEC_SIZE);
        }
    }
    (void)snprintf(spec + len, SPEC_SIZE - (size_t)len, "+%s", inner->name);
    if (lac_compressor_open(&c, spec, LAC_FORM_PLAIN) == LAC_ERR_INVALID) {
        (void)snprintf(spec, SPEC_SIZE, "%s+%s", outer->name, inner->name);
    }
    lac_compressor_close(c);
}

// Runs a duty over all built-in compressors, their aliases, each sparsifier
// with each compressor behind it, and the variants.
static inline void for_all_subjects(duty *run)
{
    int runs = 0;
    size_t count, alias_count;
    const lac_plugin *const *const table = lac_compressors(&count);
    const lac_alias *const aliases = lac_compressor_aliases(&alias_count);
    for (size_t i = 0; i < count; i++) {
        runs += run_in_all_forms(table[i]->name, run);
        for (size_t j = 0; sparsifier_of(table[i]) && j < count; j++) {
            char spec[SPEC_SIZE];
            join_specs(table[i], table[j], spec);
            runs += run_in_all_forms(spec, run);
        }
    }
    for (size_t i = 0; i < alias_count; i++) {
        runs += run_in_all_forms(aliases[i].name, run);
    }
    for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
        runs += run_in_all_forms(variants[i], run);
    }
    assert_true(runs > 0);
}

// A payload of `x` for the subject, with the bytes it took.
static inline size_t encode_test(
    subject *s, const lac_key *key, lac_shape shape, const float *x,
    uint8_t *out)
{
    size_t len = 0;
    assert_ok(lac_compressor_encode(s->c, key, shape, x, out, BYTES_MAX, &len));
    return len;
}

#endif
