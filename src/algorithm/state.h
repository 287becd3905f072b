// SPDX-License-Identifier: MIT
// The state of an algorithm as bytes: fields by the names of tensor, field and
// peer, so that it does not matter in which order a layout lists its tensors.
//
//     8 bytes   "LACSTATE"
//     u32       version, 1
//     u32       rank, u32 world
//     text      algorithm (u32 length, then the characters), with settings
//     text      spec of the compressor, empty where there is none
//     u64       seed, u64 hash of the topology or 0
//     u64       bits of its step size, a double; 0 where there is none
//     u32       number of tensors; for each
//       text      name
//       u64       rows, u64 columns, u64 next round; the highest bit of it is
//                 set when begin has changed the fields and end has not
//       u32       number of saved fields; for each
//         text      name
//         u32       peer, or 2^32 - 1
//         u64       number of floats, then the floats
//     u64       XXH3 of all bytes before
//
// Loading looks at everything first and changes the state last.
#ifndef LACONIC_ALGORITHM_STATE_H
#define LACONIC_ALGORITHM_STATE_H

#include <string.h>

#include "algorithm/handle.h"

#define LACI_STATE_MAGIC "LACSTATE"

enum { LACI_STATE_MAGIC_LEN = 8, LACI_STATE_VERSION = 1 };

// Such a state is no place to go on from.
#define LACI_STATE_BEGUN (UINT64_C(1) << 63)

static inline double laci_state_step(const lac_algorithm *a)
{
    return a->ops->step == NULL ? 0 : *a->ops->step(a->state);
}

static inline uint64_t laci_state_topology(const lac_algorithm *a)
{
    return a->worker.topology == NULL ? 0
                                      : lac_topology_hash(a->worker.topology);
}

static inline uint64_t laci_state_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

#endif
