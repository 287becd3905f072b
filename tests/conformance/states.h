// SPDX-License-Identifier: MIT
// Shared by the tests of saved states: bytes that do not fit are refused with a
// message and change nothing.
#ifndef LACONIC_TESTS_STATES_H
#define LACONIC_TESTS_STATES_H

#include "algorithms.h"

#include <xxhash.h>

#include "base/bytes.h"

enum { WORLD_AT = 16, NAME_AT = 24, SUM_SIZE = 8, STATE_MAX = 8192 };

// An algorithm, and the state it has just saved.
typedef struct holder {
    lac_algorithm *a;
    const uint8_t *saved;
    size_t len;
    unsigned flags; // of load
} holder;

static inline holder holder_of(lac_algorithm *a, const saves *s, uint32_t rank)
{
    return (holder){a, s->states[rank], s->lens[rank], 0};
}

// Writes the checksum of altered bytes, so that load looks at them.
static inline void write_checksum(uint8_t *state, size_t len)
{
    laci_put_u64(state + len - SUM_SIZE, XXH3_64bits(state, len - SUM_SIZE));
}

// Expects that load refuses `len` bytes and leaves the algorithm as it was. The
// bytes end where their memory does, so that a sanitizer sees a read past them.
static inline lac_status expect_refusal(
    const holder *h, const uint8_t *bytes, size_t len, lac_status expected)
{
    uint8_t *const exact = malloc(len + (len == 0));
    uint8_t *const after = malloc(h->len);
    lac_status status = LAC_ERR_NOMEM;
    bool unchanged = false;
    if (exact != NULL && after != NULL) {
        memcpy(exact, bytes, len);
        status = lac_algorithm_load_with(h->a, exact, len, h->flags);
        unchanged = lac_algorithm_save(h->a, after, h->len) == LAC_OK &&
                    memcmp(after, h->saved, h->len) == 0;
    }
    free(after);
    free(exact);
    EXPECT(status == expected);
    EXPECT(lac_error_message()[0] != '\0');
    EXPECT(unchanged);
    return LAC_OK;
}

// Alters every byte, and cuts the state everywhere.
static inline lac_status refuse_altered(const holder *h)
{
    uint8_t state[STATE_MAX];
    EXPECT(h->saved != NULL && h->len <= sizeof(state));
    memcpy(state, h->saved, h->len);
    for (size_t i = 0; i < h->len; i++) {
        state[i] ^= 0x10;
        const lac_status status =
            lac_algorithm_load_with(h->a, state, h->len, h->flags);
        state[i] ^= 0x10;
        EXPECT(status == LAC_ERR_CORRUPT);
        LAC_TRY(expect_refusal(h, state, i, LAC_ERR_CORRUPT));
    }
    return lac_algorithm_load_with(h->a, state, h->len, h->flags);
}

// The same with a right checksum, for every cut, one byte too many, and every
// byte of the head, except for the number of workers where any may load.
static inline lac_status refuse_forged(const holder *h, size_t head)
{
    uint8_t state[STATE_MAX];
    EXPECT(h->saved != NULL && h->len < sizeof(state));
    for (size_t cut = SUM_SIZE; cut < h->len; cut++) {
        memcpy(state, h->saved, cut);
        write_checksum(state, cut);
        LAC_TRY(expect_refusal(h, state, cut, LAC_ERR_CORRUPT));
    }
    memcpy(state, h->saved, h->len);
    write_checksum(state, h->len + 1);
    LAC_TRY(expect_refusal(h, state, h->len + 1, LAC_ERR_CORRUPT));
    for (size_t i = 0; i < head; i++) {
        if (h->flags == LAC_LOAD_OTHER_WORLD && i / 4 == WORLD_AT / 4) {
            continue;
        }
        memcpy(state, h->saved, h->len);
        state[i] ^= 0x81;
        write_checksum(state, h->len);
        const lac_status status =
            lac_algorithm_load_with(h->a, state, h->len, h->flags);
        EXPECT(status == LAC_ERR_CORRUPT || status == LAC_ERR_INVALID);
        LAC_TRY(expect_refusal(h, state, h->len, status));
    }
    return LAC_OK;
}

// Layouts that differ from `tensors`, and the error message of each.
static const struct {
    const char *text;
    const char *message;
} other_layouts[] = {
    {"weight 5 7\nempty 0 3\nbias 13\none 1\nrow 1 9",
     "state: weight is 7 x 5, expected 5 x 7"},
    {"weight 7 5\nempty 0 3\nbiases 13\none 1\nrow 1 9",
     "state: tensor bias is not in the layout"},
    {"weight 7 5\nempty 0 3\nbias 13\none 1",
     "state: has 5 tensors, expected 4"},
};

enum { OTHER_LAYOUTS = sizeof(other_layouts) / sizeof(*other_layouts) };

// The layout of `tensors` in another order.
static const char reordered_layout[] =
    "row 1 9\nbias 13\nweight 7 5\none 1\nempty 0 3";

#endif
