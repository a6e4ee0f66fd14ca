#!/usr/bin/env python3
"""A leaky queue really shapes: what comes at once leaves evenly, in the order in which it came.

    shaping_test.py SOURCE PROGRAM [TEST...]

Judged is what the service lets through and when, not when a busy client gets to see it: answers
carry the time at which the kernel took them from the service (see shaping_client.py). What cannot be
judged is what the service does while it does not run. So both processes run before others where the
machine allows it; and if two answers are too close, and the kernel says that in the time before the
first of them the service was ready to run and was not let, or that the client saw time stand still,
that run says nothing, and there is another. A gap that has no such excuse is a failure at once. No
bound is any wider for that.
"""

import json
import pathlib
import socket
import subprocess
import sys
import time
import unittest

import daemon
import http_wire
import metrics_text
import resp_wire
import shaping_client

POLICY = """\
rules:
  - name: shaped
    key: user
    limit: 50/s burst 600
    algorithm: leaky_bucket
    queue: true
"""
MILLISECOND = 1_000_000
GAP = 20 * MILLISECOND
LEAST_GAP = 15 * MILLISECOND
# An answer is late enough to be too close to the next one if it is late by more than this.
EXCUSE = GAP - LEAST_GAP - MILLISECOND
RUNS = 4


class Shaping(unittest.TestCase):
    def measure(self, protocol, connections, requests):
        """The answers in the order in which they came; none if they were not asked for at once."""
        before = daemon.at_once()
        with daemon.Daemon(POLICY, before=before) as service:
            client = pathlib.Path(__file__).parent / "shaping_client.py"
            port = service.resp if protocol == "resp" else service.http
            ran = subprocess.run(
                [*before, sys.executable, str(client), protocol, str(port), str(connections),
                 str(requests), str(service.pid)],
                capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(ran.returncode, 0, ran.stderr)
        measured = json.loads(ran.stdout)
        if measured["sending"] > GAP // 2:
            print("the client was kept back while it sent; measuring again", file=sys.stderr)
            return None
        answers = measured["answers"]
        self.assertEqual(len(answers), connections * requests)
        return sorted(answers, key=lambda answer: answer["came"])

    def excuse(self, answers, index):
        """Whether the machine kept back the answer at `index`."""
        return any(answer["waited"] > EXCUSE or answer["pause"] > EXCUSE
                   for answer in answers[max(0, index - 1):index + 2])

    def check_gaps(self, answers):
        """False if the machine did not let the service be judged."""
        for index, (one, other) in enumerate(zip(answers, answers[1:])):
            gap = other["came"] - one["came"]
            if gap >= LEAST_GAP:
                continue
            if self.excuse(answers, index):
                print(f"answer {index}: {gap / MILLISECOND:.1f} ms before the next one, but the "
                      "machine kept it back; measuring again", file=sys.stderr)
                return False
            near = [round(answer["came"] / MILLISECOND, 1)
                    for answer in answers[max(0, index - 3):index + 4]]
            self.fail(f"answers {index} and {index + 1} are {gap / MILLISECOND:.1f} ms apart: {near}")
        return True

    def check_order(self, answers):
        """By place in the queue: each booked a turn of 20 ms behind all before it, which is how far
        its key was from fresh at that moment. That tells who was first as long as all booked within
        less than a turn. False if the machine did not let them."""
        for answer in answers:
            decision = answer["decision"]
            self.assertTrue(decision["allowed"])
            self.assertEqual((decision["delay_ms"], decision["reason"]), (0, "ok"))
        turns = [answer["decision"]["reset_after_ms"] for answer in answers]
        if turns == sorted(turns):
            return True
        if sum(answer["waited"] for answer in answers[:4]) > GAP // 2:
            print("the service was kept back while it was asked; measuring again", file=sys.stderr)
            return False
        self.fail(f"not in order: {turns}")

    def shape(self, protocol, connections, requests):
        """Total time and gaps: N answers are N - 1 gaps of 20 ms."""
        count = connections * requests
        for _ in range(RUNS):
            answers = self.measure(protocol, connections, requests)
            if answers is None:
                continue
            if not self.check_order(answers) or not self.check_gaps(answers):
                continue
            total = answers[-1]["came"]
            self.assertGreaterEqual(total, 0.95 * count * GAP)
            self.assertLessEqual(total, 1.05 * count * GAP)
            return
        self.fail(f"in {RUNS} runs this machine never let the service run for long enough")

    def test_lets_500_resp_requests_of_20_connections_through_evenly(self):
        self.shape("resp", 20, 25)

    def test_lets_100_http_requests_of_10_connections_through_evenly(self):
        self.shape("http", 10, 10)


class Order(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = cls.enterClassContext(daemon.Daemon(POLICY))

    def test_is_that_of_coming_whatever_the_protocol(self):
        """One asks when the one before is known to wait; the answers come in that order."""
        with http_wire.Client(self.service.http) as observer:
            # Takes the second before all others.
            with resp_wire.Client(self.service.resp) as first:
                decision = resp_wire.named(
                    first.call("WEIR.CHECK", "shaped", "user", "bob", "@cost", 50))
                self.assertTrue(decision["allowed"])
            clients = []
            for number in range(10):
                if number % 2 == 0:
                    client = resp_wire.Client(self.service.resp)
                    client.send("WEIR.CHECK", "shaped", "user", "bob", "@wait_ms", 60_000)
                else:
                    client = http_wire.Client(self.service.http)
                    client.send(http_wire.request("POST", "/v1/check",
                                                  {"user": "bob", "wait_ms": 60_000}))
                self.addCleanup(client.close)
                client.socket.setsockopt(socket.SOL_SOCKET, shaping_client.SO_TIMESTAMPNS, 1)
                clients.append(client)
                deadline = time.monotonic() + daemon.PATIENCE
                while metrics_text.Metrics.of(observer).value("weir_waiters") < len(clients):
                    self.assertLess(time.monotonic(), deadline)
            came = []
            for client in clients:
                data, ancillary, _, _ = client.socket.recvmsg(65536, 128)
                self.assertIn(b"shaped", data)
                came.append(shaping_client.stamp_of(ancillary))
            self.assertEqual(came, sorted(came))


if __name__ == "__main__":
    daemon.main()
