"""Weir's own rows of a suite, of two builds in turns: is the new build slower than the old one?

A round measures a part with both builds, one right after the other, and the next round begins with
the other build. Every run has processes of its own, because where a process happens to lie in
memory changes its speed: that belongs into the spread. What counts is the ratio new / old of the
two runs of a round. Peers are not measured.
"""

import collections.abc
import dataclasses
import functools
import json
import math
import pathlib
import re
import statistics
import sys
import time

from measured import Failure, ProgramFailed, run_program
from report import Table, rounded

# How long a suite takes, where the number of rounds is not given and its least rounds fit.
BUDGET_S = 6.5 * 60
MOST_ROUNDS = 21
# Fewer say nothing about the spread.
FEWEST_TO_JUDGE = 3
# The layout of the code alone makes such a difference, and memory is never the same to the byte.
SMALLEST_DIFFERENCE = 0.01


@dataclasses.dataclass
class BuildSetup:
    """What a part measures with: one of the two builds."""

    build: pathlib.Path  # Of the programs that are measured.
    load: pathlib.Path  # Of the load generators: the new build's, for both.
    smoke: bool
    folder: pathlib.Path  # For files; both builds have the same.
    shared: dict  # Both builds have the same.

    def once(self, name, make):
        """What `make` returns, which is called once for both builds: a rate, a log."""
        if name not in self.shared:
            self.shared[name] = make()
        return self.shared[name]


@dataclasses.dataclass
class WeirPart:
    """Rows that are measured together. Slow ones ask for fewer than the usual five rounds.

    `rows` is {name: unit}. `measure` takes a BuildSetup and the names of the rows that are wanted,
    None for all, and returns {name: value}. It may return more rows than are wanted, or fewer:
    another commit may have other ones. Lower values are better.
    """

    name: str
    rows: dict[str, str]
    measure: collections.abc.Callable[[BuildSetup, list[str] | None], dict[str, float]]
    least_rounds: int = 5


@dataclasses.dataclass
class Comparison:
    """A row: the values of both builds, in the order of the rounds."""

    name: str
    unit: str = ""
    old: list[float] = dataclasses.field(default_factory=list)
    new: list[float] = dataclasses.field(default_factory=list)

    @functools.cached_property
    def ratios(self):
        """new / old by round. Only rounds that have both count."""
        return [new / old for old, new in zip(self.old, self.new)
                if old > 0 and not math.isnan(old) and not math.isnan(new)]

    @property
    def ratio(self):
        return statistics.median(self.ratios) if self.ratios else math.nan

    @property
    def spread(self):
        """The interquartile range of the ratios."""
        if len(self.ratios) < 2:
            return math.nan
        low, _, high = statistics.quantiles(self.ratios, n=4, method="exclusive")
        return high - low

    @property
    def verdict(self):
        if not self.ratios:
            has = [not all(map(math.isnan, values)) for values in (self.old, self.new)]
            return {(True, False): "only in OLD", (False, True): "only in NEW"}.get(
                tuple(has), "not measured")
        if len(self.ratios) < FEWEST_TO_JUDGE:
            return "too few rounds"
        if abs(self.ratio - 1) <= max(self.spread, SMALLEST_DIFFERENCE):
            return "same"
        return "SLOWER" if self.ratio > 1 else "faster"

    def cells(self):
        old, new = (value_text(present_median(values)) for values in (self.old, self.new))
        return [self.name, old, new, self.unit, f"{self.ratio:.3f}", f"{self.spread:.3f}",
                str(len(self.ratios)), self.verdict]

    def entry(self):
        fields = {"name": self.name, "unit": self.unit, "old": rounded(present_median(self.old)),
                  "new": rounded(present_median(self.new)), "ratio": rounded(self.ratio),
                  "spread": rounded(self.spread), "rounds": len(self.ratios),
                  "verdict": self.verdict}
        return {name: value for name, value in fields.items() if value is not None}


def present_median(values):
    present = [value for value in values if not math.isnan(value)]
    return statistics.median(present) if present else math.nan


