#!/usr/bin/env python3
"""gRPC on a shared store: the same verbs and answers, shared by two processes, and what is said while
the store is gone.

    grpc_store_test.py SOURCE PROGRAM [TEST...]
"""

import contextlib
import json
import pathlib
import sys
import time
import unittest

import daemon
import grpc_client
import metrics_text
from grpc_client import OK, OVER_LIMIT, Code, entries, error_of, limiter_pb2

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
import redis_servers  # pylint: disable=wrong-import-position

POLICY = """\
listen: {{ http: 127.0.0.1:0, grpc: 127.0.0.1:0 }}
store: {store}
redis: {{ timeout: {timeout} }}
manage: open
fleet_size: 1
deny: [ {{ descriptor.user: mallory }} ]
rules:
  - name: users
    match: {{ descriptor.user: present }}
    key: descriptor.user
    limit: 10/h
  - name: pages
    match: {{ descriptor.page: present }}
    key: descriptor.page
    limit: 3/h
  - name: exports
    match: {{ path: /export }}
    key: org
    limit: 2 concurrent lease 30s
  - name: lenient
    match: {{ descriptor.lenient: present }}
    key: descriptor.lenient
    limit: 1/h
    on_store_failure: open
  - name: strict
    match: {{ descriptor.strict: present }}
    key: descriptor.strict
    limit: 100/h
    on_store_failure: closed
"""


def user(name, **more):
    """A request of weir.v1 on the rule `users`."""
    return limiter_pb2.CheckRequest(descriptors=grpc_client.named({"user": name}), **more)


def wait_until_well(client):
    def asked():
        said = client.call("Peek", user("somebody"))
        return said.source == limiter_pb2.SOURCE_STORE
    redis_servers.wait_until(asked, "the store decides")


class Shared(unittest.TestCase):
    """Two processes share their limits. Each test has keys of its own."""

    @classmethod
    def setUpClass(cls):
        server = cls.enterClassContext(redis_servers.Server())
        policy = POLICY.format(store=server.url, timeout="2s")
        cls.services = [cls.enterClassContext(daemon.Daemon(policy, threads=2)) for _ in range(2)]

    def setUp(self):
        self.client, self.other = (self.enterContext(grpc_client.Client(service.grpc))
                                   for service in self.services)
        for client in (self.client, self.other):
            wait_until_well(client)
        self.me = self.id().rpartition(".")[2]

    def left(self, **values):
        said = self.other.ask("shop", entries(0, **values))
        return said.statuses[0].limit_remaining

    def test_verbs(self):
        call = self.client.call
        said = call("Check", user(self.me, cost=3))
        self.assertEqual((said.remaining, said.source), (7, limiter_pb2.SOURCE_STORE))
        self.assertEqual(self.other.call("Peek", user(self.me)).remaining, 7)
        reserved = call("Reserve", limiter_pb2.ReserveRequest(request=user(self.me, cost=5)))
        self.assertEqual(reserved.remaining, 2)
        settled = self.other.call("Commit", limiter_pb2.CommitRequest(
            reservation=reserved.reservation, cost=1))
        self.assertEqual(settled.remaining, 6)
        error = error_of(call, "Cancel", limiter_pb2.ReservationRequest(
            reservation=reserved.reservation))
        self.assertEqual(error.code(), Code.NOT_FOUND)
        for method, cost, left in (("Refund", 2, 8), ("Penalize", 7, 1), ("Reset", None, 10)):
            said = call(method, user(self.me, cost=cost, rules=["users"]))
            self.assertEqual(said.remaining, left, method)
        limit = limiter_pb2.LimitRequest(key=self.me, limit="2/h")
        self.assertEqual([client.call("Limit", limit).allowed
                          for client in (self.client, self.other, self.client)],
                         [True, True, False])
        fields = {"path": "/export", "org": self.me}
        places = [client.check(**fields).reservation for client in (self.client, self.other)]
        self.assertFalse(self.client.check(**fields).allowed)
        self.other.call("Release", limiter_pb2.ReservationRequest(reservation=places[0]))
        self.assertTrue(self.client.check(**fields).allowed)

    def test_batches(self):
        requests = [user(f"{self.me}-{number % 50}") for number in range(600)]
        said = self.client.call("CheckBatch", limiter_pb2.CheckBatchRequest(requests=requests))
        allowed = [one.allowed for one in said.decisions]
        self.assertEqual(allowed, [True] * 500 + [False] * 100)
        self.assertEqual(self.left(user=f"{self.me}-7"), 0)

    def test_several_descriptors_are_all_or_nothing(self):
        said = self.client.ask("shop", entries(user=self.me), entries(none="x"),
                               entries(2, page=self.me))
        self.assertEqual([(one.current_limit.name, one.limit_remaining) for one in said.statuses],
                         [("users", 9), ("", 0), ("pages", 1)])
        said = self.client.ask("shop", entries(user=self.me), entries(2, page=self.me))
        self.assertEqual((said.overall_code, [one.code for one in said.statuses]),
                         (OVER_LIMIT, [OK, OVER_LIMIT]))
        said = self.client.ask("shop", entries(user="mallory"), entries(page=self.me))
        self.assertEqual(said.overall_code, OVER_LIMIT)
        self.assertEqual((self.left(user=self.me), self.left(page=self.me)), (9, 1))

    def test_refunds(self):
        self.client.ask("shop", entries(6, user=self.me))
        said = self.other.ask("shop", entries(page=self.me), entries(4, user=self.me, negative=True))
        self.assertEqual([(one.current_limit.name, one.limit_remaining) for one in said.statuses],
                         [("pages", 2), ("users", 8)])
        said = self.client.ask("shop", entries(3, page=self.me),
                               entries(1, user=self.me, negative=True))
        self.assertEqual((said.overall_code, said.statuses[1].HasField("current_limit")),
                         (OVER_LIMIT, False))
        said = self.client.ask("shop", entries(1, user=self.me, negative=True))
        self.assertEqual((said.overall_code, said.statuses[0].limit_remaining), (OK, 9))
        self.assertEqual(self.left(user=self.me), 9)

    def test_overrides(self):
        mine = {"what": self.me, "limit": (3, "HOUR")}
        codes = [client.ask("shop", entries(**mine), entries(page=self.me)).overall_code
                 for client in (self.client, self.other) * 2]
        self.assertEqual(codes, [OK, OK, OK, OVER_LIMIT])
        self.assertEqual(self.left(page=self.me), 0)
        said = self.client.ask("shop", entries(what=self.me, limit=(0, "HOUR")))
        self.assertEqual(said.overall_code, OVER_LIMIT)

    def test_calls_that_come_together_are_each_answered(self):
        """A hundred at a time on one connection, of two processes, and exactly as many get through."""
        message = grpc_client.request("shop", entries(user=self.me))
        calls = [client.rls.ShouldRateLimit.future(message, timeout=daemon.PATIENCE)
                 for _ in range(100) for client in (self.client, self.other)]
        codes = [call.result().overall_code for call in calls]
        self.assertEqual(codes.count(OK), 10)

    def test_waits(self):
        limited = {"path": "/export", "org": self.me}
        places = [self.client.check(**limited).reservation for _ in range(2)]
        waits = self.client.limiter.Check.future(limiter_pb2.CheckRequest(**limited, wait_ms=20_000),
                                                 timeout=daemon.PATIENCE)
        with contextlib.suppress(grpc_client.grpc.FutureTimeoutError):
            self.fail(waits.result(timeout=0.3))
        self.other.call("Release", limiter_pb2.ReservationRequest(reservation=places[0]))
        self.assertTrue(waits.result().allowed)


