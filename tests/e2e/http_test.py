#!/usr/bin/env python3
"""What the HTTP interface says: statuses, headers and bodies, to the letter.

    http_test.py SOURCE PROGRAM [TEST...]
"""

import email.utils
import math
import time
import unittest

import daemon
import http_wire

POLICY = """\
deny:
  - { ip: 192.0.2.66 }
allow:
  - { ip: 192.0.2.1 }
rules:
  - name: per-ip
    match: { ip: present }
    key: ip
    limit: 200/min
  - name: per-user
    match: { user: present }
    key: user
    limit: 3/min
  - name: small
    match: { path: /small }
    key: org
    limit: 2/h burst 5
    message: Ask for less
  - name: closed
    match: { path: /closed }
    key: ip
    limit: deny
  - name: login
    match: { path: /login }
    key: org
    limit: 1/h
    block: { after: 2 denials in 1min, for: 2h }
  - name: shaped
    match: { path: /shaped }
    key: org
    limit: 10/s burst 5
    algorithm: leaky_bucket
    queue: true
  - name: jobs
    match: { path: /jobs }
    key: org
    limit: 2 concurrent lease 30s
  - name: window
    match: { path: /window }
    key: org
    limit: 1/s
    algorithm: sliding_log
  - name: tried
    match: { path: /tried }
    key: org
    limit: 1/h
    mode: shadow
"""

FIELDS = ["allowed", "rule", "limit", "remaining", "cost", "retry_after", "retry_after_ms",
          "reset_after", "reset_after_ms", "reset_at", "delay_ms", "reason", "source"]
DENIAL_FIELDS = ["error", "message", *FIELDS]
NEXT = iter(range(1 << 30))


def somebody():
    """Nobody was called that before."""
    return f"somebody-{next(NEXT)}"


class OnOneConnection(unittest.TestCase):
    policy = POLICY
    environment = None

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(
            daemon.Daemon(cls.policy, environment=cls.environment))

    def setUp(self):
        self.client = http_wire.Client(self.daemon.http)
        self.addCleanup(self.client.close)

    def check(self, body, **more):
        return self.client.post("/v1/check", body, **more)

    def assert_refused(self, response, status, error, words=""):
        self.assertEqual(response.status, status, response)
        body = response.json()
        self.assertEqual(list(body), ["error", "message"], response)
        self.assertEqual(body["error"], error)
        self.assertIn(words, body["message"])
        self.assertEqual(response.header("Content-Type"), "application/json")


