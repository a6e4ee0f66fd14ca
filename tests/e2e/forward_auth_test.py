#!/usr/bin/env python3
"""Forward-auth from outside: asked directly, and by real proxies that are configured as
docs/gateways.md says.

    forward_auth_test.py SOURCE PROGRAM [TEST...]
"""

import pathlib
import signal
import sys
import threading
import time
import unittest

import daemon
import http_wire
import proxies

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
import redis_servers  # pylint: disable=wrong-import-position

POLICY = """\
trusted_proxies: [127.0.0.1]
identity:
  user: { header: x-user-id }
  tier: { header: x-tier, default: free }
deny: [ { user: mallory }, { path: /secret/** } ]
rules:
  - { name: per-ip, key: ip, limit: 1000/h }
  - { name: per-user, match: { user: present }, key: user, limit: 2/h }
  - { name: login, match: { path: /login, method: POST }, key: ip, limit: 2/h, message: Too often }
  - { name: shop, match: { host: shop.example }, key: ip, limit: 500/h }
"""
CHEAP = {"X-Forwarded-Uri": "/cheap", "X-Forwarded-Method": "GET", "X-Original-URI": "/cheap",
         "X-Original-URL": "http://cheap.example/cheap", "X-Original-Method": "GET",
         "X-Forwarded-For": "198.51.100.77", "X-Forwarded-Host": "cheap.example",
         "X-User-Id": "forged", "X-Weir-Token": "forged", "Forwarded": "for=198.51.100.78"}
# Clients of proxies: on this machine, but not where the proxy is.
CLIENT, OTHER = "127.0.0.2", "127.0.0.3"


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
                response = auth(running.http, "/other", headers=CHEAP)
                self.assertEqual(left(response).partition(";t")[0], f'"per-ip";r={1000 - count}')
            for _ in range(2):
                self.assertEqual(auth(running.http, "/login", "POST", CHEAP).status, 200)
            self.assertEqual(auth(running.http, "/login", "POST", CHEAP).status, 429)
            self.assertEqual(auth(running.http, "/secret/x", headers=CHEAP).status, 403)
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


class Gateway(unittest.TestCase):
    """What holds behind every proxy; `start` makes it."""

    def setUp(self):
        self.backend = self.enterContext(proxies.Backend())

    def weir(self, policy=POLICY, **more):
        return self.enterContext(daemon.Daemon(policy, **more))

    def call(self, proxy, method, path, headers=(), *, body=None, source=CLIENT):
        with http_wire.Client(proxy.port, source=source) as client:
            return client.call(method, path, body, headers=list(dict(headers).items()))

    def exhaust(self, proxy, headers=()):
        """Denied once the two that may have passed."""
        for count in range(2):
            response = self.call(proxy, "POST", "/login?n=1", headers, body=b"name=ann")
            self.assertEqual((response.status, response.body), (200, b"backend"), count)
        return self.call(proxy, "POST", "/login?n=1", headers, body=b"name=ann")

    def check_denial(self, response, *, retries=True):
        self.assertEqual(response.status, 429, response)
        if retries:
            self.assertGreaterEqual(int(response.header("Retry-After")), 1)

    def check_gateway(self, start):
        running = self.weir()
        with start(running) as proxy:
            self.check_denial(self.exhaust(proxy))
            # No way of writing it, and nothing that a client can send, makes it another request.
            for path in ("/login", "//login", "/a/../login", "/%6cogin", "/login/", "/login?x=/"):
                self.check_denial(self.call(proxy, "POST", path), retries=False)
            for forged in ({name: value} for name, value in CHEAP.items()):
                with self.subTest(forged=forged):
                    self.check_denial(self.call(proxy, "POST", "/login", forged), retries=False)
            self.assertEqual(len(self.backend.requests), 2)
            # Others are not concerned, be it by their address, the method or the path.
            self.assertEqual(self.call(proxy, "POST", "/login", source=OTHER).status, 200)
            self.assertEqual(self.call(proxy, "GET", "/login").status, 200)
            self.assertEqual(self.call(proxy, "POST", "/logins").status, 200)
            # Lists stay 403, and what the backend says is left alone.
            self.assertEqual(self.call(proxy, "GET", "/secret/x").status, 403)
            for status in (403, 404, 429, 500):
                response = self.call(proxy, "GET", f"/status/{status}")
                self.assertEqual((response.status, response.body), (status, b"backend"))
            # Nobody is who they say they are.
            for _ in range(4):
                response = self.call(proxy, "GET", "/", {"X-User-Id": "ann"})
                self.assertEqual(response.status, 200)
            self.assertEqual(self.call(proxy, "GET", "/", {"X-User-Id": "mallory"}).status, 200)
            top = self.counts(running)
            self.assertNotIn("per-user", top)
        self.assertEqual([path for _, path, _ in self.backend.requests[:2]], ["/login?n=1"] * 2)

    def counts(self, running):
        metrics = http_wire.once(running.http, "GET", "/metrics").body.decode()
        return {line.partition('rule="')[2].partition('"')[0] for line in metrics.splitlines()
                if line.startswith("weir_decisions_total")}

    def check_gone(self, start, status):
        running = self.weir()
        with start(running) as proxy:
            self.assertEqual(self.call(proxy, "GET", "/").status, 200)
            running.tell(signal.SIGTERM)
            running.process.wait(timeout=daemon.PATIENCE)
            response = self.call(proxy, "GET", "/")
            self.assertEqual(response.status, status)
            return proxy


