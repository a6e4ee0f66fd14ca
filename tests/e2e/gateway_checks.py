"""What holds behind every gateway that is configured as gateways/ has it. The test of one is a
class of its own that says how it is started, and what it cannot do.
"""

import base64
import contextlib
import os
import signal
import time
import unittest

import daemon
import http_wire
import proxies

# Clients of proxies: on this machine, but not where the proxy is.
CLIENT, OTHER = "127.0.0.2", "127.0.0.3"

# Another policy than that of gateways/, with lists and other things that those who adapt it will
# have; and what a client says who would like to be asked about something else.
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
FORGED = {"X-Forwarded-Uri": "/cheap", "X-Forwarded-Method": "GET", "X-Original-URI": "/cheap",
          "X-Original-URL": "http://cheap.example/cheap", "X-Original-Method": "GET",
          "X-Forwarded-For": "198.51.100.77", "X-Forwarded-Host": "cheap.example",
          "X-Real-IP": "198.51.100.79", "Forwarded": "for=198.51.100.78",
          "X-User-Id": "forged", "X-Weir-Token": "forged"}

# The users that the files of gateways/ have.
USERS = {"ann": "wonderland", "ben": "nevis"}

TOKEN = "the token of the listener"
WITH_TOKEN = 'listen: { http: { address: "127.0.0.1:0", token: env:TOKEN } }\n'

RATE_LIMIT_HEADERS = ("RateLimit", "RateLimit-Policy", "X-RateLimit-Limit",
                      "X-RateLimit-Remaining", "X-RateLimit-Reset")


def credentials(user, password=None):
    word = f"{user}:{password or USERS[user]}".encode()
    return {"Authorization": "Basic " + base64.b64encode(word).decode()}


@contextlib.contextmanager
def hanging(running):
    """The service is there and takes connections, but does nothing."""
    running.tell(signal.SIGSTOP)
    # All of its threads have stopped when its parent is told.
    os.waitid(os.P_PID, running.pid, os.WSTOPPED)
    try:
        yield
    finally:
        running.tell(signal.SIGCONT)


