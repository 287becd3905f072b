#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fail when the library calls a function that a library must not call.

The library never prints, ends the process, or reads the environment or the
clock. Only base/alloc.c allocates memory. The transport tcp reads where a user
keeps keys, and what torchrun sets.
usage: check_banned.py ROOT
"""
import pathlib
import re
import sys

LIBRARY = ["base", "kernels", "compress", "topology", "transport",
           "collective", "algorithm"]
BANNED = """
    printf fprintf vprintf vfprintf dprintf puts fputs putchar fputc perror
    exit _exit _Exit quick_exit abort raise atexit
    getenv secure_getenv setenv putenv
    rand srand rand_r random srandom drand48 time clock
    strtok sprintf vsprintf strcpy strcat stpcpy gets scanf sscanf fscanf
    atoi atol atoll atof alloca setlocale system signal
""".split()
MEMORY = """malloc calloc realloc reallocarray free strdup strndup
    aligned_alloc posix_memalign memalign mmap""".split()
MEMORY_HOME = "base/alloc.c"
ALLOWED = {"transport/tcp.c": ["getenv"],
           "transport/tcp/rendezvous.c": ["getenv"]}

NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_of(text):
    """Return the text with comments and literals replaced by spaces; line ends
    stay."""
    return NOT_CODE.sub(
        lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def calls(names):
    # Members (x.free, x->free) and parts of longer names do not count.
    return re.compile(r"(?<![\w.>])(" + "|".join(names) + r")\s*\(")


def problems(root):
    files = 0
    for layer in LIBRARY:
        for path in sorted((root / "src" / layer).glob("**/*.[ch]")):
            files += 1
            name = path.relative_to(root / "src").as_posix()
            names = BANNED + ([] if name == MEMORY_HOME else MEMORY)
            code = code_of(path.read_text())
            names = [n for n in names if n not in ALLOWED.get(name, [])]
            for match in calls(names).finditer(code):
                line = code.count("\n", 0, match.start()) + 1
                yield (f"{path}:{line}: the library must not call "
                       f"{match.group(1)}")
    if files == 0:
        yield f"{root}: no sources found"


if __name__ == "__main__":
    found = list(problems(pathlib.Path(sys.argv[1])))
    print("\n".join(found))
    sys.exit(1 if found else 0)
