#!/usr/bin/env python3
"""How the HTTP interface follows its settings: who may manage, tokens, headers, unix sockets.

    http_settings_test.py SOURCE PROGRAM [TEST...]
"""

import json
import re
import unittest

import daemon
import http_test
import http_wire

TOKEN, MANAGE_TOKEN = "a-token-for-those-who-ask", "a-token-for-those-who-manage"
TOKENS = {"WEIR_E2E_TOKEN": TOKEN, "WEIR_E2E_MANAGE": MANAGE_TOKEN}


class ManageOpen(http_test.OnOneConnection):
    policy = "manage: open\n" + http_test.POLICY

    def manage(self, verb, body):
        return self.client.post(f"/v1/{verb}", {**body, "rules": ["per-user"]})

    def remaining(self, user):
        return self.client.post("/v1/peek", {"user": user}).json()["remaining"]

    def test_refund_penalize_and_reset(self):
        user = http_test.somebody()
        self.check({"user": user, "cost": 3})
        self.assertEqual(self.manage("refund", {"user": user, "cost": 2}).status, 200)
        self.assertEqual(self.remaining(user), 2)
        self.assertEqual(self.manage("refund", {"user": user, "cost": 100}).status, 200)
        self.assertEqual(self.remaining(user), 3)  # Never past fresh.
        self.assertEqual(self.manage("penalize", {"user": user, "cost": 4}).status, 200)
        response = self.check({"user": user})
        self.assertEqual((response.status, response.json()["retry_after"]), (429, 40))
        self.assertEqual(self.manage("reset", {"user": user}).status, 200)
        self.assertEqual(self.remaining(user), 3)

    def test_reset_lifts_a_ban(self):
        body = {"org": http_test.somebody(), "path": "/login"}
        for _ in range(4):
            response = self.check(body)
        self.assertEqual(response.json()["reason"], "banned")
        self.assertEqual(self.client.post("/v1/reset", {**body, "rules": ["login"]}).status, 200)
        self.assertEqual(self.check(body).status, 200)

    def test_who_is_denied_most(self):
        users = [http_test.somebody() for _ in range(3)]
        for times, user in zip((3 + 30, 3 + 20, 3 + 10), users):
            for _ in range(times):
                self.check({"user": user})
        response = self.client.get("/v1/top?n=3")
        self.assertEqual(response.status, 200)
        self.assertEqual([(key["rule"], key["key"], key["denials"])
                          for key in response.json()["keys"]],
                         [("per-user", f"user={user}", count)
                          for user, count in zip(users, (30, 20, 10))])
        self.assertEqual(len(self.client.get("/v1/top?n=1").json()["keys"]), 1)
        for query in ("?n=0", "?n=1001", "?n=x", "?m=1"):
            self.assert_refused(self.client.get("/v1/top" + query), 400, "invalid_argument", "n")


class Tokens(http_test.OnOneConnection):
    policy = """\
listen:
  http: { address: 127.0.0.1:0, token: env:WEIR_E2E_TOKEN, manage_token: env:WEIR_E2E_MANAGE }
""" + http_test.POLICY
    environment = TOKENS

    def bearer(self, token):
        return {"headers": [("Authorization", f"Bearer {token}")]}

    def test_none_or_a_wrong_one(self):
        for more in ({}, self.bearer("wrong"), self.bearer(""), self.bearer(TOKEN + "x"),
                     {"headers": [("Authorization", f"Basic {TOKEN}")]},
                     {"headers": [("Authorization", TOKEN)]}):
            response = self.check({}, **more)
            self.assert_refused(response, 401, "unauthenticated", "token")
            self.assertEqual(response.header("WWW-Authenticate"), "Bearer")
        for path in ("/v1/limits", "/v1/top", "/metrics", "/openapi.json"):
            self.assertEqual(self.client.get(path).status, 401, path)

    def test_health_needs_none(self):
        for path in ("/healthz", "/readyz"):
            self.assertEqual(self.client.get(path).status, 200)

    def test_the_right_one(self):
        self.assertEqual(self.check({}, **self.bearer(TOKEN)).status, 200)
        self.assertEqual(self.check({}, headers=[("authorization", f"bearer  {TOKEN}")]).status, 200)
        self.assertEqual(self.client.get("/metrics", **self.bearer(TOKEN)).status, 200)
        self.assert_refused(self.client.get("/v1/top", **self.bearer(TOKEN)), 403, "forbidden")
        self.assert_refused(self.client.post("/v1/reset", {"user": "x", "rules": ["per-user"]},
                                             **self.bearer(TOKEN)), 403, "forbidden")

    def test_the_one_for_managing(self):
        more = self.bearer(MANAGE_TOKEN)
        self.assertEqual(self.check({}, **more).status, 200)
        self.assertEqual(self.client.get("/v1/top", **more).status, 200)
        self.assertEqual(self.client.post("/v1/reset", {"user": "x", "rules": ["per-user"]},
                                          **more).status, 200)


class HeaderSettings(unittest.TestCase):
    def headers(self, settings):
        with daemon.Daemon(settings + http_test.POLICY) as service:
            response = http_wire.once(service.http, "POST", "/v1/check", {"user": "ann"})
            return {name: value for name, value in response.headers if "ratelimit" in name.lower()}

    def test_reset_as_a_difference(self):
        self.assertEqual(self.headers("reset: delta\n"), {
            "X-RateLimit-Limit": "3", "X-RateLimit-Remaining": "2", "X-RateLimit-Reset": "20",
            "RateLimit-Policy": '"per-user";q=3;w=60', "RateLimit": '"per-user";r=2;t=20'})

    def test_one_family_only(self):
        self.assertEqual(self.headers("headers: [ratelimit]\n"), {
            "RateLimit-Policy": '"per-user";q=3;w=60', "RateLimit": '"per-user";r=2;t=20'})
        self.assertEqual(set(self.headers("headers: [x-ratelimit]\n")),
                         {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"})

    def test_long_names_of_many_rules(self):
        """The longest that a policy may have."""
        longest = 64
        rules = "rules:\n" + "".join(
            f"  - {{ name: {'n' * (longest - 2)}{number:02}, key: user, limit: 10/min }}\n"
            for number in range(32))
        with daemon.Daemon(rules) as service:
            response = http_wire.once(service.http, "POST", "/v1/check", {"user": "ann"})
            self.assertEqual(response.status, 200)
            names = re.findall(r'"([^"]+)";q=10;w=60', response.header("RateLimit-Policy"))
            self.assertEqual(len(names), 32)


class UnixSocket(unittest.TestCase):
    def test_serves(self):
        policy = "listen: { http: 'unix:{folder}/weir.sock' }\n" + http_test.POLICY
        with daemon.Daemon(policy) as service:
            path = service.addresses["http"].removeprefix("unix:")
            with http_wire.Client(path) as client:
                self.assertEqual(client.post("/v1/check", {"user": "ann"}).status, 200)
                self.assertEqual(client.get("/healthz").body, b"ok")
                self.assertEqual(json.loads(client.get("/v1/limits").body)["limits"][0]["name"],
                                 "per-ip")


if __name__ == "__main__":
    daemon.main()
