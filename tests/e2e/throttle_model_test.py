#!/usr/bin/env python3
"""CL.THROTTLE against a model of redis-cell, on random calls to the running service.

    throttle_model_test.py SOURCE PROGRAM [TEST...]

Real time passes meanwhile, so a reply is right if the model gives it for some moment between sending
the call and receiving the reply. WEIR_SEED=n repeats a run.
"""

import os
import random
import time
import unittest

import daemon
import redis_cell
import resp_wire

POLICY = """\
manage: open
rules:
  - { name: unused, key: ip, limit: 1/s }
"""
CALLS = 6_000
LIMITS = [  # count, period: a whole number of microseconds each.
    (30, 60), (1, 2), (1, 1), (10, 1), (100, 1), (1_000, 1), (20_000, 1), (1_000_000, 1),
    (7, 7), (60, 3_600), (1, 86_400), (8, 1), (125, 2), (1, 3),
]


class ThrottleModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(daemon.Daemon(POLICY))

    def setUp(self):
        self.client = resp_wire.Client(self.daemon.resp)
        self.addCleanup(self.client.close)
        self.seed = int(os.environ.get("WEIR_SEED", random.SystemRandom().randrange(1 << 32)))
        self.random = random.Random(self.seed)
        self.keys = {}

    def call(self, calls):
        """Sends (key, burst, count, period, quantity) in one piece, and checks every reply."""
        words = [("CL.THROTTLE", *call) for call in calls]
        data = b"".join(resp_wire.command(*call) for call in words)
        sent = time.monotonic_ns()
        self.client.socket.sendall(data)
        replies = [self.client.receive() for _ in calls]
        received = time.monotonic_ns()
        for call, reply in zip(calls, replies):
            self.check(call, reply, sent, received)
        return replies

    def check(self, call, reply, sent, received):
        key, burst, count, period, quantity = call
        tat = self.keys.setdefault(key, redis_cell.Range(sent, sent))
        possible = tat.possible(sent, received, burst, count, period, quantity)
        if reply not in possible:
            self.fail(f"WEIR_SEED={self.seed}: {call}: {reply}, not one of {possible}; "
                      f"the key was {(tat.low - sent) / 1e9:.9f} to {(tat.high - sent) / 1e9:.9f} s "
                      f"ahead, and the call took {(received - sent) / 1e9:.9f} s")
        if reply[0] == 0:
            tat.charge(sent, received, count, period, quantity)

    def one_call(self, number):
        """Keys have limits of their own, as callers do."""
        count, period = LIMITS[number % len(LIMITS)]
        burst = (0, 1, 4, 15, 100)[number // len(LIMITS) % 5]
        quantity = self.random.choice((1, 1, 1, 1, 0, 2, 3, burst, burst + 1, burst + 2))
        return (f"{self.id()}:{number}", burst, count, period, quantity)

    def test_agrees_on_single_calls(self):
        for _ in range(CALLS):
            self.call([self.one_call(self.random.randrange(140))])

    def test_agrees_on_pipelined_calls(self):
        done = 0
        while done < CALLS:
            size = self.random.choice((2, 10, 64, 300))
            # A batch keeps to few keys now and then, so that one key is charged many times in it.
            keys = self.random.choice((3, 20, 140))
            self.call([self.one_call(self.random.randrange(keys)) for _ in range(size)])
            done += size

    def test_agrees_on_a_batch_of_more_limits_than_are_kept(self):
        """Limits that come with calls are kept for the next; a batch may have more than fit."""
        for _ in range(3):
            calls = [(f"{self.id()}:{number}", number, 1, 1 + number % 7, 1 + number % 3)
                     for number in range(1, 1_500)]
            self.random.shuffle(calls)
            self.call(calls)

    def test_agrees_when_a_key_is_asked_under_other_limits(self):
        """What is kept of a key is a time, which every limit reads in its own way."""
        for _ in range(CALLS // 6):
            count, period = self.random.choice(((30, 60), (1, 2), (1, 1), (10, 1), (100, 1), (8, 1)))
            burst = self.random.choice((4, 15, 20))
            self.call([(f"{self.id()}:{self.random.randrange(10)}", burst, count, period,
                        self.random.choice((0, 1, 2)))])

    def test_agrees_on_calls_that_give_back(self):
        """As long as something is used, which is as far as redis-cell's own answer makes sense."""
        for number in range(300):
            burst, (count, period) = 15, self.random.choice(((30, 60), (1, 1), (60, 3_600)))
            key = f"{self.id()}:{number}"
            taken = self.random.randrange(2, burst + 1)
            self.call([(key, burst, count, period, taken)])
            self.call([(key, burst, count, period, -self.random.randrange(1, taken))])
            self.call([(key, burst, count, period, 0)])

    def test_agrees_as_time_passes(self):
        """Short periods, so that keys run empty and fill up while they are asked."""
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            number = self.random.randrange(6)
            count, burst = ((8, 3), (10, 0), (100, 15), (1, 1), (125, 4), (1_000, 100))[number]
            self.call([(f"{self.id()}:{number}", burst, count, 1,
                        self.random.choice((0, 1, 1, burst + 1)))])


class Vectors(unittest.TestCase):
    """What redis-cell's own documents and tests say."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(daemon.Daemon(POLICY))

    def setUp(self):
        self.client = resp_wire.Client(self.daemon.resp)
        self.addCleanup(self.client.close)

    def throttle(self, key, *numbers):
        return self.client.call("CL.THROTTLE", f"{self.id()}:{key}", *numbers)

    def test_of_the_model_itself(self):
        second = redis_cell.SECOND
        self.assertEqual(redis_cell.throttle(0, 15, 30, 60), [0, 16, 15, -1, 2])
        self.assertEqual(redis_cell.throttle(30 * second, 15, 30, 60), [0, 16, 0, -1, 32])
        self.assertEqual(redis_cell.throttle(32 * second, 15, 30, 60), [1, 16, 0, 2, 32])
        self.assertEqual(redis_cell.throttle(0, 15, 30, 60, 17), [1, 16, 16, -1, 0])
        # A remainder of less than a millisecond is dropped, more is rounded up.
        self.assertEqual(redis_cell.throttle(32 * second - 1, 15, 30, 60), [1, 16, 0, 2, 32])
        self.assertEqual(redis_cell.throttle(30 * second + 999_999, 15, 30, 60), [1, 16, 0, 0, 30])
        self.assertEqual(redis_cell.throttle(30 * second + 1_000_000, 15, 30, 60), [1, 16, 0, 1, 31])
        # And a wrong reply is not possible, whenever it was given within a second.
        tat = redis_cell.Range(0, 0)
        possible = tat.possible(0, second, 15, 30, 60, 1)
        self.assertEqual(possible, [[0, 16, 15, -1, 2]])

    def test_from_the_readme(self):
        self.assertEqual(self.throttle("k", 15, 30, 60), [0, 16, 15, -1, 2])

    def test_a_burst_and_one_more(self):
        replies = self.client.pipeline(
            [("CL.THROTTLE", f"{self.id()}:k", 15, 30, 60)] * 17)
        self.assertEqual(replies, [[0, 16, 16 - k, -1, 2 * k] for k in range(1, 17)]
                         + [[1, 16, 0, 2, 32]])

    def test_more_than_ever_fits(self):
        self.assertEqual(self.throttle("k", 15, 30, 60, 17), [1, 16, 16, -1, 0])
        self.assertEqual(self.throttle("k", 15, 30, 60, 1), [0, 16, 15, -1, 2])

    def test_from_its_end_to_end_test(self):
        self.assertEqual(self.throttle("k", 0, 1, 2), [0, 1, 0, -1, 2])
        self.assertEqual(self.throttle("k", 0, 1, 2), [1, 1, 0, 2, 2])

    def test_a_look(self):
        self.assertEqual(self.throttle("k", 15, 30, 60, 0), [0, 16, 16, -1, 0])
        self.assertEqual(self.throttle("k", 15, 30, 60, 0), [0, 16, 16, -1, 0])
        self.assertEqual(self.throttle("k", 15, 30, 60), [0, 16, 15, -1, 2])
        self.assertEqual(self.throttle("k", 15, 30, 60, 0), [0, 16, 15, -1, 2])

    def test_what_cannot_be(self):
        for numbers in ((15, 0, 60), (15, 30, 0)):
            self.assertRegex(self.throttle("k", *numbers), "Zero rates are not supported")
        for numbers in ((-1, 30, 60), (15, -30, 60), (15, 30, -60), (15, 30, "1.5"), ("x", 30, 60),
                        (15, 30, 60, "one"), (1 << 62, 30, 60), (15, 30, 1 << 63),
                        (15, 30, 60, 1 << 62), (1_000_000, 1, 1_000_000_000)):
            reply = self.throttle("k", *numbers)
            self.assertIsInstance(reply, resp_wire.ErrorReply, numbers)
            self.assertTrue(reply.startswith("ERR "), reply)
        self.assertRegex(self.client.call("CL.THROTTLE", "k", 15, 30), "wrong number of arguments")
        self.assertEqual(self.throttle("k", 15, 30, 60), [0, 16, 15, -1, 2])


if __name__ == "__main__":
    daemon.main()