class Check(OnOneConnection):
    def test_an_allowed_request(self):
        user = somebody()
        before = time.time()
        response = self.check({"ip": "203.0.113.9", "user": user})
        after = time.time()
        self.assertEqual((response.version, response.status, response.reason),
                         ("HTTP/1.1", 200, "OK"))
        body = response.json()
        self.assertEqual(list(body), FIELDS)
        reset_at = body.pop("reset_at")
        self.assertLessEqual(math.floor(before) + 20, reset_at)
        self.assertLessEqual(reset_at, math.ceil(after) + 20)
        self.assertEqual(body, {
            "allowed": True, "rule": "per-user", "limit": 3, "remaining": 2, "cost": 1,
            "retry_after": 0, "retry_after_ms": 0, "reset_after": 20, "reset_after_ms": 20_000,
            "delay_ms": 0, "reason": "ok", "source": "memory"})
        self.assertEqual([name for name, _ in response.headers],
                         ["Date", "Content-Type", "X-RateLimit-Limit", "X-RateLimit-Remaining",
                          "X-RateLimit-Reset", "RateLimit-Policy", "RateLimit", "Content-Length"])
        date = email.utils.parsedate_to_datetime(response.header("Date"))
        self.assertTrue(response.header("Date").endswith(" GMT"))
        self.assertTrue(before - 2 < date.timestamp() < after + 1, response)
        self.assertEqual(response.header("Content-Type"), "application/json")
        self.assertEqual(response.header("X-RateLimit-Limit"), "3")
        self.assertEqual(response.header("X-RateLimit-Remaining"), "2")
        self.assertEqual(response.header("X-RateLimit-Reset"), str(reset_at))
        self.assertEqual(response.header("RateLimit-Policy"),
                         '"per-ip";q=200;w=60, "per-user";q=3;w=60')
        self.assertEqual(response.header("RateLimit"), '"per-user";r=2;t=20')

    def test_a_denied_request(self):
        user = somebody()
        for _ in range(3):
            self.assertEqual(self.check({"user": user}).status, 200)
        response = self.check({"user": user})
        self.assertEqual((response.status, response.reason), (429, "Too Many Requests"))
        body = response.json()
        self.assertEqual(list(body), DENIAL_FIELDS)
        self.assertEqual(body["error"], "rate_limited")
        self.assertEqual(body["message"], "Too many requests. Retry after 20 seconds.")
        self.assertEqual((body["allowed"], body["rule"], body["remaining"], body["retry_after"],
                          body["reset_after"], body["reason"]),
                         (False, "per-user", 0, 20, 60, "limited"))
        self.assertLessEqual(body["retry_after_ms"], 20_000)
        self.assertGreater(body["retry_after_ms"], 15_000)
        self.assertEqual(response.header("Cache-Control"), "no-store")
        self.assertEqual(response.header("RateLimit"), '"per-user";r=0;t=20')
        self.assertEqual(response.header("X-RateLimit-Remaining"), "0")

    def test_retry_after_is_never_early_and_not_the_same_for_all(self):
        user, seen = somebody(), set()
        for _ in range(3):
            self.check({"user": user})
        for _ in range(60):
            response = self.check({"user": user})
            seconds = int(response.header("Retry-After"))
            self.assertGreaterEqual(seconds, response.json()["retry_after"])
            self.assertGreaterEqual(seconds * 1000, response.json()["retry_after_ms"])
            self.assertLessEqual(seconds, math.ceil(20 * 1.1))
            seen.add(seconds)
        self.assertGreater(len(seen), 1)

    def test_retry_after_is_never_0(self):
        org = somebody()
        denied = []
        while not denied:
            response = self.check({"org": org, "path": "/window"})
            if response.status == 429:
                denied.append(response)
        # Asked until it is let through again: the last denials are milliseconds before that.
        while response.status == 429:
            self.assertRegex(response.header("Retry-After"), r"^[1-9]\d*$")
            self.assertGreaterEqual(response.json()["retry_after"], 1)
            response = self.check({"org": org, "path": "/window"})
        self.assertEqual(response.status, 200)

    def test_what_never_fits(self):
        org = somebody()
        response = self.check({"org": org, "path": "/small", "cost": 6})
        self.assertEqual(response.status, 429)
        self.assertIsNone(response.header("Retry-After"))
        self.assertEqual(response.header("Cache-Control"), "no-store")
        body = response.json()
        self.assertEqual(list(body), DENIAL_FIELDS)
        self.assertEqual((body["reason"], body["retry_after"], body["retry_after_ms"],
                          body["cost"], body["remaining"], body["message"]),
                         ("never_fits", None, None, 6, 5, "Ask for less"))

    def test_what_is_denied_by_a_list_or_by_the_word_deny(self):
        for body, rule in (({"ip": "192.0.2.66"}, None), ({"ip": "192.0.2.7", "path": "/closed"},
                                                          "closed")):
            response = self.check(body)
            self.assertEqual((response.status, response.reason), (403, "Forbidden"))
            self.assertIsNone(response.header("Retry-After"))
            said = response.json()
            self.assertEqual(list(said), DENIAL_FIELDS)
            self.assertEqual((said["error"], said["allowed"], said["reason"], said["rule"],
                              said["retry_after"]), ("forbidden", False, "deny_list", rule, None))

    def test_what_nothing_limits(self):
        for body, reason in (({"ip": "192.0.2.1"}, "allow_list"), ({}, "no_rule")):
            response = self.check(body)
            self.assertEqual(response.status, 200)
            self.assertEqual((response.json()["reason"], response.json()["rule"]), (reason, None))
            self.assertEqual([name for name, _ in response.headers],
                             ["Date", "Content-Type", "Content-Length"])

    def test_a_ban(self):
        org = somebody()
        statuses = [self.check({"org": org, "path": "/login"}).status for _ in range(3)]
        self.assertEqual(statuses, [200, 429, 429])
        response = self.check({"org": org, "path": "/login"})
        self.assertEqual(response.status, 429)
        self.assertEqual(response.json()["reason"], "banned")
        self.assertGreaterEqual(int(response.header("Retry-After")), 7200)

    def test_cost_0_asks_only(self):
        user = somebody()
        for _ in range(5):
            body = self.check({"user": user, "cost": 0}).json()
            self.assertEqual((body["allowed"], body["remaining"]), (True, 3))

    def test_only_the_rules_that_are_named(self):
        user = somebody()
        response = self.check({"ip": "203.0.113.10", "user": user, "rules": ["per-user"]})
        self.assertEqual(response.header("RateLimit-Policy"), '"per-user";q=3;w=60')

    def test_shadow_rules_have_no_say_and_are_not_told(self):
        org = somebody()
        for _ in range(3):
            response = self.check({"org": org, "path": "/tried", "ip": "203.0.113.11"})
            self.assertEqual(response.status, 200)
            self.assertEqual(response.header("RateLimit-Policy"), '"per-ip";q=200;w=60')

    def test_a_problem_as_rfc_9457_has_it(self):
        accept = [("Accept", "application/problem+json")]
        user = somebody()
        for _ in range(3):
            response = self.check({"user": user}, headers=accept)
            self.assertEqual(response.header("Content-Type"), "application/json")
        response = self.check({"user": user}, headers=accept)
        self.assertEqual(response.status, 429)
        self.assertEqual(response.header("Content-Type"), "application/problem+json")
        self.assertIsNotNone(response.header("Retry-After"))
        body = response.json()
        self.assertEqual(body["type"],
                         "https://iana.org/assignments/http-problem-types#quota-exceeded")
        self.assertEqual((body["title"], body["status"], body["violated-policies"]),
                         ("Quota exceeded", 429, ["per-user"]))
        self.assertEqual((body["allowed"], body["rule"], body["reason"]),
                         (False, "per-user", "limited"))
        response = self.check({"ip": 7}, headers=accept)
        self.assertEqual((response.status, response.header("Content-Type")),
                         (400, "application/problem+json"))
        self.assertEqual(response.json()["status"], 400)
        self.assertIn("ip", response.json()["detail"])

    def test_a_queue_says_how_long_to_wait_or_holds_the_answer(self):
        org = somebody()
        delays = [self.check({"org": org, "path": "/shaped"}).json()["delay_ms"] for _ in range(3)]
        self.assertEqual(delays[0], 0)
        self.assertTrue(0 < delays[1] <= 100 and delays[1] < delays[2] <= 200, delays)
        # Not ready to wait for so long: denied, and nothing is taken.
        response = self.check({"org": org, "path": "/shaped", "wait_ms": 10})
        self.assertEqual((response.status, response.json()["reason"]), (429, "limited"))
        began = time.monotonic()
        response = self.check({"org": org, "path": "/shaped", "wait_ms": 1000})
        self.assertEqual((response.status, response.json()["delay_ms"]), (200, 0))
        self.assertGreater(time.monotonic() - began, 0.15)
        # A queue that is full is a denial, too.
        statuses = [self.check({"org": org, "path": "/shaped"}).status for _ in range(8)]
        self.assertEqual(statuses[-1], 429)

    def test_waits_under_other_algorithms(self):
        org = somebody()
        began = time.monotonic()
        statuses = [self.check({"org": org, "path": "/window", "wait_ms": 5000}).status
                    for _ in range(2)]
        self.assertEqual(statuses, [200, 200])
        self.assertGreaterEqual(time.monotonic() - began, 0.99)

    def test_bad_requests_name_the_field(self):
        for body, words in (
                (b"", "empty"), (b"{", "JSON"), (b"[]", "JSON object"), (b"{} x", "JSON"),
                (b'{"ip": "\xff"}', "UTF-8"), ({"ip": 7}, "ip"), ({"usr": "x"}, '"usr"'),
                ({"cost": -1}, "cost"), ({"cost": 1.5}, "cost"), ({"cost": "1"}, "cost"),
                ({"cost": 10 ** 15 + 1}, "cost"), ({"cost": 2 ** 63}, "cost"),
                ({"wait_ms": -1}, "wait_ms"), ({"headers": "x"}, "headers"),
                ({"headers": {"a": 1}}, "headers.a"), ({"rules": "x"}, "rules"),
                ({"rules": ["none-such"]}, '"none-such"'), ({"ttl_ms": 5}, "ttl_ms"),
                (b'{"ip": "192.0.2.9", "ip": "192.0.2.9"}', "ip"),
                ({"headers": {f"h{i}": "x" for i in range(200)}}, "headers")):
            with self.subTest(body=body):
                self.assert_refused(self.check(body), 400, "invalid_argument", words)
        self.assertEqual(self.check({}).status, 200)  # On the same connection.


