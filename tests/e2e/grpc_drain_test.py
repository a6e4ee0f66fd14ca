#!/usr/bin/env python3
"""The end of the service while gRPC clients keep it busy: no call that it took up is lost.

    grpc_drain_test.py SOURCE PROGRAM [TEST...]

Clients keep books: what they sent, what was answered, and up to which call GOAWAY says that calls were
taken up. Whatever is above that may be sent elsewhere without harm. The store keeps books, too: what
was charged must be just what was answered.
"""

import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import daemon
import grpc_client
import h2_wire
import http_wire
import metrics_text
from grpc_client import OK, Code, entries, limiter_pb2

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
import redis_servers  # pylint: disable=wrong-import-position

POLICY = """\
listen: { http: 127.0.0.1:0, grpc: 127.0.0.1:0 }
STORE
rules:
  - name: users
    match: { descriptor.user: present }
    key: descriptor.user
    limit: 1000M/365day
    algorithm: fixed_window
  - name: slow
    match: { org: present }
    key: org
    limit: 1/s burst 1
"""
IN_MEMORY = POLICY.replace("STORE\n", "")
LAST = 2**31 - 1


def asks(name):
    return grpc_client.request("shop", entries(user=name)).SerializeToString()


class Client(threading.Thread):
    """Asks until its connection ends."""

    def __init__(self, port, name):
        super().__init__(daemon=True)
        self.port, self.name_asked = port, name
        self.busy = threading.Event()
        self.answered = 0
        self.wrong = []

    def run(self):
        try:
            self.ask()
        except Exception as error:  # pylint: disable=broad-except
            self.wrong.append(repr(error))


class RawClient(Client):
    """Several calls at a time. `polite`: begins none once it was told that there will be an end."""

    def __init__(self, port, name, depth, *, polite):
        super().__init__(port, name)
        self.depth, self.polite = depth, polite
        self.goaways = []

    def ask(self):
        message, stream = asks(self.name_asked), 1
        with h2_wire.Connection(self.port) as one:
            self.goaways = one.goaways
            open_streams = []
            while not one.is_closed and not (self.polite and one.goaways):
                open_streams = range(stream, stream + 2 * self.depth, 2)
                one.send(b"".join(h2_wire.call(number, h2_wire.RLS, message)
                                  for number in open_streams))
                stream = open_streams[-1] + 2
                for number in open_streams:
                    self.note(one, number)
                self.busy.set()
            one.drain()

    def note(self, one, number):
        answer = one.answer(number)
        if answer.ended and answer.grpc_status == 0:
            self.answered += 1
            one.answers.pop(number)
        elif not one.goaways or number <= one.goaways[-1][0]:
            self.wrong.append(f"{number} is lost: {answer.grpc_status} {answer.reset} "
                              f"{one.goaways}")


class GrpcioClient(Client):
    def ask(self):
        message = grpc_client.request("shop", entries(user=self.name_asked))
        with grpc_client.Client(self.port) as client:
            while True:
                calls = [client.rls.ShouldRateLimit.future(message, timeout=daemon.PATIENCE)
                         for _ in range(20)]
                codes = [call.code() for call in calls]
                good = codes.count(Code.OK)
                self.answered += good
                self.wrong += [str(code) for code in codes
                               if code not in (Code.OK, Code.UNAVAILABLE)]
                if good < len(calls):
                    return
                self.busy.set()


class H2load(Client):
    def ask(self):
        message = asks(self.name_asked)
        with tempfile.NamedTemporaryFile() as body:
            body.write(len(message).to_bytes(5, "big") + message)
            body.flush()
            ran = subprocess.Popen(
                ["h2load", "-n", "5000000", "-c", "4", "-m", "20", "-t", "1", "-d", body.name, "-H",
                 "content-type: application/grpc", "-H", "te: trailers",
                 f"http://127.0.0.1:{self.port}{h2_wire.RLS}"], stdout=subprocess.PIPE, text=True)
            with grpc_client.Client(self.port) as client:
                asked = grpc_client.named({"user": self.name_asked})
                redis_servers.wait_until(
                    lambda: (said := client.peek(descriptors=asked)).remaining < said.limit,
                    "it asks")
            self.busy.set()
            said, _ = ran.communicate(timeout=2 * daemon.PATIENCE)
        self.answered = int(re.search(r"(\d+) succeeded", said)[1])


