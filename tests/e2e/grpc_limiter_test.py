#!/usr/bin/env python3
"""weir.v1.Limiter through grpcio: every verb, waiting, deadlines and calls that are given up.

    grpc_limiter_test.py SOURCE PROGRAM [TEST...]
"""

import contextlib
import time
import unittest

import daemon
import grpc_client
import http_wire
import metrics_text
from grpc_client import Code, error_of, limiter_pb2, named

POLICY = """\
listen: { http: 127.0.0.1:0, grpc: 127.0.0.1:0 }
manage: open
deny: [ { user: mallory } ]
allow: [ { user: root } ]
rules:
  - name: per-user
    match: { user: present }
    key: user
    limit: 10/h
  - name: exports
    match: { path: /export }
    key: org
    limit: 2 concurrent lease 30s
  - name: shaped
    match: { path: /shaped }
    key: org
    limit: 20/s burst 1
  - name: booked
    match: { path: /booked }
    key: org
    limit: 6/min burst 1
  - name: slow
    match: { path: /slow }
    key: org
    limit: 1/h
    algorithm: sliding_log
    message: Come back in an hour
  - name: by-all
    match: { header.x-a: present, cookie.b: present, query.c: present, descriptor.d: present }
    key: [header.x-a, cookie.b, query.c, descriptor.d]
    limit: 3/h
"""


class Limiter(unittest.TestCase):
    """Each test has keys of its own."""

    @classmethod
    def setUpClass(cls):
        cls.service = cls.enterClassContext(daemon.Daemon(POLICY))

    def setUp(self):
        self.client = self.enterContext(grpc_client.Client(self.service.grpc))
        self.me = self.id().rpartition(".")[2]

    def metrics(self):
        return metrics_text.scrape(self.service.http)

    def wait_for_waiters(self, count):
        deadline = time.monotonic() + daemon.PATIENCE
        with http_wire.Client(self.service.http) as observer:
            while (waits := metrics_text.Metrics.of(observer).value("weir_waiters")) != count:
                self.assertLess(time.monotonic(), deadline, f"{waits} wait, not {count}")

    def settle(self, method, reservation, **more):
        kind = limiter_pb2.CommitRequest if method == "Commit" else limiter_pb2.ReservationRequest
        return self.client.call(method, kind(reservation=reservation, **more))

    def reserve(self, cost, **more):
        request = limiter_pb2.CheckRequest(user=self.me, cost=cost)
        return self.client.call("Reserve", limiter_pb2.ReserveRequest(request=request, **more))


