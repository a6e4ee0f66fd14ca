#!/usr/bin/env python3
"""Forward-auth from outside, asked directly: the test says that it is a proxy.

    forward_auth_test.py SOURCE PROGRAM [TEST...]
"""

import pathlib
import sys
import time
import unittest

import daemon
import http_wire
from gateway_checks import FORGED, POLICY

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
import redis_servers  # pylint: disable=wrong-import-position


def auth(address, below="", method="GET", headers=(), **more):
    return http_wire.once(address, method, "/v1/auth" + below, headers=list(dict(headers).items()),
                          **more)


def left(response):
    return response.header("RateLimit")


class Directly(unittest.TestCase):
    """Without a proxy; the test says it is one."""

    def test_allows_and_denies_by_status_and_headers(self):
        with daemon.Daemon(POLICY) as running:
            told = {"X-Forwarded-Method": "POST", "X-Forwarded-Uri": "/login?next=/",
                    "X-Forwarded-For": "198.51.100.1"}
            for _ in range(2):
                response = auth(running.http, headers=told)
                self.assertEqual((response.status, response.body), (200, b""))
                self.assertEqual(response.header("Content-Length"), "0")
            for query, status in (("", 429), ("?deny_status=403", 403), ("?deny_status=204", 429)):
                response = auth(running.http, query, headers=told)
                self.assertEqual(response.status, status)
                self.assertEqual(response.header("X-Weir-Reason"), "limited")
                self.assertGreaterEqual(int(response.header("Retry-After")), 1)
                self.assertEqual(response.header("Cache-Control"), "no-store")
                self.assertTrue(left(response).startswith('"login";r=0;t='))
                self.assertEqual(response.json()["message"], "Too often")
            other = auth(running.http, headers={**told, "X-Forwarded-For": "198.51.100.2"})
            self.assertEqual(other.status, 200)

    def test_nobody_else_is_believed(self):
        policy = POLICY.replace("trusted_proxies: [127.0.0.1]", "trusted_proxies: [192.0.2.1]")
        with daemon.Daemon(policy) as running:
            for count in range(1, 4):
                response = auth(running.http, "/other", headers=FORGED)
                self.assertEqual(left(response).partition(";t")[0], f'"per-ip";r={1000 - count}')
            for _ in range(2):
                self.assertEqual(auth(running.http, "/login", "POST", FORGED).status, 200)
            self.assertEqual(auth(running.http, "/login", "POST", FORGED).status, 429)
            self.assertEqual(auth(running.http, "/secret/x", headers=FORGED).status, 403)
            user = auth(running.http, headers={"X-User-Id": "mallory"})
            self.assertEqual(user.status, 200)

    def test_a_proxy_that_nobody_knows_is_told_of_in_the_log(self):
        with daemon.Daemon(POLICY.replace("trusted_proxies: [127.0.0.1]\n", "")) as running:
            self.assertEqual(auth(running.http, headers={"X-Forwarded-For": "1.2.3.4"}).status, 200)
            running.wait_for("trusts no proxy")

    def test_who_is_trusted_can_change_while_connections_stay(self):
        with daemon.Daemon(POLICY) as running, http_wire.Client(running.http) as client:
            secret = [("X-Forwarded-Uri", "/secret/x")]
            self.assertEqual(client.get("/v1/auth", headers=secret).status, 403)
            for proxy, status in (("192.0.2.1", 200), ("127.0.0.1", 403)):
                lines = len(running.log)
                running.policy_file.write_text(
                    running.policy_file.read_text(encoding="utf-8")
                    .replace("trusted_proxies: [127.0.0.1]", "trusted_proxies: [192.0.2.1]")
                    .replace("[192.0.2.1]", f"[{proxy}]"), encoding="utf-8")
                running.wait_for("policy", after=lines)
                deadline = time.monotonic() + daemon.PATIENCE
                while client.get("/v1/auth", headers=secret).status != status:
                    self.assertLess(time.monotonic(), deadline)

    def test_hostile_requests_are_answered_and_change_nothing(self):
        with daemon.Daemon(POLICY) as running:
            twice = [("X-Forwarded-Uri", "/a"), ("X-Forwarded-Uri", "/b")]
            cases = [
                ([("X-Forwarded-Uri", "/" + "a" * 20000)], 431),
                ([("X-Forwarded-Uri", "/" + "a" * 12000)], 200),
                ([("X-Forwarded-Uri", "/" + "../" * 4000)], 200),
                ([("X-Forwarded-Uri", "/" + "%2e%2e/" * 1500)], 200),
                ([("X-Forwarded-Uri", "/?" + "a=b&" * 3000)], 200),
                ([("X-Forwarded-Uri", "/a%0d%0aSet-Cookie:%20x=y")], 200),
                ([("X-Forwarded-Uri", "secret/x")], 403),
                ([("X-Forwarded-Uri", "//secret/x")], 403),
                ([("X-Forwarded-Uri", "/a/%2e%2e/secret/x")], 403),
                ([("X-Forwarded-Uri", "http://other/secret/x")], 403),
                ([("X-Forwarded-Uri", "//evil/secret/x")], 200),
                ([("X-Forwarded-Uri", "")], 200),
                ([("X-Forwarded-Method", "")], 200),
                ([("X-Forwarded-Method", "GET POST")], 400),
                ([("X-Forwarded-Method", "G" * 5000)], 200),
                ([("X-Forwarded-Uri", "\xff\xfe")], 200),
                (twice, 400),
                ([("X-Forwarded-Uri", "/a"), ("X-Original-URI", "/b")], 400),
                ([("X-Forwarded-For", "junk, \xff, ,")], 200),
                ([("X-Forwarded-For", "1.2.3.4," * 1500)], 200),
                ([("Cookie", "a=b; " * 2000)], 200),
                ([(f"X-Header-{i}", "x") for i in range(90)], 200),
                ([(f"X-Header-{i}", "x") for i in range(200)], 431),
            ]
            for headers, status in cases:
                with self.subTest(str(headers)[:60]):
                    raw = b"GET /v1/auth HTTP/1.1\r\nHost: a\r\n" + b"".join(
                        f"{name}: {value}\r\n".encode("latin-1") for name, value in headers) + b"\r\n"
                    with http_wire.Client(running.http) as client:
                        client.send(raw)
                        response = client.receive()
                    self.assertEqual(response.status, status, response)
                    self.assertNotIn("set-cookie", response.names)
            with http_wire.Client(running.http) as client:
                client.send(b"CONNECT /v1/auth HTTP/1.1\r\nHost: a\r\n\r\n")
                self.assertEqual(client.receive().status, 501)
            with http_wire.Client(running.http) as client:
                client.send(b"GET /v1/auth HTTP/1.1\r\nHost: a\r\n"
                            b"X-Forwarded-Uri: /a\r\n /secret/x\r\n\r\n")
                self.assertEqual(client.receive().status, 400)
            self.assertTrue(running.is_alive())

    def test_a_pipeline_of_all_kinds_is_answered_in_its_order(self):
        with daemon.Daemon(POLICY) as running, http_wire.Client(running.http) as client:
            check = http_wire.request("POST", "/v1/check", {"ip": "198.51.100.9"})
            ask = http_wire.request("PUT", "/v1/auth/x?y=z", b"a body nobody reads",
                                    headers=[("X-Forwarded-For", "198.51.100.9")])
            head = http_wire.request("HEAD", "/v1/auth",
                                     headers=[("X-Forwarded-For", "198.51.100.9")])
            client.send((check + ask + head) * 20)
            for count in range(60):
                response = client.receive(head=count % 3 == 2)
                self.assertEqual(response.status, 200)
                self.assertEqual(left(response).partition(";t")[0], f'"per-ip";r={999 - count}')
                self.assertEqual(bool(response.body), count % 3 == 0)

    def test_tokens_have_a_header_of_their_own(self):
        policy = ("listen: { http: { address: \"127.0.0.1:0\", token: env:TOKEN } }\n" + POLICY)
        with daemon.Daemon(policy, environment={"TOKEN": "of-the-service"}) as running:
            for headers, status in (({}, 401), ({"Authorization": "Bearer somebody"}, 401),
                                    ({"X-Weir-Token": "wrong"}, 401),
                                    ({"X-Weir-Token": "of-the-service"}, 200),
                                    ({"X-Weir-Token": "of-the-service",
                                      "Authorization": "Bearer somebody"}, 200),
                                    ({"Authorization": "Bearer of-the-service"}, 200)):
                self.assertEqual(auth(running.http, headers=headers).status, status, headers)
            metrics = http_wire.once(running.http, "GET", "/metrics",
                                     headers=[("Authorization", "Bearer of-the-service")])
            self.assertIn(b'weir_refused_total{listener="http",why="token"} 3', metrics.body)


