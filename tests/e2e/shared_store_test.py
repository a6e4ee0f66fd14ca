#!/usr/bin/env python3
"""The service on a shared store: every verb over both protocols, processes that share their limits,
and what clients are told while the store is gone.

    shared_store_test.py SOURCE PROGRAM [TEST...]
"""

import concurrent.futures
import contextlib
import pathlib
import sys
import time
import unittest

import daemon
import http_wire
import metrics_text
import resp_wire

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
import redis_servers  # pylint: disable=wrong-import-position

POLICY = """\
store: {store}
redis: {{ timeout: {timeout} }}
manage: open
fleet_size: {fleet}
deny: [ {{ user: mallory }} ]
rules:
  - name: per-user
    match: {{ user: present }}
    key: user
    limit: 10/h
  - name: exports
    match: {{ path: /export }}
    key: org
    limit: 2 concurrent lease 30s
  - name: shaped
    match: {{ path: /shaped }}
    key: org
    limit: 20/s burst 1
  - name: lenient
    match: {{ path: /lenient }}
    key: org
    limit: 1/h
    on_store_failure: open
  - name: strict
    match: {{ path: /strict }}
    key: org
    limit: 100/h
    on_store_failure: closed
"""
SECRET = "very-secret-password"


def policy(store, *, fleet=1, timeout="2s"):
    """With so much patience, unless it is told otherwise, that a busy machine is no outage."""
    return POLICY.format(store=store, fleet=fleet, timeout=timeout)


def decision(reply):
    """Of a RESP2 array of names and values."""
    if isinstance(reply, resp_wire.ErrorReply):
        raise AssertionError(reply)
    return dict(zip(reply[::2], reply[1::2]))


def eventually(is_so, what, patience=daemon.PATIENCE):
    redis_servers.wait_until(is_so, what, patience)


class Shared(unittest.TestCase):
    """One server and one service for all tests of a class; each test has keys of its own."""

    @classmethod
    def setUpClass(cls):
        cls.clean_up = contextlib.ExitStack()
        cls.server = cls.clean_up.enter_context(redis_servers.Server())
        cls.service = cls.clean_up.enter_context(daemon.Daemon(policy(cls.server.url), threads=2))
        cls.wait_until_well(cls.service)

    @classmethod
    def tearDownClass(cls):
        cls.clean_up.close()

    @staticmethod
    def wait_until_well(service):
        with http_wire.Client(service.http) as client:
            def asked():
                return client.post("/v1/peek", {"user": "somebody"}).json()["source"] == "store"
            eventually(asked, "the store decides")

    def setUp(self):
        self.http = self.enterContext(http_wire.Client(self.service.http))
        self.resp = resp_wire.Client(self.service.resp)
        self.addCleanup(self.resp.close)
        self.me = self.id().rpartition(".")[2]

    def post(self, path, body, status=200):
        response = self.http.post(path, body)
        self.assertEqual(response.status, status, response)
        return response.json()

    def call(self, *words):
        return decision(self.resp.call(*words))


