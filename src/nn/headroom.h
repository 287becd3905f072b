// SPDX-License-Identifier: MIT
// Memory for oneDNN. It generates machine code while a primitive is created and
// when it first multiplies matrices. If there is no memory for that code, it
// does not fail: it throws a C++ exception or writes to a null pointer. So we
// check beforehand that there is far more than it needs.
#ifndef LACONIC_NN_HEADROOM_H
#define LACONIC_NN_HEADROOM_H

#include <laconic/laconic.h>

// nn_headroom_prepare is called before any other thread exists. Each thread
// would otherwise reserve 64 MB or more of addresses for its allocations, at
// any time between a check and the call that it is for. A step allocates
// nothing, so that sharing one arena costs nothing.
void nn_headroom_prepare(void);

// nn_headroom_check fails with LAC_ERR_NOMEM unless 32 MB could be allocated
// now. It detects limits on the address space and on data (ulimit -v, -d) and
// a system without overcommit.
lac_status nn_headroom_check(void);

// nn_headroom_lock lets one thread at a time create primitives, so that the
// memory that a check found is not used by another. nn_headroom_unlock ends it.
void nn_headroom_lock(void);
void nn_headroom_unlock(void);

#endif
