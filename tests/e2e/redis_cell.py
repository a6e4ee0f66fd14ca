"""A model of redis-cell, written from what it does and apart from the service.

All times are whole nanoseconds. A key has one number, the theoretical arrival time (tat); the answer
depends on how far it lies ahead of now. Over a wire neither is known exactly, only that the decision
was made between sending and receiving, so the model also works on ranges of both.
"""

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
MICROSECOND = 1_000


def seconds(time):
    """Rounded up only if there is a whole millisecond; what is less is dropped."""
    milliseconds = int(time / MILLISECOND) if time < 0 else time // MILLISECOND
    return milliseconds // 1000 + (1 if milliseconds % 1000 > 0 else 0)


def interval(count, period):
    return period * SECOND // count


def throttle(ahead, burst, count, period, quantity=1):
    """The reply for a key whose tat is `ahead` of now; None for a key that is not there."""
    emission = interval(count, period)
    tolerance = emission * (burst + 1)
    ahead = max(ahead, 0)
    new = ahead + emission * quantity
    limited = new > tolerance
    left = ahead if limited else new
    remaining = 0
    if tolerance - left > -emission:
        micros = (tolerance - left) // MICROSECOND
        remaining = max(micros, 0) // (emission // MICROSECOND)
    retry = -1
    if limited and quantity <= burst + 1:
        retry = seconds(new - tolerance)
    return [int(limited), burst + 1, remaining, retry, seconds(left)]


class Range:
    """Where a tat may be: from `low` to `high`."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def possible(self, sent, received, burst, count, period, quantity):
        """All replies that some moment from `sent` to `received` would give."""
        low, high = max(self.low - received, 0), max(self.high - sent, 0)
        emission = interval(count, period)
        tolerance = emission * (burst + 1)
        charge = emission * quantity
        edges = {low, high, tolerance - charge, tolerance}
        # Where a second of one of the times, and where the number that remains, changes.
        for offset in (0, charge, charge - tolerance):
            for bound in (0, MILLISECOND):
                first = (low + offset) // SECOND
                for number in range(first, (high + offset) // SECOND + 1):
                    edges.add(number * SECOND + bound - offset)
        for offset in (0, charge):
            first = (tolerance - low - offset) // emission
            last = (tolerance - high - offset) // emission
            edges.update(tolerance - offset - number * emission
                         for number in range(last, first + 1))
        replies = []
        for edge in sorted(edges):
            for ahead in (edge - MICROSECOND, edge - 1, edge, edge + 1, edge + MICROSECOND):
                if low <= ahead <= high:
                    reply = throttle(ahead, burst, count, period, quantity)
                    if reply not in replies:
                        replies.append(reply)
        return replies

    def charge(self, sent, received, count, period, quantity):
        """After a call that was allowed."""
        charge = interval(count, period) * quantity
        self.low = max(self.low, sent) + charge
        self.high = max(self.high, received) + charge
