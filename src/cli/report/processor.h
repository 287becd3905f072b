// SPDX-License-Identifier: MIT
// The processor of this machine, as Linux reports it.
#ifndef LACONIC_CLI_REPORT_PROCESSOR_H
#define LACONIC_CLI_REPORT_PROCESSOR_H

#include <stdint.h>

enum { CLI_PROCESSOR_SIZE = 128 };

// cli_processor writes the name of the processor, or "an unknown processor".
void cli_processor(char text[CLI_PROCESSOR_SIZE]);

// cli_processor_id writes vendor, family and model, "AuthenticAMD 25 17", or on
// arm64 implementer and part, "0x41 0xd0c". A virtual machine may give several
// generations of processors the same name, but not the same id. Writes "" if
// the system reports none of them.
void cli_processor_id(char text[CLI_PROCESSOR_SIZE]);

// cli_processor_count returns how many processors (cores or hardware threads)
// this process may use.
long cli_processor_count(void);

// cli_processor_set returns a number that two processes have in common if they
// may use the same processors of the same machine, or 0 if Linux does not tell.
uint64_t cli_processor_set(void);

#endif
