"""Figures and tables, the same for every suite."""

import dataclasses
import json
import math
import re


@dataclasses.dataclass
class Figure:
    """One measured value, beside what it is compared with.

    Lower values are better, and `ratio` is how many times better than the reference the value
    is. `target` is the least the ratio should be; with `ceiling` it is the most the value may be.
    Where runs were made in pairs, `paired_ratio` is the median of their ratios and counts instead
    of the ratio of the medians. A value that was not measured, because its part failed, is NaN.
    """

    name: str
    value: float
    unit: str
    reference: float | None = None
    target: float | None = None
    ceiling: bool = False
    paired_ratio: float | None = None

    @property
    def ratio(self):
        ratio = self.paired_ratio
        if ratio is None and self.reference is not None and self.value != 0:
            ratio = self.reference / self.value
        return ratio if is_measured(ratio) else None

    @property
    def met(self):
        if self.target is None:
            return None
        if self.ceiling:
            return self.value <= self.target
        return None if self.ratio is None else self.ratio >= self.target

    def entry(self):
        fields = {
            "name": self.name,
            "value": rounded(self.value),
            "unit": self.unit,
            "reference": rounded(self.reference),
            "ratio": rounded(self.ratio),
            "target": rounded(self.target),
            "met": self.met,
        }
        return {name: value for name, value in fields.items() if value is not None}


def is_measured(value):
    return value is not None and not math.isnan(value)


def rounded(value):
    return round(value, 3) if is_measured(value) else None


def write_json(entries, path):
    path.write_text(json.dumps([entry.entry() for entry in entries], indent=2) + "\n")


def verdict(figures):
    """The figures that miss their target, and how many do not."""
    targeted = [figure for figure in figures if figure.met is not None]
    missed = [figure for figure in targeted if not figure.met]
    lines = [f"{len(targeted) - len(missed)} of {len(targeted)} targets met."]
    for figure in missed:
        if figure.ceiling:
            is_so = f"{figure.value:.1f} {figure.unit}, at most {figure.target:g} asked for"
        else:
            is_so = f"{figure.ratio:.2f} times the reference, {figure.target:g} asked for"
        lines.append(f"missed: {figure.name}: {is_so}")
    return "\n".join(lines)


# A value that was not measured, as format() writes it.
NOT_MEASURED = re.compile(r"(?<![a-z])nan(?![a-wyz])x?%?")


@dataclasses.dataclass
class Table:
    """The first column holds names and goes to the left, the others go to the right.

    A value that was not measured is shown as "-", and a row with such a value is not judged.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]

    def __post_init__(self):
        self.rows = [self._shown(row) for row in self.rows]

    def _shown(self, row):
        shown = [row[0], *(NOT_MEASURED.sub("-", cell) for cell in row[1:])]
        if shown != row and self.columns[-1] == "target":
            shown[-1] = ""
        return shown

    def text(self):
        lines = [self.columns, *self.rows]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.columns))]
        return "\n".join([self.title, *(self._line(line, widths) for line in lines), ""])

    @staticmethod
    def _line(cells, widths):
        first = cells[0].ljust(widths[0])
        rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:]))
        return "  ".join([first, *rest]).rstrip()

    def markdown(self):
        rule = ["---"] + ["---:"] * (len(self.columns) - 1)
        lines = [self.columns, rule, *self.rows]
        return "\n".join(
            [f"### {self.title}", "", *("| " + " | ".join(line) + " |" for line in lines), ""]
        )