class Nginx(Gateway):
    def nginx(self, running, **more):
        return proxies.nginx(f"127.0.0.1:{running.http}", self.backend, **more)

    def test_denials_by_403_become_429(self):
        self.check_gateway(self.nginx)

    def test_denials_by_429_are_understood_as_well(self):
        self.check_gateway(lambda running: self.nginx(running, recipe=1))

    def test_headers_are_copied_both_when_it_passes_and_when_not(self):
        running = self.weir()
        with self.nginx(running) as proxy:
            response = self.call(proxy, "GET", "/")
            self.assertTrue(left(response).startswith('"per-ip";r=999;'), left(response))
            self.assertIn('"per-ip";q=1000', response.header("RateLimit-Policy"))
            response = self.exhaust(proxy)
            self.assertTrue(left(response).startswith('"login";r=0;'), left(response))
            self.assertEqual(response.header("Cache-Control"), "no-store")
            self.assertEqual(response.json()["error"], "rate_limited")
            self.assertEqual(response.header("Content-Type"), "application/json")

    def test_a_client_is_who_the_login_of_nginx_says(self):
        running = self.weir()
        user = ('proxy_set_header X-User-Id "";', "proxy_set_header X-User-Id $cookie_user;")
        with self.nginx(running, more=[user]) as proxy:
            for who in ("ann", "bob"):
                headers = {"X-User-Id": "carl", "Cookie": f"user={who}"}
                statuses = [self.call(proxy, "GET", "/", headers).status for _ in range(3)]
                self.assertEqual(statuses, [200, 200, 429])

    def test_addresses_count_from_the_right_where_they_are_added_to(self):
        running = self.weir()
        added = ("X-Forwarded-For $remote_addr", "X-Forwarded-For $proxy_add_x_forwarded_for")
        with self.nginx(running, more=[added]) as proxy:
            statuses = [self.call(proxy, "POST", "/login", {"X-Forwarded-For": forged}).status
                        for forged in ("198.51.100.1", "198.51.100.2", "127.0.0.1, 8.8.8.8")]
            # What the client wrote is not its address; that is what nginx saw.
            self.assertEqual(statuses, [200, 200, 429])

    def test_connections_are_kept_also_on_a_unix_socket(self):
        policy = "listen: { http: \"unix:{folder}/http.sock\", resp: \"127.0.0.1:0\" }\n" + POLICY
        running = self.weir(policy)
        path = running.addresses["http"].removeprefix("unix:")
        with proxies.nginx(f"unix:{path}", self.backend) as proxy:
            self.check_denial(self.exhaust(proxy))
            with http_wire.Client(proxy.port) as client:
                for _ in range(200):
                    self.assertEqual(client.get("/").status, 200)
            metrics = http_wire.once(path, "GET", "/metrics").body.decode()
        self.assertIn('weir_requests_total{frontend="http",code="200"}', metrics)
        # One to nginx, and this one here.
        self.assertIn('weir_connections{listener="http"} 2\n', metrics)

    def test_the_token_is_sent_beside_the_clients_authorization(self):
        policy = "listen: { http: { address: \"127.0.0.1:0\", token: env:TOKEN } }\n" + POLICY
        running = self.weir(policy, environment={"TOKEN": "the token of the listener"})
        with self.nginx(running, more=[("# proxy_set_header X-Weir-Token",
                                        "proxy_set_header X-Weir-Token")]) as proxy:
            for headers in ({}, {"Authorization": "Bearer somebody"}, {"X-Weir-Token": "forged"}):
                self.assertEqual(self.call(proxy, "GET", "/", headers).status, 200, headers)
        self.assertEqual(self.backend.requests[1][2]["Authorization"], "Bearer somebody")

    def test_clients_are_refused_while_the_service_is_gone(self):
        self.check_gone(self.nginx, 500)

    def test_clients_pass_while_the_service_is_gone_if_that_is_wanted(self):
        self.check_gone(lambda running: self.nginx(running, fail_open=True), 200)

    def test_denials_are_denials_also_where_failures_pass(self):
        running = self.weir()
        with self.nginx(running, fail_open=True) as proxy:
            self.check_denial(self.exhaust(proxy))
            contradiction = {"X-Forwarded-Uri": "/cheap", "X-Original-URI": "/other"}
            self.check_denial(self.call(proxy, "POST", "/login", contradiction), retries=False)

    def test_a_service_that_does_not_answer_is_as_good_as_gone(self):
        running = self.weir()
        with self.nginx(running, fail_open=True, more=[("proxy_read_timeout 2s;",
                                                        "proxy_read_timeout 200ms;")]) as proxy:
            self.assertEqual(self.call(proxy, "GET", "/").status, 200)
            running.tell(signal.SIGSTOP)
            try:
                self.assertEqual(self.call(proxy, "GET", "/").status, 200)
            finally:
                running.tell(signal.SIGCONT)

    def test_many_clients_at_once_get_what_there_is(self):
        policy = POLICY.replace("limit: 2/h, message", "limit: 50/h, message")
        running = self.weir(policy)
        statuses = []

        def ask(proxy):
            with http_wire.Client(proxy.port) as client:
                statuses.extend(client.post("/login", b"").status for _ in range(40))

        with self.nginx(running) as proxy:
            threads = [threading.Thread(target=ask, args=(proxy,)) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual((statuses.count(200), statuses.count(429)), (50, 270))


class Caddy(Gateway):
    def caddy(self, running, **more):
        return proxies.caddy(f"127.0.0.1:{running.http}", self.backend, **more)

    def test_denials_reach_the_client_whole(self):
        running = self.weir()
        with self.caddy(running) as proxy:
            response = self.exhaust(proxy)
            self.check_denial(response)
            self.assertEqual(response.json()["message"], "Too often")
            self.assertEqual(response.header("Content-Type"), "application/json")
            self.assertTrue(left(response).startswith('"login";r=0;'))
            self.assertEqual(response.header("X-RateLimit-Remaining"), "0")
            problem = self.call(proxy, "POST", "/login", {"Accept": "application/problem+json"})
            self.assertEqual(problem.json()["violated-policies"], ["login"])

    def test_requests_are_what_they_are(self):
        self.check_gateway(self.caddy)

    def test_the_token_is_sent_beside_the_clients_authorization(self):
        policy = "listen: { http: { address: \"127.0.0.1:0\", token: env:TOKEN } }\n" + POLICY
        running = self.weir(policy, environment={"TOKEN": "the token of the listener"})
        with self.caddy(running, more=[("# header_up X-Weir-Token",
                                        "header_up X-Weir-Token")]) as proxy:
            for headers in ({}, {"Authorization": "Bearer somebody"}, {"X-Weir-Token": "forged"}):
                self.assertEqual(self.call(proxy, "GET", "/", headers).status, 200, headers)

    def test_a_unix_socket_will_do(self):
        policy = "listen: { http: \"unix:{folder}/http.sock\", resp: \"127.0.0.1:0\" }\n" + POLICY
        running = self.weir(policy)
        path = running.addresses["http"].removeprefix("unix:")
        with proxies.caddy(f"unix/{path}", self.backend) as proxy:
            self.check_denial(self.exhaust(proxy))

    def test_clients_are_refused_while_the_service_is_gone(self):
        self.check_gone(self.caddy, 502)


class HaProxy(Gateway):
    def haproxy(self, running):
        return proxies.haproxy(running.http, self.backend)

    def test_denials_become_429(self):
        self.check_gateway(self.haproxy)

    def test_clients_are_refused_while_the_service_is_gone(self):
        self.check_gone(self.haproxy, 503)


class Envoy(Gateway):
    def setUp(self):
        super().setUp()
        if proxies.envoy_program() is None:
            self.skipTest("SKIPPED: Envoy could not be had; see tests/e2e/setup.sh")

    def envoy(self, running, **more):
        return proxies.envoy(running.http, self.backend, **more)

    def test_requests_are_what_they_are(self):
        self.check_gateway(self.envoy)

    def test_denials_reach_the_client_whole(self):
        running = self.weir()
        with self.envoy(running) as proxy:
            self.assertTrue(left(self.call(proxy, "GET", "/")).startswith('"per-ip";r=999;'))
            response = self.exhaust(proxy)
            self.check_denial(response)
            self.assertEqual(response.json()["message"], "Too often")
            chosen = self.call(proxy, "POST", "/login?deny_status=403")
            self.assertEqual(chosen.status, 403)
            self.check_denial(self.call(proxy, "POST", "/login?deny_status=200"), retries=False)

    def test_clients_are_refused_while_the_service_is_gone(self):
        self.check_gone(self.envoy, 403)

    def test_clients_pass_while_the_service_is_gone_if_that_is_wanted(self):
        self.check_gone(lambda running: self.envoy(
            running, more=[("failure_mode_allow: false", "failure_mode_allow: true")]), 200)


if __name__ == "__main__":
    daemon.main()
