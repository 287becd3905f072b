// SPDX-License-Identifier: MIT
// Parts of payloads: for every compressor that can decode them, the bits of
// decoding everything first and adding afterwards; for every one that can
// encode them, the bytes of encoding everything at once.
#include "lac_test.h"

#include <math.h>
#include <string.h>

#include "compress/compressor.h"

enum { VALUES = 4 * LAC_PART + 77, CAP = 8 * VALUES };

static const char *const specs[] = {
    "identity",
    "half",
    "bfloat16",
    "sign",
    "natural",
    "natural:bits=8",
    "natural-dithering:levels=4",
    "natural-dithering:levels=8",
    "dithering:levels=1",
    "dithering:levels=127",
    "dithering:levels=127,bucket=512",
    "dithering:levels=7,bucket=300",
    "dithering:levels=1000,bucket=100",
    "dithering:levels=65535"};

enum { SPECS = sizeof(specs) / sizeof(*specs) };

static float x[VALUES], y[VALUES], expected[VALUES], decoded[VALUES];
static uint8_t payload[CAP];

static void fill(void)
{
    for (size_t i = 0; i < VALUES; i++) {
        x[i] = (float)sin(1.3 * (double)i);
        y[i] = expected[i] = (float)cos(0.9 * (double)i);
    }
}

static void parts_have_the_bits_of_the_whole(void **state)
{
    (void)state;
    const lac_key key = {1, 2, LAC_SCOPE_SHARED};
    const lac_shape shape = {VALUES, 1};
    const float a = 0.3f;
    for (size_t s = 0; s < SPECS; s++) {
        lac_compressor *c;
        size_t len;
        print_message("%s\n", specs[s]);
        fill();
        assert_ok(lac_compressor_open(&c, specs[s], LAC_FORM_PLAIN));
        assert_ok(lac_compressor_reserve(c, shape));
        assert_true(laci_payload_has_parts(c));
        assert_ok(lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
        assert_ok(lac_compressor_decode(c, &key, shape, payload, len, decoded));
        const lac_call call = laci_call_make(c, &key, shape);
        for (size_t i = 0; i < VALUES; i++) {
            expected[i] += a * decoded[i];
        }
        // From the last part to the first: none depends on another.
        for (size_t end = VALUES; end > 0;) {
            const size_t first = (end - 1) / LAC_PART * LAC_PART;
            laci_payload_decode_add_part(
                c, &call, payload, len, (lac_part){first, end - first}, a,
                y + first);
            end = first;
        }
        assert_memory_equal(y, expected, sizeof(y));
        lac_compressor_close(c);
    }
}

// Encodes x from the last part to the first.
static size_t encode_parts(
    const lac_compressor *c, const lac_call *call, uint8_t *out)
{
    for (size_t end = VALUES; end > 0;) {
        const size_t first = (end - 1) / LAC_PART * LAC_PART;
        laci_payload_encode_part(
            c, call, x + first, (lac_part){first, end - first}, out);
        end = first;
    }
    return laci_payload_encode_key(c, call, out);
}

static void parts_are_encoded_like_the_whole(void **state)
{
    (void)state;
    static uint8_t in_parts[CAP];
    const lac_key key = {1, 2, LAC_SCOPE_WORKER};
    const lac_shape shape = {VALUES, 1};
    size_t encoded = 0;
    fill();
    for (size_t s = 0; s < SPECS; s++) {
        lac_compressor *c;
        size_t len;
        assert_ok(lac_compressor_open(&c, specs[s], LAC_FORM_PLAIN));
        assert_ok(lac_compressor_reserve(c, shape));
        if (laci_payload_encodes_parts(c)) {
            print_message("%s\n", specs[s]);
            const lac_call call = laci_call_make(c, &key, shape);
            assert_ok(
                lac_compressor_encode(c, &key, shape, x, payload, CAP, &len));
            assert_int_equal(encode_parts(c, &call, in_parts), len);
            assert_memory_equal(in_parts, payload, len);
            encoded++;
        }
        lac_compressor_close(c);
    }
    // identity, half, bfloat16, natural, dithering with buckets of 512
    assert_int_equal(encoded, 5);
}

static void sparse_payloads_have_no_parts(void **state)
{
    (void)state;
    static const char *const whole[] = {
        "top-k:0.1", "random-k:0.1", "top-k:0.1+sign", "low-rank", "rotated:2"};
    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++) {
        lac_compressor *c;
        assert_ok(lac_compressor_open(&c, whole[i], LAC_FORM_PLAIN));
        assert_false(laci_payload_has_parts(c));
        assert_false(laci_payload_encodes_parts(c));
        lac_compressor_close(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_have_the_bits_of_the_whole),
        cmocka_unit_test(parts_are_encoded_like_the_whole),
        cmocka_unit_test(sparse_payloads_have_no_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
