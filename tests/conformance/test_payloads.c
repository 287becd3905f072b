// SPDX-License-Identifier: MIT
// The duties of every compressor about bytes: sizes, determinism, malformed
// payloads, alignment, and what decoding writes.
#include "subjects.h"

#include <math.h>
#include <stdlib.h>

enum { GUARD = 0xa5 };

static float sample[VALUES_MAX];

static int setup(void **state)
{
    (void)state;
    fill_normal(sample, VALUES_MAX, 7);
    return 0;
}

static bool same_floats(const float *a, const float *b, size_t n)
{
    return memcmp(a, b, n * sizeof(*a)) == 0;
}

static void stay_within_the_bound(subject *s)
{
    for (size_t n = 0; n <= 80; n++) {
        const lac_shape shape = {n, 1};
        for (int shared = 0; shared < 2; shared++) {
            const lac_key key =
                test_key(n, shared ? lac_scope_shared() : lac_scope_worker(3));
            const size_t bound = lac_compressor_bound(s->c, shape, key.scope);
            uint8_t payload[BYTES_MAX];
            size_t len = 0;
            assert_between(bound, 0, BYTES_MAX - 1);
            memset(payload, GUARD, sizeof(payload));
            assert_ok(lac_compressor_encode(
                s->c, &key, shape, sample, payload, bound, &len));
            assert_between(len, 0, bound);
            assert_int_equal(payload[bound], GUARD);
        }
    }
}

// Values decide about nothing: neither zeros nor powers of two are shorter.
static void have_a_fixed_size_if_they_claim_it(subject *s)
{
    static const float zeros[80];
    for (int shared = 0; shared < 2; shared++) {
        const lac_key key =
            test_key(5, shared ? lac_scope_shared() : lac_scope_worker(3));
        const unsigned traits = lac_compressor_traits(s->c, key.scope);
        for (size_t n = 0; (traits & LAC_TRAIT_FIXED_SIZE) != 0 && n <= 80;
             n++) {
            const lac_shape shape = {n, 1};
            const size_t bound = lac_compressor_bound(s->c, shape, key.scope);
            const float *const values[] = {sample, zeros};
            for (size_t k = 0; k < 2; k++) {
                uint8_t payload[BYTES_MAX];
                size_t len = 0;
                assert_ok(lac_compressor_encode(
                    s->c, &key, shape, values[k], payload, bound, &len));
                assert_int_equal(len, bound);
            }
        }
    }
}

static void refuse_a_short_buffer(subject *s)
{
    const lac_key key = test_key(1, lac_scope_shared());
    const lac_shape shape = test_shapes[0];
    const size_t bound = lac_compressor_bound(s->c, shape, key.scope);
    uint8_t payload[BYTES_MAX];
    size_t len = 77;
    memset(payload, GUARD, sizeof(payload));
    assert_status(
        lac_compressor_encode(
            s->c, &key, shape, sample, payload, bound - 1, &len),
        LAC_ERR_SPACE);
    assert_int_equal(len, 77);
    assert_int_equal(payload[0], GUARD);
}

// The same bytes from another handle and from other kernels.
static void depend_on_key_and_values_only(subject *s)
{
    lac_compressor *other;
    assert_ok(lac_compressor_open(&other, s->spec, s->form));
    assert_ok(lac_compressor_use_kernels(other, "portable"));
    for (size_t i = 0; i < SHAPE_COUNT; i++) {
        const lac_key key = test_key(i, lac_scope_worker(0));
        uint8_t first[BYTES_MAX], second[BYTES_MAX];
        float x[VALUES_MAX], y[VALUES_MAX];
        size_t len = 0;
        assert_ok(lac_compressor_reserve(other, test_shapes[i]));
        const size_t expected =
            encode_test(s, &key, test_shapes[i], sample, first);
        assert_ok(lac_compressor_encode(
            other, &key, test_shapes[i], sample, second, BYTES_MAX, &len));
        assert_int_equal(len, expected);
        assert_memory_equal(first, second, len);
        assert_ok(
            lac_compressor_decode(s->c, &key, test_shapes[i], first, len, x));
        assert_ok(
            lac_compressor_decode(other, &key, test_shapes[i], first, len, y));
        assert_true(same_floats(x, y, lac_shape_values(test_shapes[i])));
    }
    lac_compressor_close(other);
}

