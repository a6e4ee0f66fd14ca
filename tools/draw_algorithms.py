#!/usr/bin/env python3
"""Draws what "100 per second" means to each algorithm: docs/algorithms/img/*.svg.

    tools/draw_algorithms.py          write the drawings
    tools/draw_algorithms.py --check  fail if the files are not what this script makes

Every algorithm meets the same requests, each of cost 1: nothing, then 250 within 0.2 s just before
a second is over, then 300 a second. Whole microseconds and whole numbers only, so that every
machine draws the same.
"""

import collections
import dataclasses
import pathlib
import sys

IMAGES = pathlib.Path(__file__).resolve().parent.parent / "docs" / "algorithms" / "img"

SECOND = 1_000_000
MILLISECOND = 1_000
END = 4 * SECOND
BAR = 50 * MILLISECOND

LIMIT = 100  # for each second, and all of it at once
INTERVAL = SECOND // LIMIT

BURST_START, BURST_SIZE, BURST_STEP = 800 * MILLISECOND, 250, 800
STEADY_START, STEADY_RATE = SECOND, 300


def offered():
    """When each request comes."""
    burst = [BURST_START + i * BURST_STEP for i in range(BURST_SIZE)]
    count = (END - STEADY_START) * STEADY_RATE // SECOND
    return burst + [STEADY_START + i * SECOND // STEADY_RATE for i in range(count)]


# --- The algorithms. Each gives, for every request, when it goes ahead, or None if denied. ---


def token_bucket(arrivals):
    full_at = 0  # the theoretical arrival
    for now in arrivals:
        after = max(full_at, now) + INTERVAL
        if after - now > LIMIT * INTERVAL:
            yield None
            continue
        full_at = after
        yield now


def leaky_queue(arrivals):
    empty_at = 0
    for now in arrivals:
        turn = max(empty_at, now)
        if turn + INTERVAL - now > (LIMIT + 1) * INTERVAL:
            yield None
            continue
        empty_at = turn + INTERVAL
        yield turn


def fixed_window(arrivals):
    counts = collections.Counter()
    for now in arrivals:
        window = now // SECOND
        if counts[window] + 1 > LIMIT:
            yield None
            continue
        counts[window] += 1
        yield now


def sliding_window(arrivals):
    counts = collections.Counter()
    for now in arrivals:
        window, elapsed = divmod(now, SECOND)
        estimate = counts[window - 1] * (SECOND - elapsed) // SECOND + counts[window]
        if estimate + 1 > LIMIT:
            yield None
            continue
        counts[window] += 1
        yield now


def strict_window(arrivals):
    sub_windows = 10
    counts = collections.Counter()
    for now in arrivals:
        current = now // (SECOND // sub_windows)
        if sum(counts[current - age] for age in range(sub_windows + 1)) + 1 > LIMIT:
            yield None
            continue
        counts[current] += 1
        yield now


def sliding_log(arrivals):
    log = collections.deque()
    for now in arrivals:
        while log and log[0] <= now - SECOND:
            log.popleft()
        if len(log) + 1 > LIMIT:
            yield None
            continue
        log.append(now)
        yield now


PLACES = 25
HOLD = 250 * MILLISECOND  # how long a request is at work
LEASE = 1_500 * MILLISECOND  # when one that died is taken for dead
DEAD = 5  # so many of the first never give their place back


def concurrency(arrivals):
    """Gives (start, end) rather than an instant."""
    ends = []
    started = 0
    for now in arrivals:
        ends = [end for end in ends if end > now]
        if len(ends) + 1 > PLACES:
            yield None
            continue
        ends.append(now + (LEASE if started < DEAD else HOLD))
        started += 1
        yield now, ends[-1]


# --- What is drawn ---


@dataclasses.dataclass
class Drawing:
    name: str
    title: str
    bars: list  # when each request that was let through goes ahead
    line: list  # [(time, value)], a value until the next
    line_label: str
    promise: int
    promise_label: str
    top: int  # of the lower panel
    caption: tuple
    bars_label: str = "let through"
    wasted: tuple = ()  # (from, until, value, label): a part of the line that is of no use

    @property
    def peak(self):
        return max(self.line, key=lambda point: (point[1], -point[0]))


def trailing_second(times):
    """How many in (t - 1 s, t], as the steps of a line."""
    changes = collections.Counter()
    for time in times:
        changes[time] += 1
        changes[time + SECOND] -= 1
    return running_total(changes)


def places_in_use(spans):
    changes = collections.Counter()
    for start, end in spans:
        changes[start] += 1
        changes[end] -= 1
    return running_total(changes)


def running_total(changes):
    line = [(0, 0)]
    for time in sorted(changes):
        if changes[time] != 0 and time <= END:
            line.append((time, line[-1][1] + changes[time]))
    return line


def rate_drawing(name, title, algorithm, promise, promise_label, caption, **more):
    times = [time for time in algorithm(offered()) if time is not None]
    return Drawing(name, title, times, trailing_second(times), "in the last second", promise,
                   promise_label, 250, caption, **more)


def drawings():
    yield rate_drawing(
        "token-bucket", "Token bucket, 100/s (burst 100)", token_bucket, 2 * LIMIT,
        "promise for 1 s: burst + rate = 200",
        ("The burst takes the 100 that were saved up and what comes back meanwhile;",
         "after that one goes through every 10 ms. A second may hold both: 200."))
    yield rate_drawing(
        "leaky-queue", "Leaky bucket with a queue, 100/s (burst 100)", leaky_queue, LIMIT + 1,
        "promise for 1 s: one request + rate = 101",
        ("Bars show when requests go ahead, after the delay they were told: never two within 10 ms.",
         "The burst fills the queue; whoever would wait longer than the 100 it holds is denied."),
        bars_label="go ahead")
    yield rate_drawing(
        "fixed-window", "Fixed window, 100/s", fixed_window, 2 * LIMIT,
        "promise across a boundary: 2 x limit = 200",
        ("100 at the end of one window and 100 at the start of the next:",
         "200 within 0.53 s, and then nothing until the next boundary."))
    yield rate_drawing(
        "sliding-window", "Sliding window, estimated, 100/s", sliding_window, 2 * LIMIT,
        "promise for 1 s: 2 x limit = 200",
        ("The window before is taken for evenly spread, so its burst at the very end is forgotten",
         "a little at a time: no second burst at the boundary, but more than 100 in a second."))
    yield rate_drawing(
        "strict-window", "Sliding window, strict, 100/s in 10 sub-windows", strict_window, LIMIT,
        "promise for 1 s: limit = 100",
        ("Sub-windows are counted whole, so no second of any alignment sees more than 100.",
         "The price: the burst of 0.8 s counts until 1.9 s, 0.1 s longer than it had to."))
    yield rate_drawing(
        "sliding-log", "Sliding log, 100/s", sliding_log, LIMIT,
        "promise for 1 s: limit = 100",
        ("Every admission counts for exactly one second: a place comes free at 1.8 s,",
         "one second after it was taken at 0.8 s. Never above 100, never later than needed."))
    spans = [span for span in concurrency(offered()) if span is not None]
    yield Drawing(
        "concurrency", "Concurrency, 25 at once, each at work for 0.25 s",
        [start for start, _ in spans], places_in_use(spans), "places in use", PLACES,
        "promise at any instant: 25", 30,
        ("25 places that are held for 0.25 s each make 100 a second. Five holders die at 0.8 s: 20 are",
         "left to work with until their leases end by themselves, here after 1.5 s."),
        bars_label="started",
        wasted=(BURST_START, BURST_START + LEASE, DEAD, "5 held by the dead"))


# --- SVG ---

WIDTH, LEFT, RIGHT = 760, 62, 18
UPPER, LOWER = (64, 130), (226, 150)  # top and height of the two panels
HEIGHT = 470
BARS_TOP = 70

INK, FAINT, GRID = "#1f2430", "#5b6472", "#d5dae1"
OFFERED, ADMITTED, LINE, PROMISE = "#dfe3e9", "#2a6fb5", "#14395f", "#c0392b"
WASTED = "#f3d9a4"


class Svg:
    def __init__(self, width, height, title):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img" '
            'font-family="Helvetica, Arial, sans-serif" font-size="12">',
            f"<title>{title}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        ]

    def rect(self, x, y, width, height, fill):
        self.parts.append(f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" '
                          f'height="{number(height)}" fill="{fill}"/>')

    def line(self, x1, y1, x2, y2, stroke, width=1, dash=""):
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<line x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" '
                          f'y2="{number(y2)}" stroke="{stroke}" stroke-width="{width}"{dashes}/>')

    def path(self, points, stroke="none", width=1, fill="none"):
        steps = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        self.parts.append(f'<polyline points="{steps}" fill="{fill}" stroke="{stroke}" '
                          f'stroke-width="{width}" stroke-linejoin="round"/>')

    def dot(self, x, y, fill):
        self.parts.append(f'<circle cx="{number(x)}" cy="{number(y)}" r="3.5" fill="{fill}"/>')

    def text(self, x, y, text, fill=INK, anchor="start", size=12, bold=False, turned=False,
             over_lines=False):
        weight = ' font-weight="bold"' if bold else ""
        if over_lines:  # a white rim, so that it can be read on top of them
            weight += ' stroke="#ffffff" stroke-width="4" paint-order="stroke"'
        turn = f' transform="rotate(-90 {number(x)} {number(y)})"' if turned else ""
        self.parts.append(f'<text x="{number(x)}" y="{number(y)}" fill="{fill}" '
                          f'text-anchor="{anchor}" font-size="{size}"{weight}{turn}>{text}</text>')

    def done(self):
        return "\n".join([*self.parts, "</svg>", ""])