class OtherVerbs(OnOneConnection):
    def post(self, path, body, **more):
        return self.client.post(path, body, **more)

    def test_a_batch(self):
        user = somebody()
        items = [{"user": user}] * 5 + [{"ip": "192.0.2.66"}, {}]
        response = self.post("/v1/check/batch", items)
        self.assertEqual(response.status, 200)
        decisions = response.json()
        self.assertEqual([decision["reason"] for decision in decisions],
                         ["ok"] * 3 + ["limited"] * 2 + ["deny_list", "no_rule"])
        for decision in decisions:
            self.assertEqual(list(decision), FIELDS)
        self.assertEqual(self.post("/v1/check/batch", []).json(), [])
        self.assertEqual(len(self.post("/v1/check/batch", [{}] * 1000).json()), 1000)
        self.assert_refused(self.post("/v1/check/batch", [{}] * 1001), 413, "too_large", "1000")
        self.assert_refused(self.post("/v1/check/batch", {}), 400, "invalid_argument", "array")
        # The place is told, and nothing was taken.
        user = somebody()
        self.assert_refused(self.post("/v1/check/batch", [{"user": user}, {"cost": -1}]), 400,
                            "invalid_argument", "[1].cost")
        self.assertEqual(self.check({"user": user}).json()["remaining"], 2)

    def test_a_limit_that_comes_along(self):
        key = somebody()
        body = {"key": key, "limit": "2/h burst 3"}
        response = self.post("/v1/limit", body)
        self.assertEqual(response.status, 200)
        self.assertEqual((response.json()["rule"], response.json()["limit"],
                          response.json()["remaining"]), (None, 3, 2))
        self.assertEqual(response.header("RateLimit"), '"default";r=2;t=1800')
        self.assertEqual(self.post("/v1/limit", {**body, "cost": 2}).status, 200)
        response = self.post("/v1/limit", body)
        self.assertEqual((response.status, response.json()["retry_after"]), (429, 1800))
        log = {"key": key + "-log", "limit": "1/h", "algorithm": "sliding_log"}
        self.assertEqual([self.post("/v1/limit", log).status for _ in range(2)], [200, 429])
        for wrong, words in (({"key": "k"}, "limit"), ({"limit": "1/h"}, "key"),
                             ({"key": "k", "limit": "1/fortnight"}, "limit"),
                             ({"key": "k", "limit": "1/h", "algorithm": "hope"}, ""),
                             ({"key": "k", "limit": "0/h"}, "limit")):
            self.assert_refused(self.post("/v1/limit", wrong), 400, "invalid_argument", words)

    def test_a_look(self):
        user = somebody()
        for _ in range(4):
            response = self.post("/v1/peek", {"user": user})
            self.assertEqual(response.status, 200)
            self.assertEqual(response.json()["remaining"], 3)
        for _ in range(3):
            self.check({"user": user})
        response = self.post("/v1/peek", {"user": user})
        # Asking whether is answered, not refused.
        self.assertEqual((response.status, response.json()["allowed"]), (200, False))

    def test_reserve_commit_and_cancel(self):
        user = somebody()
        response = self.post("/v1/reserve", {"user": user, "cost": 3})
        self.assertEqual(response.status, 200)
        reservation = response.json()["reservation"]
        self.assertRegex(reservation, r"^[0-9a-f]{16}$")
        self.assertEqual(response.json()["remaining"], 0)
        self.assertEqual(self.post("/v1/reserve", {"user": user}).status, 429)
        response = self.post("/v1/commit", {"reservation": reservation, "cost": 1})
        self.assertEqual(response.status, 200)
        self.assertEqual(self.post("/v1/peek", {"user": user}).json()["remaining"], 2)
        for verb in ("commit", "cancel"):
            body = {"reservation": reservation, **({"cost": 1} if verb == "commit" else {})}
            self.assert_refused(self.post(f"/v1/{verb}", body), 404, "not_found")

        other = self.post("/v1/reserve", {"user": user, "cost": 2}).json()["reservation"]
        self.assertEqual(self.post("/v1/cancel", {"reservation": other}).status, 200)
        self.assertEqual(self.post("/v1/peek", {"user": user}).json()["remaining"], 2)
        for wrong in ({"reservation": "xyz"}, {}, {"reservation": 7}):
            self.assert_refused(self.post("/v1/cancel", wrong), 400, "invalid_argument",
                                "reservation")

    def test_a_reservation_that_expires(self):
        user = somebody()
        reservation = self.post("/v1/reserve", {"user": user, "cost": 2, "ttl_ms": 1}).json()[
            "reservation"]
        deadline = time.monotonic() + daemon.PATIENCE
        while True:
            self.assertLess(time.monotonic(), deadline)
            if self.post("/v1/cancel", {"reservation": reservation}).status == 404:
                break
            reservation = self.post("/v1/reserve", {"user": user, "cost": 2, "ttl_ms": 1}).json()[
                "reservation"]
        # The charge stays.
        self.assertEqual(self.post("/v1/peek", {"user": user}).json()["remaining"], 1)

    def test_places_that_are_released(self):
        body = {"org": somebody(), "path": "/jobs"}
        leases = [self.check(body).json()["reservation"] for _ in range(2)]
        response = self.check(body)
        self.assertEqual((response.status, response.json()["reason"]), (429, "limited"))
        self.assertEqual(self.post("/v1/release", {"reservation": leases[0]}).status, 200)
        self.assertEqual(self.check(body).status, 200)
        self.assert_refused(self.post("/v1/release", {"reservation": leases[0]}), 404, "not_found")

    def test_management_needs_the_right(self):
        for verb in ("refund", "penalize", "reset"):
            response = self.post(f"/v1/{verb}", {"user": "x", "rules": ["per-user"]})
            self.assert_refused(response, 403, "forbidden", "manage")
        self.assert_refused(self.client.get("/v1/top"), 403, "forbidden", "manage")