static void draw_anew_unless_deterministic(subject *s)
{
    const lac_shape shape = {24, 25};
    uint8_t payload[2][BYTES_MAX];
    float x[2][VALUES_MAX];
    for (uint64_t k = 0; k < 2; k++) {
        const lac_key key = test_key(k, lac_scope_shared());
        const size_t len = encode_test(s, &key, shape, sample, payload[k]);
        assert_ok(
            lac_compressor_decode(s->c, &key, shape, payload[k], len, x[k]));
    }
    const bool same = same_floats(x[0], x[1], lac_shape_values(shape));
    const unsigned traits = lac_compressor_traits(s->c, LAC_SCOPE_SHARED);
    if (traits & LAC_TRAIT_DETERMINISTIC) {
        assert_true(same);
    } else if (strchr(s->spec, '+') == NULL) {
        // A ratio of 1 leaves nothing to chance.
        const double error = lac_compressor_guarantee(s->c, shape).error;
        assert_true(!same || error == 0);
    }
}

// Each half of the key matters, but to a choice of values to keep, which is
// made from the lower half. What is joined may have nothing left to draw.
static void draw_from_the_whole_key(subject *s)
{
    const lac_shape shape = {24, 25};
    const lac_key key = test_key(1, lac_scope_shared());
    const lac_key others[] = {
        {~key.low, key.high, key.scope},
        {key.low, ~key.high, key.scope},
    };
    const unsigned traits = lac_compressor_traits(s->c, key.scope);
    const bool chooses = leaves_out_by_chance(s->spec);
    const double error = lac_compressor_guarantee(s->c, shape).error;
    if (traits & LAC_TRAIT_DETERMINISTIC || error == 0 ||
        strchr(s->spec, '+') != NULL) {
        return;
    }
    uint8_t payload[BYTES_MAX], changed[BYTES_MAX];
    const size_t len = encode_test(s, &key, shape, sample, payload);
    for (int i = 0; i < (chooses ? 1 : 2); i++) {
        const size_t other = encode_test(s, &others[i], shape, sample, changed);
        assert_true(other != len || memcmp(payload, changed, len) != 0);
    }
}

static void refuse_every_other_length(subject *s)
{
    for (size_t i = 0; i < SHAPE_COUNT; i++) {
        const lac_key key = test_key(i, lac_scope_worker(1));
        uint8_t payload[BYTES_MAX];
        const size_t len =
            encode_test(s, &key, test_shapes[i], sample, payload);
        for (size_t cut = 0; cut <= len + 1; cut++) {
            // The copy ends where its block does, even one of no bytes, so
            // that the sanitizer sees reads past the end.
            uint8_t *const block = calloc(1 + cut, 1);
            float y[VALUES_MAX] = {[0] = 123.0f};
            assert_non_null(block);
            memcpy(block + 1, payload, cut < len ? cut : len);
            const lac_status status = lac_compressor_decode(
                s->c, &key, test_shapes[i], block + 1, cut, y);
            free(block);
            assert_int_equal(status, cut == len ? LAC_OK : LAC_ERR_CORRUPT);
            assert_true(cut == len || y[0] == 123.0f);
        }
    }
}

// Whatever a byte is changed to, decoding succeeds or leaves no trace. The
// last byte has no bits that nobody looks at: another one that is accepted
// means other values. (A sum may well keep a value that is zero.)
static void survive_altered_bytes(subject *s)
{
    const lac_shape shape = {7, 13};
    const lac_key key = test_key(3, lac_scope_worker(1));
    uint8_t payload[BYTES_MAX];
    float x[VALUES_MAX];
    const size_t len = encode_test(s, &key, shape, sample, payload);
    assert_ok(lac_compressor_decode(s->c, &key, shape, payload, len, x));
    for (size_t at = 0; at < len; at++) {
        for (unsigned change = 1; change < 256; change <<= 1) {
            float y[VALUES_MAX] = {[0] = 123.0f};
            payload[at] ^= (uint8_t)change;
            const lac_status status =
                lac_compressor_check(s->c, &key, shape, payload, len);
            assert_int_equal(
                lac_compressor_decode(s->c, &key, shape, payload, len, y),
                status);
            assert_true(status == LAC_OK || status == LAC_ERR_CORRUPT);
            assert_true(status == LAC_OK || y[0] == 123.0f);
            assert_true(
                at + 1 < len || strchr(s->spec, '+') != NULL ||
                !same_floats(x, y, lac_shape_values(shape)));
            payload[at] ^= (uint8_t)change;
        }
    }
}

