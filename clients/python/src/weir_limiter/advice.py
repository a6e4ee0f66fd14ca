"""What a response says about limits: how much is left, and how long to wait.

Read are `RateLimit` (a list of RFC 9651), where there is none `X-RateLimit-Remaining` and `-Reset`,
and `Retry-After` where the status gives it a meaning. What is malformed is as if it were not there.
"""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
# Above it X-RateLimit-Reset is an instant, in seconds since 1970.
_EPOCH: Final = 1_000_000_000
_LONGEST: Final = 1_000_000_000.0
_MOST_DIGITS: Final = 15

_BARE: Final = (
    r'(?:"(?:[ !#-\[\]-~]|\\["\\])*"'  # A string,
    r"|:[A-Za-z0-9+/=]*:"  # bytes,
    r"|\?[01]"  # true or false,
    r"|-?\d{1,15}(?:\.\d{1,3})?"  # a number,
    r"|[A-Za-z*][!#$%&'*+.^_`|~:/0-9A-Za-z-]*)"  # or a token.
)
_ITEM: Final = re.compile(rf"{_BARE}((?:; *[a-z*][a-z0-9_.*-]*(?:={_BARE})?)*)[ \t]*(,[ \t]*|$)")
_PARAMETER: Final = re.compile(rf"; *([a-z*][a-z0-9_.*-]*)(?:=({_BARE}))?")


class Advice(NamedTuple):
    """None where the response says nothing. `wait` is in seconds."""

    wait: float | None = None
    remaining: int | None = None


def read_advice(status: int, headers: Iterable[tuple[str, str]], now: float) -> Advice:
    """What a response says, at a time in seconds since 1970."""
    lines: dict[str, list[str]] = {}
    for name, value in headers:
        lines.setdefault(name.lower(), []).append(value)
    remaining, window = _rate_limit(", ".join(lines.get("ratelimit", ())))
    if remaining is None:
        remaining, window = _older(lines, now)
    wait = window if remaining == 0 else None
    retry_after = _retry_after(lines.get("retry-after", [""])[0], now)
    if status == _TOO_MANY:
        return Advice(window if retry_after is None else retry_after, 0)
    if status == _UNAVAILABLE and retry_after is not None:
        return Advice(retry_after, 0)
    return Advice(wait, remaining)


def _rate_limit(text: str) -> tuple[int | None, float | None]:
    """`r` and `t` of the item that has least left; of several, of the one that takes longest."""
    found: list[tuple[int, float]] = []
    at = 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            return None, None
        given = dict(_PARAMETER.findall(item[1]))
        left, window = _whole(given.get("r", "")), _whole(given.get("t", ""))
        if left is not None:
            found.append((left, -1.0 if window is None else float(window)))
        at = item.end()
    if not found:
        return None, None
    left, longest = min(found, key=lambda pair: (pair[0], -pair[1]))
    return left, None if longest < 0 else longest


def _older(lines: dict[str, list[str]], now: float) -> tuple[int | None, float | None]:
    remaining = _whole(lines.get("x-ratelimit-remaining", [""])[0].strip())
    if remaining is None:
        return None, None
    reset = _whole(lines.get("x-ratelimit-reset", [""])[0].strip())
    if reset is None:
        return remaining, None
    return remaining, max(0.0, reset - now) if reset > _EPOCH else float(reset)


def _retry_after(text: str, now: float) -> float | None:
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) <= _MOST_DIGITS else _LONGEST
    if not text[:1].isalpha():
        return None
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _whole(text: str) -> int | None:
    if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS:
        return int(text)
    return None
