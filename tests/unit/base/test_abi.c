// SPDX-License-Identifier: MIT
// Numbers and sizes that programs compiled earlier rely on. A failure here
// means that SOVERSION has to change.
#include "lac_test.h"

static void statuses_keep_their_values(void **state)
{
    (void)state;
    assert_int_equal(LAC_OK, 0);
    assert_int_equal(LAC_ERR_INVALID, -1);
    assert_int_equal(LAC_ERR_NOMEM, -2);
    assert_int_equal(LAC_ERR_NOTFOUND, -3);
    assert_int_equal(LAC_ERR_SPACE, -4);
    assert_int_equal(LAC_ERR_CORRUPT, -5);
    assert_int_equal(LAC_ERR_UNSUPPORTED, -6);
    assert_int_equal(LAC_ERR_PEER, -7);
}

static void enumerations_keep_their_values(void **state)
{
    (void)state;
    assert_int_equal(LAC_FORM_PLAIN, 0);
    assert_int_equal(LAC_FORM_UNBIASED, 1);
    assert_int_equal(LAC_FORM_CONTRACTIVE, 2);
    assert_int_equal(LAC_SCOPE_WORKER, 0);
    assert_int_equal(LAC_SCOPE_EDGE, 1);
    assert_int_equal(LAC_SCOPE_SHARED, 2);
    assert_int_equal(LAC_TRAIT_LINEAR, 1);
    assert_int_equal(LAC_TRAIT_DETERMINISTIC, 2);
    assert_int_equal(LAC_TRAIT_ELEMENTWISE, 4);
    assert_int_equal(LAC_TRAIT_FIXED_SIZE, 8);
    assert_int_equal(LAC_PURPOSE_COMPRESS, 1);
    assert_int_equal(LAC_PURPOSE_INNER, 2);
    assert_int_equal(LAC_PURPOSE_CHOICE, 3);
    assert_int_equal(LAC_PURPOSE_DATA, 4);
    assert_int_equal(LAC_PURPOSE_FACTOR, 6);
    assert_int_equal(LAC_PURPOSE_SPLIT, 7);
    assert_int_equal(LAC_PURPOSE_USER, 256);
    assert_int_equal(LAC_PARAM_BOOL, 0);
    assert_int_equal(LAC_PARAM_SPEC, 6);
    assert_int_equal(LAC_F32, 0);
    assert_int_equal(LAC_F16, 1);
    assert_int_equal(LAC_BF16, 2);
    assert_int_equal(LAC_F64, 3);
    assert_int_equal(LAC_NONFINITE_STOP, 0);
    assert_int_equal(LAC_NONFINITE_SKIP, 1);
    assert_int_equal(LAC_NONFINITE_RAW, 2);
    assert_int_equal(LAC_NONFINITE_PROPAGATE, 3);
    assert_int_equal(LAC_LOAD_OTHER_WORLD, 1);
    assert_int_equal(LAC_EXCHANGE_HIDDEN, 1);
    assert_int_equal(LAC_EXCHANGE_ALLREDUCE, 2);
    assert_int_equal(LAC_EXCHANGE_AHEAD, 4);
    assert_int_equal(LAC_EXCHANGE_BOUND, 8);
}

// Structs without a size of their own cannot grow at all.
static void fixed_structs_keep_their_sizes(void **state)
{
    (void)state;
    if (sizeof(void *) != 8) {
        skip();
    }
    assert_int_equal(sizeof(lac_shape), 16);
    assert_int_equal(sizeof(lac_tensor), 40);
    assert_int_equal(sizeof(lac_scope), 12);
    assert_int_equal(sizeof(lac_key), 24);
    assert_int_equal(sizeof(lac_guarantee), 16);
    assert_int_equal(sizeof(lac_number_or_word), 16);
    assert_int_equal(sizeof(lac_alias), 24);
    assert_int_equal(sizeof(lac_plugin), 64);
    assert_int_equal(sizeof(lac_edge), 16);
    assert_int_equal(sizeof(lac_spectrum), 64);
    assert_int_equal(sizeof(lac_send), 40);
    assert_int_equal(sizeof(lac_receive), 56);
    assert_int_equal(sizeof(lac_slice), 32);
    assert_int_equal(sizeof(lac_traffic), 24);
    assert_int_equal(sizeof(lac_cost), 72);
    assert_int_equal(sizeof(lac_exchange), 56);
}

// Structs that carry their size may grow at the end, never shrink. The members
// of version 0.1.0 end where `finite` and `help` begin.
static void growing_structs_keep_what_they_had(void **state)
{
    (void)state;
    if (sizeof(void *) != 8) {
        skip();
    }
    assert_int_equal(offsetof(lac_param, help), 72);
    assert_int_equal(offsetof(lac_call, kernels), 64);
    assert_int_equal(offsetof(lac_sparsifier_ops, random), 48);
    assert_int_equal(offsetof(lac_compressor_ops, residual), 176);
    assert_int_equal(offsetof(lac_compressor_ops, growth), 192);
    assert_int_equal(offsetof(lac_compressor_ops, largest), 200);
    assert_int_equal(offsetof(lac_compressor_ops, group), 208);
    assert_int_equal(offsetof(lac_compressor_ops, needs_key), 216);
    assert_int_equal(offsetof(lac_compressor_ops, needs_seed), 224);
    assert_int_equal(offsetof(lac_transport_ops, exchange), 8);
    assert_int_equal(offsetof(lac_transport_ops, allreduce_sum), 32);
}

static void the_library_is_of_the_version_of_its_headers(void **state)
{
    (void)state;
    assert_string_equal(lac_version(), LAC_VERSION_STRING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_keep_their_values),
        cmocka_unit_test(enumerations_keep_their_values),
        cmocka_unit_test(fixed_structs_keep_their_sizes),
        cmocka_unit_test(growing_structs_keep_what_they_had),
        cmocka_unit_test(the_library_is_of_the_version_of_its_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
