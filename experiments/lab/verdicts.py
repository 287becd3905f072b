# SPDX-License-Identifier: MIT
"""Claims of the papers, and whether our results bear them out.

A claim computes its verdict from outcomes. It raises Missing, through points()
and the like, as long as a result that it needs is not there.
"""
import math
import typing

from lab.tuning import lasting

HOLDS, DIFFERS, NOT_MEASURED = "holds", "differs", "not measured"
FAILS_BY = 10.0   # points below the exact method: does not train
TRAINS_BY = 3.0   # points below the exact method: still trains


def margin(seeds):
    """How far methods that should be equally good may be apart, in points and
    in words: more where chance is not averaged out."""
    return (1, "a point") if len(seeds) > 1 else (2, "two points")


class Missing(Exception):
    """A result that a claim needs was not measured yet."""


class Claim(typing.NamedTuple):
    text: str
    paper: str              # the paper's number, with its tag
    judge: typing.Callable  # of a view: (our number, whether it holds)

    def verdict(self, view):
        """Our number as text, and one of the three verdicts."""
        try:
            ours, holds = self.judge(view)
        except Missing:
            return "", NOT_MEASURED
        return ours, HOLDS if holds else DIFFERS


def measured(outcome):
    if not outcome.measured:
        raise Missing(outcome.trial.label)
    return outcome


def value(outcome, metric=None):
    """A metric's mean; minus infinity if the trial diverged."""
    found = measured(outcome).mean(metric)
    if found is None and not outcome.diverged:
        raise Missing(outcome.trial.label)
    return float("-inf") if found is None else found


def points(outcome, metric=None):
    return 100.0 * value(outcome, metric)


def level(outcome, metric=None):
    """The points of a trial as text."""
    found = points(outcome, metric)
    return "diverges" if found == float("-inf") else "%.1f" % found


def behind(outcome, exact, metric=None):
    """Points of accuracy that a method is below another."""
    return points(exact, metric) - points(outcome, metric)


def behind_longer(view, label, exact, epochs):
    """The points below another: of the trials, and of their longer runs."""
    return (behind(view[label], view[exact]),
            behind(view[lasting(label, epochs)], view[lasting(exact, epochs)]))


def signed(below):
    """Points behind as text: a difference, or which of the two diverges."""
    if math.isnan(below):
        return "(both diverge)"
    if below == -math.inf:
        return "(the other diverges)"
    return "diverges" if below == math.inf else "%+.1f" % -below


def listed(found):
    """Several points behind of each of several trials as text."""
    return "; ".join("%s %s" % (name, ", ".join(map(signed, below)))
                     for name, below in found.items())


def each(view, labels, exact, holds):
    """One judgement of several trials against the exact one: the points of
    each, and whether it holds for all."""
    below = {label: behind(view[label], view[exact]) for label in labels}
    text = ", ".join("%s %s" % (label, signed(found))
                     for label, found in below.items())
    return text, all(holds(found) for found in below.values())