class Drain(unittest.TestCase):
    def end(self, service, clients):
        for client in clients:
            client.start()
        for client in clients:
            self.assertTrue(client.busy.wait(daemon.PATIENCE), client.wrong)
        time.sleep(0.3)  # In the middle of it.
        began = time.monotonic()
        service.tell(signal.SIGTERM)
        for client in clients:
            client.join(2 * daemon.PATIENCE)
            self.assertFalse(client.is_alive())
            self.assertEqual((type(client).__name__, client.wrong), (type(client).__name__, []))
        self.assertEqual(service.process.wait(daemon.PATIENCE), 0)
        return time.monotonic() - began

    def test_loses_no_call_that_was_taken_up(self):
        for _ in range(3):
            with daemon.Daemon(IN_MEMORY) as service:
                clients = [RawClient(service.grpc, f"{depth}", depth, polite=polite)
                           for depth in (1, 7, 100) for polite in (True, False)]
                took = self.end(service, clients)
                for client in clients:
                    self.assertGreater(client.answered, 0)
                    # First that there will be an end, then which call was the last.
                    self.assertEqual(client.goaways[0], (LAST, 0))
                    self.assertTrue(all(code == 0 for _, code in client.goaways))
                    self.assertLess(client.goaways[-1][0], LAST)
                self.assertLess(took, 5)

    def test_charges_what_it_answers(self):
        with redis_servers.Server() as server:
            policy = POLICY.replace("STORE", f"store: {server.url}\nredis: {{ timeout: 5s }}")
            with daemon.Daemon(policy) as service:
                with grpc_client.Client(service.grpc) as client:
                    redis_servers.wait_until(
                        lambda: client.check(descriptors=grpc_client.named({"user": "x"})).source
                        == limiter_pb2.SOURCE_STORE, "the store decides")
                clients = [RawClient(service.grpc, "raw-1", 1, polite=False),
                           RawClient(service.grpc, "raw-50", 50, polite=False),
                           RawClient(service.grpc, "raw-polite", 50, polite=True),
                           GrpcioClient(service.grpc, "grpcio"),
                           H2load(service.grpc, "h2load")]
                self.end(service, clients)
            with daemon.Daemon(policy) as service, grpc_client.Client(service.grpc) as client:
                for one in clients:
                    asked = grpc_client.named({"user": one.name_asked})

                    def left():
                        said = client.peek(descriptors=asked)
                        return said.source == limiter_pb2.SOURCE_STORE and said
                    said = redis_servers.wait_until(left, "the store decides")
                    self.assertEqual((one.name_asked, said.limit - said.remaining),
                                     (one.name_asked, one.answered))
                    self.assertGreater(one.answered, 0)

    def test_answers_those_who_wait(self):
        with daemon.Daemon(IN_MEMORY) as service, grpc_client.Client(service.grpc) as client, \
                http_wire.Client(service.http) as http:
            self.assertTrue(client.check(org="a").allowed)
            calls = [client.limiter.Check.future(limiter_pb2.CheckRequest(org="a", wait_ms=60_000),
                                                 timeout=60) for _ in range(20)]
            redis_servers.wait_until(
                lambda: metrics_text.Metrics.of(http).value("weir_waiters") == 20, "all wait")
            began = time.monotonic()
            service.tell(signal.SIGTERM)
            said = [call.result() for call in calls]
            self.assertEqual(service.process.wait(daemon.PATIENCE), 0)
            self.assertLess(time.monotonic() - began, 8)
            # Some get their turn meanwhile; those who would have to wait for longer are told.
            allowed = [one for one in said if one.allowed]
            denied = {one.reason for one in said if not one.allowed}
            self.assertGreater(len(allowed), 2)
            self.assertEqual(denied, {limiter_pb2.REASON_OVERLOAD})

    def test_waits_for_a_call_that_is_on_its_way(self):
        """From far away, or for an answer that its client takes slowly: GOAWAY said that it counts."""
        with daemon.Daemon(IN_MEMORY) as service, h2_wire.Connection(service.grpc) as one:
            message = h2_wire.message(asks("far"))
            one.send(h2_wire.head(1, h2_wire.fields(h2_wire.RLS))
                     + h2_wire.frame(h2_wire.DATA, 0, 1, message[:10]))
            service.tell(signal.SIGTERM)
            frames = one.frames()
            while not (one.goaways and one.goaways[-1][0] == 1):
                one.note(*next(frames))
            time.sleep(0.4)  # Much longer than one who is quiet is waited for.
            one.send(h2_wire.frame(h2_wire.DATA, h2_wire.END_STREAM, 1, message[10:]))
            self.assertEqual(one.answer(1).trailers["grpc-status"], "0")
            self.assertEqual(service.process.wait(daemon.PATIENCE), 0)

    def test_is_quick_when_connections_are_idle(self):
        with daemon.Daemon(IN_MEMORY) as service:
            idle = [h2_wire.Connection(service.grpc) for _ in range(10)]
            client = self.enterContext(grpc_client.Client(service.grpc))
            self.assertEqual(client.ask("shop", entries(user="a")).overall_code, OK)
            began = time.monotonic()
            service.tell(signal.SIGTERM)
            for one in idle:
                self.assertTrue(one.drain().goaways)
                one.close()
            self.assertEqual(service.process.wait(daemon.PATIENCE), 0)
            self.assertLess(time.monotonic() - began, 2)


if __name__ == "__main__":
    daemon.main()