// The same bits, except those that distinguish one NaN from another: which of
// two an addition returns is the compiler's choice.
static bool same_sums(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!same_floats(a + i, b + i, 1) && !(isnan(a[i]) && isnan(b[i]))) {
            return false;
        }
    }
    return true;
}

static void add_as_if_decoded_first(subject *s)
{
    static const float first[] = {1, INFINITY, NAN};
    for (size_t i = 0; i < SHAPE_COUNT * 3; i++) {
        const lac_shape shape = test_shapes[i / 3];
        const size_t n = lac_shape_values(shape);
        const lac_key key = test_key(i, lac_scope_shared());
        uint8_t payload[BYTES_MAX];
        float x[VALUES_MAX], sum[VALUES_MAX], y[VALUES_MAX];
        memcpy(x, sample, sizeof(x));
        x[0] *= first[i % 3];
        const size_t len = encode_test(s, &key, shape, x, payload);
        fill_normal(y, n, 11);
        assert_ok(lac_compressor_decode(s->c, &key, shape, payload, len, x));
        for (size_t j = 0; j < n; j++) {
            const float product = -0.7f * x[j];
            sum[j] = y[j] + product;
        }
        assert_ok(lac_compressor_decode_add(
            s->c, &key, shape, payload, len, -0.7f, y));
        assert_true(same_sums(sum, y, n));
    }
}

// Reads a payload with another handle and key; the values must be `expected`.
static void read_by_other(
    lac_compressor *c, const lac_key *key, lac_shape shape,
    const uint8_t *payload, size_t len, const float *expected)
{
    const size_t n = lac_shape_values(shape);
    float y[VALUES_MAX], sum[VALUES_MAX] = {0};
    assert_ok(lac_compressor_check(c, key, shape, payload, len));
    assert_ok(lac_compressor_decode(c, key, shape, payload, len, y));
    assert_true(same_floats(y, expected, n));
    assert_ok(lac_compressor_decode_add(c, key, shape, payload, len, 1, sum));
    for (size_t i = 0; i < n; i++) {
        assert_true(sum[i] == expected[i]);
    }
}

// Who receives a payload does not know the form it was made in, nor, where the
// draws were a worker's own, the key: of the other keys one differs in every
// bit.
static void send_all_but_a_shared_key(subject *s)
{
    for (size_t i = 0; i < SHAPE_COUNT * 3; i++) {
        const lac_shape shape = test_shapes[i / 3];
        const lac_key shared = test_key(i, lac_scope_shared());
        const lac_key own = test_key(i, lac_scope_worker(1));
        const lac_key other = test_key(i + 1, lac_scope_worker(2));
        const lac_key opposite = {~own.low, ~own.high, own.scope};
        uint8_t payload[BYTES_MAX];
        float x[VALUES_MAX];
        lac_compressor *c;
        assert_ok(lac_compressor_open(&c, s->spec, (lac_form)(i % 3)));
        assert_ok(lac_compressor_reserve(c, shape));
        size_t len = encode_test(s, &shared, shape, sample, payload);
        assert_ok(lac_compressor_decode(s->c, &shared, shape, payload, len, x));
        read_by_other(c, &shared, shape, payload, len, x);
        len = encode_test(s, &own, shape, sample, payload);
        assert_ok(lac_compressor_decode(s->c, &own, shape, payload, len, x));
        read_by_other(c, &own, shape, payload, len, x);
        read_by_other(c, &other, shape, payload, len, x);
        read_by_other(c, &opposite, shape, payload, len, x);
        lac_compressor_close(c);
    }
}

