// SPDX-License-Identifier: MIT
// Half precision: payload, special values, law. Halves below 2^-14 are 2^-24
// apart.
#include "round_test.h"

static const round_format tested = {
    .name = "half",
    .wire_id = 2,
    .golden = {1, -2, 0.1f, 1e6f, 0x1p-24f},
    // A wire format: these bytes may never change.
    .golden_payload =
        {0x00, 0x3c, 0x00, 0xc0, 0x66, 0x2e, 0xff, 0x7b, 0x01, 0x00},
    .specials = 13,
    .special =
        {
            {0x00000000, 0x00000000}, // 0
            {0x80000000, 0x80000000}, // -0
            {0x00000001, 0x00000000}, // the least subnormal float
            {0x33000000, 0x00000000}, // 2^-25, a tie
            {0x33000001, 0x33800000}, // above it: 2^-24, the least half
            {0xb8800000, 0xb8800000}, // -2^-14, the least normal half
            {0x477fe000, 0x477fe000}, // 65504
            {0x477ff000, 0x477fe000}, // 65520 would round to 2^16
            {0xff7fffff, 0xc77fe000}, // -FLT_MAX
            {0x7f800000, 0x7f800000}, // infinity
            {0xff800000, 0xff800000},
            {0x7fc00000, 0x7fc00000}, // NaN
            {0xff800001, 0xffc00000}, // made quiet
        },
    .least_normal = 0x1p-14f,
    .small_error = 0x1p-25,
    .first_field = 113,
    .fields = 29,
};

int main(void)
{
    return run_round_tests(&tested);
}
