#!/usr/bin/env python3
"""One Redis that dies, stands still, is slow, forgets, is full, or will not be written to.

    single_server_test.py SOURCE PROGRAM [TEST...]
"""

import threading
import time

import fault_case
import judge
import redis_servers
from fault_case import BURST, LONG, FaultCase


class SingleServer(FaultCase):
    def setUp(self):
        self.server = self.enterContext(redis_servers.Server())
        self.service = self.weir(self.server.url)
        self.wait_for_store(self.service)
        self.wait_for_calm(self.service)

    def test_row_04_killed_and_started_again_empty(self):
        run = self.break_and_heal(self.service, self.server.kill, self.server.start)
        self.assert_outage(4, "Redis killed, restarted empty", run)

    def test_row_05_standing_still(self):
        run = self.break_and_heal(self.service, self.server.pause, self.server.resume,
                                  seconds=30 if LONG else 3)
        self.assert_outage(5, "Redis stands still (SIGSTOP)", run)

    def test_row_06_asleep_for_half_a_second_at_a_time(self):
        over = threading.Event()

        def sleep_on():
            while not over.is_set():
                self.server.call("DEBUG", "SLEEP", "0.5")

        sleeper = threading.Thread(target=sleep_on)

        def wake():
            over.set()
            sleeper.join()

        run = self.break_and_heal(self.service, sleeper.start, wake, seconds=3)
        self.assert_outage(6, "Redis asleep (DEBUG SLEEP 0.5)", run)

    def test_row_07_paused_by_an_operator(self):
        for what in ("WRITE", "ALL"):
            with self.subTest(what):
                run = self.break_and_heal(
                    self.service,
                    lambda what=what: self.server.call("CLIENT", "PAUSE", "2500", what),
                    lambda: None, seconds=2.5)
                self.assert_outage(7, f"CLIENT PAUSE {what}", run)

    def test_row_08_scripts_are_forgotten_all_the_time(self):
        over = threading.Event()
        flushed = []

        def forget():
            with self.server.connect() as client:
                while not over.wait(0.01):
                    flushed.append(client.call("SCRIPT", "FLUSH"))

        flusher = threading.Thread(target=forget)

        def calm():
            over.set()
            flusher.join()

        run = self.break_and_heal(self.service, flusher.start, calm, store_decides=True)
        self.assertGreater(len(flushed), 50)
        self.assert_sane(run)
        self.assert_promise(run.answers)
        self.assert_in_time(run.answers)
        self.assert_from_store(run.answers, but=0.005)
        self.report(8, "SCRIPT FLUSH every 10 ms", run, opened=False)

    def test_row_09_everything_is_forgotten_once(self):
        run = self.break_and_heal(self.service, lambda: self.server.call("FLUSHALL"),
                                  lambda: None, seconds=0.1)
        self.assert_sane(run)
        self.assert_promise(run.answers, slack=BURST)
        self.assert_in_time(run.answers)
        # The slack is there because it is needed: a fresh start is a burst.
        excesses = judge.excesses(run.answers, ("by-static", "by-closed"), burst=BURST,
                                  rate=fault_case.RATE)
        self.assertGreater(max(excesses.values()), 0)

    def test_row_10_full(self):
        def fill():
            used = int(self.server.info("memory", "used_memory"))
            self.server.call("CONFIG", "SET", "maxmemory", str(used // 2))

        run = self.break_and_heal(self.service, fill,
                                  lambda: self.server.call("CONFIG", "SET", "maxmemory", "0"))
        self.assert_outage(10, "out of memory (noeviction)", run)
        self.assertGreater(self.metric(self.service, "weir_store_errors_total", kind="no_memory"),
                           0)

    def test_row_11_a_policy_that_forgets_limits_is_said_out_loud(self):
        self.server.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        service = self.weir(self.server.url)
        self.wait_for_store(service)
        line = service.wait_for("allkeys-lru")
        self.assertIn("noeviction", line)
        self.assertRegex(line.lower(), "warn")

    def test_row_12_turned_into_a_replica(self):
        other = self.enterContext(redis_servers.Server())

        def demote():
            self.server.call("REPLICAOF", "127.0.0.1", str(other.port))

        run = self.break_and_heal(self.service, demote,
                                  lambda: self.server.call("REPLICAOF", "NO", "ONE"))
        self.assert_outage(12, "Redis became a replica (READONLY)", run)
        self.assertGreater(self.metric(self.service, "weir_store_errors_total"), 0)

    def test_row_24_back_after_a_long_time(self):
        run = self.break_and_heal(self.service, self.server.kill, self.server.start,
                                  seconds=60 if LONG else 5)
        self.assert_outage(24, "Redis gone for long", run)

    def test_degraded_times_have_one_line_at_either_end_and_a_word_for_whoever_asks(self):
        self.assertNotIn("degraded", self.readiness(self.service))
        self.assertEqual(self.metric(self.service, "weir_degraded_seconds"), 0)
        before = len(self.service.log)
        self.server.kill()
        for _ in range(50):
            self.decide(self.service, "by-static", "somebody")
        self.assertIn("degraded", self.readiness(self.service))
        time.sleep(0.5)
        self.assertGreater(self.metric(self.service, "weir_degraded_seconds"), 0)
        self.assertEqual(self.metric(self.service, "weir_breaker_state"), 1)
        self.server.start()
        self.wait_for_store(self.service)
        self.wait_for_calm(self.service)
        self.assertEqual(self.metric(self.service, "weir_degraded_seconds"), 0)
        self.service.wait_for("the store answers again", after=before)
        lines = [line for line in self.service.log[before:] if "warn" in line.lower()]
        self.assertGreaterEqual(len(lines), 2, self.service.log[before:])
        self.assertLess(len(lines), 8, lines)


class WithoutAServer(FaultCase):
    def test_it_starts_serves_and_heals(self):
        port = redis_servers.free_port()
        service = self.weir(f"redis://127.0.0.1:{port}")
        for mode, source in fault_case.BOTH.items():
            decision = self.decide(service, f"by-{mode}", "early")
            self.assertEqual(decision["source"], source)
            self.assertEqual(bool(decision["allowed"]), mode != "closed")
        self.assertIn("degraded", self.readiness(service))
        with redis_servers.Server(port=port):
            began = time.monotonic()
            self.wait_for_store(service)
            self.assertLess(time.monotonic() - began, 2.0)
            self.wait_for_calm(service)


class Every(FaultCase):
    """What is charged is what was answered."""

    def test_conservation_of_what_was_answered_counted_and_stored(self):
        server = self.enterContext(redis_servers.Server())
        service = self.weir(server.url, redis=fault_case.PATIENT)
        self.wait_for_store(service)
        asks = [fault_case.Ask("counted", f"one-{number}", 1 + number) for number in range(5)]
        with self.load(service, asks, rate=3000) as running:
            time.sleep(1.5)
        answers = running.answers
        self.assertFalse([one for one in answers if one.source != "store" or not one.allowed][:1])
        for ask in asks:
            admitted = sum(one.ask.cost for one in answers if one.ask == ask)
            # A minute brings back one.
            self.assertAlmostEqual(fault_case.MUCH - self.remaining(service, "counted", ask.key),
                                   admitted, delta=1)
        self.assertEqual(self.metric(service, "weir_decisions_total", rule="counted",
                                     outcome="allowed"), len(answers))
        for key in server.call("KEYS", "*"):
            self.assertTrue(key.startswith("weir1:"), key)
            self.assertGreater(server.call("PTTL", key), 0, key)
        self.assertLess(judge.distribution(answers)["p50"], 50)


if __name__ == "__main__":
    fault_case.main()