class GivenUp(unittest.TestCase):
    def test_what_was_reserved_for_nobody_goes_back(self):
        """Calls are cancelled while the store is asked."""
        with redis_servers.Server() as server, \
                daemon.Daemon(POLICY.format(store=server.url, timeout="10s"), threads=1) as service, \
                grpc_client.Client(service.grpc) as client:
            wait_until_well(client)

            def count(name, **labels):
                return metrics_text.scrape(service.http).total(name, **labels)

            server.pause()
            request = limiter_pb2.ReserveRequest(request=user("ann"))
            calls = [client.limiter.Reserve.future(request) for _ in range(5)]
            redis_servers.wait_until(lambda: count("weir_store_in_flight") >= 5, "all are asked")
            for call in calls:
                call.cancel()
            redis_servers.wait_until(
                lambda: count("weir_requests_total", frontend="grpc", code="CANCELLED") == 5,
                "all are cancelled")
            server.resume()
            redis_servers.wait_until(
                lambda: client.call("Peek", user("ann")).remaining == 10, "nothing stays reserved")


class Outage(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(redis_servers.Server())
        policy = POLICY.format(store=self.server.url, timeout="100ms")
        self.service = self.enterContext(daemon.Daemon(policy, threads=1))
        self.client = self.enterContext(grpc_client.Client(self.service.grpc))
        wait_until_well(self.client)

    def test_is_answered_as_the_rules_say(self):
        reserved = self.client.call("Reserve", limiter_pb2.ReserveRequest(request=user("bob")))
        self.assertEqual(self.client.ask("shop", entries(4, user="ann")).overall_code, OK)
        self.server.kill()
        said = self.client.ask("shop", entries(user="ann"))
        self.assertEqual((said.overall_code, said.statuses[0].limit_remaining), (OK, 5))
        self.assertEqual(self.client.call("Check", user("ann")).source, limiter_pb2.SOURCE_FALLBACK)
        self.assertEqual(self.client.ask("shop", entries(5, user="ann")).overall_code, OVER_LIMIT)
        for _ in range(3):
            self.assertEqual(self.client.ask("shop", entries(lenient="x")).overall_code, OK)
        said = self.client.ask("shop", entries(strict="x"), entries(user="ann"))
        self.assertEqual((said.overall_code, [one.code for one in said.statuses]),
                         (OVER_LIMIT, [OVER_LIMIT, OK]))
        self.assertEqual(json.loads(said.raw_body)["reason"], "store_failure")
        self.assertIn("retry-after", {header.key for header in said.response_headers_to_add})
        batch = limiter_pb2.CheckBatchRequest(requests=[user("x"), user("ann", cost=5)])
        self.assertEqual([one.allowed for one in self.client.call("CheckBatch", batch).decisions],
                         [True, False])
        error = error_of(self.client.call, "Commit", limiter_pb2.CommitRequest(
            reservation=reserved.reservation))
        self.assertIn(error.code(), (Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED))
        # It is of use still.
        grpc_client.run(grpc_client.made("grpc-health-probe"),
                        f"-addr=127.0.0.1:{self.service.grpc}")
        self.server.start()
        wait_until_well(self.client)

    def test_keeps_nobody_waiting(self):
        self.server.pause()
        try:
            longest = 0
            for number in range(30):
                began = time.monotonic()
                said = self.client.ask("shop", entries(user=f"u{number}"), entries(page="x"), hits=0)
                self.assertEqual(len(said.statuses), 2)
                longest = max(longest, time.monotonic() - began)
            self.assertLess(longest, 0.2 + (1 if daemon.instrumented else 0.3))
        finally:
            self.server.resume()
        metrics = metrics_text.scrape(self.service.http)
        self.assertGreater(metrics.total("weir_fallback_decisions_total"), 0)


if __name__ == "__main__":
    daemon.main()