class Gateway(unittest.TestCase):
    proxy = None  # Its class in proxies.
    listener = "http"  # Of the service, which it asks.
    gone_statuses = ()  # What clients get while the service is gone, or hangs.
    headers_on_allow = True
    counts_wrong_passwords = True
    whole_denials = True  # With Weir's own body.

    def setUp(self):
        self.backend = self.enterContext(proxies.Backend())

    def weir(self, policy, **more):
        return self.enterContext(daemon.Daemon(policy, **more))

    def policy(self, marks=()):
        """The one of gateways/ that is for this gateway."""
        return proxies.policy_file("weir.yaml", marks)

    def slow_policy(self, marks=()):
        """The same with nothing coming back while a test lasts, for those that count."""
        return proxies.replaced(self.policy(marks), {" 60/min": " 60/h", " 20/min": " 20/h"})

    def start(self, running, *, marks=(), more=None):
        port = running if isinstance(running, (int, str)) else getattr(running, self.listener)
        return self.enterContext(self.proxy(port, self.backend, marks=marks, more=more))

    def started(self, marks=()):
        """The service and the gateway, both by the files as they stand."""
        running = self.weir(self.policy())
        return running, self.start(running, marks=marks)

    def call(self, proxy, method, path, headers=(), *, body=None, source=CLIENT,
             timeout=daemon.PATIENCE):
        with http_wire.Client(proxy.port, source=source, timeout=timeout) as client:
            return client.call(method, path, body, headers=list(dict(headers).items()))

    def left_for_address(self, running, address):
        """What is left of per-ip, as the service sees it; nothing is taken."""
        return self.peek(running, self.attributes_of(address))

    def left_for_user(self, running, user):
        return self.peek(running, self.attributes_of_user(user))

    def peek(self, running, attributes):
        return http_wire.once(running.http, "POST", "/v1/peek", attributes).json()["remaining"]

    def attributes_of(self, address):
        return {"ip": address, "rules": ["per-ip"]}

    def attributes_of_user(self, user):
        return {"user": user, "rules": ["per-user"]}

    def call_until_denied(self, call, most):
        """The denial, and how many passed before it."""
        for passed in range(most + 1):
            response = call(passed)
            if response.status != 200:
                return passed, response
        raise AssertionError(f"{most + 1} have passed")

    # --- Denials ---

    def check_denial(self, response, *, retries=True):
        self.assertEqual(response.status, 429, response)
        if retries:
            self.assertGreaterEqual(int(response.header("Retry-After")), 1)

    def check_whole_denial(self, response, rule):
        self.check_denial(response)
        for name in RATE_LIMIT_HEADERS:
            self.assertIsNotNone(response.header(name), (name, response))
        self.assertTrue(response.header("RateLimit").startswith(f'"{rule}";r=0;t='), response)
        self.assertIn(f'"{rule}";q=', response.header("RateLimit-Policy"))
        self.assertEqual(response.header("X-RateLimit-Remaining"), "0")
        self.assertEqual(response.header("Cache-Control"), "no-store")
        self.assertEqual(response.header("Content-Type"), "application/json")
        body = response.json()
        self.assertEqual(body["error"], "rate_limited")
        self.assertGreaterEqual(body["retry_after"], 1)
        if self.whole_denials:
            self.assertEqual(body["rule"], rule)

    # --- By address and by user ---

    def test_addresses_are_limited(self):
        _, proxy = self.started()
        began = time.monotonic()
        with http_wire.Client(proxy.port, source=CLIENT) as client:
            passed, denial = self.call_until_denied(lambda _: client.get("/"), 100)
        # A minute's worth, and what came back meanwhile.
        self.assertGreaterEqual(passed, 60)
        self.assertLessEqual(passed, 61 + time.monotonic() - began)
        self.check_whole_denial(denial, "per-ip")
        self.assertEqual(len(self.backend.requests), passed)
        self.assertEqual(self.call(proxy, "GET", "/", source=OTHER).status, 200)

    def test_users_are_limited_wherever_they_come_from(self):
        _, proxy = self.started()
        began = time.monotonic()
        passed, denial = self.call_until_denied(
            lambda count: self.call(proxy, "GET", "/account/orders", credentials("ann"),
                                    source=(CLIENT, OTHER)[count % 2]), 40)
        self.assertGreaterEqual(passed, 20)
        self.assertLessEqual(passed, 21 + (time.monotonic() - began) / 3)
        self.check_whole_denial(denial, "per-user")
        # The backend is told who it was, and others are not concerned.
        self.assertEqual(self.backend.requests[-1][2]["X-User-Id"], "ann")
        self.assertEqual(self.call(proxy, "GET", "/account/orders", credentials("ben")).status, 200)
        self.assertEqual(self.call(proxy, "GET", "/").status, 200)

    def test_logins_are_limited(self):
        _, proxy = self.started()
        passed, denial = self.call_until_denied(
            lambda _: self.call(proxy, "POST", "/login", body=b"name=ann"), 10)
        self.assertEqual(passed, 5)
        self.check_whole_denial(denial, "login")
        if self.whole_denials:
            self.assertEqual(denial.json()["message"], "Too many attempts to log in.")

    def test_headers_say_what_is_left(self):
        _, proxy = self.started()
        response = self.call(proxy, "GET", "/")
        self.assertEqual((response.status, response.body), (200, b"backend"))
        if not self.headers_on_allow:
            self.assertFalse({name.lower() for name in RATE_LIMIT_HEADERS} & response.names)
            return
        self.assertEqual(response.header("RateLimit"), '"per-ip";r=59;t=1')
        self.assertEqual(response.header("RateLimit-Policy"), '"per-ip";q=60;w=60')
        self.assertEqual(response.header("X-RateLimit-Limit"), "60")
        self.assertEqual(response.header("X-RateLimit-Remaining"), "59")
        self.assertGreater(int(response.header("X-RateLimit-Reset")), 1_700_000_000)
        response = self.call(proxy, "GET", "/account/", credentials("ann"), source=OTHER)
        self.assertEqual(response.header("RateLimit-Policy"),
                         '"per-ip";q=60;w=60, "per-user";q=20;w=60')

    # --- What clients make up ---

    def test_nothing_that_a_client_sends_makes_it_another(self):
        running = self.weir(self.slow_policy())
        proxy = self.start(running)
        strangers = [{}, {"X-User-Id": "ann"}, credentials("ann", "wrong"), credentials("eve", "x")]
        forged = [{name: value} for name, value in FORGED.items()] + [FORGED] + strangers
        for count, headers in enumerate(forged, 1):
            with self.subTest(headers=headers):
                self.assertEqual(self.call(proxy, "GET", "/", headers).status, 200)
                self.assertEqual(self.left_for_address(running, CLIENT), 60 - count)
                self.assertIsNone(self.backend.requests[-1][2]["X-User-Id"])
        for forged in ("198.51.100.77", "198.51.100.78", "198.51.100.79", "127.0.0.1"):
            self.assertEqual(self.left_for_address(running, forged), 60)
        # No user has asked; nobody got in as one either.
        for headers in strangers:
            self.assertEqual(self.call(proxy, "GET", "/account/", headers).status, 401)
        self.assertNotIn("per-user", self.rules_asked(running))
        # Who is known does not become somebody else.
        headers = {**FORGED, **credentials("ann"), "X-User-Id": "ben"}
        self.assertEqual(self.call(proxy, "GET", "/account/", headers).status, 200)
        self.assertEqual(self.backend.requests[-1][2].get_all("X-User-Id"), ["ann"])
        self.assertEqual(self.left_for_user(running, "ben"), 20)
        self.assertEqual(self.left_for_user(running, "ann"), 19)

    def test_wrong_passwords_count_as_well(self):
        if not self.counts_wrong_passwords:
            self.skipTest("it looks at passwords first, and does not ask for those that are wrong")
        running = self.weir(self.slow_policy())
        proxy = self.start(running)
        for headers in ({}, credentials("ann", "guess")):
            response = self.call(proxy, "GET", "/account/", headers)
            self.assertEqual(response.status, 401)
            self.assertIn("shop", response.header("WWW-Authenticate"))
        self.assertEqual(self.left_for_address(running, CLIENT), 58)
        with http_wire.Client(proxy.port, source=CLIENT) as client:
            self.call_until_denied(lambda _: client.get("/"), 58)
            guess = list(credentials("ann", "guess").items())
            self.check_denial(client.get("/account/", headers=guess))

    def rules_asked(self, running):
        metrics = http_wire.once(running.http, "GET", "/metrics").body.decode()
        return {line.partition('rule="')[2].partition('"')[0] for line in metrics.splitlines()
                if line.startswith("weir_decisions_total")}

    # --- When the service is gone, or hangs ---

    def check_gone(self, proxy):
        """It refuses, and the backend hears nothing of it."""
        heard = len(self.backend.requests)
        response = self.call(proxy, "GET", "/")
        self.assertIn(response.status, self.gone_statuses)
        self.assertEqual(len(self.backend.requests), heard)

    def test_clients_are_refused_while_the_service_is_gone(self):
        running, proxy = self.started()
        self.assertEqual(self.call(proxy, "GET", "/").status, 200)
        running.tell(signal.SIGTERM)
        running.process.wait(timeout=daemon.PATIENCE)
        for _ in range(5):
            self.check_gone(proxy)

    def test_clients_are_refused_while_the_service_hangs(self):
        running, proxy = self.started()
        self.assertEqual(self.call(proxy, "GET", "/").status, 200)
        with hanging(running):
            began = time.monotonic()
            self.check_gone(proxy)
            self.assertLess(time.monotonic() - began, 10)
        self.await_answer(proxy, limited=True)

    def test_clients_pass_while_the_service_is_gone_if_that_is_wanted(self):
        running, proxy = self.started(marks=["fail open"])
        # As long as it is there, it decides.
        passed, _ = self.call_until_denied(lambda _: self.call(proxy, "POST", "/login"), 10)
        self.assertEqual(passed, 5)
        running.tell(signal.SIGTERM)
        running.process.wait(timeout=daemon.PATIENCE)
        self.await_answer(proxy, limited=False)
        for _ in range(8):
            response = self.call(proxy, "POST", "/login", body=b"name=ann")
            self.assertEqual((response.status, response.body), (200, b"backend"))

    def test_clients_pass_while_the_service_hangs_if_that_is_wanted(self):
        running, proxy = self.started(marks=["fail open"])
        self.assertEqual(self.call(proxy, "GET", "/").status, 200)
        with hanging(running):
            self.await_answer(proxy, limited=False)
            response = self.call(proxy, "POST", "/login", body=b"name=ann")
            self.assertEqual((response.status, response.body), (200, b"backend"))
        self.await_answer(proxy, limited=True)

    def await_answer(self, proxy, *, limited):
        """Until requests pass, and whether the service was asked shows in the headers."""
        deadline = time.monotonic() + daemon.PATIENCE
        while True:
            self.assertLess(time.monotonic(), deadline)
            try:
                response = self.call(proxy, "GET", "/", source=OTHER, timeout=5)
            except TimeoutError:
                continue
            told = response.header("RateLimit") is not None
            if response.status == 200 and (told == limited or not self.headers_on_allow):
                return

    # --- The connection to the service ---

    def test_connections_to_the_service_are_kept(self):
        running = self.weir(self.policy())
        with proxies.Relay(getattr(running, self.listener)) as relay:
            proxy = self.start(relay.port)
            with http_wire.Client(proxy.port, source=CLIENT) as client:
                for _ in range(50):
                    self.assertEqual(client.get("/").status, 200)
            for _ in range(5):
                self.assertEqual(self.call(proxy, "GET", "/").status, 200)
            # One would do; a probe of health may have its own, and one that was just being used
            # when the next question came another.
            self.assertLessEqual(relay.connections, self.most_connections())
            proxy.stop()

    def most_connections(self):
        return 4

    def test_the_token_is_sent_beside_the_clients_authorization(self):
        running = self.weir(WITH_TOKEN + POLICY, environment={"TOKEN": TOKEN})
        proxy = self.start(running, marks=["with a token"])
        for headers in ({}, {"Authorization": "Bearer somebody"}, {"X-Weir-Token": "forged"}):
            self.assertEqual(self.call(proxy, "GET", "/", headers).status, 200, headers)
        self.assertEqual(self.backend.requests[1][2]["Authorization"], "Bearer somebody")
        self.check_denial(self.exhaust(proxy))

    # --- Behind another proxy ---

    def start_behind_a_proxy(self, running):
        return self.start(running, marks=["behind a proxy"])

    def test_behind_a_proxy_clients_are_those_that_it_names(self):
        running = self.weir(self.slow_policy(["behind a proxy"]))
        proxy = self.start_behind_a_proxy(running)
        named = "203.0.113.7"

        def ask(forwarded, *, source=proxies.OUTER, **more):
            headers = {"X-Forwarded-For": forwarded, **more}
            self.assertEqual(self.call(proxy, "GET", "/", headers, source=source).status, 200)

        ask(named)
        self.assertEqual(self.left_for_address(running, named), 59)
        # What the client itself wrote stands on the left, and does not count; nor do other headers.
        others = {name: value for name, value in FORGED.items() if name != "X-Forwarded-For"}
        ask(f"198.51.100.77, {named}", **others)
        ask(f"not an address, 127.0.0.1, {named}")
        self.assertEqual(self.left_for_address(running, named), 57)
        ask("203.0.113.8")
        self.assertEqual(self.left_for_address(running, "203.0.113.8"), 59)
        for forged in ("198.51.100.77", "198.51.100.78", "198.51.100.79", proxies.OUTER):
            self.assertEqual(self.left_for_address(running, forged), 60, forged)
        # Whoever comes by another way is not believed.
        ask("198.51.100.77", source=CLIENT)
        self.assertEqual(self.left_for_address(running, "198.51.100.77"), 60)
        self.assertEqual(self.left_for_address(running, CLIENT), 59)

    # --- Requests are what they are, under another policy ---

    def exhaust(self, proxy, headers=()):
        """Denied once the two that may have passed."""
        for count in range(2):
            response = self.call(proxy, "POST", "/login?n=1", headers, body=b"name=ann")
            self.assertEqual((response.status, response.body), (200, b"backend"), count)
        return self.call(proxy, "POST", "/login?n=1", headers, body=b"name=ann")

    def test_requests_are_what_they_are(self):
        running = self.weir(POLICY)
        self.check_requests(running, self.start(running))

    def check_requests(self, running, proxy):
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
        self.assertNotIn("per-user", self.rules_asked(running))
        self.assertEqual([path for _, path, _ in self.backend.requests[:2]], ["/login?n=1"] * 2)
