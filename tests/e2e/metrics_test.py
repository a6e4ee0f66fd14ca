#!/usr/bin/env python3
"""What the service tells Prometheus: by the rules of the format, complete, right, and of nobody.

    metrics_test.py SOURCE PROGRAM [TEST...]
"""

import os
import signal
import time
import unittest

import daemon
import http_wire
import metrics_text
import resp_wire

POLICY = """\
deny:
  - { ip: 192.0.2.66 }
allow:
  - { ip: 192.0.2.1 }
rules:
  - name: per-user
    match: { user: present }
    key: user
    limit: 2/h
  - name: tried
    match: { org: present }
    key: org
    limit: 1/h
    mode: shadow
  - name: shaped
    match: { path: /shaped }
    key: user
    limit: 1/h burst 10
    algorithm: leaky_bucket
    queue: true
"""
# Type and labels of each.
METRICS = {
    "weir_decisions_total": ("counter", {"rule", "outcome"}),
    "weir_decision_seconds": ("histogram", {"frontend"}),
    "weir_requests_total": ("counter", {"frontend", "code"}),
    "weir_table_bytes": ("gauge", set()),
    "weir_table_entries": ("gauge", set()),
    "weir_evictions_total": ("counter", {"kind"}),
    "weir_policy_version": ("gauge", set()),
    "weir_policy_reloads_total": ("counter", {"result"}),
    "weir_connections": ("gauge", {"listener"}),
    "weir_refused_total": ("counter", {"listener", "why"}),
    "weir_waiters": ("gauge", set()),
    "weir_reservations": ("gauge", set()),
    "weir_buffered_bytes": ("gauge", set()),
    "weir_ready": ("gauge", set()),
    "weir_start_time_seconds": ("gauge", set()),
}
# The only values that labels other than rules' names have.
VALUES = {
    "outcome": {"allowed", "denied", "shadow_denied", "allow_list", "deny_list", "no_rule"},
    "frontend": {"http", "resp"},
    "listener": {"http", "resp"},
    "kind": {"live", "denied"},
    "result": {"applied", "refused"},
    "why": {"connections", "per_address", "buffers", "header", "body", "command", "pipeline",
            "output", "idle_timeout", "header_timeout", "write_timeout", "waiters", "token",
            "protocol", "tls", "h2_streams", "h2_resets", "h2_settings", "h2_pings", "h2_windows",
            "h2_priorities", "h2_small_data", "h2_others", "h2_header_bytes", "h2_continuations"},
}