class Verbs(Limiter):
    def test_check_says_all_that_http_says(self):
        said = self.client.check(user=self.me, cost=3)
        with http_wire.Client(self.service.http) as http:
            peeked = http.post("/v1/peek", {"user": self.me, "cost": 3}).json()
        for name in ("allowed", "rule", "limit", "remaining", "cost"):
            self.assertEqual(getattr(said, name), peeked[name], name)
        self.assertEqual((said.remaining, said.retry_after_ms), (7, 0))
        self.assertAlmostEqual(said.reset_after_ms, 3 * 360_000, delta=2000)
        self.assertAlmostEqual(said.reset_at, time.time() + 3 * 360, delta=3)
        self.assertEqual((said.reason, said.source),
                         (limiter_pb2.REASON_OK, limiter_pb2.SOURCE_MEMORY))

    def test_a_denial_is_an_answer(self):
        self.assertTrue(self.client.check(path="/slow", org=self.me).allowed)
        said = self.client.check(path="/slow", org=self.me)
        self.assertEqual((said.allowed, said.reason, said.message, said.remaining),
                         (False, limiter_pb2.REASON_LIMITED, "Come back in an hour", 0))
        self.assertGreater(said.retry_after_ms, 3_590_000)
        never = self.client.check(user=self.me, cost=11)
        self.assertEqual((never.allowed, never.reason, never.HasField("retry_after_ms")),
                         (False, limiter_pb2.REASON_NEVER_FITS, False))
        self.assertEqual(self.client.check(user="mallory").reason, limiter_pb2.REASON_DENY_LIST)
        self.assertEqual(self.client.check(user="root").reason, limiter_pb2.REASON_ALLOW_LIST)
        nobody = self.client.check(ip="203.0.113.9")
        self.assertEqual((nobody.allowed, nobody.reason), (True, limiter_pb2.REASON_NO_RULE))

    def test_a_cost_of_zero_asks_and_one_left_out_is_one(self):
        self.assertEqual(self.client.check(user=self.me, cost=0).remaining, 10)
        self.assertEqual(self.client.check(user=self.me).remaining, 9)

    def test_every_attribute_counts(self):
        names = {"headers": "X-A", "cookies": "b", "query": "c", "descriptors": "d"}
        fields = {kind: named({name: self.me}) for kind, name in names.items()}
        self.assertEqual(self.client.check(**fields).remaining, 2)
        for kind, name in names.items():
            with self.subTest(kind):
                other = {**fields, kind: named({name: "other"})}
                self.assertEqual(self.client.check(**other).remaining, 2)
                missing = {**fields, kind: []}
                self.assertEqual(self.client.check(**missing).reason, limiter_pb2.REASON_NO_RULE)
        self.assertEqual(self.client.check(**fields).remaining, 1)

    def test_only_the_rules_that_are_named(self):
        fields = {"user": self.me, "path": "/slow", "org": self.me}
        said = self.client.check(**fields, rules=["per-user"])
        self.assertEqual((said.rule, said.remaining), ("per-user", 9))
        self.assertEqual(self.client.peek(**fields, rules=["slow"]).remaining, 1)
        error = error_of(self.client.check, **fields, rules=["per-user", "nonsense"])
        self.assertEqual(error.code(), Code.INVALID_ARGUMENT)
        self.assertIn("nonsense", error.details())
        self.assertEqual(self.client.peek(**fields, rules=["per-user"]).remaining, 9)

    def test_peek_takes_nothing(self):
        for _ in range(3):
            self.assertEqual(self.client.peek(user=self.me).remaining, 10)

    def test_a_batch_is_decided_one_by_one(self):
        requests = [limiter_pb2.CheckRequest(user=self.me, cost=4) for _ in range(3)]
        requests.append(limiter_pb2.CheckRequest(user=self.me + "-other"))
        requests.append(limiter_pb2.CheckRequest(ip="203.0.113.9"))
        said = self.client.call("CheckBatch", limiter_pb2.CheckBatchRequest(requests=requests))
        self.assertEqual([(one.allowed, one.remaining) for one in said.decisions[:4]],
                         [(True, 6), (True, 2), (False, 2), (True, 9)])
        self.assertEqual(said.decisions[4].reason, limiter_pb2.REASON_NO_RULE)
        nothing = self.client.call("CheckBatch", limiter_pb2.CheckBatchRequest())
        self.assertEqual(len(nothing.decisions), 0)

    def test_a_batch_with_one_that_is_wrong_is_not_decided(self):
        for wrong in ({"cost": -1}, {"rules": ["nonsense"]}, {"wait_ms": 5}):
            with self.subTest(wrong):
                requests = [limiter_pb2.CheckRequest(user=self.me),
                            limiter_pb2.CheckRequest(user=self.me, **wrong)]
                error = error_of(self.client.call, "CheckBatch",
                                 limiter_pb2.CheckBatchRequest(requests=requests))
                self.assertEqual(error.code(), Code.INVALID_ARGUMENT)
                self.assertTrue(error.details().startswith("requests[1]."), error.details())
        self.assertEqual(self.client.peek(user=self.me).remaining, 10)

    def test_a_batch_of_a_thousand_and_one_more(self):
        requests = [limiter_pb2.CheckRequest(user=f"{self.me}-{number}") for number in range(1000)]
        said = self.client.call("CheckBatch", limiter_pb2.CheckBatchRequest(requests=requests))
        self.assertEqual([one.remaining for one in said.decisions], [9] * 1000)
        requests.append(requests[0])
        error = error_of(self.client.call, "CheckBatch",
                         limiter_pb2.CheckBatchRequest(requests=requests))
        self.assertEqual(error.code(), Code.INVALID_ARGUMENT)
        self.assertEqual(self.client.peek(user=f"{self.me}-0").remaining, 9)

    def test_limit_brings_its_own(self):
        request = limiter_pb2.LimitRequest(key=self.me, limit="5/min burst 3", cost=2)
        said = self.client.call("Limit", request)
        self.assertEqual((said.allowed, said.limit, said.remaining), (True, 3, 1))
        self.assertFalse(self.client.call("Limit", request).allowed)
        window = limiter_pb2.LimitRequest(key=self.me, limit="5/min", algorithm="fixed_window")
        self.assertEqual(self.client.call("Limit", window).remaining, 4)
        for wrong, field in (({"limit": "5/min"}, "key"), ({"key": "k"}, "limit"),
                             ({"key": "k", "limit": "five"}, "limit"),
                             ({"key": "k", "limit": "5/min", "algorithm": "magic"}, "algorithm"),
                             ({"key": "k", "limit": "5/min", "cost": -1}, "cost")):
            with self.subTest(wrong):
                error = error_of(self.client.call, "Limit", limiter_pb2.LimitRequest(**wrong))
                self.assertEqual(error.code(), Code.INVALID_ARGUMENT)
                self.assertIn(field, error.details())

    def test_reserve_commit_and_cancel(self):
        reserved = self.reserve(5)
        self.assertEqual((reserved.remaining, bool(reserved.reservation)), (5, True))
        self.assertEqual(self.settle("Commit", reserved.reservation, cost=2).remaining, 8)
        error = error_of(self.settle, "Commit", reserved.reservation)
        self.assertEqual(error.code(), Code.NOT_FOUND)
        other = self.reserve(8)
        self.assertEqual(self.settle("Cancel", other.reservation).remaining, 8)
        kept = self.reserve(8)
        self.assertEqual(self.settle("Commit", kept.reservation).remaining, 0)
        self.assertFalse(self.reserve(1).allowed)

    def test_a_reservation_that_is_none(self):
        for text in ("", "nonsense", "0", "9" * 40):
            with self.subTest(text):
                error = error_of(self.settle, "Commit", text)
                self.assertIn(error.code(), (Code.INVALID_ARGUMENT, Code.NOT_FOUND))
        error = error_of(self.reserve, 0)
        self.assertEqual(error.code(), Code.INVALID_ARGUMENT)
        error = error_of(self.reserve, 1, ttl_ms=3_600_001)
        self.assertEqual((error.code(), "ttl_ms" in error.details()), (Code.INVALID_ARGUMENT, True))
        self.assertEqual(self.client.peek(user=self.me).remaining, 10)

    def test_release_gives_a_place_back(self):
        fields = {"path": "/export", "org": self.me}
        places = [self.client.check(**fields).reservation for _ in range(2)]
        self.assertFalse(self.client.check(**fields).allowed)
        self.assertTrue(self.settle("Release", places[0]).allowed)
        self.assertTrue(self.client.check(**fields).allowed)

    def test_refund_penalize_and_reset(self):
        self.assertEqual(self.client.check(user=self.me, cost=5).remaining, 5)
        for method, cost, left in (("Refund", 2, 7), ("Penalize", 6, 1), ("Reset", None, 10)):
            with self.subTest(method):
                said = self.client.call(method, limiter_pb2.CheckRequest(
                    user=self.me, rules=["per-user"], cost=cost))
                self.assertEqual(said.remaining, left)
                self.assertEqual(self.client.peek(user=self.me).remaining, left)

    def test_calls_that_are_not_counted_answer_as_often_as_asked(self):
        """Errors are answers, too: who gets many of them is not cut off."""
        missing = limiter_pb2.CommitRequest(reservation=self.reserve(1).reservation)
        self.client.call("Commit", missing)
        calls = [self.client.limiter.Commit.future(missing, timeout=daemon.PATIENCE)
                 for _ in range(10_000)]
        codes = {call.exception().code() for call in calls}
        self.assertEqual(codes, {Code.NOT_FOUND})