def number(value):
    """At most one decimal, and none if it is 0. Ratios of whole numbers, so the same everywhere."""
    tenths = round(value * 10)
    whole, rest = divmod(abs(tenths), 10)
    return ("-" if tenths < 0 else "") + (f"{whole}.{rest}" if rest else str(whole))


@dataclasses.dataclass
class Panel:
    left: float
    top: float
    width: float
    height: float
    most: int  # the value at the top

    def x(self, time):
        return self.left + self.width * time / END

    def y(self, value):
        return self.top + self.height - self.height * value / self.most

    @property
    def bottom(self):
        return self.top + self.height

    def draw_axes(self, svg, ticks, times=True):
        for tick in ticks:
            svg.line(self.left, self.y(tick), self.left + self.width, self.y(tick), GRID)
            svg.text(self.left - 6, self.y(tick) + 4, tick, FAINT, "end", 11)
        for time in range(0, END + 1, SECOND):
            svg.line(self.x(time), self.top, self.x(time), self.bottom, GRID)
            if times:
                svg.text(self.x(time), self.bottom + 15, time // SECOND, FAINT, "middle", 11)

    def steps(self, line):
        """The line as corners; values that fall on the same tenth of a pixel are drawn once."""
        corners = []
        for (time, value), (until, _) in zip(line, [*line[1:], (END, 0)]):
            for point in ((self.x(time), self.y(value)), (self.x(until), self.y(value))):
                if not corners or [number(v) for v in point] != [number(v) for v in corners[-1]]:
                    corners.append(point)
        return corners


def per_bar(times):
    counts = collections.Counter(time // BAR for time in times if time < END)
    return [counts[i] for i in range(END // BAR)]


def draw_bars(svg, panel, drawing):
    width = panel.width * BAR / END
    outline = [(panel.left, panel.bottom)]
    for i, count in enumerate(per_bar(offered())):
        outline += [(panel.x(i * BAR), panel.y(count)), (panel.x((i + 1) * BAR), panel.y(count))]
    svg.path([*outline, (panel.left + panel.width, panel.bottom)], fill=OFFERED)
    for i, count in enumerate(per_bar(drawing.bars)):
        if count:
            svg.rect(panel.x(i * BAR) + 1, panel.y(count), width - 2,
                     panel.bottom - panel.y(count), ADMITTED)


def draw_line(svg, panel, drawing):
    if drawing.wasted:
        start, end, value, label = drawing.wasted
        svg.rect(panel.x(start), panel.y(value), panel.x(end) - panel.x(start),
                 panel.bottom - panel.y(value), WASTED)
        svg.text(panel.x((start + end) // 2), panel.y(value) + 17, label, INK, "middle")
    svg.line(panel.left, panel.y(drawing.promise), panel.left + panel.width,
             panel.y(drawing.promise), PROMISE, 1.5, "6 4")
    svg.path(panel.steps(drawing.line), LINE, 2)


def draw_legend(svg, drawing):
    x, y = LEFT, 46
    svg.rect(x, y - 9, 12, 10, OFFERED)
    svg.text(x + 17, y, "offered", FAINT)
    svg.rect(x + 80, y - 9, 12, 10, ADMITTED)
    svg.text(x + 97, y, drawing.bars_label, FAINT)
    x, y = LEFT, LOWER[0] - 10
    svg.line(x, y - 4, x + 20, y - 4, LINE, 2)
    svg.text(x + 25, y, drawing.line_label, FAINT)
    svg.line(x + 150, y - 4, x + 174, y - 4, PROMISE, 1.5, "6 4")
    svg.text(x + 180, y, drawing.promise_label, PROMISE)


def draw(drawing):
    svg = Svg(WIDTH, HEIGHT, drawing.title)
    svg.text(LEFT, 24, drawing.title, size=15, bold=True)
    width = WIDTH - LEFT - RIGHT
    upper = Panel(LEFT, UPPER[0], width, UPPER[1], BARS_TOP)
    lower = Panel(LEFT, LOWER[0], width, LOWER[1], drawing.top)
    upper.draw_axes(svg, (0, 20, 40, 60), times=False)
    draw_bars(svg, upper, drawing)
    lower.draw_axes(svg, range(0, drawing.top + 1, drawing.top // 5 if drawing.top > 50 else 10))
    draw_line(svg, lower, drawing)
    draw_legend(svg, drawing)

    time, most = drawing.peak
    svg.dot(lower.x(time), lower.y(most), LINE)
    svg.text(lower.x(time) + 7, lower.y(most) - 6, f"{most} at {time / SECOND:.2f} s", LINE,
             bold=True, over_lines=True)
    svg.text(18, upper.top + upper.height / 2, "per 50 ms", FAINT, "middle", turned=True)
    svg.text(18, lower.top + lower.height / 2, drawing.line_label, FAINT, "middle", turned=True)
    svg.text(LEFT + width / 2, lower.bottom + 30, "seconds", FAINT, "middle")
    for i, words in enumerate(drawing.caption):
        svg.text(LEFT, lower.bottom + 58 + 17 * i, words)
    return svg.done()


def draw_comparison(all_drawings):
    """The lower panels of those that limit a rate, side by side."""
    shown = [drawing for drawing in all_drawings if drawing.name != "concurrency"]
    columns, cell_width, cell_height = 3, 258, 190
    width = columns * cell_width + 24
    height = 52 + -(-len(shown) // columns) * cell_height + 26
    title = "How many go ahead in the last second, limit 100/s, same requests"
    svg = Svg(width, height, title)
    svg.text(20, 26, title, size=15, bold=True)
    for i, drawing in enumerate(shown):
        left = 20 + i % columns * cell_width
        top = 52 + i // columns * cell_height
        panel = Panel(left + 32, top + 14, cell_width - 52, cell_height - 62, drawing.top)
        svg.text(panel.left, top + 5, drawing.title.partition(",")[0] + shorter(drawing), bold=True)
        panel.draw_axes(svg, (0, 100, 200))
        draw_line(svg, panel, drawing)
        time, most = drawing.peak
        svg.dot(panel.x(time), panel.y(most), LINE)
        svg.text(panel.x(time) + 6, panel.y(most) - 6, most, LINE, bold=True, over_lines=True)
    svg.line(20, height - 18, 40, height - 18, LINE, 2)
    svg.text(46, height - 14, "in the last second", FAINT)
    svg.line(170, height - 18, 194, height - 18, PROMISE, 1.5, "6 4")
    svg.text(200, height - 14, "the most the algorithm promises for one second", PROMISE)
    svg.text(width - 24, height - 14, "x: seconds", FAINT, "end")
    return svg.done()


def shorter(drawing):
    """The second word that tells the two sliding windows apart."""
    words = [part.split()[0] for part in drawing.title.split(", ")[1:]]
    return f", {words[0]}" if words and words[0].isalpha() else ""


def make_all():
    made = list(drawings())
    files = {f"{drawing.name}.svg": draw(drawing) for drawing in made}
    files["comparison.svg"] = draw_comparison(made)
    for drawing in made:
        if drawing.peak[1] > drawing.promise:
            raise AssertionError(f"{drawing.name}: {drawing.peak[1]} is above its promise")
    return files


def check(files):
    wrong = [name for name, text in files.items()
             if not (IMAGES / name).is_file() or (IMAGES / name).read_text() != text]
    wrong += [path.name for path in sorted(IMAGES.glob("*.svg")) if path.name not in files]
    for name in wrong:
        print(f"{name} is not what tools/draw_algorithms.py makes: run it")
    print(f"{len(files) - len(wrong)} of {len(files)} drawings as expected")
    return not wrong


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    files = make_all()
    if arguments == ["--check"]:
        return 0 if check(files) else 1
    IMAGES.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (IMAGES / name).write_text(text)
    print(f"{len(files)} drawings in {IMAGES}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
