# SPDX-License-Identifier: MIT
"""How long cells will take.

The time of a training is taken to be proportional to its examples. The factor
is that of results with the same model and algorithm, or of results with the
same model, or else a constant that was measured on two cores.
"""
from lab.cells import elapsed
from lab.tasks import EXAMPLES

SECONDS = 1.0   # of a cell that does not train
# Examples, or words, per second of all workers together; two cores.
SPEEDS = {"lenet": 21000.0, "resnet8": 2100.0, "lstm": 6800.0,
          "logistic": 20000.0, "mlp": 13000.0}


def examples(asked):
    """Examples that a training reads."""
    limit = int(asked.get("limit", 0))
    count = EXAMPLES[asked.get("data")]
    return (min(limit, count) if limit else count) * int(asked.get("epochs"))


def kind(asked, detail):
    """What decides about the time of an example."""
    def name(option):
        return str(asked.get(option)).split(":", 1)[0]
    return (name("model"), asked.get("batch"), asked.get("workers"),
            *((name("algorithm"), name("compressor")) if detail else ()))


class Estimate:
    def __init__(self, book, cells):
        """Learns from the results of the cells that have one."""
        self.pace = {}
        for asked in cells:
            result = book.get(asked)
            if result and asked.command == "train" \
                    and result["outcome"] == "done":
                for detail in (True, False):
                    self.pace.setdefault(kind(asked, detail), []).append(
                        elapsed(result) / examples(asked))

    def seconds(self, asked):
        if asked.command != "train":
            return SECONDS
        for detail in (True, False):
            if kind(asked, detail) in self.pace:
                # Results that were made beside other work are too slow, so
                # the end of the fastest quarter counts.
                paces = sorted(self.pace[kind(asked, detail)])
                return paces[len(paces) // 4] * examples(asked)
        model = asked.get("model").split(":", 1)[0]
        return examples(asked) / SPEEDS[model]


def clock(seconds):
    minutes = round(seconds / 60)
    return "%d h %02d min" % divmod(minutes, 60) if minutes >= 60 \
        else "%d min" % minutes if minutes else "%d s" % round(seconds)