class EveryVerbOverResp(Shared):
    def test_check_and_peek(self):
        checked = self.call("WEIR.CHECK", "per-user", "user", self.me, "@cost", 3)
        self.assertEqual((checked["allowed"], checked["remaining"], checked["source"]),
                         (1, 7, "store"))
        peeked = self.call("WEIR.PEEK", "*", "user", self.me)
        self.assertEqual((peeked["remaining"], peeked["source"]), (7, "store"))
        denied = self.call("WEIR.CHECK", "*", "user", self.me, "@cost", 8)
        self.assertEqual((denied["allowed"], denied["reason"]), (0, "limited"))
        never = self.call("WEIR.CHECK", "*", "user", self.me, "@cost", 11)
        self.assertEqual((never["allowed"], never["reason"]), (0, "never_fits"))
        listed = self.call("WEIR.CHECK", "*", "user", "mallory")
        self.assertEqual((listed["allowed"], listed["reason"]), (0, "deny_list"))

    def test_reserve_commit_cancel(self):
        reserved = self.call("WEIR.RESERVE", "per-user", "user", self.me, "@cost", 5)
        self.assertEqual(reserved["remaining"], 5)
        settled = self.call("WEIR.COMMIT", reserved["reservation"], "@cost", 2)
        self.assertEqual((settled["remaining"], settled["source"]), (8, "store"))
        again = self.resp.call("WEIR.COMMIT", reserved["reservation"])
        self.assertIsInstance(again, resp_wire.ErrorReply)
        self.assertTrue(again.startswith("ERR "), again)
        other = self.call("WEIR.RESERVE", "per-user", "user", self.me, "@cost", 8)
        self.assertEqual(other["remaining"], 0)
        self.assertEqual(self.call("WEIR.CANCEL", other["reservation"])["remaining"], 8)
        kept = self.call("WEIR.RESERVE", "per-user", "user", self.me, "@cost", 8)
        self.assertEqual(self.call("WEIR.COMMIT", kept["reservation"])["remaining"], 0)

    def test_release(self):
        words = ("WEIR.CHECK", "exports", "path", "/export", "org", self.me)
        leases = [self.call(*words)["reservation"] for _ in range(2)]
        self.assertEqual(self.call(*words)["allowed"], 0)
        self.assertEqual(self.call("WEIR.RELEASE", leases[0])["reason"], "ok")
        self.assertEqual(self.call(*words)["allowed"], 1)

    def test_refund_penalize_reset(self):
        self.call("WEIR.CHECK", "*", "user", self.me, "@cost", 6)
        who = ("per-user", "user", self.me)
        self.assertEqual(self.call("WEIR.REFUND", *who, "@cost", 2)["remaining"], 6)
        self.assertEqual(self.call("WEIR.PENALIZE", *who, "@cost", 3)["remaining"], 3)
        self.assertEqual(self.call("WEIR.RESET", *who)["remaining"], 10)

    def test_limit_and_throttle(self):
        self.assertEqual(self.call("WEIR.LIMIT", self.me, "5/h", "@cost", 2)["remaining"], 3)
        self.assertEqual(self.call("WEIR.LIMIT", self.me, "5/h", "sliding_log")["remaining"], 4)
        cell = ("CL.THROTTLE", self.me + "-cell", 2, 1, 3600)
        self.assertEqual(self.resp.call(*cell), [0, 3, 2, -1, 3600])
        self.assertEqual(self.resp.call(*cell, 0)[:3], [0, 3, 2])
        self.assertEqual(self.resp.call(*cell, 2)[:3], [0, 3, 0])
        self.assertEqual(self.resp.call(*cell)[:3], [1, 3, 0])
        self.assertEqual(self.resp.call(*cell, -3)[:3], [0, 3, 3])
        crab = ("THROTTLE", self.me + "-crab", 3, 1, 3600)
        self.assertEqual(self.resp.call(*crab, 3)[:3], [1, 3, 0])
        self.assertEqual(self.resp.call(*crab)[:3], [0, 3, 0])
        beyond = self.resp.call("WEIR.LIMIT", self.me, "5000000/s")
        self.assertIsInstance(beyond, resp_wire.ErrorReply)

    def test_waits_for_its_turn(self):
        words = ("WEIR.CHECK", "shaped", "path", "/shaped", "org", self.me)
        self.assertEqual(self.call(*words)["allowed"], 1)
        began = time.monotonic()
        waited = self.call(*words, "@wait_ms", 5000)
        self.assertEqual(waited["allowed"], 1)
        self.assertGreater(time.monotonic() - began, 0.01)

    def test_a_pipeline_keeps_its_order(self):
        commands = []
        for i in range(500):
            commands.append(("WEIR.LIMIT", f"{self.me}-{i}", f"{i + 1}/h"))
            commands.append(("ECHO", i))
            commands.append(("CL.THROTTLE", f"{self.me}-{i}-cell", i, 1, 60))
        replies = self.resp.pipeline(commands)
        for i in range(500):
            limited, echo, cell = replies[3 * i:3 * i + 3]
            self.assertEqual(decision(limited)["limit"], i + 1)
            self.assertEqual(echo, str(i))
            self.assertEqual(cell[:2], [0, i + 1])

    def test_resp3(self):
        self.resp.call("HELLO", 3)
        checked = self.resp.call("WEIR.CHECK", "*", "user", self.me)
        self.assertEqual((checked["allowed"], checked["source"]), (True, "store"))


