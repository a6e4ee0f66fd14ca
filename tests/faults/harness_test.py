#!/usr/bin/env python3
"""The servers, the proxy and the judge that the fault tests rely on, tried out by themselves: a
fault that is not injected is a test that cannot fail.

    harness_test.py [TEST...]
"""

import contextlib
import os
import random
import signal
import socket
import time
import unittest

import judge
import load
import machine_stalls
import redis_servers
from chaos_proxy import ChaosProxy
from redis_servers import resp_wire


class Proxied(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(redis_servers.Server())

    def setUp(self):
        self.proxy = self.enterContext(ChaosProxy(self.server.port))
        self.client = self.enterContext(resp_wire.Client(self.proxy.port, timeout=0.3))
        self.assertEqual(self.client.call("PING"), "PONG")
        self.server.call("DEL", "count")

    def test_it_passes_large_values_both_ways(self):
        value = "v" * 3_000_000
        self.client.socket.settimeout(10)
        self.assertEqual(self.client.call("SET", "large", value), "OK")
        self.assertEqual(self.client.call("GET", "large"), value)

    def test_replies_are_late_by_as_much_as_it_is_told(self):
        self.proxy.set("delay", 0.1)
        began = time.monotonic()
        self.client.call("PING")
        self.assertGreater(time.monotonic() - began, 0.1)

    def test_late_replies_keep_their_order(self):
        self.proxy.set("random", 0.0, 0.05)
        self.client.socket.settimeout(5)
        told = [self.client.call("ECHO", str(number)) for number in range(5)]
        self.assertEqual(told, [str(number) for number in range(5)])

    def test_a_late_reply_comes_before_one_that_the_end_of_the_delay_lets_pass(self):
        self.client.socket.settimeout(5)
        self.server.call("DEL", "list")
        self.proxy.set("delay", 2)
        self.client.send("ECHO", "late")
        self.client.send("BLPOP", "list", "0")
        redis_servers.wait_until(lambda: " flags=b " in self.server.call("CLIENT", "LIST"),
                                 "a client waits for the list")
        self.proxy.accepted()  # The proxy has read the first reply.
        # The proxy then sees the end of the delay and the second reply in one look.
        self.proxy.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.proxy.process.pid, os.WSTOPPED)
        print("pass", file=self.proxy.process.stdin, flush=True)
        self.server.call("RPUSH", "list", "passed")
        self.proxy.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.client.receive(), "late")
        self.assertEqual(self.client.receive(), ["list", "passed"])

    def test_a_lost_reply_is_of_a_request_that_took_effect(self):
        self.proxy.set("drop_replies")
        with self.assertRaises(TimeoutError):
            self.client.call("INCR", "count")
        self.assertEqual(self.server.call("GET", "count"), "1")

    def test_nothing_comes_through_a_black_hole(self):
        self.proxy.set("blackhole")
        with self.assertRaises(TimeoutError):
            self.client.call("INCR", "count")
        self.assertIsNone(self.server.call("GET", "count"))
        with resp_wire.Client(self.proxy.port, timeout=0.1) as other:
            with self.assertRaises(TimeoutError):
                other.call("PING")

    def test_it_refuses_and_takes_connections_again(self):
        self.proxy.set("refuse")
        with self.assertRaises(ConnectionRefusedError):
            resp_wire.Client(self.proxy.port)
        with self.assertRaises(ConnectionError):
            self.client.call("PING")
        self.proxy.set("pass")
        with resp_wire.Client(self.proxy.port) as other:
            self.assertEqual(other.call("PING"), "PONG")

    def test_half_a_reply_and_a_reset_or_an_end(self):
        for mode, ends in (("reset_mid_reply", True), ("truncate", False)):
            with self.subTest(mode), resp_wire.Client(self.proxy.port, timeout=1) as client:
                client.call("PING")
                self.proxy.set(mode)
                client.send("INCR", "count")
                got, was_reset = b"", False
                with contextlib.suppress(ConnectionResetError):
                    while data := client.socket.recv(100):
                        got += data
                    was_reset = None
                self.assertLess(len(got), len(b":1\r\n"))
                self.assertEqual(was_reset is False, ends)
                self.proxy.set("pass")

    def test_half_closed_it_still_takes_requests(self):
        self.proxy.set("half_close")
        self.client.send("INCR", "count")
        self.assertEqual(self.client.socket.recv(10), b"")
        self.client.send("INCR", "count")
        redis_servers.wait_until(lambda: self.server.call("GET", "count") == "2", "both counted")

    def test_byte_by_byte_is_still_the_reply(self):
        self.proxy.set("split")
        self.assertEqual(self.client.call("ECHO", "x" * 1000), "x" * 1000)

    def test_what_makes_no_sense(self):
        self.proxy.set("garbage")
        self.client.send("ECHO", "x" * 100)
        self.assertNotIn(b"xxxx", self.client.socket.recv(1000))
        self.proxy.set("wrong_type")
        with resp_wire.Client(self.proxy.port, timeout=1) as other:
            self.assertNotEqual(other.call("ECHO", "hello"), "hello")

    def test_it_flaps(self):
        self.proxy.set("flap", 0.05)
        seen = set()
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline and len(seen) < 2:
            try:
                socket.create_connection(("127.0.0.1", self.proxy.port)).close()
                seen.add("taken")
            except ConnectionRefusedError:
                seen.add("refused")
            except ConnectionResetError:
                pass  # It stood at the door when that was shut.
        self.assertEqual(seen, {"taken", "refused"})


