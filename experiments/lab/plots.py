# SPDX-License-Identifier: MIT
"""Line plots as SVG. A plot has one or two panels with a legend each."""
import math
import typing
from xml.sax.saxutils import escape

COLOURS = ["#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9",
           "#e69f00", "#8c6d31", "#7a68a6", "#888888"]
WIDTH, HEIGHT = 470, 380            # of a panel
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 30, 46
NAMES_BOTTOM = 112                  # room for names along x
CROSS = 3.5


class Series(typing.NamedTuple):
    label: str
    points: list           # of (x, y)
    dashed: bool = False
    colour: typing.Optional[int] = None  # that of its place if None
    crosses: tuple = ()    # x of runs that diverged


class Panel(typing.NamedTuple):
    title: str
    x: str
    y: str
    series: list
    log_x: bool = False
    log_y: bool = False
    lowest: typing.Optional[float] = None  # of y
    names: tuple = ()  # of x = 0, 1, ..., instead of numbers

    @property
    def base(self):
        """The pixel of the lower end of y."""
        return HEIGHT - (NAMES_BOTTOM if self.names else BOTTOM)


def usable(panel, point):
    x, y = point
    return (math.isfinite(x) and math.isfinite(y)
            and not (panel.log_x and x <= 0) and not (panel.log_y and y <= 0)
            and not (panel.lowest is not None and y < panel.lowest))


def ticks(low, high, logarithmic):
    """Round numbers from low to high, about five."""
    if logarithmic:
        first, last = math.ceil(low), math.floor(high)
        step = max(1, math.ceil((last - first) / 6))
        return list(range(first, last + 1, step))
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    while (high - low) / step > 6:
        step *= 2 if (high - low) / step <= 12 else 5
    return [at * step for at in range(math.ceil(low / step),
                                      math.floor(high / step) + 1)]


class Axis:
    """Maps values to pixels."""

    def __init__(self, values, logarithmic, begin, end):
        self.logarithmic = logarithmic
        found = [self.transform(value) for value in values] or [0.0, 1.0]
        self.low, self.high = min(found), max(found)
        if self.high - self.low < 1e-9:
            self.low, self.high = self.low - 0.5, self.high + 0.5
        room = 0.04 * (self.high - self.low)
        self.low, self.high = self.low - room, self.high + room
        self.begin, self.end = begin, end

    def transform(self, value):
        return math.log10(value) if self.logarithmic else value

    def place(self, value):
        part = (value - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)

    def at(self, value):
        return self.place(self.transform(value))

    def marks(self):
        """Pixels and labels of the ticks."""
        for tick in ticks(self.low, self.high, self.logarithmic):
            text = "%.3g" % (10.0 ** tick if self.logarithmic else tick)
            yield self.place(tick), text


def text_at(x, y, words, anchor="middle", extra=""):
    return '<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>' % (
        x, y, anchor, extra, escape(words))


def columns(panel, across):
    """Pixels of the marks along x, and their labels as text."""
    if not panel.names:
        return [(x, text_at(x, panel.base + 15, label))
                for x, label in across.marks()]
    found = [(across.at(at), name) for at, name in enumerate(panel.names)]
    y = panel.base + 12
    return [(x, text_at(x + 4, y, name, "end",
                        ' transform="rotate(-45 %.1f %.1f)"' % (x + 4, y)))
            for x, name in found]


def grid(panel, across, up):
    lines = []
    for x, label in columns(panel, across):
        lines += ['<line class="g" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>' % (
            x, TOP, x, panel.base), label]
    for y, label in up.marks():
        lines += ['<line class="g" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>' % (
            LEFT, y, WIDTH - RIGHT, y), text_at(LEFT - 5, y + 4, label, "end")]
    middle = (TOP + panel.base) / 2
    lines += [text_at((LEFT + WIDTH - RIGHT) / 2, 18, panel.title,
                      extra=' font-weight="bold"'),
              text_at((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, panel.x),
              text_at(15, middle, panel.y,
                      extra=' transform="rotate(-90 15 %.1f)"' % middle)]
    return lines


def cross(x, y, colour):
    """A run that diverged, at the lower end of the panel."""
    return ('<path d="M%.1f %.1fl%.1f %.1fm0 %.1fl%.1f %.1f" stroke="%s" '
            'stroke-width="1.6"/>' % (x - CROSS, y - CROSS, 2 * CROSS,
                                      2 * CROSS, -2 * CROSS, -2 * CROSS,
                                      2 * CROSS, colour))


def runs(points, gaps):
    """The points as one run, or as several if lines end at a missing x."""
    found = [[]]
    for point in points:
        if gaps and found[-1] and point[0] > found[-1][-1][0] + 1:
            found.append([])
        found[-1].append(point)
    return found


def curve(panel, series, place, across, up):
    colour = COLOURS[(place if series.colour is None else series.colour)
                     % len(COLOURS)]
    spots = [(across.at(x), up.at(y)) for x, y in series.points]
    dash = ' stroke-dasharray="5 3"' if series.dashed else ""
    lines = ['<polyline fill="none" stroke="%s" stroke-width="1.6"%s '
             'points="%s"/>' % (colour, dash, " ".join(
                 "%.1f,%.1f" % (across.at(x), up.at(y)) for x, y in run))
             for run in runs(series.points, panel.names)]
    if len(spots) <= 25:
        lines += ['<circle cx="%.1f" cy="%.1f" r="2.4" fill="%s"/>' % (
            *spot, colour) for spot in spots]
    # Those of several series stand side by side.
    lines += [cross(across.at(x) + 2 * CROSS * (place - 1), up.begin, colour)
              for x in series.crosses]
    return lines, (series.label, colour, dash)


def legend(entries, down):
    lines = []
    for at, (label, colour, dash) in enumerate(entries):
        column, row = at % 2, at // 2
        x, y = LEFT + column * (WIDTH - LEFT) / 2, down + 16 * row
        lines += ['<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" '
                  'stroke-width="2"%s/>' % (x, y - 4, x + 18, y - 4, colour,
                                            dash),
                  text_at(x + 23, y, label, "start")]
    return lines


def panel_lines(panel):
    shown = [series._replace(points=[p for p in series.points
                                     if usable(panel, p)])
             for series in panel.series]
    everything = [point for series in shown for point in series.points]
    across = Axis([x for x, _ in everything]
                  + list(range(len(panel.names))), panel.log_x, LEFT,
                  WIDTH - RIGHT)
    up = Axis([y for _, y in everything], panel.log_y, panel.base, TOP)
    lines, entries = grid(panel, across, up), []
    # A series keeps its colour when those before it have no points.
    for place, series in enumerate(shown):
        if series.points or series.crosses:
            drawn, entry = curve(panel, series, place, across, up)
            lines, entries = lines + drawn, entries + [entry]
    return lines + legend(entries, HEIGHT + 10), len(entries)


def svg(panels):
    """The text of an SVG file."""
    drawn = [panel_lines(panel) for panel in panels]
    height = HEIGHT + 10 + 8 * (max(count for _, count in drawn) + 1)
    width = WIDTH * len(panels)
    lines = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" '
             'width="%d" height="%d" font-family="sans-serif" '
             'font-size="11">' % (width, height, width, height),
             '<style>.g{stroke:#ddd}</style>',
             '<rect width="100%" height="100%" fill="#fff"/>']
    for at, (panel, _) in enumerate(drawn):
        lines += ['<g transform="translate(%d 0)">' % (at * WIDTH), *panel,
                  "</g>"]
    return "\n".join(lines + ["</svg>", ""])
