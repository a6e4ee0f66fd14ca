"""What tests of faults have in common: a service under load, something that breaks and heals, and
what must hold all the while.

    FILE SOURCE PROGRAM [TEST...]

WEIR_FAULTS_LONG=1      faults last as long as the matrix of faults says, instead of seconds
WEIR_FAULTS_REPORT=file adds what was measured, one JSON object per line

The numbers in the names of tests are rows of the matrix in docs/RELIABILITY.md.

A virtual machine stands still now and then, because its hypervisor runs other machines. The service
cannot distinguish that from an outage: calls to the store exceed their 50 ms, and it decides alone
for up to two seconds. The tests therefore record such stalls (machine_stalls.py). A stall counts as
one more outage: it may cost what an outage may cost, and the time to recover begins at its end.
Without a stall every bound is the same. Where the store must decide, the load goes on until enough
of it was undisturbed; a machine that stalls too often for that fails the test.
"""

import collections
import contextlib
import json
import os
import pathlib
import re
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
import daemon
import http_wire
import judge
import load
import machine_stalls
import metrics_text
import redis_servers
import resp_wire
from load import Ask

LONG = bool(os.environ.get("WEIR_FAULTS_LONG"))
TIMEOUT = 0.05
# What tests allow an answer to take beyond its deadline. What it really takes is measured.
GRACE = 0.1
BURST, RATE = 50, 100
MUCH = 500_000
BOTH = {"static": "fallback", "open": "open", "closed": "closed"}
HOT = [Ask(f"by-{mode}", f"hot-{number}") for mode in BOTH for number in range(4)]
COLD = [Ask(f"by-{mode}", f"cold-{number}") for mode in BOTH for number in range(4)]
# Each of HOT is asked for at 2.5 times its rate, each of COLD below it.
ASKS = HOT * 3 + COLD
# What an outage may cost a key: a burst, and what the rate brings while some threads already ask the
# store again and others do not yet.
OUTAGE = BURST + RATE * TIMEOUT
LOAD = 4000
# What is promised once a fault is over. A probe that failed just before may be followed by none for
# a second, the next has to connect (0.2 s at the most) and be answered, and the rest is for servers
# that need a while to be well, and for clocks that are looked at only so often.
HEALED_WITHIN = 2.0
# Bounds that no machine exceeds, however it stalls: for tests of what is counted while all is well.
PATIENT = "timeout: 5s, max_in_flight: 65536"
# For how long a test looks for a time without stalls of the machine, in seconds.
PATIENCE_WITH_MACHINE = 60
STALLED_TOO_OFTEN = "this machine stood still too often for a judgement (machine_stalls.py)"


def at_once():
    """For all that is measured in milliseconds, on a machine that has other things to do."""
    return daemon.at_once()


def policy(store, *, rules="", redis="", more=""):
    urls = store if isinstance(store, str) else "[" + ", ".join(f'"{url}"' for url in store) + "]"
    text = f"store: {urls}\n" if isinstance(store, list) else f'store: "{store}"\n'
    if redis:
        text += f"redis: {{ {redis} }}\n"
    text += more + "rules:\n"
    for mode in BOTH:
        text += (f"  - {{ name: by-{mode}, match: {{ user: present }}, key: user, "
                 f"limit: {RATE}/s burst {BURST}, on_store_failure: {mode} }}\n")
    # Brings back next to nothing while a test runs, so that what was charged can be counted.
    text += (f"  - {{ name: counted, match: {{ user: present }}, key: user, "
             f"limit: 1/min burst {MUCH}, on_store_failure: closed }}\n")
    return text + rules


