"""The answer to a question: may this request pass, and what is left."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided. Times are in seconds.

    A denial is a decision, not an error. `source` says who decided: the service (`memory`, `store`,
    …), or this process while none answers (`open`, `closed`, `fallback`).
    """

    allowed: bool
    #: The rule that the numbers are of; None for a limit in code.
    rule: str | None
    #: How much there can be at once.
    limit: int
    remaining: int
    cost: int
    #: When this very request would pass; None if it never will.
    retry_after: float | None
    #: When the key is as good as new.
    reset_after: float
    #: How long an admitted request should wait before it goes ahead.
    delay: float
    reason: str
    source: str
    #: To be given to commit, cancel or release.
    reservation: str | None = None
    #: The status of an HTTP response; None unless `http` was asked for.
    status: int | None = None
    #: Headers of an HTTP response, as whole lines.
    header_lines: bytes = b""
    #: What a denial says.
    body: bytes = b""
    #: Which service answered, by its place in the list; -1 for none.
    server: int = -1

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Name and value of each header that belongs on the response."""
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in self._pairs()]

    def asgi_headers(self) -> list[tuple[bytes, bytes]]:
        """The same as ASGI has them: in bytes, names in lower case."""
        return [(name.lower(), value) for name, value in self._pairs()]

    def _pairs(self) -> list[tuple[bytes, bytes]]:
        pairs = []
        for line in self.header_lines.split(b"\r\n"):
            name, colon, value = line.partition(b": ")
            if colon:
                pairs.append((name, value))
        return pairs