class Metrics(unittest.TestCase):
    def setUp(self):
        self.daemon = self.enterContext(daemon.Daemon(POLICY))
        self.http = self.enterContext(http_wire.Client(self.daemon.http))
        self.observer = self.enterContext(http_wire.Client(self.daemon.http))

    def read(self):
        return metrics_text.Metrics.of(self.observer)

    def check(self, **body):
        return self.http.post("/v1/check", body)

    def test_are_all_there_by_the_rules_of_the_format(self):
        self.check(user="ann")
        with resp_wire.Client(self.daemon.resp) as resp:
            resp.call("CL.THROTTLE", "k", 15, 30, 60)
        metrics = self.read()
        for name, (kind, labels) in METRICS.items():
            with self.subTest(name):
                family = metrics.families[name]
                self.assertEqual(family.type, kind)
                self.assertTrue(family.help.endswith("."))
                self.assertTrue(family.samples)
                for _, pairs in family.samples:
                    self.assertEqual({name for name, _ in pairs} - {"le"}, labels)
                    for label, value in pairs:
                        self.assertIn(value, VALUES.get(label, {value}))
        for name in metrics.families:
            self.assertTrue(name.startswith("weir_"), name)

    def test_decisions_by_rule_and_outcome(self):
        for _ in range(3):
            self.check(user="ann")
        for _ in range(2):
            self.check(org="acme")
        self.check(ip="192.0.2.66")
        self.check(ip="192.0.2.1")
        self.check()
        with resp_wire.Client(self.daemon.resp) as resp:
            resp.call("WEIR.CHECK", "per-user", "user", "ann")
            resp.pipeline([("WEIR.CHECK", "*", "user", "bob")] * 3)
        self.http.post("/v1/check/batch", [{"user": "eve"}] * 3)
        self.http.post("/v1/peek", {"user": "ann"})
        metrics = self.read()

        def decided(rule, outcome):
            return metrics.value("weir_decisions_total", rule=rule, outcome=outcome)

        self.assertEqual(decided("per-user", "allowed"), 2 + 2 + 2)
        self.assertEqual(decided("per-user", "denied"), 1 + 1 + 1 + 1)
        self.assertEqual(decided("tried", "allowed"), 1)
        self.assertEqual(decided("tried", "shadow_denied"), 1)
        for outcome in ("deny_list", "allow_list", "no_rule"):
            self.assertEqual(metrics.total("weir_decisions_total", outcome=outcome), 1, outcome)

    def test_requests_by_how_they_were_answered(self):
        before = self.read()
        for _ in range(3):
            self.check(user="ann")
        self.check(ip="192.0.2.66")
        self.http.get("/nothing")
        self.http.get("/v1/check")
        self.http.post("/v1/check", b"{")
        self.http.post("/v1/refund", {"user": "ann", "rules": ["per-user"]})
        with resp_wire.Client(self.daemon.resp) as resp:
            resp.pipeline([("CL.THROTTLE", "k", 15, 30, 60)] * 100)
            resp.call("NONSENSE")
            resp.call("WEIR.REFUND", "per-user", "user", "ann")
            resp.call("AUTH", "default", "x")
        after = self.read()

        def rise(frontend, code):
            labels = {"frontend": frontend, "code": code}
            return (after.value("weir_requests_total", **labels)
                    - before.value("weir_requests_total", **labels))

        self.assertEqual({code: rise("http", code) for code in ("429", "403", "404", "405", "400")},
                         {"429": 1, "403": 2, "404": 1, "405": 1, "400": 1})
        # Two that were allowed; and looking counts itself when it is done.
        self.assertEqual(rise("http", "200"), 2 + 1)
        self.assertEqual((rise("resp", "OK"), rise("resp", "ERR"), rise("resp", "NOPERM")),
                         (101, 1, 1))

    def test_how_long_decisions_took(self):
        for _ in range(2):
            self.check(user="ann")
        self.http.post("/v1/check/batch", [{}] * 10)
        with resp_wire.Client(self.daemon.resp) as resp:
            resp.pipeline([("CL.THROTTLE", "k", 15, 30, 60)] * 100)
        metrics = self.read()
        self.assertEqual(metrics.value("weir_decision_seconds_count", frontend="http"), 12)
        self.assertEqual(metrics.value("weir_decision_seconds_count", frontend="resp"), 100)
        took = metrics.value("weir_decision_seconds_sum", frontend="resp")
        self.assertTrue(0 < took < 10, took)

    def test_connections_and_those_who_wait(self):
        self.check()  # So it has been let in.
        self.assertEqual(self.read().value("weir_connections", listener="http"), 2)
        clients = [resp_wire.Client(self.daemon.resp) for _ in range(7)]
        for client in clients:
            client.call("PING")
        self.assertEqual(self.read().value("weir_connections", listener="resp"), 7)
        clients[0].call("WEIR.CHECK", "shaped", "path", "/shaped")
        clients[0].send("WEIR.CHECK", "shaped", "path", "/shaped", "@wait_ms", 0)
        clients[0].receive()
        for client in clients:
            client.close()
        deadline = time.monotonic() + daemon.PATIENCE
        while self.read().value("weir_connections", listener="resp") != 0:
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual(self.read().value("weir_waiters"), 0)

    def test_keys_and_reservations(self):
        before = self.read()
        for number in range(100):
            self.http.post("/v1/limit", {"key": f"key-{number}", "limit": "1/h"})
        reserved = self.http.post("/v1/reserve", {"user": "ann"}).json()["reservation"]
        after = self.read()
        self.assertGreaterEqual(after.value("weir_table_entries"),
                                before.value("weir_table_entries") + 100)
        self.assertGreater(after.value("weir_table_bytes"), 0)
        self.assertEqual(after.value("weir_reservations"), 1)
        self.http.post("/v1/cancel", {"reservation": reserved})
        self.assertEqual(self.read().value("weir_reservations"), 0)

    def test_versions_of_the_policy(self):
        self.assertEqual(self.read().value("weir_policy_version"), 1)
        new = self.daemon.policy_file.with_suffix(".new")
        text = self.daemon.policy_file.read_text(encoding="utf-8")
        new.write_text(text.replace("2/h", "3/h"), encoding="utf-8")
        os.replace(new, self.daemon.policy_file)
        self.daemon.tell(signal.SIGHUP)
        self.daemon.wait_for("version 2 is in force")
        deadline = time.monotonic() + daemon.PATIENCE
        while self.read().value("weir_policy_reloads_total", result="applied") < 1:
            self.assertLess(time.monotonic(), deadline)
        self.assertEqual(self.read().value("weir_policy_version"), 2)

    def test_say_nothing_about_anybody(self):
        secret = "zq7secret"
        body = {"ip": "203.0.113.77", "user": secret, "api_key": secret, "org": secret,
                "tier": secret, "path": f"/{secret}", "host": f"{secret}.example",
                "headers": {"x-h": secret}, "cookies": {"c": secret}, "query": {"q": secret},
                "descriptors": {"d": secret}}
        for _ in range(5):
            self.http.post("/v1/check", body)
            self.http.post("/v1/limit", {"key": secret, "limit": "1/h"})
            self.http.post("/v1/check", {secret: 1})
            self.http.get(f"/{secret}", headers=[("Authorization", f"Bearer {secret}")])
        with resp_wire.Client(self.daemon.resp) as resp:
            resp.call("CLIENT", "SETNAME", secret)
            resp.call("AUTH", secret)
            resp.call(secret)
            resp.call("CL.THROTTLE", secret, 0, 1, 60)
            resp.call("CL.THROTTLE", secret, 0, 1, 60)
            resp.call("WEIR.CHECK", secret, "user", secret)
        text = self.read().text
        self.assertNotIn(secret, text)
        self.assertNotIn("203.0.113", text)


