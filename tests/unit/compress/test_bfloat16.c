// SPDX-License-Identifier: MIT
// bfloat16: payload, special values, law. Below 2^-126 its numbers are 2^-133
// apart.
#include <float.h>

#include "round_test.h"

static const round_format tested = {
    .name = "bfloat16",
    .wire_id = 3,
    .golden = {1, -2, 0.1f, FLT_MAX, 0x1p-133f},
    // A wire format: these bytes may never change.
    .golden_payload =
        {0x80, 0x3f, 0x00, 0xc0, 0xcd, 0x3d, 0x7f, 0x7f, 0x01, 0x00},
    .specials = 14,
    .special =
        {
            {0x00000000, 0x00000000}, // 0
            {0x80000000, 0x80000000}, // -0
            {0x00000001, 0x00000000}, // the least subnormal float
            {0x00008000, 0x00000000}, // a tie
            {0x00008001, 0x00010000}, // above it
            {0x3f808000, 0x3f800000}, // ties go to even
            {0x3f818000, 0x3f820000},
            {0x7f7f0000, 0x7f7f0000}, // the largest
            {0x7f7f8000, 0x7f7f0000}, // would round to infinity
            {0xff7fffff, 0xff7f0000}, // -FLT_MAX
            {0x7f800000, 0x7f800000}, // infinity
            {0xff800000, 0xff800000},
            {0x7fc00000, 0x7fc00000}, // NaN
            {0xff800001, 0xffc00000}, // made quiet
        },
    .least_normal = 0x1p-126f,
    .small_error = 0x1p-134,
    .first_field = 1,
    .fields = 254,
};

int main(void)
{
    return run_round_tests(&tested);
}
