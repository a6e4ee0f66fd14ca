"""How fast one server may be asked, from what it says: pure logic, without a clock or a loop.

Known is how many requests may be under way (`budget`), and until when none may be sent. Answers may
come in another order than questions were counted: among requests that were under way together the
least that any answer leaves is believed.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from .advice import Advice

# A wait that was asked for is never shortened, but made up to so much longer.
_JITTER_SHARE: Final = 0.1
_JITTER: Final = 0.05
_FIRST_PAUSE: Final = 1.0


class Pace:
    """Of one origin. Times are in seconds of any clock that never goes back."""

    def __init__(self, jitter: Callable[[], float] = random.random) -> None:
        self.blocked_until = 0.0
        # Nobody knows before the first answer, so that one goes ahead here too.
        self.budget: int | None = 1
        self.under_way = 0
        self._jitter = jitter
        self._sent = 0
        self._budget_of = 0
        self._refusals = 0
        self._is_known = False

    def wait(self, now: float) -> float | None:
        """How long none may be sent; None if that depends on answers to come."""
        if now < self.blocked_until:
            return self.blocked_until - now
        if self.budget is not None and self.under_way >= self.budget:
            return None
        return 0.0

    def send(self) -> int:
        """One is sent. Returns its number."""
        self._sent += 1
        self.under_way += 1
        return self._sent

    def lose(self) -> None:
        """One was not answered. It may have been counted all the same."""
        self.under_way -= 1
        if self.budget is not None:
            self.budget = max(1, self.budget - 1)

    def answer(self, number: int, advice: Advice, now: float, *, refused: bool) -> float:
        """One was answered. Returns how long the server wants it to wait."""
        self.under_way -= 1
        wait = advice.wait
        if not refused:
            self._refusals = 0
        elif wait is None:
            wait = _FIRST_PAUSE * 2**self._refusals
            self._refusals = min(self._refusals + 1, 10)
        remaining = advice.remaining
        if remaining is not None:
            if remaining == 0:
                wait = _FIRST_PAUSE if wait is None else wait
                self._block(now + wait * (1 + _JITTER_SHARE * self._jitter()))
            # When the time has come one goes ahead, and finds out what is left.
            remaining = max(1, remaining)
            if number > self._budget_of or self.budget is None:
                self.budget = remaining
                self._budget_of = self._sent
            else:
                self.budget = min(self.budget, remaining)
        elif not self._is_known:
            self.budget = None
        self._is_known = True
        return wait or 0.0

    def _block(self, until: float) -> None:
        self.blocked_until = max(self.blocked_until, until + _JITTER * self._jitter())