class EveryVerbOverHttp(Shared):
    def test_check_and_peek(self):
        response = self.http.post("/v1/check", {"user": self.me, "cost": 3})
        self.assertEqual(response.status, 200)
        self.assertEqual((response.json()["remaining"], response.json()["source"]), (7, "store"))
        self.assertEqual(response.header("X-RateLimit-Remaining"), "7")
        self.assertEqual(response.header("RateLimit-Policy"), '"per-user";q=10;w=3600')
        self.assertEqual(self.post("/v1/peek", {"user": self.me})["remaining"], 7)
        denied = self.http.post("/v1/check", {"user": self.me, "cost": 8})
        self.assertEqual((denied.status, denied.json()["reason"]), (429, "limited"))
        self.assertIsNotNone(denied.header("Retry-After"))
        self.post("/v1/check", {"user": "mallory"}, 403)
        self.post("/v1/check", {"rules": ["nobody"]}, 400)

    def test_batch(self):
        items = [{"user": f"{self.me}-{i % 7}"} for i in range(70)]
        decisions = self.post("/v1/check/batch", items)
        self.assertEqual([one["remaining"] for one in decisions], [9 - i // 7 for i in range(70)])
        self.assertEqual(self.post("/v1/check/batch", []), [])
        many = self.post("/v1/check/batch", [{"user": f"{self.me}-{i}-b"} for i in range(1000)])
        self.assertEqual({(one["remaining"], one["source"]) for one in many}, {(9, "store")})

    def test_limit(self):
        body = {"key": self.me, "limit": "2/h"}
        response = self.http.post("/v1/limit", body)
        self.assertEqual((response.status, response.json()["remaining"]), (200, 1))
        self.assertEqual(response.header("RateLimit-Policy"), '"default";q=2;w=3600')
        self.post("/v1/limit", body)
        self.post("/v1/limit", body, 429)
        self.post("/v1/limit", {"key": self.me, "limit": "5000000/s"}, 400)

    def test_reserve_commit_cancel(self):
        reserved = self.post("/v1/reserve", {"user": self.me, "cost": 5})
        settled = self.post("/v1/commit", {"reservation": reserved["reservation"], "cost": 2})
        self.assertEqual(settled["remaining"], 8)
        self.post("/v1/commit", {"reservation": reserved["reservation"]}, 404)
        other = self.post("/v1/reserve", {"user": self.me, "cost": 8})
        self.assertEqual(self.post("/v1/cancel", {"reservation": other["reservation"]})["remaining"],
                         8)

    def test_release(self):
        body = {"path": "/export", "org": self.me}
        lease = self.post("/v1/check", body)["reservation"]
        self.post("/v1/check", body)
        self.post("/v1/check", body, 429)
        self.post("/v1/release", {"reservation": lease})
        self.post("/v1/check", body)

    def test_refund_penalize_reset(self):
        body = {"user": self.me, "rules": ["per-user"], "cost": 6}
        self.post("/v1/check", body)
        self.assertEqual(self.post("/v1/refund", body | {"cost": 2})["remaining"], 6)
        self.assertEqual(self.post("/v1/penalize", body | {"cost": 3})["remaining"], 3)
        self.assertEqual(self.post("/v1/reset", body)["remaining"], 10)

    def test_a_pipeline_keeps_its_order(self):
        requests = []
        for i in range(200):
            limit = {"key": f"{self.me}-{i}", "limit": f"{i + 1}/h"}
            requests.append(http_wire.request("POST", "/v1/limit", limit))
            requests.append(http_wire.request("POST", "/v1/check", {"user": f"{self.me}-{i}"}))
            requests.append(http_wire.request("GET", "/healthz"))
        self.http.send(b"".join(requests))
        for i in range(200):
            self.assertEqual(self.http.receive().json()["limit"], i + 1)
            self.assertEqual(self.http.receive().json()["remaining"], 9)
            self.assertEqual(self.http.receive().body, b"ok")

    def test_a_peer_that_sends_no_more_is_answered(self):
        self.http.send(http_wire.request("POST", "/v1/check", {"user": self.me}))
        self.http.socket.shutdown(1)
        self.assertEqual(self.http.receive().json()["source"], "store")
        self.assertTrue(self.http.is_closed())

    def test_metrics(self):
        self.post("/v1/check", {"user": self.me})
        metrics = metrics_text.Metrics.of(self.http)
        families = metrics.families
        endpoint = (("endpoint", self.server.address),)
        self.assertGreater(families["weir_store_seconds"].samples[
            ("weir_store_seconds_count", endpoint)], 0)
        self.assertEqual(families["weir_breaker_state"].samples[("weir_breaker_state", endpoint)], 0)
        self.assertEqual(families["weir_degraded_seconds"].samples[("weir_degraded_seconds", ())], 0)
        self.assertEqual(families["weir_fleet_size"].samples[("weir_fleet_size", ())], 1)
        self.assertIn(("weir_store_in_flight", endpoint), families["weir_store_in_flight"].samples)

    def test_every_key_ends_by_itself(self):
        self.post("/v1/check", {"user": self.me})
        self.post("/v1/limit", {"key": self.me, "limit": "2/h"})
        keys = self.server.call("KEYS", "weir1:*")
        self.assertTrue(keys)
        with self.server.connect() as client:
            for key in keys:
                self.assertNotEqual(client.call("PTTL", key), -1, key)


class SeveralProcesses(unittest.TestCase):
    def test_share_their_limits(self):
        with redis_servers.Server() as server, contextlib.ExitStack() as services:
            running = [services.enter_context(daemon.Daemon(policy(server.url, fleet=2), threads=1))
                       for _ in range(2)]
            for service in running:
                Shared.wait_until_well(service)

            def hammer(service):
                with http_wire.Client(service.http) as client:
                    return sum(client.post("/v1/check", {"user": "ann"}).status == 200
                               for _ in range(20))
            with concurrent.futures.ThreadPoolExecutor() as pool:
                admitted = list(pool.map(hammer, running * 2))
            self.assertEqual(sum(admitted), 10, admitted)

    def test_reserve_here_and_commit_there(self):
        with redis_servers.Server() as server, \
                daemon.Daemon(policy(server.url, fleet=2), threads=1) as one, \
                daemon.Daemon(policy(server.url, fleet=2), threads=1) as other:
            for service in (one, other):
                Shared.wait_until_well(service)
            reserved = http_wire.once(one.http, "POST", "/v1/reserve", {"user": "ann", "cost": 5})
            settled = http_wire.once(other.http, "POST", "/v1/commit",
                                     {"reservation": reserved.json()["reservation"], "cost": 1})
            self.assertEqual((settled.status, settled.json()["remaining"]), (200, 9))


class WithoutItsStore(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(redis_servers.Server(password=SECRET))
        self.service = self.enterContext(daemon.Daemon(policy(self.server.url, timeout="100ms"), threads=1))
        Shared.wait_until_well(self.service)
        self.http = self.enterContext(http_wire.Client(self.service.http))
        self.resp = resp_wire.Client(self.service.resp)
        self.addCleanup(self.resp.close)

    def check(self, **body):
        return self.http.post("/v1/check", body)

    def ready(self):
        response = self.http.get("/readyz")
        return response.status, response.body

    def metric(self, name, **labels):
        family = metrics_text.Metrics.of(self.http).families[name]
        return sum(value for (_, its), value in family.samples.items()
                   if labels.items() <= dict(its).items())

    def test_decides_as_its_rules_say_and_heals(self):
        reserved = self.http.post("/v1/reserve", {"user": "bob", "cost": 2}).json()["reservation"]
        self.assertEqual(self.check(user="ann", cost=4).json()["source"], "store")
        self.assertEqual(self.ready(), (200, b"ready"))
        told = len(self.service.log)
        self.server.kill()
        self._check_static()
        self._check_open_and_closed()
        self._check_settling(reserved)
        self.assertEqual(self.ready(), (200, b"degraded"))
        self.assertGreater(self.metric("weir_degraded_seconds"), 0)
        for mode in ("open", "closed", "static"):
            self.assertGreater(self.metric("weir_fallback_decisions_total", mode=mode), 0, mode)
        self.assertGreater(self.metric("weir_store_errors_total"), 0)
        self.server.start()

        def is_well():
            return self.check(user="carl", cost=0).json()["source"] == "store"
        eventually(is_well, "the store decides again")
        eventually(lambda: self.ready() == (200, b"ready"), "ready without a word")
        self.assertEqual(self.metric("weir_degraded_seconds"), 0)
        self.assertEqual(self.metric("weir_breaker_state"), 0)
        # One line when it began, one when it ended, however much was asked meanwhile.
        self.service.wait_for("the store answers again", after=told)
        for words in ("the store failed", "the store answers again"):
            lines = [line for line in self.service.log[told:] if words in line]
            self.assertEqual(len(lines), 1, self.service.log)
            self.assertIn(" warning ", lines[0])

    def _check_static(self):
        # It takes over warm: four of ten are gone already.
        response = self.check(user="ann", cost=1)
        self.assertEqual((response.status, response.json()["source"]), (200, "fallback"), response)
        self.assertEqual(response.json()["remaining"], 5)
        self.assertEqual(self.check(user="ann", cost=6).status, 429)
        over_resp = decision(self.resp.call("WEIR.CHECK", "per-user", "user", "ann", "@cost", 5))
        self.assertEqual((over_resp["allowed"], over_resp["source"]), (1, "fallback"))
        batch = self.http.post("/v1/check/batch", [{"user": "x"}, {"user": "ann"}]).json()
        self.assertEqual([one["allowed"] for one in batch], [True, False])
        self.assertEqual(self.resp.call("CL.THROTTLE", "k", 2, 1, 3600)[:3], [0, 3, 2])

    def _check_open_and_closed(self):
        for _ in range(3):
            response = self.check(path="/lenient", org="o")
            self.assertEqual((response.status, response.json()["source"]), (200, "open"))
        response = self.check(path="/strict", org="o")
        self.assertEqual(response.status, 429)
        self.assertEqual((response.json()["reason"], response.json()["source"]),
                         ("store_failure", "closed"))
        self.assertGreaterEqual(int(response.header("Retry-After")), 1)
        over_resp = decision(self.resp.call("WEIR.CHECK", "strict", "path", "/strict", "org", "o"))
        self.assertEqual((over_resp["allowed"], over_resp["reason"]), (0, "store_failure"))

    def _check_settling(self, reservation):
        response = self.http.post("/v1/commit", {"reservation": reservation})
        self.assertIn(response.status, (503, 504), response)
        self.assertIn(response.json()["error"], ("overloaded", "deadline"))
        said = self.resp.call("WEIR.CANCEL", reservation)
        self.assertIsInstance(said, resp_wire.ErrorReply)
        self.assertIn(said.partition(" ")[0], ("BUSY", "TIMEOUT"))

    def test_nobody_waits_for_long_while_it_hangs(self):
        self.server.pause()
        try:
            longest = 0
            for i in range(50):
                began = time.monotonic()
                self.assertEqual(self.check(user=f"u{i}").json()["source"], "fallback")
                longest = max(longest, time.monotonic() - began)
            self.assertLess(longest, 0.1 + (1 if daemon.instrumented else 0.1))
        finally:
            self.server.resume()

    def test_ends_in_good_order_while_it_hangs(self):
        self.server.pause()
        try:
            self.http.send(http_wire.request("POST", "/v1/check", {"user": "ann"}) * 5)
            self.service.tell(15)
            for _ in range(5):
                self.assertEqual(self.http.receive().json()["source"], "fallback")
        finally:
            self.server.resume()

    def test_never_tells_the_password(self):
        self.server.kill()
        self.check(user="ann")
        self.assertNotIn(SECRET, "\n".join(self.service.log))
        self.assertNotIn(SECRET, metrics_text.Metrics.of(self.http).text)
        self.assertIn(f"store address=redis://{self.server.address}", "\n".join(self.service.log))


class BeforeItsStore(unittest.TestCase):
    def test_starts_serves_and_heals(self):
        with redis_servers.Server() as server:
            server.kill()
            with daemon.Daemon(policy(server.url), threads=2) as service, \
                    http_wire.Client(service.http) as client:
                first = client.post("/v1/check", {"user": "ann"})
                self.assertEqual((first.status, first.json()["source"]), (200, "fallback"))
                self.assertEqual(client.get("/readyz").body, b"degraded")
                server.start()
                Shared.wait_until_well(service)


if __name__ == "__main__":
    daemon.main()
