#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Repeat tests to find those that fail now and then.

usage: repeat_tests.py [--build DIR] [--times N] [--busy N] [--jobs N]
                       [--minutes M] [--record FILE] [--summary] [REGEX]

Runs every test that an interpreter runs, or that is over tcp or MPI, until each
has run N times, those with the fewest runs first, and stops after M minutes.
--busy N runs beside N processes that compute, --jobs N runs N tests at a time. Every run is one line of the
record, so a later call continues where this one stopped; another build needs
another record. The output of a run that fails is saved beside the record. REGEX
selects other tests, by name. Exits with 1 if the record contains a failed run of
these tests.
"""
import argparse
import collections
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

BATCH = 6  # of tests for each job that one call of ctest runs

# It ends with its parent, however that ends.
BUSY = [sys.executable, "-c", """
import os
parent = os.getppid()
while os.getppid() == parent:
    sum(range(100000))
"""]


def tests_of(build, regex):
    """The names of the tests, by default of those that start processes: an
    interpreter runs them, or they have a label of such tests."""
    names = []
    listing = json.loads(subprocess.run(
        ["ctest", "--test-dir", build, "--show-only=json-v1"], check=True,
        stdout=subprocess.PIPE).stdout)
    for test in listing["tests"]:
        properties = {entry["name"]: entry["value"]
                      for entry in test.get("properties", [])}
        if "command" not in test:
            sys.exit(f"repeat_tests: {test['name']} is not built")
        starts = (re.search(r"/python[0-9.]*$|\.sh$", test["command"][0])
                  or {"mpi", "tcp"} & set(properties.get("LABELS", [])))
        if (re.search(regex, test["name"]) if regex else starts) \
                and not properties.get("DISABLED"):
            names.append(test["name"])
    return names


def runs_of(options, names):
    """The runs of these tests that had as many busy processes. A line that was
    cut off by a kill does not count."""
    runs = []
    if options.record.exists():
        for line in options.record.read_text().splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                runs.append(json.loads(line))
    return [run for run in runs
            if run["busy"] == options.busy and run["test"] in names]


def counts_of(options, runs):
    """How often each test has run. One that is skipped needs no second run."""
    counts = collections.Counter()
    for run in runs:
        counts[run["test"]] += (
            options.times if run["result"] == "skipped" else 1)
    return counts


@contextlib.contextmanager
def busy_processes(count):
    processes = [subprocess.Popen(BUSY) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_tests(options, names):
    """How each of these tests ended, its seconds, and what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder, "report.xml")
        regex = "|".join(re.escape(name) for name in names)
        subprocess.run(
            ["ctest", "--test-dir", options.build, "-R", f"^({regex})$",
             "-j", str(options.jobs), "--no-tests=error", "--output-junit",
             report], stdout=subprocess.DEVNULL)
        cases = xml.etree.ElementTree.parse(report).getroot()
    for case in cases.findall("testcase"):
        result = {"run": "passed", "notrun": "skipped"}.get(
            case.get("status"), "failed")
        yield (case.get("name"), result, float(case.get("time")),
               case.findtext("system-out"))


def repeat(options, names):
    """Runs tests until all have run often enough, or the time is over."""
    ends = time.monotonic() + 60 * options.minutes
    runs = runs_of(options, names)
    while time.monotonic() < ends:
        counts = counts_of(options, runs)
        fewest = min(counts[name] for name in names)
        if fewest >= options.times:
            return
        batch = [name for name in names if counts[name] == fewest]
        for name, result, seconds, output in run_tests(
                options, batch[:BATCH * options.jobs]):
            if name not in names:
                continue  # it prepares others
            if result == "failed":
                saved = options.record.with_name(
                    f"{options.record.name}.{name}.{options.busy}."
                    f"{counts[name]}.log")
                saved.write_text(output)
                print(f"{name}: failed, see {saved}", flush=True)
            runs.append({"test": name, "busy": options.busy, "result": result,
                         "seconds": round(seconds, 2)})
            with options.record.open("a") as file:
                file.write(json.dumps(runs[-1]) + "\n")


def summarise(options, names):
    """Prints the totals of the record, and returns whether a run failed."""
    runs = runs_of(options, names)
    counts = counts_of(options, runs)
    complete = sum(counts[name] >= options.times for name in names)
    results = collections.Counter(run["result"] for run in runs)
    failed = collections.Counter(
        run["test"] for run in runs if run["result"] == "failed")
    print(f"{len(names)} tests, {len(runs)} runs beside {options.busy} busy "
          f"processes, {sum(run['seconds'] for run in runs) / 60:.0f} minutes; "
          f"{complete} tests have run {options.times} times or are skipped")
    for name, count in failed.most_common():
        print(f"{name}: {count} of {counts[name]} runs failed")
    print(f"{results['passed']} passed, {results['failed']} failed, "
          f"{results['skipped']} skipped")
    return bool(failed)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0], allow_abbrev=False)
    parser.add_argument("--build", default="build", metavar="DIR")
    parser.add_argument("--times", type=int, default=10, metavar="N",
                        help="runs of each test (10)")
    parser.add_argument("--busy", type=int, default=0, metavar="N",
                        help="processes that compute beside the tests (0)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N",
                        help="tests that run at the same time (1)")
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
    names = tests_of(options.build, options.regex)
    if not names:
        sys.exit(f"repeat_tests: no tests in {options.build}")
    if not options.summary:
        with busy_processes(options.busy):
            repeat(options, names)
    return 1 if summarise(options, names) else 0


if __name__ == "__main__":
    sys.exit(main())
