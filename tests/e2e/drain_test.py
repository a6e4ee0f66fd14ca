#!/usr/bin/env python3
"""The end of the service, and a change of its policy, while it is busy: nothing that was asked is lost.

    drain_test.py SOURCE PROGRAM [TEST...]

Clients ask without a pause and keep books: what they sent, what they got, and how their connection
ended. A request counts as lost if it was sent on a connection that the service had not closed yet
and no whole answer came. HTTP says which answer is the last one (Connection: close); RESP cannot, so
there a batch must be answered whole or, sent when the service had closed already, not at all.
"""

import contextlib
import os
import select
import signal
import socket
import threading
import time
import unittest

import daemon
import http_wire
import metrics_text
import pipelined_load
import resp_wire

POLICY = """\
rules:
  - name: per-user
    match: { user: present }
    key: user
    limit: 1M/s
  - name: shaped
    match: { org: present }
    key: org
    limit: 1/s burst 100
    algorithm: leaky_bucket
    queue: true
"""
# A connection that says nothing for this long is closed in a drain, and may be closed just when it
# begins to speak again. Whoever was kept from speaking by a busy machine is not counted.
QUIET = 0.08


def wait_for_waiters(service, count):
    deadline = time.monotonic() + daemon.PATIENCE
    with http_wire.Client(service.http) as observer:
        while metrics_text.Metrics.of(observer).value("weir_waiters") < count:
            if time.monotonic() > deadline:
                raise AssertionError(f"there are no {count} who wait")