static void take_unaligned_pointers(subject *s)
{
    const lac_shape shape = {7, 13};
    const size_t n = lac_shape_values(shape);
    const lac_key key = test_key(1, lac_scope_worker(1));
    uint8_t expected[BYTES_MAX], shifted[BYTES_MAX + 1];
    float x[VALUES_MAX + 1], y[VALUES_MAX], z[VALUES_MAX + 1];
    const size_t len = encode_test(s, &key, shape, sample, expected);
    memcpy(x + 1, sample, n * sizeof(*x));
    assert_int_equal(encode_test(s, &key, shape, x + 1, shifted + 1), len);
    assert_memory_equal(shifted + 1, expected, len);
    assert_ok(lac_compressor_decode(s->c, &key, shape, expected, len, y));
    assert_ok(
        lac_compressor_decode(s->c, &key, shape, shifted + 1, len, z + 1));
    assert_true(same_floats(y, z + 1, n));
}

// Linear payloads are floats: the sum of two decodes to the sum. Where a value
// is a sum of a few products, of at most 8 in the shape below, the two round
// differently, by a few times 2^-24 of the largest.
static void add_up_when_linear(subject *s)
{
    const lac_shape shape = {24, 25};
    const lac_key key = test_key(1, lac_scope_shared());
    if ((lac_compressor_traits(s->c, key.scope) & LAC_TRAIT_LINEAR) == 0) {
        return;
    }
    uint8_t a[BYTES_MAX], b[BYTES_MAX];
    float x[VALUES_MAX], y[VALUES_MAX], other[VALUES_MAX];
    fill_normal(other, VALUES_MAX, 12);
    const size_t len = encode_test(s, &key, shape, sample, a);
    assert_int_equal(encode_test(s, &key, shape, other, b), len);
    assert_int_equal(len % sizeof(float), 0);
    assert_ok(lac_compressor_decode(s->c, &key, shape, a, len, x));
    assert_ok(lac_compressor_decode_add(s->c, &key, shape, b, len, 1, x));
    for (size_t i = 0; i < len; i += sizeof(float)) {
        float left, right;
        memcpy(&left, a + i, sizeof(left));
        memcpy(&right, b + i, sizeof(right));
        left += right;
        memcpy(a + i, &left, sizeof(left));
    }
    assert_ok(lac_compressor_decode(s->c, &key, shape, a, len, y));
    double most = 0;
    for (size_t i = 0; i < lac_shape_values(shape); i++) {
        most = fmax(most, fabs((double)y[i]));
    }
    for (size_t i = 0; i < lac_shape_values(shape); i++) {
        assert_true(fabs((double)x[i] - (double)y[i]) <= 0x1p-20 * most);
    }
}

// Writes the values that a payload of x[0..n) decodes to.
static void compress(
    subject *s, const lac_key *key, const float *x, size_t n, float *y_out)
{
    const lac_shape shape = {n, 1};
    uint8_t payload[BYTES_MAX];
    const size_t len = encode_test(s, key, shape, x, payload);
    assert_ok(lac_compressor_decode(s->c, key, shape, payload, len, y_out));
}

// The first groups decode to the same bits without the others, or with others.
static void expect_own_values(subject *s, size_t group)
{
    float other[VALUES_MAX], x[VALUES_MAX], y[VALUES_MAX];
    const lac_key key = test_key(1, lac_scope_worker(2));
    compress(s, &key, sample, VALUES_MAX, x);
    for (size_t n = group; n < VALUES_MAX; n += group * (n < 20 ? 1 : 61)) {
        compress(s, &key, sample, n, y);
        assert_true(same_floats(x, y, n));
        for (size_t i = 0; i < VALUES_MAX; i++) {
            other[i] = i < n ? sample[i] : 1e10F * sample[VALUES_MAX - i];
        }
        compress(s, &key, other, VALUES_MAX, y);
        assert_true(same_floats(x, y, n));
    }
}

