# SPDX-License-Identifier: MIT
"""Tables, page and plot of bench/exchange.py and bench/ddp.py."""
import datetime
import math
import pathlib
import re
import tempfile
import xml.etree.ElementTree

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"

METHOD = {
    "exchange": "two workers in two network namespaces, veth and tbf; a time "
                "is that of the slower worker, from a barrier to its mean, "
                "the median of the turns; sent is what the interface of the "
                "busier host counted in an exchange",
    "small": "two workers on loopback; a time is that of the slower worker, "
             "the mean of the rounds of a turn, the median of the turns",
    "ddp": "two processes in two network namespaces, veth and tbf; a time is "
           "that of the slower process for a forward and a backward pass, the "
           "mean of the steps of a turn, the median of the turns; sent is "
           "what the interface of the busier host counted in a step",
}
METHOD["ddp_resnet18"] = METHOD["ddp_decoder"] = METHOD["ddp"].replace(
    "a forward and a backward pass", "a training step")
# The lines of the plot: jobs in order of preference, contender, colour, name.
LINES = [
    (("torch",), "all_reduce", "#888888", "Gloo all_reduce"),
    (("torch",), "fp16_compress", "#c08a2e", "torch fp16 hook"),
    (("torch",), "powerSGD 1", "#b0413e", "torch PowerSGD hook, rank 1"),
    (("tcp", "mpi"), "allreduce", "#111111", "allreduce"),
    (("tcp", "mpi"), "error-feedback with sign", "#3a7d44",
     "error-feedback with sign"),
    (("tcp", "mpi"), "powersgd:rank=1", "#2b5fb3", "powersgd, rank 1"),
]


def describe(mode, machine, jobs, missing, results):
    return dict(mode=mode, machine=machine, method=METHOD[mode],
                date=datetime.date.today().isoformat(),
                versions={job.name: job.versions for job in jobs},
                missing=dict(missing), results=results)


def unique(values):
    return list(dict.fromkeys(values))


def milliseconds(seconds):
    if seconds is None:
        return "-"
    ms = 1000 * seconds
    return (f"{ms:.0f}" if ms >= 100 else f"{ms:.1f}" if ms >= 1
            else f"{ms:.3f}")


# --- tables ------------------------------------------------------------------

def exchange_rows(run):
    """Milliseconds: a row for each contender, a column for each link."""
    links = unique(r["link"] for r in run["results"])
    found = {(r["job"], r["contender"], r["link"]): r for r in run["results"]}
    rows = [["ms at bit/s", "MB",
             *(link.replace("gbit", "G").replace("mbit", "M")
               for link in links)]]
    for job, contender in unique(key[:2] for key in found):
        cells = [found.get((job, contender, link)) for link in links]
        sent = min(cell["sent"] for cell in cells if cell) / 1e6
        rows.append([f"{job.removeprefix('tcp-')}: {contender}",
                     f"{sent:.1f}" if sent >= 10 else f"{sent:.2f}",
                     *(milliseconds(cell and cell["median"])
                       for cell in cells)])
    return rows


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {name}"
    return f"{size / 1e6:.0f} MB"


def ratio(a, b):
    return "-" if a is None or b is None else f"{a / b:.2f}"


def small_rows(run):
    """Milliseconds and ratios: a row for each size."""
    found = {(r["job"], r["bytes"]): r["median"] for r in run["results"]}
    jobs = ("tcp-plain", "tcp", "mpi", "torch", "openmpi")
    rows = [["ms", "plain", "TLS", "mpi", "Gloo", "Open MPI",
             *(f"{ours}/{peer}" for ours in ("plain", "TLS")
               for peer in ("Gloo", "MPI"))]]
    for size in unique(r["bytes"] for r in run["results"]):
        plain, tls, mpi, gloo, peer = (found.get((job, size)) for job in jobs)
        rows.append([size_text(size),
                     *map(milliseconds, (plain, tls, mpi, gloo, peer)),
                     ratio(plain, gloo), ratio(plain, peer),
                     ratio(tls, gloo), ratio(tls, peer)])
    return rows


def rows_of(run):
    return (small_rows if run["mode"] == "small" else exchange_rows)(run)


def table(run):
    rows = rows_of(run)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(" ".join(
        cell.rjust(width) if i else cell.ljust(width)
        for i, (cell, width) in enumerate(zip(row, widths))).rstrip()
        for row in rows)


# --- the page ----------------------------------------------------------------

def part(run):
    """The text between the marks of the page."""
    rows = rows_of(run)
    versions = "; ".join(unique(run["versions"].values()))
    turns = {r.get("link", "each size"): r["turns"] for r in run["results"]}
    counts = ", ".join(f"{n} ({link})" for link, n in turns.items())
    lines = [f"{run['machine']}, {run['date']}; {versions}. Turns: {counts}.",
             "", *("| " + " | ".join(row) + " |" for row in rows)]
    lines.insert(3, "| --- |" + " ---: |" * (len(rows[0]) - 1))
    lines += [f"\nNot measured, or not to the end: {name} ({why})."
              for name, why in run["missing"].items()]
    if run["mode"] == "exchange":
        lines += ["", "![Time of an exchange against the speed of the link]"
                      "(exchange.svg)"]
    return "\n".join(lines) + "\n"