class ManyRules(unittest.TestCase):
    def test_share_a_name_beyond_a_thousand(self):
        rules = "rules:\n" + "".join(
            f"  - {{ name: r{number}, match: {{ path: /{number} }}, key: ip, limit: 1/h }}\n"
            for number in range(1_010))
        with daemon.Daemon(rules) as service, http_wire.Client(service.http) as client:
            for number in range(1_010):
                client.post("/v1/check", {"path": f"/{number}", "ip": "192.0.2.9"})
            metrics = metrics_text.Metrics.of(client)
            names = {dict(labels)["rule"]
                     for _, labels in metrics.families["weir_decisions_total"].samples}
            self.assertLessEqual(len(names - {""}), 1_001)
            self.assertEqual(metrics.value("weir_decisions_total", rule="other", outcome="allowed"),
                             10)
            self.assertEqual(metrics.value("weir_decisions_total", rule="r0", outcome="allowed"), 1)


class TheParser(unittest.TestCase):
    """It would be worth nothing if it took everything."""

    def test_refuses_what_is_wrong(self):
        good = "# HELP a_total What.\n# TYPE a_total counter\na_total{x=\"y\"} 1\n"
        metrics_text.parse(good)
        for bad in (good[:-1], good + good, "a_total 1\n", good.replace("counter", "number"),
                    good.replace('x="y"', 'x="y'), good.replace('x="y"', 'x="y",'),
                    good.replace('x="y"', '9="y"'), good.replace("} 1", "} one"),
                    good.replace("} 1", "} -1"), good + 'a_total{x="y"} 2\n',
                    good + "b_total 1\n", good.replace("a_total", "a"),
                    good.replace('x="y"', 'x="y",x="z"')):
            with self.subTest(bad), self.assertRaises((AssertionError, ValueError)):
                metrics_text.parse(bad)
        histogram = ("# HELP h What.\n# TYPE h histogram\n"
                     'h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 3\nh_sum 4\nh_count 3\n')
        metrics_text.parse(histogram)
        for bad in (histogram.replace("h_count 3", "h_count 4"),
                    histogram.replace('le="1"} 2', 'le="1"} 4'),
                    histogram.replace('h_bucket{le="+Inf"} 3\n', "")):
            with self.subTest(bad), self.assertRaises((AssertionError, KeyError)):
                metrics_text.parse(bad)


if __name__ == "__main__":
    daemon.main()
