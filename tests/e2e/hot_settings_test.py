#!/usr/bin/env python3
"""Every key of a policy, changed while the service runs: it takes effect, or the log says why not.

    hot_settings_test.py SOURCE PROGRAM [TEST...]

The schema of policies says which keys there are, so that a new one cannot be forgotten here.
"""

import contextlib
import json
import os
import re
import signal
import socket
import time
import unittest

import daemon
import http_wire
import metrics_text
import resp_wire

LISTEN = "listen: { http: 127.0.0.1:0, resp: 127.0.0.1:0 }\n"
RULES = """\
rules:
  - { name: per-user, match: { user: present }, key: user, limit: 2/h }
  - { name: per-ip, match: { user: absent, org: absent }, key: ip, limit: 2/h }
  - { name: shaped, match: { org: present }, key: org, limit: 20/min burst 2 }
"""
# Tested where what they steer is.
ELSEWHERE = {
    "listen": "listeners are those of the start",
    "manage": "with tokens, which are hot as well",
    "trusted_proxies": "who asks is found by forward-auth",
    "identity": "likewise",
    "client_ip.header": "likewise",
    "client_ip.hops": "likewise",
    "queue_hold": "what forward-auth and Envoy cannot be told",
    "memory.cap": "with what else may change about stores",
    "memory.snapshot": "where it is written",
    "limits.output": "what is too much takes a client that does not read",
    "limits.write_timeout": "likewise",
    "limits.buffers": "what all clients hold together",
}
SECRET = {"WEIR_TEST_SECRET": "0123456789abcdef0123456789abcdef"}


def keys_of_the_schema():
    schema = json.loads((daemon.source / "docs/weir.schema.json").read_text(encoding="utf-8"))

    def resolved(node):
        while "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        return node

    for key, node in schema["properties"].items():
        if key in ("limits", "memory", "client_ip", "redis"):
            for below in resolved(node)["properties"]:
                yield f"{key}.{below}"
        else:
            yield key


