"""What is said in the log: a line when something begins, one when it ends, never one a request."""

from __future__ import annotations

import logging
from typing import Final

LOG: Final = logging.getLogger("weir_limiter")

# Texts of errors that are remembered; more than that many different ones are not told.
_MOST_TEXTS: Final = 100
_EFFECT: Final = {
    "open": "requests pass unlimited (on_failure: open)",
    "closed": "requests are refused with 429 (on_failure: closed)",
    "static": "this process decides by its own share of the limits (on_failure: static)",
}


class Notices:
    """Of one client in one event loop."""

    def __init__(self, on_failure: str) -> None:
        self._on_failure = on_failure
        self._alone_since: float | None = None
        self._decided_alone = 0
        self._moved_from: str | None = None
        self._texts: set[str] = set()

    def decided_alone(self, now: float, why: str) -> None:
        """No service has answered, so the client decides."""
        self._decided_alone += 1
        if self._alone_since is not None:
            return
        self._alone_since = now
        LOG.warning("No service answers: %s. Until one does, %s.", why, _EFFECT[self._on_failure])

    def answered(self, now: float, place: int, address: str) -> None:
        """A service has answered; `place` is where it stands in the list."""
        if self._alone_since is not None:
            LOG.warning(
                "%s answers again, after %.1f s; %d requests were decided without.",
                address,
                now - self._alone_since,
                self._decided_alone,
            )
            self._alone_since = None
            self._decided_alone = 0
            self._moved_from = None if place == 0 else self._moved_from
        if place == 0 and self._moved_from is not None:
            LOG.warning("Back at %s.", address)
            self._moved_from = None

    def moved(self, lost: str, why: str, address: str) -> None:
        """A question went to another service than the one that should have it."""
        if self._moved_from is None:
            self._moved_from = lost
            LOG.warning("%s does not answer: %s. Asking %s in its place.", lost, why, address)

    def refused(self, text: str) -> None:
        """The service has answered a check by an error."""
        if text not in self._texts and len(self._texts) < _MOST_TEXTS:
            self._texts.add(text)
            LOG.warning(
                "The service refuses a check: %s. For such, %s.", text, _EFFECT[self._on_failure]
            )


_told: set[str] = set()


def tell_once(code: str, message: str, *arguments: object) -> None:
    """A mistake in the set-up of this process."""
    if code not in _told:
        _told.add(code)
        LOG.warning(message, *arguments)
