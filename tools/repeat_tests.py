#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Repeat tests to find those that fail now and then.

usage: repeat_tests.py [--build DIR] [--times N] [--busy N] [--minutes M]
                       [--record FILE] [--summary] [REGEX]

Runs every test that starts processes until each has run N times, the one with
the fewest runs first, and stops after M minutes. --busy N runs beside N
processes that compute. Every run is one line of the record, so a later call
continues where this one stopped; the tests of another build need another
record. The output of a run that fails is saved beside the record. REGEX selects
other tests, by name. Exits with 1 if a run that the record has failed.
"""
import argparse
import collections
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import time

BUSY = [sys.executable, "-c", "while True: pass"]


def tests_of(build, regex):
    """The names of the tests, by default of those that start processes: an
    interpreter runs them, or they have a label of such tests."""
    listing = json.loads(subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
        stdout=subprocess.PIPE).stdout)
    for test in listing["tests"]:
        properties = {entry["name"]: entry["value"]
                      for entry in test.get("properties", [])}
        if properties.get("DISABLED") or "command" not in test:
            continue
        starts = (re.search(r"/python[0-9.]*$|\.sh$", test["command"][0])
                  or {"mpi", "tcp"} & set(properties.get("LABELS", [])))
        if re.search(regex, test["name"]) if regex else starts:
            yield test["name"]


def runs_of(record, busy):
    """The runs in the record that had as many busy processes."""
    if not record.exists():
        return []
    runs = [json.loads(line) for line in record.read_text().splitlines()]
    return [run for run in runs if run["busy"] == busy]


@contextlib.contextmanager
def busy_processes(count):
    processes = [subprocess.Popen(BUSY) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_test(build, name):
    """How the test ended, its seconds, and what ctest printed."""
    begun = time.monotonic()
    done = subprocess.run(
        ["ctest", "--test-dir", build, "-R", f"^{re.escape(name)}$",
         "--output-on-failure"], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, errors="replace")
    result = "passed" if done.returncode == 0 else "failed"
    if result == "passed" and "***Skipped" in done.stdout:
        result = "skipped"
    return result, time.monotonic() - begun, done.stdout


def repeat(options, names):
    """Runs tests until all have run often enough, or the time is over."""
    ends = time.monotonic() + 60 * options.minutes
    counts = collections.Counter(
        run["test"] for run in runs_of(options.record, options.busy))
    while time.monotonic() < ends:
        name = min(names, key=lambda name: counts[name])
        if counts[name] >= options.times:
            return
        result, seconds, output = run_test(options.build, name)
        if result == "failed":
            saved = options.record.with_name(
                f"{options.record.name}.{name}.{counts[name]}.log")
            saved.write_text(output)
            print(f"{name}: failed, see {saved}", flush=True)
        with options.record.open("a") as file:
            file.write(json.dumps(
                {"test": name, "busy": options.busy, "result": result,
                 "seconds": round(seconds, 2)}) + "\n")
        # A test that is skipped here needs no second look.
        counts[name] += options.times if result == "skipped" else 1


def summarise(options, names):
    """Prints the totals of the record, and returns whether a run failed."""
    runs = runs_of(options.record, options.busy)
    counts = collections.Counter(run["test"] for run in runs)
    complete = sum(counts[name] >= options.times for name in names)
    skipped = {run["test"] for run in runs if run["result"] == "skipped"}
    failed = collections.Counter(
        run["test"] for run in runs if run["result"] == "failed")
    print(f"{len(names)} tests, {len(runs)} runs beside {options.busy} busy "
          f"processes, {sum(run['seconds'] for run in runs) / 60:.0f} minutes; "
          f"{complete} tests ran {options.times} times, {len(skipped)} were "
          f"skipped")
    for name, count in failed.most_common():
        print(f"{name}: {count} of {counts[name]} runs failed")
    print(f"{len(runs) - failed.total()} passed, {failed.total()} failed")
    return bool(failed)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--build", default="build", metavar="DIR")
    parser.add_argument("--times", type=int, default=10, metavar="N",
                        help="runs of each test (10)")
    parser.add_argument("--busy", type=int, default=0, metavar="N",
                        help="processes that compute beside the tests (0)")
    parser.add_argument("--minutes", type=float, default=30, metavar="M",
                        help="time after which no further test starts (30)")
    parser.add_argument("--record", type=pathlib.Path, metavar="FILE",
                        help="the runs so far (DIR/repeated.jsonl)")
    parser.add_argument("--summary", action="store_true",
                        help="print the totals of the record, run nothing")
    parser.add_argument("regex", nargs="?", metavar="REGEX")
    options = parser.parse_args()
    options.record = (options.record
                      or pathlib.Path(options.build) / "repeated.jsonl")
    names = list(tests_of(options.build, options.regex))
    if not names:
        sys.exit(f"repeat_tests: no tests in {options.build}")
    if not options.summary:
        with busy_processes(options.busy):
            repeat(options, names)
    return 1 if summarise(options, names) else 0


if __name__ == "__main__":
    sys.exit(main())