class Watch:
    """The memory and the descriptors of a process, looked at all the while."""

    def __init__(self, pid):
        self.pid = pid
        self.memory, self.descriptors = [], []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def _look(self):
        while not self.over.wait(0.05):
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
                    self.memory.append(int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE"))
                self.descriptors.append(len(os.listdir(f"/proc/{self.pid}/fd")))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class Phase(collections.namedtuple("Phase", "began broke healed ended")):
    """When what happened."""


class Run:
    """What came of a load on which something was broken."""

    def __init__(self, answers, phase, watch, *, recovers_from=None):
        self.answers, self.phase, self.watch = answers, phase, watch
        # When the fault was healed, or the end of the last stall of the machine after that.
        self.recovers_from = phase.healed if recovers_from is None else recovers_from

    def before(self):
        return judge.between(self.answers, self.phase.began, self.phase.broke)

    def broken(self):
        return judge.between(self.answers, self.phase.broke, self.phase.healed)

    def open(self):
        """When the breaker has had time to open."""
        return judge.between(self.answers, self.phase.broke + 1.0, self.phase.healed)

    def of(self, rule):
        return [one for one in self.answers if one.ask.rule == rule]


class FaultCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.machine = cls.enterClassContext(machine_stalls.Stalls())
        # Whether a stall of the machine cannot look like an outage to the service.
        cls.rides_out_stalls = False

    def weir(self, store, *, rules="", redis="", more="", **options):
        """The service with that store, until the test is over."""
        self.rides_out_stalls = store == "memory" or redis == PATIENT
        return self.enterContext(daemon.Daemon(
            policy(store, rules=rules, redis=redis, more=more),
            before=options.pop("before", at_once()), **options))

    def load(self, weir, asks=None, *, rate=LOAD, **options):
        return load.Load(weir.resp, asks or ASKS, rate=rate,
                         before=options.pop("before", at_once()), **options)

    def metrics(self, weir):
        response = http_wire.once(weir.http, "GET", "/metrics")
        self.assertEqual(response.status, 200)
        return metrics_text.parse(response.body.decode())

    def metric(self, weir, name, **labels):
        """The sum of all samples with these labels."""
        family = self.metrics(weir).get(name)
        wanted = set(labels.items())
        return sum(value for (_, have), value in (family.samples if family else {}).items()
                   if wanted <= set(have))

    def readiness(self, weir):
        return http_wire.once(weir.http, "GET", "/readyz").body.decode()

    def decide(self, weir, rule, key, *more):
        with resp_wire.Client(weir.resp) as client:
            return resp_wire.named(client.call("WEIR.CHECK", rule, "user", key, *more))

    def remaining(self, weir, rule, key):
        """What the store says is left, asked until the thread that answers has a connection."""
        def peek():
            with resp_wire.Client(weir.resp) as client:
                decision = resp_wire.named(client.call("WEIR.PEEK", rule, "user", key))
            return decision if decision["source"] == "store" else None

        return redis_servers.wait_until(peek, "the store says what is left")["remaining"]

    def wait_for_store(self, weir, rule="by-closed"):
        """Until it is the store that decides, for so many clients that every thread has some."""
        def decides():
            return all(self.decide(weir, rule, "waiting")["source"] == "store" for _ in range(16))

        redis_servers.wait_until(decides, "the store decides")

    def wait_for_calm(self, weir):
        """Until a degraded time is over, which takes a second without failures."""
        def is_calm():
            self.decide(weir, "by-closed", "waiting")
            return "degraded" not in self.readiness(weir)

        redis_servers.wait_until(is_calm, "the degraded time is over", patience=5)

    def break_and_heal(self, weir, breaks, heals, *, seconds=2.0, calm=0.7,
                       after=HEALED_WITHIN + judge.CALM, store_decides=False, **options):
        """Load before, during and after the fault, for long enough to see whether the service
        recovers. `store_decides`: the store must decide in spite of the fault."""
        with Watch(weir.pid) as watch, self.load(weir, **options) as running:
            began = time.monotonic()
            self.sleep_undisturbed(calm)
            broke = time.monotonic()
            breaks()
            if store_decides:
                self.sleep_undisturbed(seconds)
            else:
                time.sleep(max(0.0, seconds - (time.monotonic() - broke)))
            heals()
            healed = time.monotonic()
            recovers_from = self.sleep_without_stalls(healed, after)
            ended = time.monotonic()
            self.assertTrue(weir.is_alive())
        return Run(running.answers, Phase(began, broke, healed, ended), watch,
                   recovers_from=recovers_from)

    def sleep_without_stalls(self, began, seconds):
        """Sleeps until `seconds` have passed since `began` or since the last stall of the machine
        after it, and returns that time."""
        deadline = began + PATIENCE_WITH_MACHINE
        while True:
            time.sleep(max(0.0, began + seconds - time.monotonic()))
            now = time.monotonic()
            stalls = self.outages_between(began, now)
            if not stalls:
                return began
            self.assertLess(now, deadline, STALLED_TOO_OFTEN)
            began = max(stall.ended for stall in stalls)

    def sleep_undisturbed(self, seconds):
        """Sleeps until the answers of `seconds` are undisturbed by stalls of the machine."""
        began = now = time.monotonic()
        missing = seconds
        while missing > 0:
            self.assertLess(now, began + PATIENCE_WITH_MACHINE, STALLED_TOO_OFTEN)
            time.sleep(missing)
            now = time.monotonic()
            stalls = self.outages_between(began - HEALED_WITHIN, now)
            missing = seconds - judge.undisturbed_time(began, now, stalls, before=TIMEOUT,
                                                       after=HEALED_WITHIN)

    def outages_between(self, began, ended):
        """Stalls of the machine that may have looked like an outage to the service."""
        return [] if self.rides_out_stalls else self.machine.between(began, ended)

    def outages_during(self, answers):
        """The same; the first may have been over when the first of these was sent."""
        if not answers:
            return []
        return self.outages_between(min(one.sent for one in answers) - HEALED_WITHIN,
                                    max(one.received for one in answers))

    def undisturbed(self, answers):
        """Those that no stall of the machine can have kept from the store."""
        left = judge.undisturbed(answers, self.outages_during(answers), before=TIMEOUT,
                                 after=HEALED_WITHIN)
        self.assertTrue(left, STALLED_TOO_OFTEN if answers else "there are no answers")
        return left

    # What must hold.

    def assert_promise(self, answers, *, slack=0.0, rules=("by-static", "by-closed"), burst=BURST,
                       rate=RATE):
        """I1: no key was ever admitted more than burst + rate * t, but for the slack."""
        stalls = self.outages_during(answers)

        def check(part, slack_of_open_modes):
            excesses = judge.excesses(part, rules, burst=burst, rate=rate)
            for ask, excess in excesses.items():
                most = slack if ask[0] == "by-closed" else slack_of_open_modes
                if excess > most + 1e-3:
                    others = [one for one in part if one.source != "store"]
                    self.fail(f"{ask} is {excess:.2f} above its promise, which allows {most:.2f}. "
                              f"Stalls of the machine: {stalls}. {len(others)} of {len(part)} "
                              f"answers are not from the store: {others[:5]}")
            return excesses

        # Each stall may have been one more outage, in which by-closed admits nothing.
        self.assertTrue(check(answers, slack + OUTAGE * len(stalls)))
        if stalls:
            before, *between = judge.stretches(answers, stalls)
            check(before, slack)
            for stretch in between:
                check(stretch, max(slack, OUTAGE))

    def assert_sane(self, run, *, but=0.01):
        """Before the fault the store decided, and let through what it should."""
        calm = run.before()
        self.assert_from_store(calm, but=but)
        seconds = run.phase.broke - run.phase.began
        self.assertGreater(len(calm), 0.7 * LOAD * seconds)
        hot = [one for one in calm if one.ask == HOT[0]]
        self.assertGreater(sum(one.allowed for one in hot), 0.8 * RATE * seconds)
        self.assertTrue(any(one.reason == "limited" for one in hot))
        self.assertFalse([one for one in run.answers if one.failed][:1])

    def assert_from_store(self, answers, *, but):
        """The store decided, but for this share of the undisturbed answers."""
        undisturbed = self.undisturbed(answers)
        others = [one for one in undisturbed if one.source != "store"]
        self.assertLessEqual(len(others), but * len(undisturbed), others[:3])

    def assert_in_time(self, answers, *, deadline=TIMEOUT):
        """I6, with what a test allows."""
        self.assertFalse([one for one in answers if one.lost][:1], "answers are missing")
        late = [one for one in answers if one.received - one.sent > deadline + GRACE]
        stalls = self.machine.between(min((one.sent for one in late), default=0.0),
                                      max((one.received for one in late), default=0.0))
        worst = max((one.received - one.sent - judge.stood_still(one, stalls) for one in late),
                    default=0)
        self.assertLessEqual(worst, deadline + GRACE)

    def assert_labelled(self, answers):
        """I2: each mode did what it is called, and said so. None of these were decided by the
        store."""
        seen = collections.Counter()
        for one in answers:
            mode = one.ask.rule.removeprefix("by-")
            if one.source == "store" or mode not in BOTH:
                continue
            seen[mode] += 1
            self.assertEqual(one.source, BOTH[mode], one)
            if mode == "open":
                self.assertTrue(one.allowed, one)
            elif mode == "closed":
                self.assertEqual((one.allowed, one.reason), (False, "store_failure"), one)
            else:
                self.assertEqual(one.reason, "ok" if one.allowed else "limited", one)
        for mode in BOTH:
            self.assertGreater(seen[mode], 0, f"{mode} was never needed")

    def assert_bounded(self, run, *, growth=64 << 20, descriptors=40):
        """I5."""
        if not daemon.instrumented:  # A sanitizer holds on to what was given back.
            self.assertLess(max(run.watch.memory) - run.watch.memory[0], growth)
        self.assertLess(max(run.watch.descriptors) - run.watch.descriptors[0], descriptors)

    def assert_healed(self, run, *, within=HEALED_WITHIN):
        """I7."""
        # A stall at the very end came too late to wait for.
        stalls = self.outages_between(run.recovers_from, run.phase.ended)
        end = min((stall.began - TIMEOUT for stall in stalls if stall.began > run.recovers_from),
                  default=run.phase.ended)
        answers = judge.between(run.answers, run.phase.began, end)
        took = judge.time_to_normal(answers, run.recovers_from)
        if took is None or took > within:
            after = [one for one in answers if one.sent > run.recovers_from]
            late = [one for one in after if one.source != "store"]
            times = ", ".join(f"{one.sent - run.recovers_from:.2f} s {one.source}"
                              for one in late[-5:])
            self.fail(f"within {within} s of the end of the fault not every answer comes from the "
                      f"store again: {len(late)} of {len(after)} come from elsewhere, "
                      f"the last ones at {times}")
        return took

    def report(self, row, what, run, *, normal=None, opened=True):
        """For the table of docs/RELIABILITY.md."""
        name = os.environ.get("WEIR_FAULTS_REPORT")
        entry = {"row": row, "what": what, "seconds": round(run.phase.healed - run.phase.broke, 1),
                 "healthy": judge.distribution(run.before()),
                 "broken": judge.distribution(run.broken()),
                 "open": judge.distribution(run.open()) if opened else None,
                 "normal": None if normal is None else round(normal, 3),
                 "memory": max(run.watch.memory) - run.watch.memory[0]}
        # In bursts: what was let through above burst + rate * t, of the worst key and interval.
        for rule in ("by-static", "by-closed"):
            above = max(judge.excesses(run.answers, (rule,), burst=BURST, rate=RATE).values())
            entry[rule] = round(max(0.0, above) / BURST, 2)
        print(json.dumps(entry))
        if name:
            with open(name, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")

    def assert_outage(self, row, what, run, *, slack=OUTAGE, opened=True, within=HEALED_WITHIN):
        """All that holds when a store that was well could not be asked for a while."""
        self.assert_sane(run)
        self.assert_promise(run.answers, slack=slack)
        self.assert_labelled(run.broken())
        self.assert_in_time(run.answers)
        self.assert_bounded(run)
        normal = self.assert_healed(run, within=within)
        self.report(row, what, run, normal=normal, opened=opened)


class Said(unittest.TextTestResult):
    """Prints what was skipped in a form that can be counted."""

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        print(f"SKIPPED {test.id()}: {reason}", flush=True)


def main():
    if len(sys.argv) < 3:
        print(f"usage: {sys.argv[0]} SOURCE PROGRAM [TEST...]", file=sys.stderr)
        sys.exit(2)
    daemon.source, daemon.program = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    with open(daemon.program, "rb") as file:
        daemon.instrumented = re.search(b"__[at]san_init", file.read()) is not None
    runner = unittest.TextTestRunner(resultclass=Said, verbosity=2)
    ran = unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]], testRunner=runner,
                        exit=False)
    if ran.result.skipped:
        print(f"SKIPPED {len(ran.result.skipped)}")
    sys.exit(not ran.result.wasSuccessful())
