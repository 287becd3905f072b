// SPDX-License-Identifier: MIT
// The oneDNN that this program runs with. The bits of a training depend on its
// version and on the instructions that it uses.
#ifndef LACONIC_CLI_VERSION_ONEDNN_H
#define LACONIC_CLI_VERSION_ONEDNN_H

enum { CLI_ONEDNN_SIZE = 64 };

// cli_onednn_version writes the version of the library that was loaded,
// "3.7.2".
void cli_onednn_version(char text[CLI_ONEDNN_SIZE]);

// cli_onednn_headers writes the version that this program was compiled for.
void cli_onednn_headers(char text[CLI_ONEDNN_SIZE]);

// cli_onednn_instructions writes the instructions for which the library
// generates code on this machine, "avx512_core". ONEDNN_MAX_CPU_ISA limits
// them.
void cli_onednn_instructions(char text[CLI_ONEDNN_SIZE]);

#endif
