#!/usr/bin/env python3
"""Clients that mean harm, or are merely broken: memory stays bounded, they are told or cut off, and
nobody else is harmed.

    hostile_test.py SOURCE PROGRAM [TEST...]

Beside every attack somebody else asks ordinary questions and must be answered rightly and quickly.
Attackers come from other loopback addresses than those who watch, so that what is counted by address
is theirs. WEIR_SEED=n repeats a run.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import random
import resource
import select
import socket
import struct
import subprocess
import sys
import time
import unittest

import daemon
import http_wire
import metrics_text
import resp_wire

MIB = 1 << 20
RULES = """\
rules:
  - name: per-user
    match: { user: present }
    key: user
    limit: 1M/s
  - name: slow
    match: { org: present }
    key: org
    limit: 1/h
    algorithm: sliding_log
"""
POLICY = """\
limits:
  connections: 3000
  per_address: 2500
  idle_timeout: 1s
  header_timeout: 1s
  write_timeout: 1s
  waiters: 5
  pipeline: 20
""" + RULES
ATTACKER = "127.0.0.9"
# What a bystander may have to wait at the worst. The service itself takes microseconds; the rest is
# for machines that have other things to do.
PATIENCE = 1.0


def connect(port, *, address=ATTACKER):
    one = socket.create_connection(("127.0.0.1", port), timeout=daemon.PATIENCE,
                                   source_address=(address, 0))
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one


def drain(one):
    """Everything until the other end closes."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while piece := one.recv(65536):
            data += piece
    return data


