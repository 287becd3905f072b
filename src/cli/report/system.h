// SPDX-License-Identifier: MIT
// The operating system of this machine.
#ifndef LACONIC_CLI_REPORT_SYSTEM_H
#define LACONIC_CLI_REPORT_SYSTEM_H

enum { CLI_SYSTEM_SIZE = 256 };

// cli_system_name writes the name of the distribution, "Debian GNU/Linux 12
// (bookworm)", or "an unknown system".
void cli_system_name(char text[CLI_SYSTEM_SIZE]);

// cli_system_name_in does so from the text of an os-release file, and leaves
// `text` as it is if that has no name.
void cli_system_name_in(const char *path, char text[CLI_SYSTEM_SIZE]);

// cli_system_kernel writes name, release and architecture of the kernel, "Linux
// 6.1.0-32-amd64 x86_64", or "" if it does not report them.
void cli_system_kernel(char text[CLI_SYSTEM_SIZE]);

#endif
