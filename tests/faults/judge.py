"""Whether the answers kept the promises, judged by the log of those who asked and nothing else.

When an answer was decided is known only as "between sending and receiving". A burst is above its
promise only if it must be: if more was let through by answers that lie wholly in an interval than
the interval allows. So the judge never accuses wrongly, and is strict up to the time that answers
took.
"""

import bisect

# Only if every answer came from the store for so long is it the store that decides again.
CALM = 0.3


def excess(answers, *, burst, rate):
    """By how much the worst interval is above burst + rate * t; zero or less if none is.

    For every end, the largest over all beginnings of (what was admitted in between) - rate * t.
    Beginnings are the sendings of admitted requests. One that was sent at s counts for every
    beginning up to s: added to a prefix of a tree that knows its largest value.
    """
    admitted = [one for one in answers if one.allowed]
    if not admitted:
        return -burst
    starts = sorted({one.sent for one in admitted})
    origin = starts[0]
    place = {start: index for index, start in enumerate(starts)}
    size = 1
    while size < len(starts):
        size *= 2
    best = [float("-inf")] * (2 * size)
    added = [0.0] * (2 * size)
    worst = float("-inf")
    for one in sorted(admitted, key=lambda answer: answer.received):
        leaf = size + place[one.sent]
        if best[leaf] == float("-inf"):  # A beginning counts from its first answer on.
            best[leaf] = rate * (one.sent - origin) + added[leaf]
        _add_to_prefix(best, added, size, place[one.sent], one.ask.cost)
        worst = max(worst, best[1] - rate * (one.received - origin))
    return worst - burst


def excesses(answers, rules, *, burst, rate):
    """The excess of every key of these rules."""
    by_ask = {}
    for one in answers:
        if one.ask.rule in rules:
            by_ask.setdefault((one.ask.rule, one.ask.key), []).append(one)
    return {ask: excess(its, burst=burst, rate=rate) for ask, its in by_ask.items()}


def _add_to_prefix(best, added, size, last, cost):
    """Adds `cost` to places 0 to `last`."""
    node = size + last
    best[node] += cost
    while node > 1:
        if node % 2 == 1:  # The sibling on the left is wholly inside.
            best[node - 1] += cost
            added[node - 1] += cost
        node //= 2
        best[node] = max(best[2 * node], best[2 * node + 1]) + added[node]


def stretches(answers, stalls):
    """The answers between stalls of the machine, as lists by the time they were sent."""
    begins = [stall.began for stall in stalls]
    found = [[] for _ in range(len(begins) + 1)]
    for one in answers:
        found[bisect.bisect_right(begins, one.sent)].append(one)
    return found


def undisturbed(answers, stalls, *, before, after):
    """Without those sent from `before` seconds before a stall of the machine to `after` seconds
    after it."""
    return [one for one in answers
            if not any(stall.began - before <= one.sent <= stall.ended + after for stall in stalls)]


def undisturbed_time(began, ended, stalls, *, before, after):
    """For how long answers were undisturbed between `began` and `ended`, in seconds. The stalls are
    ordered by time."""
    found, since = 0.0, began
    for stall in stalls:
        found += max(0.0, min(ended, stall.began - before) - since)
        since = max(since, stall.ended + after)
    return found + max(0.0, ended - since)


def stood_still(answer, stalls):
    """For how long the machine stood still between sending and receiving, in seconds."""
    return sum(max(0.0, min(answer.received, stall.ended) - max(answer.sent, stall.began))
               for stall in stalls)


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def distribution(answers):
    """Milliseconds from sending to receiving."""
    took = [(one.received - one.sent) * 1000 for one in answers if not one.lost]
    if not took:
        return None
    return {"count": len(took), "p50": round(quantile(took, 0.5), 3),
            "p99": round(quantile(took, 0.99), 3), "p999": round(quantile(took, 0.999), 3),
            "max": round(max(took), 3)}


def between(answers, begin, end):
    """Those sent in that time."""
    return [one for one in answers if begin <= one.sent < end]


def time_to_normal(answers, healed, *, calm=CALM):
    """Seconds from `healed` until every answer comes from the store again; None if never."""
    last = max((one.sent for one in answers if one.source != "store" and one.sent > healed),
               default=healed)
    end = max((one.sent for one in answers), default=healed)
    return last - healed if end - last >= calm else None
