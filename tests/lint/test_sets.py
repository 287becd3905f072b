# SPDX-License-Identifier: MIT
"""Every test has the label of exactly one set: test_sets.py CTEST BUILD SET..."""
import json
import subprocess
import sys

ctest, build, *sets = sys.argv[1:]
listing = json.loads(subprocess.run(
    [ctest, "--test-dir", build, "--show-only=json-v1"], check=True,
    stdout=subprocess.PIPE).stdout)
wrong = []
for test in listing["tests"]:
    labels = [label for entry in test["properties"]
              if entry["name"] == "LABELS" for label in entry["value"]]
    if sum(label in sets for label in labels) != 1:
        wrong.append(f"{test['name']}: the labels are {labels}, expected one "
                     f"of {', '.join(sets)}")
print("\n".join(wrong) or f"{len(listing['tests'])} tests have a set")
sys.exit(1 if wrong else 0)
