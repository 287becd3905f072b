# SPDX-License-Identifier: MIT
"""A trial is a row of a table: settings of which the best variant is chosen in
short runs, then finished with every seed.

Where the short runs are as long as the final ones, the best of them is the
final run of the first seed. If a final run diverges, the next best variant is
taken. All variants diverged: so did the trial.
"""
import math
import statistics
import typing

from lab.cells import DIVERGED, Cell, cell

# Ends of metrics that are minimised.
LOWER = ("loss", "perplexity", "error", "objective")


class Planned(typing.NamedTuple):
    cell: Cell
    known: bool  # False: it depends on results that are missing


class Trial(typing.NamedTuple):
    label: str
    base: dict                   # settings of all runs
    variants: tuple = ({},)      # settings of which the best is chosen
    tuning: dict = {}            # settings of the runs that choose
    final: dict = {}             # settings of the runs that count
    seeds: tuple = (1,)
    metric: str = "test_accuracy"
    command: str = "train"
    like: typing.Optional["Trial"] = None  # whose rate is taken
    borrowed: tuple = ("lr",)    # the settings that are taken from `like`

    def cell(self, *overlays):
        merged = dict(self.base)
        for overlay in overlays:
            merged.update(overlay)
        return cell(self.command, **merged)

    def inherited(self, book):
        """The settings taken from another trial, and whether it is finished
        with its choice."""
        if self.like is None:
            return {}, True
        choice = self.like.choice(book)
        return {name: value
                for name, value in (choice or self.like.usual()).items()
                if name in self.borrowed}, (
                    choice is not None or self.like.hopeless(book))

    def usual(self):
        """The variant that is assumed as long as none is chosen."""
        inherited = self.like.usual() if self.like else {}
        return {**inherited, **self.variants[len(self.variants) // 2]}

    def candidates(self, book):
        inherited, known = self.inherited(book)
        found = [{**inherited, **variant} for variant in self.variants]
        return [(variant, self.cell(self.tuning, variant,
                                    {"seed": self.seeds[0]}))
                for variant in found], known

    def ranked(self, book):
        """The variants that did not diverge in short runs, best first; None
        while a result is missing."""
        found, known = self.candidates(book)
        if not known:
            return None
        if len(found) == 1:
            return [found[0][0]]
        if not all(book.settled(asked) for _, asked in found):
            return None
        scores = [score(book.get(asked), self.metric) for _, asked in found]
        order = sorted(range(len(found)), key=lambda at: -scores[at])
        return [found[at][0] for at in order if scores[at] > -math.inf]

    def cells_of(self, variant):
        """The final runs of a variant."""
        return [self.cell(self.final, variant, {"seed": seed})
                for seed in self.seeds]

    def diverges(self, book, variant):
        found = filter(None, map(book.get, self.cells_of(variant)))
        return any(score(result, self.metric) == -math.inf
                   for result in found)

    def passed_over(self, book):
        """The variants of which a final run diverged, if there are others."""
        return [variant for variant in self.ranked(book) or []
                if len(self.variants) > 1 and self.diverges(book, variant)]

    def choice(self, book):
        """The best variant that is not passed over; None while a result is
        missing or if all of them diverged."""
        passed_over = self.passed_over(book)
        return next((variant for variant in self.ranked(book) or []
                     if variant not in passed_over), None)

    def hopeless(self, book):
        """Whether all variants have results and diverged."""
        ranked, choice = self.ranked(book), self.choice(book)
        if ranked is None:
            return False
        if choice is not None:
            return len(self.variants) == 1 and self.diverges(book, choice)
        return all(book.get(asked) for _, asked in self.candidates(book)[0])

    def finals(self, book):
        choice = self.choice(book)
        return self.cells_of(choice or self.usual()), choice is not None

    def longer(self, epochs):
        """The trial for more epochs: its choice, and the first seed."""
        return self._replace(
            label=lasting(self.label, epochs), variants=({},),
            final={**self.final, "epochs": epochs}, seeds=self.seeds[:1],
            like=self)

    def planned(self, book):
        """All cells, in the order in which they are run."""
        found, known = self.candidates(book)
        cells = [Planned(asked, known) for _, asked in found
                 if len(found) > 1]
        for variant in self.passed_over(book):
            cells += [Planned(asked, True)
                      for asked in self.cells_of(variant) if book.get(asked)]
        if not self.hopeless(book):
            finals, known = self.finals(book)
            cells += [Planned(asked, known) for asked in finals]
        return list(dict.fromkeys(cells))


def lasting(label, epochs):
    return "%s, %d epochs" % (label, epochs)


def score(result, metric):
    """The larger the better; minus infinity for a run that diverged."""
    if result is None or result["outcome"] == DIVERGED:
        return -math.inf
    value = result["result"].get(metric)
    if value is None or not math.isfinite(value):
        return -math.inf
    return -value if metric.endswith(LOWER) else value


class Outcome:
    """The results of a trial so far."""

    def __init__(self, trial, book):
        self.trial = trial
        self.variant = trial.choice(book)
        cells = trial.finals(book)[0] if self.variant is not None else []
        found = [book.get(asked) for asked in cells]
        self.results = [result for result in found if result]
        self.diverged = trial.hopeless(book) or any(
            score(result, trial.metric) == -math.inf
            for result in self.results)
        self.refused = any(map(book.refused, cells + [
            asked for _, asked in trial.candidates(book)[0]]))

    @property
    def measured(self):
        """Whether every seed has a result, or one of them diverged."""
        return self.diverged or len(self.results) == len(self.trial.seeds)

    def values(self, metric=None):
        """A metric of all seeds; of none if one is missing or diverged."""
        if self.diverged or not self.measured:
            return []
        found = [result["result"].get(metric or self.trial.metric)
                 for result in self.results]
        return [value for value in found if value is not None]

    def mean(self, metric=None):
        found = self.values(metric)
        return statistics.fmean(found) if found else None

    def spread(self, metric=None):
        """The standard deviation over seeds."""
        found = self.values(metric)
        return statistics.stdev(found) if len(found) > 1 else None

    def curve(self, x, y):
        """Points of the first seed's curve."""
        if not self.results:
            return []
        curve = self.results[0]["curve"]
        return [point for point in zip(curve.get(x, []), curve.get(y, []))
                if None not in point]