QUEUE = """\
trusted_proxies: [127.0.0.1]
queue_hold: 600ms
rules:
  - { name: per-ip, key: ip, limit: 1000/h }
  - name: shaped
    match: { path: /shaped }
    key: global
    limit: 5/s burst 10
    algorithm: leaky_bucket
    queue: true
"""


class Queues(unittest.TestCase):
    def test_answers_are_held_until_their_turn_and_no_longer_than_allowed(self):
        """Those whose turn comes 0, 200, 400 and 600 ms later are held; the fifth is denied."""
        with daemon.Daemon(QUEUE) as running:
            clients = [http_wire.Client(running.http) for _ in range(6)]
            began = time.monotonic()
            for client in clients:
                client.send(http_wire.request("GET", "/v1/auth/shaped"))
            plain = auth(running.http, "/plain")
            self.assertEqual(plain.status, 200)
            self.assertLess(time.monotonic() - began, 5 if daemon.instrumented else 0.5)
            told = []
            for client in clients:
                response = client.receive()
                told.append((response.status, time.monotonic() - began))
                client.close()
            statuses = sorted(status for status, _ in told)
            held = sum(status == 200 for status in statuses)
            self.assertIn(held, (3, 4), told)
            self.assertEqual(statuses, [200] * held + [429] * (6 - held))
            self.assertGreaterEqual(max(when for status, when in told if status == 200), 0.39)

    def test_who_hangs_up_gives_the_place_back(self):
        with daemon.Daemon(QUEUE.replace("5/s burst 10", "1/s burst 1")
                           .replace("600ms", "30s")) as running:
            self.assertEqual(auth(running.http, "/shaped").status, 200)
            with http_wire.Client(running.http) as client:
                client.send(http_wire.request("GET", "/v1/auth/shaped"))
                self._await_waiters(running, 1)
            self._await_waiters(running, 0)
            peek = http_wire.once(running.http, "POST", "/v1/peek", {"path": "/shaped"}).json()
            self.assertLessEqual(peek["delay_ms"], 1000)
            self.assertTrue(peek["allowed"])

    def _await_waiters(self, running, count):
        deadline = time.monotonic() + daemon.PATIENCE
        wanted = f"weir_waiters {count}\n".encode()
        while wanted not in http_wire.once(running.http, "GET", "/metrics").body:
            self.assertLess(time.monotonic(), deadline)