def value_text(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


# --- Which rows ---


class UnknownRows(ValueError):
    """The pattern of --rows is no regular expression, or no row matches it."""


def select(parts, pattern):
    """[(part, names of its wanted rows, or None for all)]: parts without a wanted row are left out."""
    if pattern is None:
        return [(part, None) for part in parts]
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise UnknownRows(f"--rows {pattern}: this is no regular expression: {error}") from error
    selected = []
    for part in parts:
        rows = [row for row in part.rows if wanted.search(row)]
        if rows:
            selected.append((part, None if len(rows) == len(part.rows) else rows))
    if not selected:
        names = "\n".join(f"  {row}" for part in parts for row in part.rows)
        raise UnknownRows(f"--rows {pattern}: no row matches. The rows are:\n{names}")
    return selected


# --- Measuring ---


def compare(selected, old, new, rounds=None, budget=BUDGET_S):
    """Measures the selected parts with both builds. Returns (comparisons, failures)."""
    comparisons, failures = {}, []
    end = time.monotonic() + budget
    # Slow parts first: the quick ones share the time that is left.
    slow_first = sorted(range(len(selected)), key=lambda at: selected[at][0].least_rounds)
    for done, at in enumerate(slow_first):
        part, rows = selected[at]
        share = max(0, end - time.monotonic()) / (len(selected) - done)
        began = time.monotonic()
        pairs, failure = run_rounds(part, rows, old, new, rounds, share)
        took = time.monotonic() - began
        if failure is not None:
            failures.append(failure)
            print(failure, file=sys.stderr, flush=True)
        print(f"{part.name}: {len(pairs)} rounds, {took:.0f} s", file=sys.stderr, flush=True)
        comparisons[at] = comparisons_of(part, rows, pairs)
    return [row for _, rows in sorted(comparisons.items()) for row in rows], failures


def run_rounds(part, rows, old, new, rounds, share):
    """[(old's rows, new's rows)] of every round that both builds ended; and the failure, if any."""
    pairs = []
    wanted = rounds
    began = time.monotonic()
    while wanted is None or len(pairs) < wanted:
        answers = {}
        order = (("OLD", old), ("NEW", new))
        for side, setup in order if len(pairs) % 2 == 0 else order[::-1]:
            try:
                answers[side] = part.measure(setup, rows)
            except Exception as error:  # Whatever it was: the other parts are still measured.
                return pairs, Failure.of(f"{part.name} ({side})", error)
        pairs.append((answers["OLD"], answers["NEW"]))
        if wanted is None:
            fitting = int(share / max(time.monotonic() - began, 1e-3))
            wanted = min(max(fitting, part.least_rounds), MOST_ROUNDS)
    return pairs, None


def comparisons_of(part, rows, pairs):
    names = dict.fromkeys(part.rows if rows is None else rows)
    if rows is None:
        for pair in pairs:
            for answer in pair:
                names |= dict.fromkeys(answer)
    unit = next(iter(part.rows.values()))
    for name in names if pairs else ():
        yield Comparison(name, part.rows.get(name, unit),
                         old=[old.get(name, math.nan) for old, _ in pairs],
                         new=[new.get(name, math.nan) for _, new in pairs])


def run_google_benchmark(program, words, prefix, names):
    """{benchmark: [ns of every round]} of the benchmarks of these names, None for all.

    Empty if the program has none of them, as that of another commit may.
    """
    only = f"^{prefix}" if names is None else f"^{prefix}({'|'.join(names)})/iterations:"
    try:
        return json.loads(run_program([program, f"--benchmark_filter={only}", *words]))
    except ProgramFailed as error:
        if "Failed to match any benchmarks" in error.output:
            return {}
        raise


# --- The report ---

COLUMNS = ["row", "old", "new", "unit", "new/old", "spread", "rounds", "verdict"]


def table(title, comparisons):
    return Table(title, COLUMNS, [comparison.cells() for comparison in comparisons])


def summary(comparisons):
    """How many rows have which verdict, and which ones are slower."""
    counts = {}
    for comparison in comparisons:
        counts[comparison.verdict] = counts.get(comparison.verdict, 0) + 1
    lines = [", ".join(f"{count} {verdict}" for verdict, count in counts.items())
             or "no row was measured"]
    slower = [comparison for comparison in comparisons if comparison.verdict == "SLOWER"]
    lines += [f"SLOWER: {row.name}: {row.ratio:.3f} times the old value, spread {row.spread:.3f}"
              for row in slower]
    if slower:
        lines.append("About one row in a hundred is beyond its spread by chance: measure such rows"
                     " again with --rows PATTERN --rounds 21.")
    return "\n".join(lines)
