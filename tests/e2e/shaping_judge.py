"""Judges what left a leaky queue and when: one measurement, one verdict.

A queue that lets one out every 20 ms gives its answers turns on a grid: the first at once, each other
one 20 ms behind the one before. What is promised, and what is judged:

- Never early. Nobody can be let out before his turn, counted from the moment at which the service
  could see the first request. Nothing excuses that.
- On the grid. Of the time by which an answer left behind its turn, less than 5 ms may be the
  service's own; so no two answers leave within 15 ms of each other. Time is not the service's own
  while the machine did not let it run (see machine_witness.py), so an answer that was kept back is
  put where it would have left; but never before its turn, and never by more than that time, less
  what the service did run meanwhile. A service that sleeps, is stopped or is busy has no excuse.
- In order. From its place and from how far the key was from fresh when it was booked follows when
  that was; who leaves later was booked later.

The grid is the earliest that no answer left before. A service that is too fast or too slow, or that
has bursts, leaves it whichever answer it hangs on.
"""

import bisect
import collections
import dataclasses

MILLISECOND = 1_000_000
GAP = 20 * MILLISECOND
LEAST_GAP = 15 * MILLISECOND
TOLERANCE = 0.05


@dataclasses.dataclass
class Answer:
    """All times in ns. It left at `came`, or, if several had piled up before anybody looked, not
    before `since`."""

    connection: int
    since: int
    came: int
    reset_after_ms: int


class Machine:
    """What the machine kept from the service, as the witness tells it."""

    def __init__(self, kept=(), looks=()):
        self.kept = sorted(kept)
        self.looks = list(looks)

    def excuse(self, since, until):
        """For how much of that time the service can do nothing."""
        if not self.looks:
            return 0
        before, after = self._looks_around(since, until)
        ran = self.looks[after][2] - self.looks[before][2]
        return max(0, min(self._kept(since, after), until - since - ran))

    def describe(self, since, until):
        """All that is known about that time."""
        if not self.looks:
            return "there was no witness"
        before, after = self._looks_around(since, until)
        first, last = self.looks[before], self.looks[after]
        states = collections.Counter(look[4] for look in self.looks[before:after + 1])
        return (f"meanwhile the service ran for {(last[2] - first[2]) / MILLISECOND:.1f} ms, the "
                f"machine kept it back for {self._kept(since, after) / MILLISECOND:.1f} ms, the "
                f"hypervisor took {(last[3] - first[3]) / MILLISECOND:.0f} ms, and its threads were "
                + ", ".join(f"{state} at {number}" for state, number in states.most_common())
                + " looks")

    def _looks_around(self, since, until):
        """The places of the last look before and of the first look after that time."""
        return (max(bisect.bisect_right(self.looks, since, key=lambda look: look[1]) - 1, 0),
                min(bisect.bisect_left(self.looks, until, key=lambda look: look[0]),
                    len(self.looks) - 1))

    def _kept(self, since, after):
        """For how much of the time from `since` to that look the machine kept the service back."""
        # What is noted at a look was before its end; where exactly is not known.
        kept, reached, end = 0, since, self.looks[after][1]
        for begin, to in self.kept:
            begin, to = max(begin, reached), min(to, end)
            if to > begin:
                kept, reached = kept + to - begin, to
        return kept


class Verdict:
    """`faults` is empty if all is well; `account` says what was measured and what was made of it."""

    def __init__(self, answers, machine, began):
        """`began`: before the service could see the first of the requests."""
        self.faults = []
        self.answers = sorted(answers, key=lambda answer: answer.came)
        self.machine = machine
        self.began = began
        self.grid = min(answer.came - place * GAP for place, answer in enumerate(self.answers))
        self.corrected, self.excused = [], []
        for place, answer in enumerate(self.answers):
            turn = self.grid + place * GAP
            left = max(turn, answer.since)
            excuse = machine.excuse(turn, left)
            self.corrected.append(left - excuse)
            self.excused.append(answer.came - left + excuse)
        self._judge_earliness()
        self._judge_gaps()
        self._judge_total()

    def _fault(self, place, what):
        near = [f"{(answer.came - self.began) / MILLISECOND:.1f}"
                + (f" (kept back {excused / MILLISECOND:.1f})" if excused else "")
                for answer, excused in list(zip(self.answers, self.excused))[
                    max(0, place - 3):place + 4]]
        self.faults.append(f"answer {place}: {what}; around it, in ms: {', '.join(near)}")

    def _judge_earliness(self):
        for place, answer in enumerate(self.answers):
            early = self.began + place * GAP - answer.came
            if early > 0:
                self._fault(place, f"{early / MILLISECOND:.3f} ms before its turn")

    def _judge_gaps(self):
        for place, left in enumerate(self.corrected):
            late = left - self.grid - place * GAP
            if late > GAP - LEAST_GAP:
                turn = self.grid + place * GAP
                known = self.machine.describe(turn, self.answers[place].came)
                self._fault(place, f"{late / MILLISECOND:.1f} ms late by the service's own doing; "
                                   + known)
        for place, (one, other) in enumerate(zip(self.corrected, self.corrected[1:])):
            if other - one < LEAST_GAP:
                self._fault(place, f"{(other - one) / MILLISECOND:.1f} ms before the next one")

    def _judge_total(self):
        # That it took long enough needs no correction.
        ideal = len(self.answers) * GAP
        if self.answers[-1].came - self.began < (1 - TOLERANCE) * ideal:
            self._fault(len(self.answers) - 1, "all were through too soon")
        if self.corrected[-1] - self.grid > (1 + TOLERANCE) * ideal:
            self._fault(len(self.answers) - 1, "all were through too late")

    def judge_order(self):
        """Who is at place n has a turn that ends n + 1 gaps after the first was booked; that, less
        how far it lay ahead when he was booked, is when he was booked."""
        booked = [(place + 1) * GAP // MILLISECOND - answer.reset_after_ms
                  for place, answer in enumerate(self.answers)]
        for place, (one, other) in enumerate(zip([0, *booked], booked)):
            if other < one:
                self._fault(place, f"booked {one - other} ms before the one that left before it")

    def account(self):
        raw = [other.came - one.came for one, other in zip(self.answers, self.answers[1:])]
        gaps = [other - one for one, other in zip(self.corrected, self.corrected[1:])]
        late = max(left - self.grid - place * GAP for place, left in enumerate(self.corrected))
        moved = [excused for excused in self.excused if excused > 0]
        total = self.answers[-1].came - self.began
        return (f"{len(self.answers)} answers in {total / 1e9:.3f} s; least gap "
                f"{min(gaps) / MILLISECOND:.2f} ms (as seen {min(raw) / MILLISECOND:.2f}), latest "
                f"{late / MILLISECOND:.2f} ms behind its turn; the machine kept back {len(moved)}, "
                f"by {sum(moved) / MILLISECOND:.1f} ms in all and "
                f"{max(moved, default=0) / MILLISECOND:.1f} ms at most")