// A part has the law that it has in the whole tensor: over DRAWS keys, the
// means of a value in both differ by less than 5 of the standard deviations of
// their difference. Where nothing is drawn, they are equal.
static void expect_law_of_parts(subject *s, size_t group)
{
    enum { DRAWS = 2000 };
    const size_t start = VALUES_MAX / 2 / group * group;
    const size_t n = VALUES_MAX - start;
    double difference[VALUES_MAX] = {0}, square[VALUES_MAX] = {0};
    for (uint64_t k = 0; k < DRAWS; k++) {
        const lac_key key = test_key(2 * k, lac_scope_worker(2));
        const lac_key part_key = test_key(2 * k + 1, lac_scope_worker(2));
        float whole[VALUES_MAX], part[VALUES_MAX];
        compress(s, &key, sample, VALUES_MAX, whole);
        compress(s, &part_key, sample + start, n, part);
        for (size_t i = 0; i < n; i++) {
            const double d = (double)part[i] - (double)whole[start + i];
            difference[i] += d;
            square[i] += d * d;
        }
    }
    for (size_t i = 0; i < n; i++) {
        assert_true(fabs(difference[i]) <= 5 * sqrt(square[i]));
    }
}

static void take_parts_if_they_claim_it(subject *s)
{
    const unsigned traits = lac_compressor_traits(s->c, LAC_SCOPE_WORKER);
    const size_t group = lac_compressor_group(s->c);
    assert_int_equal(
        traits & LAC_TRAIT_ELEMENTWISE,
        lac_compressor_traits(s->c, LAC_SCOPE_SHARED) & LAC_TRAIT_ELEMENTWISE);
    assert_true(group == 1 || (traits & LAC_TRAIT_ELEMENTWISE) == 0);
    if (group > 0) {
        expect_own_values(s, group);
        expect_law_of_parts(s, group);
    }
}

static void empty_tensors_have_empty_payloads(subject *s)
{
    const lac_key key = test_key(1, lac_scope_worker(0));
    const lac_shape shape = {0, 5};
    size_t len = 77;
    uint8_t byte = 0;
    assert_ok(lac_compressor_encode(s->c, &key, shape, NULL, NULL, 0, &len));
    assert_int_equal(len, 0);
    assert_ok(lac_compressor_decode(s->c, &key, shape, NULL, 0, NULL));
    assert_ok(lac_compressor_decode_add(s->c, &key, shape, NULL, 0, 1, NULL));
    assert_status(
        lac_compressor_check(s->c, &key, shape, &byte, 1), LAC_ERR_CORRUPT);
}

#define TEST(run)                                                              \
    static void compressors_##run(void **state)                                \
    {                                                                          \
        (void)state;                                                           \
        for_all_subjects(run);                                                 \
    }
TEST(stay_within_the_bound)
TEST(have_a_fixed_size_if_they_claim_it)
TEST(refuse_a_short_buffer)
TEST(depend_on_key_and_values_only)
TEST(draw_anew_unless_deterministic)
TEST(draw_from_the_whole_key)
TEST(refuse_every_other_length)
TEST(survive_altered_bytes)
TEST(add_as_if_decoded_first)
TEST(send_all_but_a_shared_key)
TEST(take_unaligned_pointers)
TEST(add_up_when_linear)
TEST(take_parts_if_they_claim_it)
TEST(empty_tensors_have_empty_payloads)
#undef TEST

int main(void)
{
#define TEST(run) cmocka_unit_test(compressors_##run)
    const struct CMUnitTest tests[] = {
        TEST(stay_within_the_bound),
        TEST(have_a_fixed_size_if_they_claim_it),
        TEST(refuse_a_short_buffer),
        TEST(depend_on_key_and_values_only),
        TEST(draw_anew_unless_deterministic),
        TEST(draw_from_the_whole_key),
        TEST(refuse_every_other_length),
        TEST(survive_altered_bytes),
        TEST(add_as_if_decoded_first),
        TEST(send_all_but_a_shared_key),
        TEST(take_unaligned_pointers),
        TEST(add_up_when_linear),
        TEST(take_parts_if_they_claim_it),
        TEST(empty_tensors_have_empty_payloads),
    };
    return cmocka_run_group_tests_name("payloads", tests, setup, NULL);
}