def send_until_cut_off(one, pieces):
    """How many bytes went out before the other end had enough."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            one.sendall(piece)
            sent += len(piece)
    return sent


class Hostile(unittest.TestCase):
    policy = POLICY

    @classmethod
    def setUpClass(cls):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        cls.daemon = cls.enterClassContext(daemon.Daemon(cls.policy))

    def setUp(self):
        seed = int(os.environ.get("WEIR_SEED", random.SystemRandom().randrange(1 << 32)))
        self.random = random.Random(seed)
        self.seed = f"WEIR_SEED={seed}"

    def metrics(self):
        return metrics_text.scrape(self.daemon.http)

    def settle(self):
        """Waits until those who watch are the only ones."""
        deadline = time.monotonic() + daemon.PATIENCE
        while True:
            metrics = self.metrics()
            open_now = (metrics.value("weir_connections", listener="http"),
                        metrics.value("weir_connections", listener="resp"))
            if open_now == (1, 0):
                return metrics
            self.assertLess(time.monotonic(), deadline, f"connections stay: {open_now}")
            time.sleep(0.01)

    @contextlib.contextmanager
    def attack(self, *refused, most_memory=24 * MIB):
        """`refused`: (listener, why) that must be counted meanwhile."""
        before = self.settle()
        memory = self.daemon.memory()
        bystander = subprocess.Popen(
            [sys.executable, str(pathlib.Path(__file__).parent / "bystander.py"),
             str(self.daemon.http), str(self.daemon.resp)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(bystander.stdout.readline(), "begun\n")
            yield
            said, _ = bystander.communicate(timeout=daemon.PATIENCE)
        finally:
            bystander.kill()
            bystander.communicate()
        self.assertTrue(self.daemon.is_alive(), self.seed)
        said = json.loads(said)
        self.assertEqual(said["wrong"], [])
        self.assertGreater(said["answers"], 0)
        after = self.settle()
        for listener, why in refused:
            labels = {"listener": listener, "why": why}
            self.assertGreater(after.value("weir_refused_total", **labels),
                               before.value("weir_refused_total", **labels), labels)
        if not daemon.instrumented:
            self.assertLess(said["worst"], PATIENCE)
            self.assertLess(self.daemon.memory() - memory, most_memory)


class Attacks(Hostile):
    def test_a_client_that_never_reads(self):
        def pieces(request):
            block = request * (65536 // len(request))
            deadline = time.monotonic() + daemon.PATIENCE
            while time.monotonic() < deadline:
                yield block

        attackers = [
            (self.daemon.resp, resp_wire.command("COMMAND", "DOCS")),
            (self.daemon.resp, resp_wire.command("CL.THROTTLE", "k", 15, 30, 60)),
            (self.daemon.http, http_wire.request("GET", "/metrics")),
            (self.daemon.http, http_wire.request("POST", "/v1/check", {"user": "a"}))]
        with self.attack(("resp", "output"), ("resp", "write_timeout"), ("http", "output"),
                         ("http", "write_timeout")):
            with contextlib.ExitStack() as stack:
                pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(len(attackers)))
                sent = [pool.submit(send_until_cut_off, stack.enter_context(connect(port)),
                                    pieces(request)) for port, request in attackers]
                for (_, request), one in zip(attackers, sent):
                    # It is not read on while it does not read.
                    self.assertLess(one.result(), 64 * MIB, request)

    def test_a_client_that_reads_a_little(self):
        """One that takes a byte now and then makes progress, but takes no more than its share."""
        with self.attack(("resp", "output")):
            with connect(self.daemon.resp) as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.setblocking(False)
                request = resp_wire.command("COMMAND", "DOCS") * 100
                deadline = time.monotonic() + 2
                with contextlib.suppress(ConnectionError):
                    while time.monotonic() < deadline:
                        readable, writable, _ = select.select([one], [one], [], 0.05)
                        if writable:
                            one.send(request)
                        if readable:
                            one.recv(1)
                        time.sleep(0.005)

    def test_a_body_of_a_gibibyte(self):
        head = b"POST /v1/check HTTP/1.1\r\nHost: weir\r\n"
        block = b" " * 65536
        chunk = b"10000\r\n" + block + b"\r\n"
        for name, start, piece in (
                ("by length", head + b"Content-Length: 1073741824\r\n\r\n", block),
                ("in chunks", head + b"Transfer-Encoding: chunked\r\n\r\n", chunk),
                ("in one chunk", head + b"Transfer-Encoding: chunked\r\n\r\n40000000\r\n", block)):
            with self.subTest(name):
                with self.attack(("http", "body")):
                    with connect(self.daemon.http) as one:
                        one.sendall(start)
                        send_until_cut_off(one, (piece for _ in range(16384)))
                    # And who listens is told.
                    with connect(self.daemon.http) as one:
                        send_until_cut_off(one, [start, *[piece] * 17])
                        self.assertTrue(drain(one).startswith(b"HTTP/1.1 413 "))

    def test_a_header_of_a_megabyte(self):
        for name, data in (
                ("one line", b"GET / HTTP/1.1\r\nHost: weir\r\nX: " + b"x" * MIB),
                ("many lines", b"GET / HTTP/1.1\r\nHost: weir\r\n" + b"X: y\r\n" * 200_000),
                ("a target", b"GET /" + b"x" * MIB),
                ("a method", b"G" * MIB),
                ("empty lines", b"\r\n" * (MIB // 2))):
            with self.subTest(name):
                with self.attack(), connect(self.daemon.http) as one:
                    send_until_cut_off(one, [data])
                    self.assertRegex(drain(one), rb"^HTTP/1.1 4\d\d ")

    def test_trailers_of_a_megabyte(self):
        with self.attack(), connect(self.daemon.http) as one:
            send_until_cut_off(one, [b"POST /v1/check HTTP/1.1\r\nHost: weir\r\n"
                                     b"Transfer-Encoding: chunked\r\n\r\n0\r\n",
                                     b"X: y\r\n" * 200_000])
            self.assertRegex(drain(one), rb"^HTTP/1.1 4\d\d ")

    def test_chunks_that_are_mostly_wrapping(self):
        """A byte at a time costs six on the wire; a body may be so large, what is around it not."""
        with self.attack(("http", "body")), connect(self.daemon.http) as one:
            send_until_cut_off(one, [b"POST /v1/check HTTP/1.1\r\nHost: weir\r\n"
                                     b"Transfer-Encoding: chunked\r\n\r\n",
                                     b"000000000000001\r\n \r\n" * 1_200_000])
            self.assertRegex(drain(one), rb"^HTTP/1.1 4\d\d ")

    def test_a_million_pipelined_commands(self):
        """All answered, in order, however fast they come."""
        blocks = 50
        per_block = 1_000_000 // blocks
        look = resp_wire.command("CL.THROTTLE", "nobody", 15, 30, 60, 0)
        looked = b"*5\r\n:0\r\n:16\r\n:16\r\n:-1\r\n:0\r\n"
        most, began = 0, self.daemon.memory()
        with self.attack(), connect(self.daemon.resp) as one:
            one.setblocking(False)
            unsent, expected, block = b"", b"", 0
            while block < blocks or unsent or expected:
                if not unsent and block < blocks:
                    numbers = range(block * per_block, (block + 1) * per_block, 2)
                    unsent = memoryview(b"".join(
                        b"*2\r\n$4\r\nPING\r\n$7\r\n%07d\r\n" % number + look
                        for number in numbers))
                    expected += b"".join(b"$7\r\n%07d\r\n" % number + looked
                                         for number in numbers)
                    block += 1
                readable, writable, _ = select.select([one], [one] if unsent else [], [],
                                                      daemon.PATIENCE)
                self.assertTrue(readable or writable, "no answers")
                if readable:
                    data = one.recv(MIB)
                    self.assertTrue(data and expected.startswith(data), data[:200])
                    expected = expected[len(data):]
                if writable:
                    unsent = unsent[one.send(unsent):]
                most = max(most, self.daemon.memory())
        if not daemon.instrumented:
            self.assertLess(most - began, 24 * MIB)

    def test_a_million_pipelined_requests_that_are_not_read(self):
        """Sent to the end by a process that reads only then, if it comes to that."""
        with self.attack(("http", "output")), connect(self.daemon.http) as one:
            request = http_wire.request("POST", "/v1/check", {"user": "x"}) * 1000
            sent = send_until_cut_off(one, (request for _ in range(1000)))
            self.assertLess(sent, 1000 * len(request))

    def test_commands_that_say_they_are_huge(self):
        for data in (b"*1000000000\r\n", b"*2147483647\r\n", b"*99999999999999999999\r\n",
                     b"*1\r\n$1000000000\r\n", b"*1\r\n$99999999999999999999\r\n", b"*1\r\n$-5\r\n",
                     b"*2\r\n$4\r\nPING\r\n$2147483648\r\n", b"*1\r\n:5\r\n",
                     b"*1025\r\n" + b"$1\r\nx\r\n" * 1025, b"*1\r\n$4\r\nPINGxx",
                     b"x" * 100_000, b"*" + b"0" * 100_000,
                     resp_wire.command("PING", "x" * 100_000),
                     resp_wire.command("PING", *["x" * 1000] * 100)):
            with self.subTest(data=data[:40]):
                with self.attack(), connect(self.daemon.resp) as one:
                    send_until_cut_off(one, [resp_wire.command("PING"), data,
                                             resp_wire.command("PING")])
                    self.assertRegex(drain(one), rb"^\+PONG\r\n-ERR [^\r\n]+\r\n$")

    def test_large_commands_begun_by_many(self):
        """Room is given as bytes come, not as they are announced."""
        with self.attack(("resp", "header_timeout"), most_memory=16 * MIB):
            many = [connect(self.daemon.resp) for _ in range(500)]
            for one in many:
                one.sendall(b"*2\r\n$4\r\nPING\r\n$65000\r\nx")
            for one in many:
                drain(one)
                one.close()

    def test_connections_opened_and_dropped(self):
        with self.attack():
            for number in range(2000):
                one = connect(self.daemon.http if number % 2 else self.daemon.resp)
                if number % 3 == 0:
                    one.sendall(b"*3\r\n$11\r\nCL.THR" if number % 2 == 0 else b"POST /v1/che")
                if number % 5 == 0:  # By a reset.
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.close()

    def test_connections_opened_and_kept_then_dropped(self):
        with self.attack():
            many = [connect(self.daemon.http if number % 2 else self.daemon.resp)
                    for number in range(2000)]
            for one in many:
                one.close()

    def test_connections_that_are_idle(self):
        """Some that never said anything, and some that did."""
        with self.attack(("http", "idle_timeout"), ("resp", "idle_timeout")):
            with contextlib.ExitStack() as stack:
                began = time.monotonic()
                idle = [stack.enter_context(connect(port))
                        for port in (self.daemon.http, self.daemon.resp) * 2]
                idle[0].sendall(http_wire.request("GET", "/healthz"))
                idle[1].sendall(resp_wire.command("PING"))
                said = [drain(one) for one in idle]
                self.assertGreater(time.monotonic() - began, 0.99)
                self.assertLess(time.monotonic() - began, 5)
                self.assertEqual([len(text) > 0 for text in said], [True, True, False, False])

    def test_requests_that_come_a_byte_at_a_time(self):
        attackers = [
            (self.daemon.http, http_wire.request("GET", "/healthz"), rb"^HTTP/1.1 408 "),
            (self.daemon.http, http_wire.request("POST", "/v1/check", b'{"user": "a"}' + b" " * 99),
             rb"^HTTP/1.1 408 "),
            (self.daemon.resp, resp_wire.command("PING", "x" * 100), rb"^-ERR ")]
        with self.attack(("http", "header_timeout"), ("resp", "header_timeout")):
            with contextlib.ExitStack() as stack:
                began = time.monotonic()
                slow = [stack.enter_context(connect(port)) for port, _, _ in attackers]
                for at in range(200):
                    time.sleep(0.05)  # As slow as that.
                    if len(select.select(slow, [], [], 0)[0]) == len(slow):
                        break
                    for one, (_, data, _) in zip(slow, attackers):
                        with contextlib.suppress(ConnectionError):
                            one.send(data[at:at + 1])
                self.assertGreater(time.monotonic() - began, 0.99)
                self.assertLess(time.monotonic() - began, 5)
                for one, (_, _, last) in zip(slow, attackers):
                    self.assertRegex(drain(one), last)

    def test_many_slow_requests_at_once(self):
        with self.attack(("http", "header_timeout"), ("resp", "header_timeout")):
            many = [connect(self.daemon.http if number % 2 else self.daemon.resp)
                    for number in range(600)]
            for byte in range(3):
                for number, one in enumerate(many):
                    with contextlib.suppress(ConnectionError):
                        one.send((b"GET", b"*1\r")[number % 2 == 0][byte:byte + 1])
            for one in many:
                drain(one)
                one.close()

    def test_garbage(self):
        with self.attack(("http", "protocol"), ("resp", "protocol")):
            for number in range(200):
                data = self.random.choice((
                    self.random.randbytes(self.random.randrange(1, 3000)),
                    b"*" + self.random.randbytes(50), b"*3\r\n$" + self.random.randbytes(50),
                    b"GET " + self.random.randbytes(50),
                    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + self.random.randbytes(500)))
                with connect(self.daemon.http if number % 2 else self.daemon.resp) as one:
                    with contextlib.suppress(ConnectionError):
                        one.sendall(data)
                        one.shutdown(socket.SHUT_WR)
                        drain(one)

    def test_the_wrong_protocol(self):
        with self.attack(("resp", "protocol"), ("http", "protocol")):
            # What a browser can be made to send must not reach the commands in its body.
            with connect(self.daemon.resp) as one:
                one.sendall(b"POST / HTTP/1.1\r\nHost: weir\r\nContent-Length: 6\r\n\r\nPING\r\n")
                self.assertNotIn(b"PONG", drain(one))
            with connect(self.daemon.http) as one:
                one.sendall(resp_wire.command("PING"))
                self.assertTrue(drain(one).startswith(b"HTTP/1.1 400 "))

    def test_more_who_wait_than_may(self):
        words = ("WEIR.CHECK", "slow", "org", "waiters", "@wait_ms", 50_000)
        with self.attack(("resp", "waiters")), contextlib.ExitStack() as open_ones:
            with resp_wire.Client(self.daemon.resp) as first:
                self.assertTrue(resp_wire.named(first.call(*words))["allowed"])
            # One hour to wait for the first: who waits does so until it leaves.
            for _ in range(5):
                waits = open_ones.enter_context(resp_wire.Client(self.daemon.resp))
                waits.send(*words)
            deadline = time.monotonic() + daemon.PATIENCE
            while self.metrics().value("weir_waiters") < 5:
                self.assertLess(time.monotonic(), deadline)
            with resp_wire.Client(self.daemon.resp) as one_more:
                decision = resp_wire.named(one_more.call(*words))
                self.assertEqual((decision["allowed"], decision["reason"]), (0, "overload"))
            response = http_wire.once(self.daemon.http, "POST", "/v1/check",
                                      {"org": "waiters", "rules": ["slow"], "wait_ms": 50_000})
            self.assertEqual((response.status, response.json()["reason"]), (503, "overload"))
        self.assertEqual(self.settle().value("weir_waiters"), 0)

    def test_a_pipeline_deeper_than_may_be(self):
        """Who has too many requests waiting is not read until some are answered; none is lost."""
        words = ("WEIR.CHECK", "*", "user", "deep", "@wait_ms", 1000)
        with self.attack(("resp", "pipeline")), connect(self.daemon.resp) as one:
            first = resp_wire.command("WEIR.CHECK", "slow", "org", "deep", "@wait_ms", 0)
            held = resp_wire.command("WEIR.CHECK", "slow", "org", "deep", "@wait_ms", 300)
            one.sendall(first + held + resp_wire.command(*words) * 500)
            reader, replies = resp_wire.Reader(), []
            while len(replies) < 502:
                data = one.recv(65536)
                self.assertTrue(data)
                reader.feed(data)
                replies += [resp_wire.named(reply) for reply in reader.take_all()]
            self.assertEqual([reply["allowed"] for reply in replies], [1, 0] + [1] * 500)


class TooMany(Hostile):
    policy = "limits: { connections: 60, per_address: 20 }\n" + RULES

    def test_connections_from_one_address(self):
        for listener, port, told in (
                ("http", self.daemon.http, b"HTTP/1.1 503 Service Unavailable\r\n"),
                ("resp", self.daemon.resp, b"-ERR max number of clients reached\r\n")):
            with self.subTest(listener=listener), self.attack((listener, "per_address")):
                many = [connect(port) for _ in range(20)]
                try:
                    for one in many:  # All are in before the next one comes.
                        self.assert_served(listener, one)
                    for _ in range(5):
                        with connect(port) as one:
                            self.assertTrue(drain(one).startswith(told))
                    # Others are not concerned, and as many as leave may come.
                    with connect(port, address="127.0.0.10") as other:
                        self.assert_served(listener, other)
                    for one in many[:3]:
                        one.close()
                    many[:3] = [self.let_in(port, listener) for _ in range(3)]
                finally:
                    for one in many:
                        one.close()

    def test_connections_in_all(self):
        with self.attack(("resp", "connections")):
            # The bystander has two, so there is room for one more than these.
            many = [connect(self.daemon.resp, address=f"127.0.1.{1 + number // 19}")
                    for number in range(57)]
            try:
                for one in many:
                    self.assert_served("resp", one)
                with contextlib.ExitStack() as extra:
                    served = [self.is_served(extra.enter_context(
                        connect(self.daemon.resp, address=f"127.0.2.{number}")))
                              for number in range(1, 6)]
                    self.assertEqual(served, [True] + [False] * 4)
            finally:
                for one in many:
                    one.close()

    def is_served(self, one):
        try:
            one.sendall(resp_wire.command("PING"))
            return one.recv(100) == b"+PONG\r\n"
        except ConnectionError:
            return False

    def assert_served(self, listener, one):
        if listener == "resp":
            self.assertTrue(self.is_served(one))
        else:
            one.sendall(http_wire.request("GET", "/healthz"))
            self.assertTrue(one.recv(100).startswith(b"HTTP/1.1 200 "))

    def let_in(self, port, listener):
        """That somebody has left is noticed a moment later."""
        deadline = time.monotonic() + daemon.PATIENCE
        while time.monotonic() < deadline:
            one = connect(port)
            with contextlib.suppress(AssertionError, ConnectionError):
                self.assert_served(listener, one)
                return one
            one.close()
        raise AssertionError("nobody is let in")


class OpenFiles(unittest.TestCase):
    """As many as the system lets a program have."""

    def start(self, soft, hard):
        return daemon.Daemon("limits: { connections: 600 }\n" + RULES,
                             before=("prlimit", f"--nofile={soft}:{hard}"))

    def test_are_raised_as_far_as_allowed(self):
        with self.start(64, 4096) as service, contextlib.ExitStack() as stack:
            for _ in range(500):
                client = stack.enter_context(resp_wire.Client(service.resp))
                self.assertEqual(client.call("PING"), "PONG")
            self.assertFalse([line for line in service.log if "files may be open" in line])

    def test_that_run_out_keep_others_waiting_and_nothing_else(self):
        if daemon.instrumented:
            self.skipTest("sanitizers need files of their own to tell good memory from bad")
        with self.start(128, 128) as service, contextlib.ExitStack() as stack:
            service.wait_for("only 128 files may be open")
            many = [stack.enter_context(connect(service.resp)) for _ in range(200)]
            poll = select.poll()
            for one in many:
                one.sendall(resp_wire.command("PING"))
                poll.register(one, select.POLLIN)
            served = 0
            while ready := poll.poll(500):
                for number, _ in ready:
                    poll.unregister(number)
                served += len(ready)
            self.assertGreater(served, 50)
            self.assertLess(served, 128)
            # Those who leave make room for those who wait.
            for one in many:
                self.assertEqual(one.recv(100), b"+PONG\r\n")
                one.close()


class Buffers(Hostile):
    policy = "limits: { buffers: 4MiB }\n" + RULES

    def test_bytes_held_for_all_together(self):
        """Each keeps to its own bounds; all together would hold 100 MB."""
        with self.attack(("http", "buffers")):
            many = [connect(self.daemon.http) for _ in range(100)]
            head = b"POST /v1/check HTTP/1.1\r\nHost: weir\r\nContent-Length: 1000000\r\n\r\n"
            for one in many:
                send_until_cut_off(one, [head, b" " * 900_000])
            self.assertLess(self.metrics().value("weir_buffered_bytes"), 5 * MIB)
            for one in many:
                one.close()


if __name__ == "__main__":
    daemon.main()
