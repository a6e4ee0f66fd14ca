"""Reads limit text as the service does, so that a limit in code is checked when the program starts.

COUNT/PERIOD [burst COUNT]       100/min burst 50     5/30s
COUNT concurrent [lease LENGTH]  20 concurrent lease 30s
unlimited | deny
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Final, NoReturn

from .errors import OptionError, quoted

ALGORITHMS: Final = (
    "token_bucket",
    "leaky_bucket",
    "fixed_window",
    "sliding_window",
    "sliding_log",
    "concurrency",
)
_BUCKETS: Final = ("token_bucket", "leaky_bucket")

_MS: Final = 1_000_000
_SECOND: Final = 1000 * _MS
_DAY: Final = 86_400 * _SECOND
_UNITS: Final = {
    "week": 7 * _DAY,
    "day": _DAY,
    "h": 3600 * _SECOND,
    "min": 60 * _SECOND,
    "s": _SECOND,
    "ms": _MS,
    "us": 1000,
    "ns": 1,
}
_ENDINGS: Final = {"k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
MOST_COUNT: Final = 10**15
_MOST_LISTED: Final = 65_536
_MOST_RATE: Final = 10_000_000
_MOST_PERIOD: Final = 366 * _DAY
_MOST_PERIOD_TEXT: Final = "366day"

_TOKEN: Final = re.compile(r"[ \t]*([0-9]+|[A-Za-z]+|[^ \t]|$)")


@dataclass(frozen=True, slots=True)
class Limit:
    """How much per what. `word` is `unlimited`, `deny` or, for all that is counted, empty."""

    text: str
    word: str = ""
    count: int = 0
    #: In nanoseconds; 0 for a concurrency limit.
    period: int = 0
    #: How much may come at once.
    burst: int = 0
    #: In nanoseconds; 0 unless it is a concurrency limit.
    lease: int = 0

    @property
    def is_concurrent(self) -> bool:
        """Whether it counts how many there are at once."""
        return self.lease > 0


def parse_limit(text: str, algorithm: str | None = None, option: str = "limit") -> Limit:
    """The limit that this text says, or an OptionError that names the place."""
    if algorithm is not None and algorithm not in ALGORITHMS:
        raise OptionError(
            "algorithm",
            f"unknown algorithm {quoted(algorithm)}; allowed are {', '.join(ALGORITHMS)}",
        )
    if not isinstance(text, str):
        raise OptionError(option, f'{quoted(text)} is no limit; write text such as "100/min"')
    return _parse(text, algorithm or "token_bucket", option)


@functools.lru_cache(maxsize=1024)
def _parse(text: str, algorithm: str, option: str) -> Limit:
    return _Reader(text, algorithm, option).read()


class _Reader:
    """Reads one limit from left to right."""

    def __init__(self, text: str, algorithm: str, option: str) -> None:
        self.text = text
        self.algorithm = algorithm
        self.option = option
        self.at = 0
        self.next = ""
        self.taken_until = 0
        self.take()

    def read(self) -> Limit:
        for word in ("unlimited", "deny"):
            if self.take_if(word):
                self.end("nothing more")
                return Limit(self.text, word=word)
        if not self.next.isdigit():
            self.expected('a count, "unlimited" or "deny"')
        count = self.count(', or the limit "deny"')
        if self.take_if("/"):
            return self.rate(count)
        if self.take_if("concurrent"):
            return self.concurrency(count)
        return self.expected('"/" and a period, or "concurrent"')

    def rate(self, count: int) -> Limit:
        start = self.at
        number = self.number() if self.next.isdigit() else 1
        if not self.next.isalpha():
            self.expected("a period such as s, min or 30s")
        unit_at, unit = self.at, self.take()
        if unit in ("month", "year"):
            self.fail(
                unit_at,
                f'"{unit}" is a period only with align: calendar, which is for the policy of the '
                "service to say; allowed here are ms, s, min, h, day, week",
            )
        if unit not in _UNITS:
            self.fail(
                unit_at, f"unknown period {quoted(unit)}; allowed are ms, s, min, h, day, week"
            )
        period = self.length(start, number, unit)
        burst = 0
        if self.take_if("burst"):
            if not self.next.isdigit():
                self.expected("a count: how much may come at once")
            burst = self.count("")
            self.end("nothing more")
        else:
            self.end('"burst" and a count, or nothing more')
        self.check_rate(count, period, burst)
        return Limit(self.text, count=count, period=period, burst=burst or count)

    def concurrency(self, count: int) -> Limit:
        lease = 30 * _SECOND
        if self.take_if("lease"):
            start = self.at
            if not self.next.isdigit():
                self.expected("a length of time such as 30s")
            number = self.number()
            if self.next not in _UNITS:
                self.expected("a unit: ms, s, min, h, day or week")
            lease = self.length(start, number, self.take())
            self.end("nothing more")
        else:
            self.end('"lease" and a length of time, or nothing more')
        if count > _MOST_LISTED:
            self.refuse(f"count: {count} is not allowed; write 1 to {_MOST_LISTED} (concurrency)")
        return Limit(self.text, count=count, burst=count, lease=lease)

    def check_rate(self, count: int, period: int, burst: int) -> None:
        algorithm = self.algorithm
        if algorithm == "concurrency":
            self.refuse('period: concurrency takes none; write text such as "20 concurrent"')
        if algorithm == "sliding_log" and count > _MOST_LISTED:
            self.refuse(f"count: {count} is not allowed; write 1 to {_MOST_LISTED} (sliding_log)")
        if algorithm not in _BUCKETS:
            if period < _MS:
                self.refuse("period: less than 1ms is not allowed; write 1ms to 366day")
            if burst:
                self.refuse(f"burst: {algorithm} takes none; token_bucket and leaky_bucket do")
            return
        if count * _SECOND > _MOST_RATE * period:
            self.refuse(f"count: {count} is not allowed; write at most {_MOST_RATE} in 1s")
        most = min(_MOST_PERIOD * count // period, MOST_COUNT)
        if (burst or count) > most:
            self.refuse(
                f"burst: {burst or count} is not allowed; write 1 to {most}, which takes at most "
                f"{_MOST_PERIOD_TEXT} to fill"
            )

    def length(self, start: int, number: int, unit: str) -> int:
        if not 0 < number <= _MOST_PERIOD // _UNITS[unit]:
            self.fail(
                start,
                f"{quoted(self.since(start))} is not allowed; write more than 0, up to "
                f"{_MOST_PERIOD_TEXT}",
            )
        return number * _UNITS[unit]

    def count(self, instead_of_zero: str) -> int:
        start = self.at
        count = self.number()
        if self.is_glued() and self.next.isalpha() and self.next != "concurrent":
            if self.next not in _ENDINGS:
                self.fail(
                    self.at,
                    f"unknown ending of a count {quoted(self.next)}; allowed are k, M and G",
                )
            count *= _ENDINGS[self.take()]
        if not 1 <= count <= MOST_COUNT:
            self.fail(
                start,
                f"{quoted(self.since(start))} is not allowed; write 1 to {MOST_COUNT}"
                f"{instead_of_zero}",
            )
        return count

    def number(self) -> int:
        digits = self.take()
        if self.is_glued() and self.next in (".", ","):
            self.fail(self.at, f"found {quoted(self.next)}; write whole numbers, digits only")
        # Python refuses to read numbers of thousands of digits.
        return int(digits) if len(digits) <= 20 else MOST_COUNT + 1  # noqa: PLR2004

    def take(self) -> str:
        """The token at hand; moves on to the one after it."""
        taken = self.next
        self.taken_until = self.at + len(taken)
        found = _TOKEN.match(self.text, self.taken_until)
        self.at, self.next = (found.start(1), found[1]) if found else (len(self.text), "")
        return taken

    def take_if(self, expected: str) -> bool:
        if self.next != expected:
            return False
        self.take()
        return True

    def is_glued(self) -> bool:
        return self.at == self.taken_until

    def since(self, start: int) -> str:
        return self.text[start : self.taken_until]

    def end(self, expected: str) -> None:
        if self.next:
            self.expected(expected)

    def expected(self, what: str) -> NoReturn:
        found = quoted(self.next) if self.next else "the end"
        self.fail(self.at, f"found {found}, expected {what}")

    def fail(self, at: int, problem: str) -> NoReturn:
        self.refuse(f"column {at + 1}: {problem}")

    def refuse(self, problem: str) -> NoReturn:
        raise OptionError(self.option, f"{quoted(self.text)}: {problem}")