class SharedStore(unittest.TestCase):
    """The same when answers come from elsewhere, and later."""

    def setUp(self):
        self.server = self.enterContext(redis_servers.Server())

    def weir(self, policy):
        store = f"store: {self.server.url}\nredis: {{ timeout: 2s }}\n"
        running = self.enterContext(daemon.Daemon(store + policy))

        def decides():
            peek = http_wire.once(running.http, "POST", "/v1/peek", {"ip": "192.0.2.1"})
            return peek.json()["source"] == "store"

        redis_servers.wait_until(decides, "the store decides")
        return running

    def test_a_pipeline_is_answered_in_its_order(self):
        running = self.weir(POLICY)
        with http_wire.Client(running.http) as client:
            client_ip = [("X-Forwarded-For", "198.51.100.9")]
            ask = http_wire.request("PUT", "/v1/auth/x", b"body", headers=client_ip)
            head = http_wire.request("HEAD", "/v1/auth", headers=client_ip)
            check = http_wire.request("POST", "/v1/check", {"ip": "198.51.100.9"})
            client.send((ask + head + check) * 20)
            for count in range(60):
                response = client.receive(head=count % 3 == 1)
                self.assertEqual(left(response).partition(";t")[0], f'"per-ip";r={999 - count}')
                self.assertEqual(bool(response.body), count % 3 == 2)

    def test_queues_hold_answers(self):
        running = self.weir(QUEUE)
        began = time.monotonic()
        clients = [http_wire.Client(running.http) for _ in range(6)]
        for client in clients:
            client.send(http_wire.request("GET", "/v1/auth/shaped?deny_status=403"))
        told = [(client.receive().status, time.monotonic() - began) for client in clients]
        for client in clients:
            client.close()
        passed = [when for status, when in told if status == 200]
        self.assertIn(len(passed), (3, 4), told)
        self.assertEqual([status for status, _ in told].count(403), 6 - len(passed))
        self.assertGreaterEqual(max(passed), 0.39)

    def test_the_store_that_is_gone_is_a_reason(self):
        running = self.weir(POLICY + "  - { name: strict, match: { path: /strict }, key: ip, "
                            "limit: 5/h, on_store_failure: closed }\n")
        self.server.kill()
        for below, status in (("/strict", 429), ("/strict?deny_status=403", 403), ("/", 200)):
            response = auth(running.http, below)
            self.assertEqual(response.status, status)
            if status != 200:
                self.assertEqual(response.header("X-Weir-Reason"), "store_failure")
                self.assertGreaterEqual(int(response.header("Retry-After")), 1)


if __name__ == "__main__":
    daemon.main()