class Client(threading.Thread):
    """Asks until its connection ends, or until it is told to stop."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port = port
        self.stopping = threading.Event()
        self.busy = threading.Event()  # The first answer is there.
        self.answered = 0
        self.lost = []
        self.wrong = []

    def run(self):
        try:
            self.ask()
        except Exception as error:  # pylint: disable=broad-except
            self.wrong.append(repr(error))

    def is_closed(self, one):
        """Whether the service has closed the connection, as far as it is known here."""
        if not select.select([one], [], [], 0)[0]:
            return False
        try:
            return one.recv(1, socket.MSG_PEEK) == b""
        except ConnectionError:
            return True


class HttpClient(Client):
    """Several requests at a time, on one connection."""

    def __init__(self, port, depth, *, size=0):
        """`size`: of each request in bytes, at least."""
        super().__init__(port)
        self.depth, self.size = depth, size
        self.said_close = False

    def ask(self):
        body = b'{"user": "http"}'
        bare = http_wire.request("POST", "/v1/check", body, headers=[("X", "")])
        padding = [("X", "x" * max(0, self.size - len(bare)))]
        request = http_wire.request("POST", "/v1/check", body, headers=padding) * self.depth
        with http_wire.Client(self.port) as client:
            while not self.stopping.is_set():
                began = time.monotonic()
                if self.is_closed(client.socket):
                    return
                with contextlib.suppress(ConnectionError):
                    client.send(request)
                for number in range(self.depth):
                    try:
                        response = client.receive()
                    except ConnectionError:
                        if time.monotonic() - began < QUIET:
                            self.lost.append(f"{self.depth - number} of {self.depth}")
                        return
                    self.answered += 1
                    if response.status != 200:
                        self.wrong.append(repr(response))
                    if response.header("Connection") == "close":
                        self.said_close = True
                        if number + 1 < self.depth:
                            self.lost.append(f"{self.depth - number - 1} behind a close")
                        if not client.is_closed():
                            self.wrong.append("something came behind Connection: close")
                        return
                self.busy.set()


class RespClient(Client):
    """Batches, on one connection."""

    def __init__(self, port, depth, *, pause=0.0):
        super().__init__(port)
        self.depth, self.pause = depth, pause

    def ask(self):
        commands = [("PING", f"{number:05}") for number in range(self.depth)]
        batch = b"".join(resp_wire.command(*words) for words in commands)
        expected = [text for _, text in commands]
        with resp_wire.Client(self.port) as client:
            while not self.stopping.wait(self.pause):
                began = time.monotonic()
                if self.is_closed(client.socket):
                    return
                with contextlib.suppress(ConnectionError):
                    client.socket.sendall(batch)
                replies = []
                try:
                    while len(replies) < self.depth:
                        replies.append(client.receive())
                except ConnectionError:
                    pass
                self.answered += len(replies)
                if replies != expected[:len(replies)]:
                    self.wrong.append(repr(replies[:10]))
                if len(replies) < self.depth:
                    if replies or client.reader.left or time.monotonic() - began < QUIET:
                        self.lost.append(f"{self.depth - len(replies)} of {self.depth}")
                    return
                self.busy.set()


class ShortClient(Client):
    """A connection for each request."""

    def __init__(self, port):
        super().__init__(port)
        self.refused = 0

    def ask(self):
        request = http_wire.request("GET", "/healthz", headers=[("Connection", "close")])
        while not self.stopping.is_set():
            try:
                client = http_wire.Client(self.port)
            except ConnectionError:
                self.refused += 1
                return
            with client:
                try:
                    client.send(request)
                    client.receive()
                    self.answered += 1
                    self.busy.set()
                except ConnectionError as error:
                    self.lost.append(repr(error))


class Drain(unittest.TestCase):
    def start(self, *clients):
        for client in clients:
            client.start()
        for client in clients:
            self.assertTrue(client.busy.wait(daemon.PATIENCE), client.wrong)

    def finish(self, clients):
        for client in clients:
            client.stopping.set()
        for client in clients:
            client.join(daemon.PATIENCE)
            self.assertFalse(client.is_alive())
            name = type(client).__name__
            self.assertEqual((name, client.wrong), (name, []))
            self.assertEqual((name, client.lost), (name, []))
            self.assertGreater(client.answered, 0)

    def assert_nobody_listens(self, port):
        """Soon: each thread of the service closes its own door."""
        deadline = time.monotonic() + daemon.PATIENCE
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
            except ConnectionRefusedError:
                return
        self.fail("connections are still taken in")

    def test_answers_everything_at_full_load(self):
        for _ in range(3):
            with daemon.Daemon(POLICY) as service:
                http = [HttpClient(service.http, depth) for depth in (1, 1, 5, 5)]
                # Who pipelines without an end is let go on for some seconds; these end.
                resp = [RespClient(service.resp, depth) for depth in (1, 10, 100, 1000)]
                clients = [*http, *resp]
                self.start(*clients)
                # One that waits when the end comes.
                with resp_wire.Client(service.resp) as waiting:
                    self.assertTrue(resp_wire.named(waiting.call(
                        "WEIR.CHECK", "shaped", "org", "acme"))["allowed"])
                    waiting.send("WEIR.CHECK", "shaped", "org", "acme", "@wait_ms", 5000)
                    wait_for_waiters(service, 1)
                    service.tell(signal.SIGTERM)
                    for client in http:
                        client.join(daemon.PATIENCE)
                        self.assertTrue(client.said_close or client.lost or client.wrong)
                    for client in resp:
                        client.stopping.set()
                    self.assertTrue(resp_wire.named(waiting.receive())["allowed"])
                self.finish(clients)
                self.assertEqual(service.process.wait(daemon.PATIENCE), 0)

    def test_answers_a_deep_pipeline_of_http(self):
        """More than the service reads at first, in requests of which a buffer holds a whole number.
        Not more than the kernel delivers at once, which is half a receive window (32 kB): a request
        that arrives after the last answer was written is not answered."""
        for size in (128, 1024, 2048, 4096):
            with daemon.Daemon(POLICY) as service:
                clients = [HttpClient(service.http, 30_000 // size, size=size) for _ in range(3)]
                self.start(*clients)
                service.tell(signal.SIGTERM)
                for client in clients:
                    client.join(daemon.PATIENCE)
                self.finish(clients)

    def test_answers_all_who_got_in(self):
        for _ in range(3):
            with daemon.Daemon(POLICY) as service:
                clients = [ShortClient(service.http) for _ in range(8)]
                self.start(*clients)
                service.tell(signal.SIGTERM)
                for client in clients:
                    client.join(daemon.PATIENCE)
                    self.assertEqual(client.refused, 1)
                self.finish(clients)

    def test_takes_in_nobody_and_says_so(self):
        with daemon.Daemon(POLICY) as service:
            with http_wire.Client(service.http) as waiting, \
                    http_wire.Client(service.http) as keeps:
                self.assertEqual(keeps.get("/readyz").body, b"ready")
                self.assertEqual(waiting.post("/v1/check", {"org": "acme"}).status, 200)
                waiting.send(http_wire.request("POST", "/v1/check",
                                               {"org": "acme", "wait_ms": 5000}))
                wait_for_waiters(service, 1)
                after = len(service.log)
                service.tell(signal.SIGTERM)
                service.wait_for("told to stop", after=after)
                # It was told, and begins a moment later.
                while (response := keeps.get("/readyz")).header("Connection") is None:
                    self.assertIn(response.body, (b"ready", b"draining"))
                self.assertEqual((response.status, response.body), (503, b"draining"))
                self.assertEqual(response.header("Connection"), "close")
                for port in (service.http, service.resp):
                    self.assert_nobody_listens(port)
                # It waits until it is its turn, and is told that this was the last.
                response = waiting.receive()
                self.assertEqual((response.status, response.header("Connection")), (200, "close"))

    def test_ends_in_time_however_much_is_asked(self):
        """RESP has no way to say that this was the last, and some wait for longer than there is
        time: at some point there is an end, which is an answer for everybody."""
        with daemon.Daemon(POLICY) as service:
            endless = [RespClient(service.resp, depth) for depth in (1, 10, 100, 1000)]
            self.start(*endless)
            with http_wire.Client(service.http) as http, resp_wire.Client(service.resp) as resp:
                for _ in range(30):
                    self.assertEqual(http.post("/v1/check", {"org": "acme"}).status, 200)
                http.send(http_wire.request("POST", "/v1/check", {"org": "acme", "wait_ms": 60_000}))
                resp.send("WEIR.CHECK", "shaped", "org", "acme", "@wait_ms", 60_000)
                wait_for_waiters(service, 2)
                began = time.monotonic()
                service.tell(signal.SIGTERM)
                response = http.receive()
                self.assertEqual((response.status, response.json()["reason"],
                                  response.header("Connection")), (503, "overload", "close"))
                decision = resp_wire.named(resp.receive())
                self.assertEqual((decision["allowed"], decision["reason"]), (0, "overload"))
            self.assertEqual(service.process.wait(daemon.PATIENCE), 0)
            self.assertLess(time.monotonic() - began, 8)
            for client in endless:
                client.join(daemon.PATIENCE)
                self.assertEqual(client.wrong, [])
                # One that was sent at the very end may be left, but as a whole.
                self.assertIn(client.lost, ([], [f"{client.depth} of {client.depth}"]))

    def test_is_quick_when_nothing_is_asked(self):
        with daemon.Daemon(POLICY) as service:
            began = time.monotonic()
            self.assertEqual(service.terminate(), 0)
            self.assertLess(time.monotonic() - began, 1)

    def test_is_quick_when_connections_are_idle(self):
        with daemon.Daemon(POLICY) as service:
            idle = [resp_wire.Client(service.resp) for _ in range(20)]
            idle += [http_wire.Client(service.http) for _ in range(20)]
            self.assertEqual(idle[0].call("PING"), "PONG")
            self.assertEqual(idle[-1].get("/healthz").body, b"ok")
            began = time.monotonic()
            service.tell(signal.SIGTERM)
            for client in idle:
                self.assertTrue(client.is_closed())
                client.close()
            self.assertEqual(service.process.wait(daemon.PATIENCE), 0)
            self.assertLess(time.monotonic() - began, 1)

    def test_is_not_ended_by_force_if_it_is_told_twice(self):
        with daemon.Daemon(POLICY) as service:
            with resp_wire.Client(service.resp) as idle:
                self.assertEqual(idle.call("PING"), "PONG")
                for _ in range(3):
                    service.tell(signal.SIGTERM)
                self.assertTrue(idle.is_closed())
                service.tell(signal.SIGTERM)
            self.assertEqual(service.process.wait(daemon.PATIENCE), 0)

    def test_interrupts_end_it_as_well(self):
        with daemon.Daemon(POLICY) as service:
            service.tell(signal.SIGINT)
            self.assertEqual(service.process.wait(daemon.PATIENCE), 0)


class RespDrain(unittest.TestCase):
    """RESP cannot say which answer is the last. Clients that stop asking get all their answers; those
    that do not are let go on for some seconds, and then get whole answers to the last one."""

    CONNECTIONS, DEPTH = 40, 500

    def load(self, service):
        load = self.enterContext(pipelined_load.Load(service.resp, connections=self.CONNECTIONS,
                                                     depth=self.DEPTH))
        load.run(lambda: load.answered >= self.CONNECTIONS * self.DEPTH)
        self.assertFalse(load.ended)
        return load

    def check_all_answered(self, load):
        self.assertEqual(load.faults, [])
        for one in load.pipelines:
            self.assertEqual((one.name, one.answered, one.left, one.reset),
                             (one.name, one.asked, 0, False))

    def test_answers_all_that_was_asked_before(self):
        """Each connection has a full pipeline under way when the end comes, by the client's books:
        some of it is answered, some is being read, some lies in the sockets."""
        for _ in range(5):
            with daemon.Daemon(POLICY) as service:
                load = self.load(service)
                load.fill()
                began = time.monotonic()
                service.tell(signal.SIGTERM)
                under_way = sum(one.asked - one.answered for one in load.pipelines)
                self.assertEqual(under_way, self.CONNECTIONS * self.DEPTH)
                load.finish()
                self.assertEqual(service.process.wait(daemon.PATIENCE), 0)
                self.assertLess(time.monotonic() - began, 4)
                self.check_all_answered(load)

    def test_answers_all_that_was_asked_before_it_could_look(self):
        """It is stopped while all is sent, so every request lies unread in its socket when the end
        comes. That holds also if it cannot run for longer than connections may be silent: what lies
        there meanwhile counts as said."""
        for pause in (0, 0.05, 0.3):
            with daemon.Daemon(POLICY) as service:
                load = self.load(service)
                service.tell(signal.SIGSTOP)
                load.fill()
                service.tell(signal.SIGTERM)
                time.sleep(pause)
                service.tell(signal.SIGCONT)
                load.finish()
                self.assertEqual(service.process.wait(daemon.PATIENCE), 0)
                self.check_all_answered(load)

    def test_ends_with_a_whole_answer_for_who_never_stops(self):
        with daemon.Daemon(POLICY) as service:
            load = self.load(service)
            load.fill()
            before = [one.asked for one in load.pipelines]
            load.longest_pause = 0.0
            began = time.monotonic()
            service.tell(signal.SIGTERM)
            load.run(lambda: False)
            self.assertEqual(service.process.wait(daemon.PATIENCE), 0)
            took = time.monotonic() - began
            self.assertLess(took, 8)
            # Who was silent for long enough counts as one who has stopped.
            if load.longest_pause < QUIET:
                self.assertGreater(took, 4.5)
            self.assertEqual(load.faults, [])
            for one, asked in zip(load.pipelines, before):
                self.assertEqual((one.name, one.left), (one.name, 0))
                self.assertGreaterEqual(one.answered, asked)
                self.assertLessEqual(one.answered, one.written)


class Reload(unittest.TestCase):
    def test_loses_nothing(self):
        with daemon.Daemon(POLICY) as service:
            clients = [HttpClient(service.http, 1), HttpClient(service.http, 5),
                       RespClient(service.resp, 10), RespClient(service.resp, 100)]
            for client in clients:
                client.start()
            for client in clients:
                self.assertTrue(client.busy.wait(daemon.PATIENCE), client.wrong)
            for version in range(2, 8):
                # Renamed into place, so that nobody reads a half.
                text = service.policy_file.read_text(encoding="utf-8").replace(
                    f"{version - 1}M/s", f"{version}M/s")
                new = service.policy_file.with_suffix(".new")
                new.write_text(text, encoding="utf-8")
                os.replace(new, service.policy_file)
                service.tell(signal.SIGHUP)
                service.wait_for(f"version {version} is in force")
            # A broken one changes nothing.
            new.write_text("rules: nonsense\n", encoding="utf-8")
            os.replace(new, service.policy_file)
            service.tell(signal.SIGHUP)
            service.wait_for("the policy that was in force stays")
            deadline = time.monotonic() + daemon.PATIENCE
            while metrics_text.scrape(service.http).value("weir_policy_reloads_total",
                                                          result="refused") < 1:
                self.assertLess(time.monotonic(), deadline)
            metrics = metrics_text.scrape(service.http)
            self.assertEqual(metrics.value("weir_policy_version"), 7)
            self.assertEqual(metrics.value("weir_policy_reloads_total", result="applied"), 6)
            for client in clients:
                client.stopping.set()
            for client in clients:
                client.join(daemon.PATIENCE)
                self.assertEqual((client.lost, client.wrong), ([], []))
            metrics = metrics_text.scrape(service.http)
            sent = sum(client.answered for client in clients if isinstance(client, HttpClient))
            self.assertEqual(metrics.value("weir_decisions_total", rule="per-user",
                                           outcome="allowed"), sent)


if __name__ == "__main__":
    daemon.main()