def answered(*times, cost=1, took=0.0):
    ask = load.Ask("rule", "key", cost)
    return [load.Answer(sent, sent + took, ask, True, "ok", "store", False, False, 0)
            for sent in times]


class Judge(unittest.TestCase):
    def excess(self, answers, burst=5, rate=10):
        return round(judge.excess(answers, burst=burst, rate=rate), 6)

    def test_a_burst_at_once_is_what_was_promised(self):
        self.assertEqual(self.excess(answered(*[1.0] * 5)), 0)
        self.assertEqual(self.excess(answered(*[1.0] * 6)), 1)

    def test_costs_count(self):
        self.assertEqual(self.excess(answered(1.0, 1.0, cost=3)), 1)

    def test_a_burst_and_the_rate_are_what_was_promised(self):
        steady = answered(*[1.0] * 5, *[1.0 + 0.1 * number for number in range(1, 100)])
        self.assertLessEqual(self.excess(steady), 1e-6)
        self.assertAlmostEqual(self.excess(steady + answered(5.55)), 1, places=3)

    def test_every_interval_is_looked_at_not_only_the_first(self):
        late = answered(1.0, *[9.0] * 7)
        self.assertEqual(self.excess(late), 2)

    def test_answers_that_took_long_are_given_the_benefit_of_the_doubt(self):
        self.assertLessEqual(self.excess(answered(*[1.0] * 6, took=0.1)), 0)
        self.assertEqual(self.excess(answered(*[1.0] * 7, took=0.1)), 1)

    def test_it_agrees_with_counting_every_interval(self):
        dice = random.Random(7)
        for _ in range(200):
            answers = [one for _ in range(dice.randrange(1, 40))
                       for one in answered(dice.uniform(0, 3), cost=dice.randrange(1, 4),
                                           took=dice.uniform(0, 0.3))]
            plain = max(sum(one.ask.cost for one in answers
                            if one.sent >= begin.sent and one.received <= end.received)
                        - 10 * (end.received - begin.sent) - 5
                        for begin in answers for end in answers if begin.sent <= end.received)
            self.assertAlmostEqual(judge.excess(answers, burst=5, rate=10), plain, places=6)


class Stalls(unittest.TestCase):
    """What is excused because the machine stood still, and nothing else."""

    STALLS = [machine_stalls.Stall(1.0, 1.1), machine_stalls.Stall(5.0, 5.06)]

    def sent(self, answers):
        return [one.sent for one in answers]

    def test_a_cpu_that_does_not_run_is_seen_and_named_by_its_time(self):
        with machine_stalls.Stalls() as stalls:
            before = time.monotonic()
            stalls.records[0].process.send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            stalls.records[0].process.send_signal(signal.SIGCONT)
            after = time.monotonic()
            longest = max(stalls.between(before, after), key=lambda one: one.ended - one.began)
            self.assertGreater(longest.ended - longest.began, 0.15)
            self.assertLess(abs(longest.began - before), 0.1)
            self.assertNotIn(longest, stalls.between(after + 1.0, after + 1.0))

    def test_a_record_that_ended_is_an_error(self):
        with machine_stalls.Stalls() as stalls:
            stalls.records[0].process.kill()
            stalls.records[0].process.wait()
            with self.assertRaises(AssertionError):
                stalls.between(0.0, time.monotonic())

    def test_answers_are_divided_at_each_stall(self):
        stretches = judge.stretches(answered(0.5, 0.9, 1.05, 2.0, 5.1, took=0.01), self.STALLS)
        self.assertEqual([self.sent(one) for one in stretches], [[0.5, 0.9], [1.05, 2.0], [5.1]])
        self.assertEqual(len(judge.stretches(answered(0.5), [])), 1)

    def test_answers_near_a_stall_are_disturbed(self):
        answers = answered(0.9, 0.96, 1.05, 3.0, 3.2, 4.9)
        left = judge.undisturbed(answers, self.STALLS, before=0.05, after=2.0)
        self.assertEqual(self.sent(left), [0.9, 3.2, 4.9])

    def test_time_near_a_stall_is_disturbed(self):
        def left(began, ended):
            return judge.undisturbed_time(began, ended, self.STALLS, before=0.05, after=2.0)

        self.assertAlmostEqual(left(0.0, 10.0), 0.95 + 1.85 + 2.94)
        self.assertAlmostEqual(left(0.0, 0.5), 0.5)
        self.assertAlmostEqual(left(1.0, 3.0), 0.0)
        self.assertAlmostEqual(left(2.0, 6.0), 1.85)

    def test_stalls_of_two_cpus_at_the_same_time_are_one(self):
        stalls = machine_stalls.merged(machine_stalls.Stall(*times) for times in
                                       [(5.0, 5.1), (1.05, 1.15), (1.0, 1.1), (1.01, 1.02)])
        self.assertEqual(stalls, [(1.0, 1.15), (5.0, 5.1)])

    def test_only_the_time_of_the_stall_itself_is_excused(self):
        answer, = answered(0.95, took=0.3)
        self.assertAlmostEqual(judge.stood_still(answer, self.STALLS), 0.1)
        self.assertEqual(judge.stood_still(answered(2.0, took=0.3)[0], self.STALLS), 0)


if __name__ == "__main__":
    unittest.main()
