#!/usr/bin/env python3
"""A leaky queue really shapes: what comes at once leaves evenly, in the order in which it came.

    shaping_test.py SOURCE PROGRAM [TEST...]

Measured once and judged once, by shaping_judge.py, which says what is promised and what a machine
with other things to do may excuse. Judged is what the service lets through and when, not when a busy
client gets to see it: answers carry the time at which the kernel took them from the service (see
shaping_client.py). The service is bound to one CPU, so that it can be said what that CPU did (see
machine_witness.py), and everybody runs before others where that is allowed.
"""

import contextlib
import json
import os
import pathlib
import select
import socket
import subprocess
import sys
import time
import unittest

import daemon
import http_wire
import machine_witness
import metrics_text
import resp_wire
import shaping_client
import shaping_judge
from shaping_judge import GAP, MILLISECOND

POLICY = """\
rules:
  - name: shaped
    key: user
    limit: 50/s burst 600
    algorithm: leaky_bucket
    queue: true
"""
FOLDER = pathlib.Path(__file__).parent


@contextlib.contextmanager
def witness(cpu, pid):
    """Gives a dict, in which is what the witness saw when it is over."""
    seen = {}
    command = [*daemon.at_once(2), sys.executable, str(FOLDER / "machine_witness.py"), str(cpu),
               str(pid)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as process:
        if process.stdout.readline() != "looking\n":
            raise AssertionError("there is no witness")
        yield seen
        seen.update(json.loads(process.communicate(timeout=daemon.PATIENCE)[0]))


class Shaping(unittest.TestCase):
    def shape(self, protocol, connections, requests, *, threads=1):
        """With one thread the order is the service's; with more, the scheduler has a say in it."""
        cpu, *others = sorted(os.sched_getaffinity(0))
        before = [*daemon.at_once(), "taskset", "--cpu-list"]
        with daemon.Daemon(POLICY, threads=threads, before=[*before, str(cpu)]) as service:
            port = service.resp if protocol == "resp" else service.http
            command = [*before, ",".join(map(str, others or [cpu])), sys.executable,
                       str(FOLDER / "shaping_client.py"), protocol, str(port), str(connections),
                       str(requests), str(service.pid)]
            with witness(cpu, service.pid) as seen:
                ran = subprocess.run(command, capture_output=True, text=True, timeout=60,
                                     check=False)
            self.assertEqual(ran.returncode, 0, ran.stderr)
        measured = json.loads(ran.stdout)
        answers = [shaping_judge.Answer(**answer) for answer in measured["answers"]]
        self.assertEqual(len(answers), connections * requests)
        verdict = shaping_judge.Verdict(answers, shaping_judge.Machine(**seen), measured["began"])
        if threads == 1:
            verdict.judge_order()
        print(f"{protocol}, {threads} threads: {verdict.account()}", file=sys.stderr)
        self.assertFalse(verdict.faults, "\n".join(verdict.faults[:10]))

    def test_lets_500_resp_requests_of_20_connections_through_evenly(self):
        self.shape("resp", 20, 25)

    def test_lets_100_http_requests_of_10_connections_through_evenly(self):
        self.shape("http", 10, 10)

    def test_lets_requests_to_several_threads_through_evenly(self):
        self.shape("resp", 20, 5, threads=2)


class Order(unittest.TestCase):
    def check(self, threads):
        """One asks when the one before is known to wait; each is answered in his turn, not before,
        and all by one thread in that order."""
        service = self.enterContext(daemon.Daemon(POLICY, threads=threads))
        observer = self.enterContext(http_wire.Client(service.http))
        began = time.time_ns()
        # Takes the second before all others.
        with resp_wire.Client(service.resp) as first:
            decision = resp_wire.named(
                first.call("WEIR.CHECK", "shaped", "user", "bob", "@cost", 50))
            self.assertTrue(decision["allowed"])
        clients = []
        for number in range(10):
            if number % 2 == 0:
                client = resp_wire.Client(service.resp)
                client.send("WEIR.CHECK", "shaped", "user", "bob", "@wait_ms", 60_000)
            else:
                client = http_wire.Client(service.http)
                client.send(http_wire.request("POST", "/v1/check",
                                              {"user": "bob", "wait_ms": 60_000}))
            self.addCleanup(client.close)
            client.socket.setsockopt(socket.SOL_SOCKET, shaping_client.SO_TIMESTAMPNS, 1)
            clients.append(client)
            self.wait_for_waiters(observer, clients)
        came = []
        for client in clients:
            data, ancillary, _, _ = client.socket.recvmsg(65536, 128)
            self.assertIn(b"shaped", data)
            came.append(shaping_client.stamp_of(ancillary))
        for place, moment in enumerate(came):
            self.assertGreaterEqual(moment, began + (50 + place) * GAP)
        if threads == 1:
            self.assertEqual(came, sorted(came))

    def wait_for_waiters(self, observer, clients):
        """Until all wait who have no answer yet."""
        deadline = time.monotonic() + daemon.PATIENCE
        while True:
            answered, _, _ = select.select([client.socket for client in clients], [], [], 0)
            waiting = metrics_text.Metrics.of(observer).value("weir_waiters")
            if waiting + len(answered) >= len(clients):
                return
            self.assertLess(time.monotonic(), deadline)

    def test_is_that_of_coming_whatever_the_protocol(self):
        self.check(1)

    def test_is_that_of_coming_whatever_the_thread(self):
        self.check(3)


class Judge(unittest.TestCase):
    """What the judge lets pass, on measurements that are made up."""

    def verdict(self, came, *, since=None, kept=(), ran=(), began=0):
        """`came` in ms after the start; `ran`: when the service was busy, from and to, in ms."""
        answers = [shaping_judge.Answer(0, int((since or came)[place] * MILLISECOND),
                                        int(moment * MILLISECOND), 20 * (place + 1))
                   for place, moment in enumerate(came)]
        looks = [(look * MILLISECOND, look * MILLISECOND,
                  sum(min(max(look - begin, 0), end - begin) for begin, end in ran) * MILLISECOND,
                  look // 10 * 10 * MILLISECOND, "SD")
                 for look in range(int(max(came)) + 2)]
        kept = [(begin * MILLISECOND, end * MILLISECOND) for begin, end in kept]
        return shaping_judge.Verdict(answers, shaping_judge.Machine(kept, looks), began)

    def even(self, count=50, gap=20):
        return [1 + place * gap for place in range(count)]

    def late(self, *, place=10, by=8):
        came = self.even()
        came[place] += by
        return came

    def test_lets_pass_what_is_even(self):
        self.assertEqual(self.verdict(self.even()).faults, [])
        self.assertEqual(self.verdict(self.late(by=4.9)).faults, [])

    def test_finds_a_rate_that_is_not_the_one(self):
        for rate in (40, 49, 51, 60):
            self.assertTrue(self.verdict(self.even(count=200, gap=1000 / rate)).faults, rate)

    def test_finds_what_is_early_whatever_the_machine_did(self):
        came = self.even()
        self.assertTrue(self.verdict(came, began=2 * MILLISECOND, kept=[(0, 2000)]).faults)

    def test_finds_bursts(self):
        for size in (2, 3, 50):
            came = [1 + place // size * size * 20 for place in range(50)]
            self.assertTrue(self.verdict(came).faults, size)

    def test_says_what_is_known_about_what_was_late(self):
        faults = self.verdict(self.late(by=18), kept=[(205, 208)], ran=[(210, 212)]).faults
        self.assertIn("the service ran for 2.0 ms, the machine kept it back for 3.0 ms, the "
                      "hypervisor took 10 ms, and its threads were SD at 19 looks", faults[0])

    def test_excuses_no_more_than_was_kept_from_the_service(self):
        self.assertTrue(self.verdict(self.late()).faults)
        self.assertEqual(self.verdict(self.late(), kept=[(201, 209)]).faults, [])
        self.assertEqual(self.verdict(self.late(), kept=[(150, 205)]).faults, [])
        # Too little, at another time, and the same time twice.
        self.assertTrue(self.verdict(self.late(), kept=[(201, 203)]).faults)
        self.assertTrue(self.verdict(self.late(), kept=[(181, 201), (221, 229)]).faults)
        self.assertTrue(self.verdict(self.late(), kept=[(201, 203), (201, 203)]).faults)

    def test_excuses_all_that_piled_up(self):
        came = self.even()
        came[10:13] = [245, 245.1, 245.2]
        self.assertEqual(self.verdict(came, kept=[(200, 245)]).faults, [])
        self.assertTrue(self.verdict(came, kept=[(200, 230)]).faults)

    def test_excuses_nothing_while_the_service_ran(self):
        self.assertTrue(self.verdict(self.late(), kept=[(201, 209)], ran=[(201, 208)]).faults)

    def test_finds_a_first_answer_that_is_late(self):
        self.assertTrue(self.verdict(self.late(place=0)).faults)

    def test_takes_for_late_only_what_left_after_nobody_had_seen_it(self):
        came, since = self.even(), self.even()
        came[10] = came[11]
        self.assertTrue(self.verdict(came).faults)
        self.assertEqual(self.verdict(came, since=since).faults, [])
        since[10] = came[11] - 2  # There was nothing 2 ms before.
        self.assertTrue(self.verdict(came, since=since).faults)

    def test_finds_who_is_let_out_before_his_turn(self):
        verdict = self.verdict(self.even())
        verdict.judge_order()
        self.assertEqual(verdict.faults, [])
        first, second = verdict.answers[10:12]
        first.reset_after_ms, second.reset_after_ms = second.reset_after_ms, first.reset_after_ms
        verdict.judge_order()
        self.assertTrue(verdict.faults)

    def test_knows_that_booking_takes_time(self):
        verdict = self.verdict(self.even())
        for place, answer in enumerate(verdict.answers):
            answer.reset_after_ms -= 30 * (place // 10)
        verdict.judge_order()
        self.assertEqual(verdict.faults, [])


class Witness(unittest.TestCase):
    """What the witness makes of machines that are made up; all in ms. The service is due at 1."""

    def excuse(self, *steps, until):
        """Each step: how long this process looked, slept, and saw the service run and wait."""
        account, now = machine_witness.Account(), 0
        for looked, slept, ran, waited in steps:
            asleep, woken = now + looked * MILLISECOND, now + (looked + slept) * MILLISECOND
            account.note_look(now, asleep, 0)
            stood_still = account.note_sleep(asleep, woken, 0)
            account.note_process(woken, woken, [(ran * MILLISECOND, waited * MILLISECOND)],
                                 stood_still)
            now = woken
        machine = shaping_judge.Machine(account.kept, account.looks)
        return machine.excuse(1 * MILLISECOND, until * MILLISECOND) / MILLISECOND

    def test_sees_a_cpu_that_stands_still_while_nobody_runs(self):
        self.assertEqual(self.excuse((0, 1, 0, 0), (0, 10, 0, 0), (0, 1, 0, 0), until=11), 9)

    def test_sees_a_cpu_that_stands_still_while_it_looks(self):
        self.assertEqual(self.excuse((0, 1, 0, 0), (9, 1, 0, 0), (0, 1, 0, 0), until=10), 9)

    def test_sees_a_cpu_that_stands_still_while_the_service_runs(self):
        self.assertEqual(self.excuse((0, 1, 0, 0), (0, 10, 9, 0), (0, 1, 0, 0), until=11), 9)
        # It did something itself besides.
        self.assertEqual(self.excuse((0, 1, 0, 0), (0, 10, 9, 0), (0, 1, 1, 0), until=12), 9)

    def test_sees_a_service_that_others_are_in_front_of(self):
        self.assertEqual(self.excuse((0, 1, 0, 0), *[(0, 1, 0, 1)] * 9, until=10), 9)

    def test_excuses_no_service_that_is_busy_or_asleep(self):
        self.assertEqual(self.excuse((0, 1, 0, 0), *[(0, 1, 1, 0)] * 9, until=10), 0)
        self.assertEqual(self.excuse((0, 1, 0, 0), *[(0, 1, 0, 0)] * 9, until=10), 0)


if __name__ == "__main__":
    daemon.main()
