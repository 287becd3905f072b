// SPDX-License-Identifier: MIT
// A folder for the targets whose parsers open files by their path.
#ifndef LACONIC_FUZZ_FOLDER_H
#define LACONIC_FUZZ_FOLDER_H

#include <stddef.h>

// fuzz_folder returns the path of an empty folder of this process. It is
// removed, with everything in it, when the process exits.
const char *fuzz_folder(void);

// fuzz_path writes the path of a file of the folder.
enum { FUZZ_PATH_SIZE = 256 };
const char *fuzz_path(const char *name, char path[FUZZ_PATH_SIZE]);

// fuzz_write makes bytes[0..size) the content of a file of the folder.
void fuzz_write(const char *name, const void *bytes, size_t size);

#endif
