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
    "deepsqueeze": (["deepsqueeze:gamma=0.1", "--compressor", "sign"],),
    "powergossip": (["powergossip"],),
    "allreduce": (["allreduce"], ["allreduce", "--dimension", "70000"]),
    "compressed": (["compressed", "--compressor", "natural"],
                   ["compressed:server=(random-k:0.5)", "--compressor",
                    "dithering"]),
    "error-feedback": (["error-feedback", "--compressor", "top-k:0.05"],
                       ["error-feedback", "--compressor", "random-k:0.05"],
                       ["error-feedback", "--compressor", "sign"]),
    "signum": (["signum"],),
    "powersgd": (["powersgd"],),
}


def settings(laconic):
    """The words that select an algorithm, of all algorithms."""
    def run(*words):
        return subprocess.run([laconic, *words], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)

    names = [item["name"] for item in
             json.loads(run("list", "--json").stdout)["algorithms"]]
    for name in sorted(names):
        yield from SETTINGS.get(name) or [training.algorithm_words(name, run)]
