r"""RESP2, as much of it as the service speaks.

A command is an array of bulk strings:  *2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n
A decision is a flat array of names and values:  *26\r\n$7\r\nallowed\r\n:1\r\n$4\r\nrule …

Replies are bounded in length and depth, whoever sends them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from .decision import Decision

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_BYTES: Final = 64 * 1024
_MOST_ITEMS: Final = 1024
_END: Final = b"\r\n"

Value = int | bytes | None


class Nonsense(Exception):
    """What came is not RESP, or not what a decision looks like."""


class ErrorReply(NamedTuple):
    """What the service refuses to do, in its own words: `ERR unknown rule …`."""

    text: str


class Simple(NamedTuple):
    """`+PONG`, `+OK`."""

    text: bytes


Reply = Decision | ErrorReply | Simple


def encode(words: Iterable[bytes]) -> bytes:
    """The command with these words."""
    parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"*%d\r\n%b" % (len(parts), b"".join(parts))


# A decision as the service writes it. One pass of the regular expression engine is several times
# faster than a loop over thirty items; whatever is written otherwise takes that loop.
_DECISION: Final = re.compile(
    rb"\*(\d+)\r\n\$7\r\nallowed\r\n:([01])\r\n\$4\r\nrule\r\n\$(\d+)\r\n([^\r\n]*)\r\n"
    rb"\$5\r\nlimit\r\n:(\d+)\r\n\$9\r\nremaining\r\n:(-?\d+)\r\n\$4\r\ncost\r\n:(\d+)\r\n"
    rb"\$11\r\nretry_after\r\n(?::\d+|\$-1)\r\n\$14\r\nretry_after_ms\r\n(?::(\d+)|\$-1)\r\n"
    rb"\$11\r\nreset_after\r\n:\d+\r\n\$14\r\nreset_after_ms\r\n:(\d+)\r\n"
    rb"\$8\r\nreset_at\r\n:\d+\r\n\$8\r\ndelay_ms\r\n:(\d+)\r\n"
    rb"\$6\r\nreason\r\n\$\d+\r\n([a-z_]+)\r\n\$6\r\nsource\r\n\$\d+\r\n([a-z_]+)\r\n"
    rb"(?:\$11\r\nreservation\r\n\$16\r\n([0-9a-f]{16})\r\n)?"
    rb"(?:\$6\r\nstatus\r\n:(\d+)\r\n\$7\r\nheaders\r\n\$(\d{1,5})\r\n)?"
).match
_BODY: Final = re.compile(rb"\r\n\$4\r\nbody\r\n\$(\d{1,5})\r\n").match
# Names and values: those that are always there, those of HTTP, that of a reservation.
_ITEMS: Final = 26
_HTTP_ITEMS: Final = 6
_RESERVATION_ITEMS: Final = 2


def read(data: bytes, at: int, server: int) -> tuple[Reply, int] | None:
    """The reply that begins at `at`, and where it ends; None if more has to come."""
    found = _DECISION(data, at)
    if found is not None:
        result = _known(data, found, server)
        if result is not None:
            return result
    return _any(data, at, server)


def _known(data: bytes, found: re.Match[bytes], server: int) -> tuple[Decision, int] | None:
    """A decision in the usual order; None if it is not, or not all there."""
    (items, allowed, rule_size, rule, limit, remaining, cost, retry_ms, reset_ms, delay_ms, reason,
     source, reservation, status, size) = found.groups()  # fmt: skip
    expected = _ITEMS if reservation is None else _ITEMS + _RESERVATION_ITEMS
    end = found.end()
    lines = body = b""
    if status is not None:
        expected += _HTTP_ITEMS
        lines_end = end + int(size)
        tail = _BODY(data, lines_end)
        if tail is None:
            return None
        lines = data[end:lines_end]
        start = tail.end()
        end = start + int(tail[1])
        body = data[start:end]
        end += 2
        if data[end - 2 : end] != _END:
            return None
    if int(items) != expected or int(rule_size) != len(rule):
        return None
    return (
        Decision(
            allowed == b"1",
            rule.decode() or None,
            int(limit),
            int(remaining),
            int(cost),
            None if retry_ms is None else int(retry_ms) / 1000,
            int(reset_ms) / 1000,
            int(delay_ms) / 1000,
            reason.decode(),
            source.decode(),
            None if reservation is None else reservation.decode(),
            None if status is None else int(status),
            lines,
            body,
            server,
        ),
        end,
    )


def _any(data: bytes, at: int, server: int) -> tuple[Reply, int] | None:
    line_end = data.find(_END, at)
    if line_end < 0:
        return None
    kind, line = data[at : at + 1], data[at + 1 : line_end]
    at = line_end + 2
    if kind == b"-":
        return ErrorReply(line.decode("utf-8", "replace")), at
    if kind == b"+":
        return Simple(line), at
    if kind != b"*":
        raise Nonsense(f"a reply that begins with {bytes(data[:16])!r}")
    items = _number(line)
    if not 0 <= items <= _MOST_ITEMS or items % 2:
        raise Nonsense(f"an array of {items}")
    values: list[Value] = []
    for _ in range(items):
        item = _item(data, at)
        if item is None:
            return None
        value, at = item
        values.append(value)
    names = [name for name in values[::2] if isinstance(name, bytes)]
    if len(names) * 2 != items:
        raise Nonsense("a name that is no text")
    return _decision(dict(zip(names, values[1::2], strict=True)), server), at


def _item(data: bytes, at: int) -> tuple[Value, int] | None:
    line_end = data.find(_END, at)
    if line_end < 0:
        return None
    kind, line = data[at : at + 1], data[at + 1 : line_end]
    at = line_end + 2
    if kind == b"+":
        return line, at
    if kind not in (b":", b"$"):
        raise Nonsense(f"a value that begins with {kind!r}")
    number = _number(line)
    if kind == b":":
        return number, at
    if number == -1:
        return None, at
    if not 0 <= number <= MOST_BYTES:
        raise Nonsense(f"a text of {number} bytes")
    end = at + number
    if len(data) < end + 2:
        return None
    if data[end : end + 2] != _END:
        raise Nonsense("a text without its end")
    return data[at:end], end + 2


def _number(line: bytes) -> int:
    digits = line[1:] if line[:1] == b"-" else line
    if not digits.isdigit() or len(digits) > 19:  # noqa: PLR2004
        raise Nonsense(f"a number {line[:24]!r}")
    return int(line)


def _decision(fields: dict[bytes, Value], server: int) -> Decision:
    """From names and values in any order, those that are not known left aside."""

    def number(name: bytes) -> int:
        value = fields.get(name)
        if value is None:
            return 0
        if not isinstance(value, int):
            raise Nonsense(f"{name!r} is no number")
        return value

    def text(name: bytes) -> bytes:
        value = fields.get(name)
        if value is None:
            return b""
        if not isinstance(value, bytes):
            raise Nonsense(f"{name!r} is no text")
        return value

    if fields.get(b"allowed") not in (0, 1):
        raise Nonsense("a decision without `allowed`")
    never = b"retry_after_ms" in fields and fields[b"retry_after_ms"] is None
    return Decision(
        allowed=fields[b"allowed"] == 1,
        rule=text(b"rule").decode("utf-8", "replace") or None,
        limit=number(b"limit"),
        remaining=number(b"remaining"),
        cost=number(b"cost"),
        retry_after=None if never else number(b"retry_after_ms") / 1000,
        reset_after=number(b"reset_after_ms") / 1000,
        delay=number(b"delay_ms") / 1000,
        reason=text(b"reason").decode("utf-8", "replace"),
        source=text(b"source").decode("utf-8", "replace"),
        reservation=text(b"reservation").decode("utf-8", "replace") or None,
        status=number(b"status") or None,
        header_lines=text(b"headers"),
        body=text(b"body"),
        server=server,
    )
