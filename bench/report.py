"""Figures and tables, the same for every suite."""

import dataclasses
import json


@dataclasses.dataclass
class Figure:
    """One measured value, beside what it is compared with.

    Lower values are better, and `ratio` is how many times better than the reference the value
    is. `target` is the least the ratio should be; with `ceiling` it is the most the value may be.
    Where runs were made in pairs, `paired_ratio` is the median of their ratios and counts instead
    of the ratio of the medians.
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
        if self.paired_ratio is not None:
            return self.paired_ratio
        return None if self.reference is None else self.reference / self.value

    @property
    def met(self):
        if self.target is None:
            return None
        return self.value <= self.target if self.ceiling else self.ratio >= self.target

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


def rounded(value):
    return None if value is None else round(value, 3)


def write_json(figures, path):
    path.write_text(json.dumps([figure.entry() for figure in figures], indent=2) + "\n")


def verdict(figures):
    """The figures that miss their target, and how many do not."""
    targeted = [figure for figure in figures if figure.target is not None]
    missed = [figure for figure in targeted if not figure.met]
    lines = [f"{len(targeted) - len(missed)} of {len(targeted)} targets met."]
    for figure in missed:
        if figure.ceiling:
            is_so = f"{figure.value:.1f} {figure.unit}, at most {figure.target:g} asked for"
        else:
            is_so = f"{figure.ratio:.2f} times the reference, {figure.target:g} asked for"
        lines.append(f"missed: {figure.name}: {is_so}")
    return "\n".join(lines)


@dataclasses.dataclass
class Table:
    """The first column holds names and goes to the left, the others go to the right."""

    title: str
    columns: list[str]
    rows: list[list[str]]

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