class Settings(unittest.TestCase):
    covered = set()

    def start(self, policy=RULES, **options):
        self.policy = policy
        self.service = self.enterContext(daemon.Daemon(LISTEN + policy, environment=SECRET, **options))
        self.version = 1
        return self.service

    def change(self, added="", policy=None):
        """Puts this before the rules, and waits until it is in force. What the log said."""
        self.covered.update(re.findall(r"^(\w+):", added, re.MULTILINE))
        self.covered.update(f"{outer}.{inner}" for outer, inner in
                            re.findall(r"^(limits|memory|client_ip|redis): \{ (\w+):", added,
                                       re.MULTILINE))
        new = self.service.policy_file.with_suffix(".new")
        new.write_text(LISTEN + added + (policy or self.policy), encoding="utf-8")
        after = len(self.service.log)
        os.replace(new, self.service.policy_file)
        self.service.tell(signal.SIGHUP)
        self.version += 1
        self.service.wait_for(f"version {self.version} is in force", after=after)
        # It is counted once the threads were told, and they take it up between two turns of their
        # loops: by the time they have answered once more.
        deadline = time.monotonic() + daemon.PATIENCE
        while metrics_text.scrape(self.service.http).value("weir_policy_reloads_total",
                                                           result="applied") < self.version - 1:
            self.assertLess(time.monotonic(), deadline)
        self.ask()
        return after

    def ask(self, body=None):
        with http_wire.Client(self.service.http) as client:
            return client.post("/v1/peek", body or {"user": "nobody"})

    def await_source(self, source):
        """A thread goes on as before until it knows how the next store fares."""
        deadline = time.monotonic() + daemon.PATIENCE
        while self.check({"user": "somebody"}).json()["source"] != source:
            self.assertLess(time.monotonic(), deadline)

    def check(self, body):
        with http_wire.Client(self.service.http) as client:
            return client.post("/v1/check", body)

    def test_headers_and_reset(self):
        self.start(threads=1)
        self.assertIsNotNone(self.check({"user": "a"}).header("X-RateLimit-Limit"))
        self.change("headers: [ratelimit]\n")
        response = self.check({"user": "b"})
        self.assertIsNone(response.header("X-RateLimit-Limit"))
        self.assertIsNotNone(response.header("RateLimit"))
        self.assertGreater(int(self.reset_under("")), 1_000_000_000)
        self.assertLess(int(self.reset_under("reset: delta\n")), 100_000)

    def reset_under(self, added):
        self.change(added + "fleet_size: 2\n")  # So that there is always a change.
        return self.check({"user": "c"}).header("X-RateLimit-Reset")

    def test_who_counts_as_whom(self):
        self.start(threads=1)
        self.assertTrue(self.check({}).json()["allowed"])
        self.change("unidentified: deny\n")
        self.assertFalse(self.check({}).json()["allowed"])
        # By 64 bits these are two, by 32 one.
        first, second = {"ip": "2001:db8:1::1"}, {"ip": "2001:db8:2::1"}
        self.change("client_ip: { ipv6_prefix: 32 }\n")
        self.assertEqual(self.check(first).json()["remaining"], 1)
        self.assertEqual(self.check(second).json()["remaining"], 0)

    def test_rules_tiers_and_lists(self):
        self.start(threads=1)
        self.change("allow:\n  - { ip: 192.0.2.1 }\ndeny:\n  - { ip: 192.0.2.2 }\n")
        self.assertEqual(self.check({"ip": "192.0.2.1"}).json()["reason"], "allow_list")
        self.assertEqual(self.check({"ip": "192.0.2.2"}).json()["reason"], "deny_list")
        tiered = RULES.replace("limit: 2/h }", "limit: { tier: requests } }", 1)
        self.change("tiers:\n  free: { requests: 7/h }\nidentity:\n"
                    "  tier: { header: x-tier, default: free }\n", tiered)
        self.assertEqual(self.check({"user": "t", "tier": "free"}).json()["limit"], 7)
        self.covered.add("rules")
        self.change("", RULES.replace("2/h", "5/h"))
        self.assertEqual(self.check({"user": "t"}).json()["limit"], 5)

    def test_waits(self):
        self.start(threads=1)
        self.change("max_wait: 1ms\n")
        self.exhaust("a")
        # It would be let through after three seconds.
        self.assertFalse(self.check({"org": "a", "wait_ms": 60_000}).json()["allowed"])
        self.change("limits: { waiters: 1 }\n")
        self.exhaust("b")
        with http_wire.Client(self.service.http) as waiting:
            waiting.send(http_wire.request("POST", "/v1/check", {"org": "b", "wait_ms": 60_000}))
            deadline = time.monotonic() + daemon.PATIENCE
            while metrics_text.scrape(self.service.http).value("weir_waiters") < 1:
                self.assertLess(time.monotonic(), deadline)
            self.assertEqual(self.check({"org": "b", "wait_ms": 60_000}).json()["reason"], "overload")

    def exhaust(self, org):
        while self.check({"org": org}).json()["allowed"]:
            pass

    def test_bounds_on_what_is_sent(self):
        self.start(threads=1)
        with http_wire.Client(self.service.http) as client:
            body = json.dumps({"user": "x" * 2000}).encode()
            self.assertNotEqual(client.post("/v1/peek", body).status, 413)
        self.change("limits: { body: 1000 }\n")
        with http_wire.Client(self.service.http) as client:
            self.assertEqual(client.post("/v1/peek", body).status, 413)
        self.change("limits: { header: 1024 }\n")
        with http_wire.Client(self.service.http) as client:
            client.send(http_wire.request("GET", "/healthz", headers=[("X", "x" * 3000)]))
            self.assertEqual(client.receive().status, 431)
        self.change("limits: { command: 1024 }\n")
        with resp_wire.Client(self.service.resp) as client:
            client.send("PING", "x" * 5000)
            self.assertIn("Protocol error", str(client.receive()))

    def test_bounds_on_connections(self):
        self.start(threads=1)
        observer = self.enterContext(http_wire.Client(self.service.http))
        for key in ("connections", "per_address"):
            self.change(f"limits: {{ {key}: 10 }}\n")
            # Those that asked are gone, as far as the service knows.
            deadline = time.monotonic() + daemon.PATIENCE
            while metrics_text.Metrics.of(observer).value("weir_connections", listener="http") > 1:
                self.assertLess(time.monotonic(), deadline)
            with contextlib.ExitStack() as stack:
                for _ in range(9):
                    client = stack.enter_context(http_wire.Client(self.service.http))
                    self.assertEqual(client.get("/healthz").status, 200)
                last = stack.enter_context(http_wire.Client(self.service.http))
                self.assertEqual(last.receive().status, 503, key)

    def test_a_pipeline_that_is_too_long(self):
        self.start(threads=1)
        self.change("limits: { pipeline: 1 }\n")
        for _ in range(2):
            self.assertTrue(self.check({"org": "p"}).json()["allowed"])
        with resp_wire.Client(self.service.resp) as client:
            words = ("WEIR.CHECK", "shaped", "org", "p", "@wait_ms", 300)
            client.socket.sendall(resp_wire.command(*words) * 3)
            for _ in range(3):
                client.receive()
        self.assertGreater(metrics_text.scrape(self.service.http).value(
            "weir_refused_total", listener="resp", why="pipeline"), 0)

    def test_patience_with_clients(self):
        self.start(threads=1)
        self.change("limits: { idle_timeout: 1s }\n")
        with resp_wire.Client(self.service.resp) as client:
            self.assertTrue(client.is_closed())
        self.change("limits: { header_timeout: 1s }\n")
        with http_wire.Client(self.service.http) as client:
            client.send(b"GET /healthz HTTP/1.1\r\n")
            self.assertEqual(client.receive().status, 408)

    def test_a_store_that_fails(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))  # Where nobody listens.
            store = f"store: redis://127.0.0.1:{nobody.getsockname()[1]}\n"
            self.start(store + "on_store_failure: open\n" + RULES, threads=1)
            self.assertEqual(self.check({"user": "a"}).json()["source"], "open")
            self.covered.add("on_store_failure")
            self.change("", store + "on_store_failure: closed\n" + RULES)
            self.assertEqual(self.check({"user": "a"}).json()["source"], "closed")
            self.change("fleet_size: 3\n", store + RULES)
            self.assertEqual(metrics_text.scrape(self.service.http).value("weir_fleet_size"), 3)
            # What they do is seen with a server that answers.
            for setting in ("connect_timeout: 100ms", "timeout: 20ms", "connections: 2",
                            "max_in_flight: 10"):
                self.change(f"redis: {{ {setting} }}\n", store + RULES)
                self.await_source("fallback")

    def test_what_a_change_costs_is_said(self):
        self.start(threads=1)
        after = self.change("hash_secret: env:WEIR_TEST_SECRET\n")
        self.service.wait_for("hash_secret: under another secret all keys that are hashed start anew",
                              after=after)
        after = self.change("store: redis://127.0.0.1:1\n")
        self.service.wait_for("another store: what keys have used", after=after)
        self.service.wait_for("store address=redis://127.0.0.1:1", after=after)
        self.await_source("fallback")
        after = self.change()
        self.service.wait_for("store address=memory", after=after)
        self.assertEqual(self.check({"user": "m"}).json()["source"], "memory")
        # Nothing is said when nothing of it changes.
        after = self.change("", RULES.replace("2/h", "3/h"))
        said = "\n".join(self.service.log[after:])
        for words in ("hash_secret", "another store", "store address"):
            self.assertNotIn(words, said)

    def test_zzz_no_key_was_forgotten(self):
        """The last by its name, after all others have noted what they changed."""
        if len(self.covered) < 15:
            self.skipTest("only some of the tests were run")
        self.assertEqual({key for key in keys_of_the_schema()
                          if key not in self.covered and key not in ELSEWHERE}, set())


if __name__ == "__main__":
    daemon.main()
