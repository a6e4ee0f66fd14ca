#!/usr/bin/env python3
"""Forward-auth behind real proxies that are configured as docs/gateways.md says.

    gateways_test.py SOURCE PROGRAM [TEST...]
"""

import signal
import threading
import unittest

import daemon
import http_wire
import proxies
from proxies import FORGED, POLICY

# Clients of proxies: on this machine, but not where the proxy is.
CLIENT, OTHER = "127.0.0.2", "127.0.0.3"


def left(response):
    return response.header("RateLimit")


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
            for forged in ({name: value} for name, value in FORGED.items()):
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
    def haproxy(self, running, **more):
        return proxies.haproxy(running.http, self.backend, **more)

    def test_denials_become_429(self):
        self.check_gateway(self.haproxy)

    def test_the_token_is_sent_beside_the_clients_authorization(self):
        policy = "listen: { http: { address: \"127.0.0.1:0\", token: env:TOKEN } }\n" + POLICY
        running = self.weir(policy, environment={"TOKEN": "the token of the listener"})
        with self.haproxy(running, more=[("-- [\"x-weir-token\"]", "[\"x-weir-token\"]")]) as proxy:
            for headers in ({}, {"Authorization": "Bearer somebody"}, {"X-Weir-Token": "forged"}):
                self.assertEqual(self.call(proxy, "GET", "/", headers).status, 200, headers)
        self.assertEqual(self.backend.requests[1][2]["Authorization"], "Bearer somebody")

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