class Waiting(Limiter):
    def begin(self, *, timeout=daemon.PATIENCE, **fields):
        return self.client.limiter.Check.future(limiter_pb2.CheckRequest(**fields),
                                                timeout=timeout)

    def test_calls_wait_side_by_side_on_one_connection(self):
        """A queue in which the first waits for an hour does not hold back who comes behind."""
        self.assertTrue(self.client.check(path="/slow", org=self.me).allowed)
        stuck = self.begin(path="/slow", org=self.me, wait_ms=60_000)
        self.wait_for_waiters(1)
        began = time.monotonic()
        calls = [self.begin(path="/shaped", org=f"{self.me}-{number}", wait_ms=5000)
                 for number in range(20) for _ in range(3)]
        said = [call.result() for call in calls]
        self.assertTrue(all(one.allowed for one in said))
        # Twenty keys, each with a line of two: one after the other they would take two seconds.
        if not daemon.instrumented:
            self.assertLess(time.monotonic() - began, 1.5)
        self.assertGreater(time.monotonic() - began, 0.09)
        self.assertEqual(self.client.check(user=self.me).remaining, 9)
        self.assertFalse(stuck.done())
        stuck.cancel()
        self.wait_for_waiters(0)

    def test_a_wait_that_is_in_vain_is_denied(self):
        self.assertTrue(self.client.check(path="/slow", org=self.me).allowed)
        said = self.client.check(path="/slow", org=self.me, wait_ms=50)
        self.assertEqual((said.allowed, said.reason), (False, limiter_pb2.REASON_LIMITED))

    def test_who_gives_up_gives_the_place_back(self):
        """Three places ahead are given up; the fourth gets the turn of the first."""
        fields = {"path": "/export", "org": self.me}
        places = [self.client.check(**fields).reservation for _ in range(2)]
        first = [self.begin(**fields, wait_ms=60_000) for _ in range(3)]
        self.wait_for_waiters(3)
        last = self.begin(**fields, wait_ms=60_000)
        self.wait_for_waiters(4)
        for call in first:
            call.cancel()
        self.wait_for_waiters(1)
        self.assertTrue(self.settle("Release", places[0]).allowed)
        self.assertTrue(last.result().allowed)
        # And nothing was taken for those who left.
        self.assertTrue(self.settle("Release", places[1]).allowed)
        self.assertTrue(self.client.check(**fields).allowed)

    def test_what_was_booked_ahead_comes_back_with_the_last_in_line(self):
        fields = {"path": "/booked", "org": self.me}
        before = self.metrics().total("weir_requests_total", frontend="grpc", code="CANCELLED")
        self.assertTrue(self.client.check(**fields).allowed)
        calls = []
        for number in range(1, 5):
            calls.append(self.begin(**fields, wait_ms=60_000, timeout=60))
            self.wait_for_waiters(number)
        for left in range(3, -1, -1):
            calls.pop().cancel()
            self.wait_for_waiters(left)
            self.assertAlmostEqual(self.client.peek(**fields).reset_after_ms, (left + 1) * 10_000,
                                   delta=5000)
        after = self.metrics().total("weir_requests_total", frontend="grpc", code="CANCELLED")
        self.assertEqual(after - before, 4)

    def test_a_deadline_ends_the_wait(self):
        self.assertTrue(self.client.check(path="/slow", org=self.me).allowed)
        began = time.monotonic()
        call = self.begin(path="/slow", org=self.me, wait_ms=60_000, timeout=0.3)
        with contextlib.suppress(grpc_client.grpc.RpcError):
            self.assertFalse(call.result().allowed)  # Told in time, as it happens.
        self.assertIn(call.code(), (Code.OK, Code.DEADLINE_EXCEEDED))
        self.assertLess(time.monotonic() - began, 10)
        self.wait_for_waiters(0)

    def test_who_hangs_up_gives_the_place_back(self):
        self.assertTrue(self.client.check(path="/slow", org=self.me).allowed)
        with grpc_client.Client(self.service.grpc) as other:
            request = limiter_pb2.CheckRequest(path="/slow", org=self.me, wait_ms=60_000)
            calls = [other.limiter.Check.future(request) for _ in range(5)]
            self.wait_for_waiters(5)
        self.wait_for_waiters(0)
        self.assertEqual({call.code() for call in calls}, {Code.CANCELLED})

    def test_only_check_waits(self):
        request = limiter_pb2.CheckRequest(user=self.me, wait_ms=5)
        for method in ("Peek", "Refund", "Penalize", "Reset"):
            with self.subTest(method):
                error = error_of(self.client.call, method, request)
                self.assertEqual((error.code(), "wait_ms" in error.details()),
                                 (Code.INVALID_ARGUMENT, True))
        for wait in (-1, 86_400_001):
            error = error_of(self.client.check, user=self.me, wait_ms=wait)
            self.assertEqual(error.code(), Code.INVALID_ARGUMENT)


if __name__ == "__main__":
    daemon.main()
