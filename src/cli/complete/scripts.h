// SPDX-License-Identifier: MIT
// The scripts of completion, which the build makes from laconic.bash,
// laconic.zsh and laconic.fish.
#ifndef LACONIC_CLI_COMPLETE_SCRIPTS_H
#define LACONIC_CLI_COMPLETE_SCRIPTS_H

extern const char cli_script_bash[], cli_script_zsh[], cli_script_fish[];

#endif