class Pages(OnOneConnection):
    def test_health_and_readiness(self):
        for path, word in (("/healthz", b"ok"), ("/readyz", b"ready")):
            response = self.client.get(path)
            self.assertEqual((response.status, response.body), (200, word))
            self.assertEqual(response.header("Content-Type"), "text/plain; charset=utf-8")

    def test_metrics(self):
        response = self.client.get("/metrics")
        self.assertEqual(response.status, 200)
        self.assertEqual(response.header("Content-Type"), "text/plain; version=0.0.4")
        self.assertIn(b"weir_decisions_total", response.body)

    def test_the_description(self):
        response = self.client.get("/openapi.json")
        self.assertEqual((response.status, response.header("Content-Type")),
                         (200, "application/json"))
        described = response.json()
        self.assertTrue(described["openapi"].startswith("3.1"))
        # Every path that it has is there, by the methods that it says and by no others.
        for path, methods in described["paths"].items():
            if path == "/v1/auth":  # One stands for all that there are.
                methods = {method: methods["get"] for method in ("get", "post", "put", "delete")}
            for method in ("GET", "POST", "PUT", "DELETE"):
                with self.subTest(path=path, method=method):
                    status = self.client.call(method, path).status
                    if method.lower() in methods:
                        self.assertNotIn(status, (404, 405))
                        self.assertIn(str(status), methods[method.lower()]["responses"])
                    else:
                        self.assertEqual(status, 405)
        self.assertLessEqual(
            {"/v1/check", "/v1/check/batch", "/v1/limit", "/v1/peek", "/v1/reserve", "/v1/commit",
             "/v1/cancel", "/v1/release", "/v1/refund", "/v1/penalize", "/v1/reset", "/v1/limits",
             "/v1/auth", "/v1/top", "/healthz", "/readyz", "/metrics", "/openapi.json"},
            set(described["paths"]))

    def test_the_limits_in_force(self):
        self.check({"user": "secret-user"})
        response = self.client.get("/v1/limits")
        self.assertEqual((response.status, response.header("Content-Type")),
                         (200, "application/json"))
        limits = {rule["name"]: rule for rule in response.json()["limits"]}
        self.assertEqual(limits["per-user"]["limit"], "3/min")
        self.assertEqual(limits["shaped"]["algorithm"], "leaky_bucket")
        self.assertNotIn(b"secret-user", response.body)
        self.assertNotIn(b"192.0.2.66", response.body)

    def test_what_there_is_not(self):
        self.assert_refused(self.client.get("/"), 404, "not_found")
        self.assert_refused(self.client.get("/v1/check/"), 404, "not_found")
        response = self.client.get("/v1/check")
        self.assert_refused(response, 405, "invalid_argument")
        self.assertEqual(response.header("Allow"), "POST")
        response = self.client.post("/healthz", {})
        self.assertEqual((response.status, response.header("Allow")), (405, "GET, HEAD"))


if __name__ == "__main__":
    daemon.main()
