# SPDX-License-Identifier: MIT
"""Shared by the tests of `laconic average`: settings of every algorithm."""
import json
import subprocess

import training

# Of algorithms that are not listed, training.algorithm_words finds some.
SETTINGS = {
    "dpsgd": (["dpsgd"],),
    "naive": (["naive", "--compressor", "dithering"],),
    "dcd": (["dcd", "--compressor", "natural"],),
    "ecd": (["ecd", "--compressor", "natural"],),
    "choco": (["choco:gamma=0.1", "--compressor", "top-k:0.05"],
              ["choco:gamma=0.1", "--compressor", "random-k:0.05"]),
    "beer": (["beer:gamma=0.1", "--compressor", "top-k:0.05"],),
    "deepsqueeze": (["deepsqueeze:gamma=0.1", "--compressor", "sign"],),
    "moniqua": (["moniqua"],),
    "powergossip": (["powergossip"],
                    ["powergossip", "--dimension", "30x20", "--low-rank",
                     "2"]),
    "allreduce": (["allreduce"], ["allreduce", "--dimension", "70000"]),
    "compressed": (["compressed", "--compressor", "natural"],
                   ["compressed:server=(random-k:0.5)", "--compressor",
                    "dithering"]),
    "error-feedback": (["error-feedback", "--compressor", "top-k:0.05"],
                       ["error-feedback", "--compressor", "random-k:0.05"],
                       ["error-feedback", "--compressor", "sign"]),
    "ef21": (["ef21", "--compressor", "top-k:0.05"],
             ["ef21:momentum=0.5", "--compressor", "sign"]),
    "signum": (["signum"],),
    "integer": (["integer"], ["integer:bits=16,memory=no", "--dimension",
                              "70000"]),
    "powersgd": (["powersgd"], ["powersgd", "--dimension", "30x20"]),
    "outer": (["outer:inner=(dpsgd),lr=0.7,momentum=0.5"],
              ["outer:inner=(powersgd)", "--dimension", "30x20"]),
}

# A sweep in which one value diverges.
SWEEP = ("--json", "--algorithm", "choco", "--compressor", "top-k:0.01",
         "--dimension", "30x20", "--rounds", "60", "--sweep",
         "gamma=0.01,2,0.1")


def sweep_results(text, trace):
    """The results of SWEEP without times, and its traces."""
    results = json.loads(text)["results"]
    for result in results:
        result.pop("seconds")
    assert [result["diverged"] for result in results] == [False, True, False]
    traces = []
    for value in ("0.01", "2", "0.1"):
        with open(trace.replace(".csv", f"-{value}.csv"), "rb") as file:
            traces.append(file.read())
    return results, traces


def settings(laconic):
    """The words that select an algorithm, of all algorithms."""
    def run(*words):
        return subprocess.run([laconic, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)

    names = [item["name"] for item in
             json.loads(run("list", "--json").stdout)["algorithms"]]
    for name in sorted(names):
        yield from SETTINGS.get(name) or [training.algorithm_words(name, run)]
