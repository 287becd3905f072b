# SPDX-License-Identifier: MIT
"""Shared by the tests of `compare` and `report`: folders of runs as `laconic
train` leaves them, without the training.
"""
import json
import os

from command import Command

SETTINGS = {
    "model": "mlp", "data": "mnist", "data-dir": "images",
    "algorithm": "allreduce", "compressor": "", "topology": "ring",
    "epochs": "3", "batch": "32", "lr": "0.10000000000000001",
    "overlap": "no", "out": "x", "resume": "no", "seed": "1", "workers": "4",
    "transport": "auto", "timeout": "60", "json": "no"}
TRACE = "round,error,mean_drift,payload_bytes\n"  # its first line
HOSTILE = "<img src=x onerror='alert(1)'>&amp;\"</script></title>"
FAMILIES = {"allreduce": "gradient", "powersgd": "gradient"}


def manifest(**settings):
    """The text of a manifest; a setting that is ... is left out."""
    chosen = {**SETTINGS, **{name.replace("_", "-"): value
                             for name, value in settings.items()}}
    family = FAMILIES.get(str(chosen["algorithm"]).split(":", 1)[0], "model")
    return json.dumps({
        "run": "0123456789abcdef",
        "settings": {n: v for n, v in chosen.items() if v is not ...},
        "facts": {"parameters": 1000, "epoch_steps": 10, "family": family}})


def epoch(number, accuracy=0.5, loss=1.0, payload=1000, **more):
    """The metrics of an epoch. Everything else is derived from its number."""
    return {"epoch": number, "step": 10 * number, "train_loss": loss,
            "test_loss": loss, "test_accuracy": accuracy,
            "averaged_loss": loss, "averaged_accuracy": accuracy,
            "payload_bytes": payload * number, "wire_bytes": payload * number,
            "messages": number, "consensus": 0.25 / number,
            "compute_seconds": 4.0 * number, "compress_seconds": 2.0 * number,
            "wait_seconds": 1.0 * number, **more}


def finished(line, examples=10000, **more):
    """The metrics after the last step: those of the whole test set too, which
    are by default the same."""
    pairs = (("test_loss", "final_loss"), ("test_accuracy", "final_accuracy"),
             ("worst_accuracy", "final_worst_accuracy"),
             ("test_perplexity", "final_perplexity"))
    averaged = {"final_" + key: value for key, value in line.items()
                if key.startswith("averaged_")}
    own = {new: line[old] for old, new in pairs if old in line}
    return {**line, **own, **averaged, "final_examples": examples, **more}


class Runs(Command):
    def run_of(self, name, lines, **settings):
        """A folder with a manifest and metrics. If it has all its epochs, it
        was tested on the whole test set."""
        if lines and str(lines[-1]["epoch"]) == str(
                settings.get("epochs", SETTINGS["epochs"])):
            lines = [*lines[:-1], {**finished(lines[-1]), **lines[-1]}]
        os.makedirs(os.path.join(self.folder, name))
        self.write(name + "/manifest.json", manifest(**settings).encode())
        self.write(name + "/metrics.jsonl",
                   "".join(json.dumps(e) + "\n" for e in lines).encode())

    def two_runs(self):
        self.run_of("sum", [epoch(1, 0.5), epoch(2, 0.8, 0.5)], epochs="2")
        self.run_of("few", [epoch(1, 0.4, payload=10),
                            epoch(2, 0.79, 0.6, payload=10)], epochs="2",
                    algorithm="choco:gamma=0.2", compressor="sign")

    def files(self):
        """As that of Command, without folders."""
        return {name: self.read(name) for name in os.listdir(self.folder)
                if os.path.isfile(os.path.join(self.folder, name))}
