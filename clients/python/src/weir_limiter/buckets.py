"""Buckets of this process, which decide in the place of the service while none answers.

A bucket is one number, the theoretical arrival time of GCRA in nanoseconds of the monotonic clock.
Each process has its share of the limit. Whatever the service lets through is taken here too, so
that the buckets are as full or as empty as they should be when they take over.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from .decision import Decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from .limit_text import Limit

MOST_KEYS: Final = 65_536
# How many are looked at for one that is fresh, and no loss, before the oldest goes.
_LOOKED_AT: Final = 16
_SECOND: Final = 1_000_000_000


class Buckets:
    """For many limits and keys. May be used from several threads."""

    def __init__(
        self, share: int, *, most: int = MOST_KEYS, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._share = share
        self._most = most
        self._clock = clock
        # In the order of their use, the oldest first.
        self._arrivals: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._arrivals)

    def after_fork(self) -> None:
        """In the child: a thread of the parent may have held the lock, and is not here."""
        self._lock = threading.Lock()

    def feed(self, limit: Limit, key: str, cost: int) -> None:
        """Takes what the service has let through. A bucket that has less is empty then."""
        if limit.word or cost <= 0:
            return
        interval, burst = self._shape(limit)
        now = self._clock()
        with self._lock:
            arrival = max(self._arrivals.pop((limit.text, key), 0), now) + cost * interval
            self._put((limit.text, key), min(arrival, now + burst * interval), now)

    def decide(self, limit: Limit, key: str, cost: int) -> Decision:
        """What the bucket says; what it lets through is taken from it."""
        if limit.word:
            return _decide_word(limit.word, cost)
        interval, burst = self._shape(limit)
        now = self._clock()
        with self._lock:
            arrival = max(self._arrivals.get((limit.text, key), 0), now)
            wait = arrival + cost * interval - (now + burst * interval)
            allowed = wait <= 0
            if allowed:
                arrival += cost * interval
                self._arrivals.pop((limit.text, key), None)
                self._put((limit.text, key), arrival, now)
        never = cost > burst
        return Decision(
            allowed=allowed,
            rule=None,
            limit=burst,
            remaining=max(0, burst - -(-(arrival - now) // interval)),
            cost=cost,
            retry_after=0.0 if allowed else None if never else wait / _SECOND,
            reset_after=(arrival - now) / _SECOND,
            delay=0.0,
            reason="ok" if allowed else "never_fits" if never else "limited",
            source="fallback",
        )

    def _shape(self, limit: Limit) -> tuple[int, int]:
        """How long one unit takes to come back, rounded up, and how many there can be."""
        interval = -(-limit.period * self._share // limit.count)
        return interval, max(1, limit.burst // self._share)

    def _put(self, name: tuple[str, str], arrival: int, now: int) -> None:
        if len(self._arrivals) >= self._most:
            oldest = None
            for _, other in zip(range(_LOOKED_AT), self._arrivals, strict=False):
                oldest = oldest or other
                if self._arrivals[other] <= now:
                    oldest = other
                    break
            if oldest is not None:
                del self._arrivals[oldest]
        self._arrivals[name] = arrival


def _decide_word(word: str, cost: int) -> Decision:
    allowed = word == "unlimited"
    most = 10**15 if allowed else 0
    return Decision(
        allowed=allowed,
        rule=None,
        limit=most,
        remaining=most,
        cost=cost,
        retry_after=0.0 if allowed else None,
        reset_after=0.0,
        delay=0.0,
        reason="ok" if allowed else "deny_list",
        source="fallback",
    )
