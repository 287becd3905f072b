// SPDX-License-Identifier: MIT
#include <laconic/version.h>

const char *lac_version(void)
{
    return LAC_VERSION_STRING;
}
