#!/usr/bin/env python3
"""Clocks that are wrong, jump, or differ: of the service's machines and of Redis.

    clocks_test.py SOURCE PROGRAM [TEST...]

WEIR_SHIFTED_CLOCK names the library that shifts a program's clocks.
"""

import os
import pathlib
import struct
import tempfile
import time
import unittest

import fault_case
import judge
import redis_servers
from fault_case import BURST, FaultCase, HOT, LONG, PATIENT, RATE, daemon

LIBRARY = os.environ.get("WEIR_SHIFTED_CLOCK", "")
HOUR, YEAR = 3600, 365 * 86_400


class Shift:
    """The clocks of whoever is started with this environment."""

    def __init__(self, folder):
        self.path = pathlib.Path(folder) / f"shift-{id(self)}"
        self.path.write_bytes(struct.pack("<qq", 0, 0))
        self.environment = {"LD_PRELOAD": LIBRARY, "WEIR_CLOCK_FILE": str(self.path)}

    def set(self, seconds, *, steady=0):
        with open(self.path, "r+b") as file:
            file.write(struct.pack("<qq", int(seconds * 1e9), int(steady * 1e9)))


@unittest.skipUnless(LIBRARY, "WEIR_SHIFTED_CLOCK is not set")
class Clocks(FaultCase):
    def setUp(self):
        if daemon.instrumented:
            self.skipTest("a sanitizer wants to be loaded first")
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def stepping(self, shift, steps, service):
        """Under load, the clock is set to each of these, half a second apart."""
        def step():
            for seconds in steps:
                shift.set(seconds)
                time.sleep(0.5)

        return self.break_and_heal(service, step, lambda: shift.set(0),
                                   seconds=0.5 * len(steps), after=1.5)

    def test_row_29_the_services_wall_clock_jumps(self):
        server = self.enterContext(redis_servers.Server())
        for store in (server.url, "memory"):
            with self.subTest(store):
                shift = Shift(self.folder)
                service = self.weir(store, redis=PATIENT if store != "memory" else "",
                                    environment=shift.environment)
                if store != "memory":
                    self.wait_for_store(service)
                run = self.stepping(shift, (-HOUR, HOUR, YEAR, -YEAR, 1, -1), service)
                self.assert_promise(run.answers, rules=("by-static", "by-open", "by-closed"))
                self.assert_in_time(run.answers)
                hot = [one for one in run.answers if one.ask == HOT[0]]
                seconds = run.phase.ended - run.phase.began
                self.assertGreater(sum(one.allowed for one in hot), 0.9 * RATE * seconds)
                self.assertLess(max(one.retry_after_ms for one in hot), 1000)

    def test_row_30_the_services_steady_clock_steps(self):
        for seconds in (-5, -0.05, 10):
            with self.subTest(seconds):
                shift = Shift(self.folder)
                # State further ahead than a wait could account for is taken for damage.
                service = self.weir("memory", environment=shift.environment,
                                    more="max_wait: 100ms\n")
                run = self.break_and_heal(service, lambda s=seconds, c=shift: c.set(0, steady=s),
                                          lambda: None, seconds=1, after=1)
                # A step may give a burst, and may take one.
                self.assert_promise(run.answers, slack=BURST,
                                    rules=("by-static", "by-open", "by-closed"))
                self.assert_in_time(run.answers)
                hot = [one for one in run.answers if one.ask == HOT[0]]
                self.assertLess(max(one.retry_after_ms for one in hot), 1000)
                late = judge.between(hot, run.phase.healed, run.phase.ended)
                self.assertGreater(sum(one.allowed for one in late),
                                   0.8 * RATE * (run.phase.ended - run.phase.healed))

    def test_row_30_the_service_stood_still_for_ten_seconds(self):
        server = self.enterContext(redis_servers.Server())
        shift = Shift(self.folder)
        service = self.weir(server.url, environment=shift.environment)
        self.wait_for_store(service)
        # All that is under way is too late at once, and the next is not.
        run = self.break_and_heal(service, lambda: shift.set(0, steady=10), lambda: None,
                                  seconds=1, after=2)
        self.assert_sane(run)
        self.assert_promise(run.answers, slack=fault_case.OUTAGE)
        self.assert_in_time(run.answers)
        self.assert_healed(run)

    def test_row_31_the_clock_of_redis_jumps(self):
        for seconds in (-HOUR, HOUR, -0.5, 0.5, YEAR) if LONG else (-HOUR, YEAR):
            with self.subTest(seconds):
                shift = Shift(self.folder)
                server = self.enterContext(redis_servers.Server(environment=shift.environment))
                # State further ahead than a wait could account for is taken for damage.
                service = self.weir(server.url, redis=PATIENT, more="max_wait: 100ms\n")
                self.wait_for_store(service)
                run = self.break_and_heal(service, lambda s=seconds, c=shift: c.set(s),
                                          lambda: None, seconds=2)
                # Each jump may give a burst, and may take one; it never locks anybody out for
                # longer than a full drain of what may be owed, which is twice the burst.
                self.assert_promise(run.answers, slack=BURST,
                                    rules=("by-static", "by-open", "by-closed"))
                self.assert_in_time(run.answers)
                self.assertFalse([one for one in run.answers if one.source != "store"][20:])
                for ask in HOT:
                    late = [one for one in judge.between(run.answers, run.phase.broke + 1.5,
                                                         run.phase.ended) if one.ask == ask]
                    allowed = sum(one.allowed for one in late)
                    self.assertGreater(allowed, 0.8 * RATE * (run.phase.ended
                                                              - run.phase.broke - 1.5), ask)

    def test_row_32_the_clocks_of_two_machines_differ(self):
        server = self.enterContext(redis_servers.Server())
        loads = []
        for seconds in (5, -5):
            shift = Shift(self.folder)
            shift.set(seconds)
            service = self.weir(server.url, redis=PATIENT, environment=shift.environment)
            self.wait_for_store(service)
            loads.append(self.enterContext(self.load(service, rate=2000)))
        time.sleep(2)
        answers = [one for running in loads for one in running.stop()]
        self.assert_promise(answers, rules=("by-static", "by-open", "by-closed"))
        hot = [one for one in answers if one.ask == HOT[0] and one.allowed]
        self.assertGreater(len(hot), 0.9 * RATE * 2)


if __name__ == "__main__":
    fault_case.main()
