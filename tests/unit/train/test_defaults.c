// SPDX-License-Identifier: MIT
// The defaults of training runs: which row a run gets, and that every run and
// every row has its use.
#include <string.h>

#include "lac_test.h"
#include "train/defaults.h"

static const train_default *of(
    const char *algorithm, const char *compressor, train_rule rule,
    train_kind kind)
{
    const train_subject subject = {algorithm, compressor, rule, kind};
    return train_default_of(&subject);
}

static void signs_need_a_small_step(void **state)
{
    (void)state;
    for (train_kind kind = TRAIN_IMAGES; kind <= TRAIN_LINEAR; kind++) {
        const train_default *const exact =
            of("allreduce", NULL, TRAIN_SGD, kind);
        const train_default *const signs =
            of("signum:momentum=0.8", NULL, TRAIN_SGD, kind);
        assert_true(signs->rate < exact->rate);
        assert_true(signs->momentum == 0);
    }
}

static void a_spec_is_known_by_its_name(void **state)
{
    (void)state;
    const train_default *const plain =
        of("compressed", "natural", TRAIN_SGD, TRAIN_IMAGES);
    const train_default *const coarse =
        of("compressed", "terngrad", TRAIN_SGD, TRAIN_IMAGES);
    assert_true(coarse->rate < plain->rate);
    assert_ptr_equal(
        of("compressed:server=(half)", "terngrad:levels=1", TRAIN_SGD,
           TRAIN_IMAGES),
        coarse);
    assert_ptr_equal(
        of("compressed", "top-k:0.1+terngrad", TRAIN_SGD, TRAIN_IMAGES), plain);
    assert_ptr_equal(
        of("compressed", "terngrads", TRAIN_SGD, TRAIN_IMAGES), plain);
    assert_ptr_equal(of("compressed", NULL, TRAIN_SGD, TRAIN_IMAGES), plain);
    assert_ptr_equal(of("mine", "tern", TRAIN_SGD, TRAIN_IMAGES), plain);
}

static void every_run_has_a_row(void **state)
{
    (void)state;
    size_t count = 0;
    const lac_plugin *const *const plugins = lac_algorithms(&count);
    for (size_t i = 0; i < 2 * 4 * count; i++) {
        const train_rule rule = i % 2 == 0 ? TRAIN_SGD : TRAIN_ADAM;
        const train_kind kind = (train_kind)(i / 2 % 4);
        const train_default *const d =
            of(plugins[i / 8]->name, "sign", rule, kind);
        assert_int_equal(d->rule, rule);
        assert_int_equal(d->kind, kind);
        assert_true(d->rate > 0 && d->momentum >= 0 && d->momentum < 1);
    }
}

// Splits the first name off a list.
static void first_name(const char *names, char out[32])
{
    const size_t len = strcspn(names, "|");
    assert_true(len < 32);
    memcpy(out, names, len);
    out[len] = '\0';
}

static void no_row_is_hidden_by_another(void **state)
{
    (void)state;
    size_t count = 0;
    const train_default *const rows = train_defaults(&count);
    for (size_t i = 0; i < count; i++) {
        char algorithm[32] = "mine", compressor[32] = "mine";
        if (rows[i].algorithms != NULL) {
            first_name(rows[i].algorithms, algorithm);
        }
        if (rows[i].compressors != NULL) {
            first_name(rows[i].compressors, compressor);
        }
        assert_ptr_equal(
            of(algorithm, compressor, rows[i].rule, rows[i].kind), &rows[i]);
    }
}

static void the_data_and_the_model_decide_about_the_kind(void **state)
{
    (void)state;
    assert_int_equal(train_kind_of("lenet", DATA_IMAGES), TRAIN_IMAGES);
    assert_int_equal(train_kind_of("mlp", DATA_TABLE), TRAIN_IMAGES);
    assert_int_equal(train_kind_of("resnet20", DATA_IMAGES), TRAIN_RESNET);
    assert_int_equal(train_kind_of("logistic", DATA_TABLE), TRAIN_LINEAR);
    assert_int_equal(
        train_kind_of("logistic:classes=10", DATA_IMAGES), TRAIN_LINEAR);
    assert_int_equal(train_kind_of("lstm:hidden=8", DATA_TEXT), TRAIN_TEXT);
    assert_string_equal(train_kind_name(TRAIN_LINEAR), "linear");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signs_need_a_small_step),
        cmocka_unit_test(a_spec_is_known_by_its_name),
        cmocka_unit_test(every_run_has_a_row),
        cmocka_unit_test(no_row_is_hidden_by_another),
        cmocka_unit_test(the_data_and_the_model_decide_about_the_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
