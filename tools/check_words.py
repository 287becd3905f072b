#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Advise on words that the field has a better one for.

Words are found in names too, which are split at underscores, and in the names
of files. A rule for names only leaves comments, texts and documents alone,
except for the names in them that have an underscore.
usage: check_words.py ROOT
"""
import fnmatch
import pathlib
import re
import sys
from typing import NamedTuple


class Rule(NamedTuple):
    word: str                 # what ALLOWED calls it
    pattern: str              # a regular expression for whole words
    instead: str
    names_only: bool = False
    within: tuple = ("*",)    # globs of the files it is for
    unless: str = r"(?!)"     # phrases in which the word is right


GAP = r"[\s/#*]+"  # between two words, also over the end of a comment's line
MEET = "barrier, sync or overlap"
VERB = "returns, prints, reports, describes or states"
RULES = [
    Rule("ahead", rf"ask(s|ed|ing)?([-_]|{GAP})ahead", "prefetch"),
    Rule("ahead", r"ahead", "prefetch", names_only=True,
         within=("src/kernels/*", "src/compress/*")),
    Rule("meet", r"meetings?", MEET),
    Rule("meet", r"meets?", MEET, names_only=True),
    Rule("meet", rf"(workers?|threads?|processes|ranks?|they|all|to){GAP}meet|"
         rf"meet{GAP}(again|at)", MEET),
    Rule("patience", r"patience|patient", "timeout"),
    Rule("forget", r"forg[eo]t[a-z]*", "flush, drop or clear",
         unless=r"forget[- ]gates?"),
    Rule("unfit", r"unfit", "non-finite, in names nonfinite"),
    Rule("fallback", r"fallbacks?", "default, in names default_value"),
    Rule("parcel", r"parcels?", "message"),
    Rule("letter", r"letters?", "message, or character for one of a text",
         unless=r"(capital|case|single|first)[- ]letters?|"
         r"letters (and|or) digits|to the letter"),
    Rule("chair", r"chairs?", "coordinator"),
    Rule("agree", r"agree[ds]?", "abort_on_failure, or what is decided",
         names_only=True, within=("src/*", "include/*")),
    Rule("agree", r"(laci?|train|cli|data|nn)_(\w+_)?agree[ds]?",
         "abort_on_failure, or what is decided", names_only=True),
    Rule("crew", r"crews?", "threads or workers"),
    Rule("rehearsal", r"rehears[a-z]*", "search"),
    Rule("sentence", r"sentences?", "message",
         unless=r"sentences? of (a|the) texts?"),
    Rule("tell", r"tells?|telling|told", VERB),
    Rule("say", r"says?|saying|said", VERB),
    Rule("keep", r"keeps?", "checkpoint", names_only=True,
         within=("src/train/*", "src/cli/train*")),
]

# Where a word may stay: the word of the rule or * for all, a glob, and why.
ALLOWED = [
    ("*", "tools/check_words.py", "holds the table of the words"),
    ("keep", "src/train/optimiser.c",
     "the part of a moment that Adam keeps from step to step"),
    ("letter", "src/cli/*report.h", "a table's columns, a letter each"),
    ("letter", "src/data/vocabulary.*", "the letters of words of a text"),
    ("letter", "tests/unit/data/test_vocabulary.c",
     "the letters of words of a text"),
]

FOLDERS = ["src", "include", "tests", "fuzz", "docs", "examples", "bench",
           "python", "tools", "cmake"]
EXPERIMENTS = ["experiments/*.py", "experiments/lab/*.py", "experiments/*.md"]
TOP = ["README.md", "CONTRIBUTING.md", "Makefile", "CMakeLists.txt",
       "CMakePresets.json"]
SUFFIXES = {".c", ".h", ".cpp", ".hpp", ".def", ".in", ".inc", ".map", ".f90",
            ".py", ".sh", ".cmake", ".txt", ".md", ".supp"}

# What is prose in a file: comments and literals. The rest is names.
QUOTED = r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
HASH = r"#[^\n]*|" + QUOTED
PROSE = {
    ".f90": r"![^\n]*|" + QUOTED,
    ".py": r'"""(?:\\.|[^\\])*?"""|' + HASH,
    **dict.fromkeys([".c", ".h", ".cpp", ".hpp", ".def", ".inc"],
                    r"//[^\n]*|/\*.*?\*/|" + QUOTED),
    **dict.fromkeys([".md", ".txt", ".json"], r".*"),
}


def blank(text):
    return re.sub(r"[^\n]", " ", text)


def names_of(text, suffix, name):
    """The text with all blanked that is not a name."""
    prose = HASH if name == "CMakeLists.txt" else PROSE.get(suffix, HASH)
    return re.sub(prose, lambda match: re.sub(
        r"\w+", lambda word: word.group() if "_" in word.group()
        else blank(word.group()), match.group()), text, flags=re.S)


def compiled(rule):
    # Digits and underscores end a word, and so does an escape before it.
    return (re.compile(rf"(?<![A-Za-z])({rule.pattern})(?![A-Za-z])", re.I),
            re.compile(rule.unless, re.I))


COMPILED = [(rule, *compiled(rule)) for rule in RULES]


def matches(globs, name):
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs)


def rules_for(name):
    for rule, pattern, unless in COMPILED:
        if matches(rule.within, name) and not matches(
                (glob for word, glob, _ in ALLOWED
                 if word in ("*", rule.word)), name):
            yield rule, pattern, unless


def advice_of(path, name):
    text = re.sub(r"\\[nrt]", "  ", path.read_text())
    names = names_of(text, path.suffix, path.name)
    for rule, pattern, unless in rules_for(name):
        for match in pattern.finditer(name):
            yield 1, match.group(1) + " (its path)", rule.instead
        searched = names if rule.names_only else text
        searched = unless.sub(lambda match: blank(match.group()), searched)
        for match in pattern.finditer(searched):
            line = text.count("\n", 0, match.start()) + 1
            yield line, match.group(1), rule.instead


def files(root):
    for name in TOP:
        if (root / name).exists():
            yield root / name
    for glob in EXPERIMENTS:
        yield from sorted(root.glob(glob))
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("**/*")):
            if path.is_file() and path.suffix in SUFFIXES:
                yield path


def advice(root):
    for path in files(root):
        found = advice_of(path, path.relative_to(root).as_posix())
        for line, word, instead in sorted(set(found)):
            yield f"{path}:{line}: {word}, write {instead}"


if __name__ == "__main__":
    sys.stdout.writelines(
        f"{found}\n" for found in advice(pathlib.Path(sys.argv[1])))