def write_page(run, docs=DOCS):
    page = docs / "performance.md"
    mark = run["mode"]
    text, count = re.subn(
        rf"(<!-- begin {mark} -->\n).*?(<!-- end {mark} -->)",
        lambda match: match.group(1) + part(run) + match.group(2),
        page.read_text(), flags=re.S)
    if count != 1:
        raise SystemExit(f"{page}: {count} parts {mark}, expected 1")
    page.write_text(text)
    if mark == "exchange":
        (docs / "exchange.svg").write_text(plot(run))


# --- the plot ----------------------------------------------------------------

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 400, 60, 250, 20, 50


def plot(run):
    """An SVG: seconds, on a logarithmic axis, for each link."""
    links = unique(r["link"] for r in run["results"])[::-1]
    found = {(r["job"], r["contender"], r["link"]): r["median"]
             for r in run["results"]}
    low = math.floor(math.log10(min(found.values())))
    high = max(math.ceil(math.log10(max(found.values()))), low + 1)

    def x(i):
        return LEFT + i * (WIDTH - LEFT - RIGHT) / max(1, len(links) - 1)

    def y(seconds):
        return TOP + ((HEIGHT - TOP - BOTTOM) * (high - math.log10(seconds))
                      / (high - low))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
           f'height="{HEIGHT}" font-family="sans-serif" font-size="12">',
           '<rect width="100%" height="100%" fill="white"/>']
    for power in range(low, high + 1):
        at = y(10.0 ** power)
        name = f"{10 ** power} s" if power >= 0 else f"{10 ** (power + 3)} ms"
        out += [f'<path d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}" '
                'stroke="#dddddd"/>',
                f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">'
                f'{name}</text>']
    out += [f'<text x="{x(i):.1f}" y="{HEIGHT - BOTTOM + 20}" '
            f'text-anchor="middle">{link}</text>'
            for i, link in enumerate(links)]
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" '
               'text-anchor="middle">speed of the link</text>')
    out += plot_lines(links, found, x, y)
    return "\n".join(out + ["</svg>"]) + "\n"


def plot_lines(links, found, x, y):
    out = []
    for jobs, contender, colour, name in LINES:
        job = next((job for job in jobs
                    if any((job, contender, link) in found
                           for link in links)), None)
        if job is None:
            continue
        points = [(x(i), y(found[job, contender, link]))
                  for i, link in enumerate(links)
                  if (job, contender, link) in found]
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        out.append(f'<path d="M{path}" fill="none" stroke="{colour}" '
                   'stroke-width="2"/>')
        out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>'
                for a, b in points]
        at = TOP + 20 * (1 + len([line for line in out if "<text" in line]))
        out += [f'<path d="M{WIDTH - RIGHT + 14} {at - 4}h18" '
                f'stroke="{colour}" stroke-width="2"/>',
                f'<text x="{WIDTH - RIGHT + 38}" y="{at}">'
                f'{name if job == "torch" else f"{job}: {name}"}</text>']
    return out


# --- the tests ---------------------------------------------------------------

def made_up(job, contender, seconds, **more):
    return dict(job=job, contender=contender, median=seconds, turns=1,
                sent=102228128.0, error=0.0, **more)


def selftest(links, sizes, ours):
    """The tables of bench/exchange.py, with the widest figures."""
    runs = [describe("exchange", "a machine", [], {"tcp": "not there"},
                     [made_up(job, contender, 199.999, link=link)
                      for job in ("tcp", "tcp-plain") for contender in ours
                      for link in links]),
            describe("small", "a machine", [], {},
                     [made_up(job, "allreduce", 0.09999, bytes=size)
                      for job in ("tcp", "tcp-plain", "torch", "openmpi")
                      for size in sizes])]
    for run in runs:
        check_report(run)


def selftest_ddp(mode, links, torch, ours):
    """A table of bench/ddp.py, with the widest figures."""
    check_report(describe(
        mode, "a machine", [], {},
        [made_up(job, contender, 19.9999, link=link)
         for job, contenders in (("torch", torch), ("hook", ours))
         for contender in contenders for link in links]))


def check_report(run):
    """The table fits 80 columns; the page gets its part."""
    for line in table(run).splitlines():
        assert len(line) <= 80, (len(line), line)
    with tempfile.TemporaryDirectory() as folder:
        docs = pathlib.Path(folder)
        page = docs / "performance.md"
        text = (DOCS / "performance.md").read_text()
        page.write_text(text)
        write_page(run, docs)
        assert part(run) in page.read_text(), page.read_text()
        begin = f"<!-- begin {run['mode']} -->"
        assert page.read_text().startswith(text[:text.index(begin)])
        if run["mode"] == "exchange":
            xml.etree.ElementTree.parse(docs / "exchange.svg")
