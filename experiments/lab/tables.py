# SPDX-License-Identifier: MIT
"""Markdown tables, and how numbers stand in them."""


def marked(head, cells):
    """The head of a column, which says so if numbers are from memory."""
    return head + (" (MEM: from memory)"
                   if any("[MEM" in cell for cell in cells) else "")


def table(head, rows, left=1):
    """A table whose first columns are text and whose others are numbers."""
    rows = list(rows)
    columns = zip(*rows) if rows else [()] * len(head)
    lines = ["| " + " | ".join(map(marked, head, columns)) + " |",
             "|" + "---|" * left + "--:|" * (len(head) - left)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def figure(outcome, metric=None, scale=1.0, digits=2):
    """The mean of a metric with its spread, or why there is none."""
    if outcome.diverged:
        return "diverges"
    mean, spread = outcome.mean(metric), outcome.spread(metric)
    if mean is None:
        return "not available" if outcome.refused else ""
    text = "%.*f" % (digits, scale * mean)
    return text if spread is None else "%s ± %.*f" % (text, digits,
                                                      scale * spread)


def percent(outcome, metric=None):
    return figure(outcome, metric, 100.0)


def megabytes(outcome, workers, digits=1):
    """Payload that a worker has sent in the whole run."""
    return figure(outcome, "payload_bytes", 1e-6 / workers, digits)


def fewer(outcome):
    """How many times fewer bytes than uncompressed: bytes hardly depend on the
    seed, so it has no spread."""
    return figure(outcome, "times_fewer", digits=1).partition(" ±")[0]


def setting(outcome, name):
    value = (outcome.variant or {}).get(name)
    return "" if value is None else str(value)
