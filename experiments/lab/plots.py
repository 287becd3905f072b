# SPDX-License-Identifier: MIT
"""Line plots as SVG. A plot has one or two panels with a legend each."""
import math
import typing
from xml.sax.saxutils import escape

COLOURS = ["#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9",
           "#e69f00", "#8c6d31", "#7a68a6", "#888888"]
WIDTH, HEIGHT = 470, 380            # of a panel
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 30, 46


class Series(typing.NamedTuple):
    label: str
    points: list           # of (x, y)
    dashed: bool = False
    colour: typing.Optional[int] = None  # that of its place if None


class Panel(typing.NamedTuple):
    title: str
    x: str
    y: str
    series: list
    log_x: bool = False
    log_y: bool = False
    lowest: typing.Optional[float] = None  # of y


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


def grid(panel, across, up):
    lines = []
    for x, label in across.marks():
        lines += ['<line class="g" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>' % (
            x, TOP, x, HEIGHT - BOTTOM),
            text_at(x, HEIGHT - BOTTOM + 15, label)]
    for y, label in up.marks():
        lines += ['<line class="g" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>' % (
            LEFT, y, WIDTH - RIGHT, y), text_at(LEFT - 5, y + 4, label, "end")]
    middle = (TOP + HEIGHT - BOTTOM) / 2
    lines += [text_at((LEFT + WIDTH - RIGHT) / 2, 18, panel.title,
                      extra=' font-weight="bold"'),
              text_at((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, panel.x),
              text_at(15, middle, panel.y,
                      extra=' transform="rotate(-90 15 %.1f)"' % middle)]
    return lines


def curve(series, place, across, up):
    colour = COLOURS[(place if series.colour is None else series.colour)
                     % len(COLOURS)]
    spots = [(across.at(x), up.at(y)) for x, y in series.points]
    dash = ' stroke-dasharray="5 3"' if series.dashed else ""
    lines = ['<polyline fill="none" stroke="%s" stroke-width="1.6"%s '
             'points="%s"/>' % (colour, dash, " ".join(
                 "%.1f,%.1f" % spot for spot in spots))]
    if len(spots) <= 25:
        lines += ['<circle cx="%.1f" cy="%.1f" r="2.4" fill="%s"/>' % (
            *spot, colour) for spot in spots]
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
    across = Axis([x for x, _ in everything], panel.log_x, LEFT,
                  WIDTH - RIGHT)
    up = Axis([y for _, y in everything], panel.log_y, HEIGHT - BOTTOM, TOP)
    lines, entries = grid(panel, across, up), []
    # A series keeps its colour when those before it have no points.
    for place, series in enumerate(shown):
        if series.points:
            drawn, entry = curve(series, place, across, up)
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
