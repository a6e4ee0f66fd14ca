#!/usr/bin/env python3
"""The dashboard for Grafana and the alert rules for Prometheus, against what the service tells.

    monitoring_test.py SOURCE PROGRAM [TEST...]

A metric that is drawn or alerted on must be on the page of a running service, with the labels that
are asked for; every expression must be one that Prometheus reads.
"""

import json
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

import yaml

import daemon
import http_wire
import metrics_text

POLICY = """\
rules:
  - name: per-user
    match: { user: present }
    key: user
    limit: 1/h
"""
# What only a service with certificates has.
WITH_TLS = {"weir_tls_certificate_expiry_seconds": {"listener"},
            "weir_tls_reloads_total": {"listener", "result"}}
# Put there by Prometheus, not by us.
ADDED = {"instance", "job", "le"}
UNITS = {"reqps", "ops", "percentunit", "s", "bytes", "none"}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def labels_by_metric(*policies):
    """What services under these policies tell, once they have decided something. Histograms by the
    names of their parts."""
    found = dict(WITH_TLS)
    for policy in policies:
        with daemon.Daemon(policy) as service, http_wire.Client(service.http) as client:
            client.post("/v1/check", {"user": "ann"})
            client.post("/v1/check", {"user": "ann"})
            families = metrics_text.Metrics.of(client).families
            for family in families.values():
                for (name, pairs) in family.samples:
                    found.setdefault(name, set()).update(label for label, _ in pairs)
    return found


class Asked:
    """The metrics and labels of an expression."""

    def __init__(self, expression):
        self.expression = expression
        self.metrics = set(re.findall(r"\bweir_\w+", expression))
        self.selected = {(metric, label)
                         for metric, braces in re.findall(r"\b(weir_\w+)\{([^}]*)\}", expression)
                         for label in re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", braces)}
        self.grouped = {label.strip() for group in re.findall(r"\bby \(([^)]*)\)", expression)
                        for label in group.split(",")}


class Monitoring(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        port = free_port()
        server = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--bind",
                                   "127.0.0.1"], stdout=subprocess.DEVNULL)
        try:
            cls.wait_for(port)
            cls.labels = labels_by_metric(POLICY, f"store: redis://127.0.0.1:{port}\n" + POLICY)
        finally:
            server.kill()
            server.wait()
        cls.dashboard = json.loads((daemon.source / "docs/grafana/weir.json")
                                   .read_text(encoding="utf-8"))
        cls.panels = [panel for panel in cls.dashboard["panels"] if panel["type"] != "row"]
        text = (daemon.source / "docs/alerts.yaml").read_text(encoding="utf-8")
        cls.alerts = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]

    @staticmethod
    def wait_for(port):
        deadline = time.monotonic() + daemon.PATIENCE
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except ConnectionRefusedError:
                pass
        raise AssertionError("redis-server does not start")

    def check(self, where, expression):
        asked = Asked(expression)
        for metric in asked.metrics:
            self.assertIn(metric, self.labels, where)
        for metric, label in asked.selected:
            self.assertIn(label, self.labels[metric] | ADDED, f"{where}: {metric}")
        known = set().union(*(self.labels[metric] for metric in asked.metrics)) | ADDED
        self.assertLessEqual(asked.grouped, known, where)

    def test_alerts_ask_for_what_there_is(self):
        self.assertGreater(len(self.alerts), 10)
        for rule in self.alerts:
            self.check(rule["alert"], rule["expr"])

    def test_the_dashboard_asks_for_what_there_is(self):
        for panel in self.panels:
            self.assertTrue(panel["targets"], panel["title"])
            for target in panel["targets"]:
                self.check(panel["title"], target["expr"])
                asked = Asked(target["expr"])
                self.assertTrue(asked.metrics, panel["title"])
                # One node can be picked everywhere.
                self.assertEqual({metric for metric, label in asked.selected if label == "instance"},
                                 asked.metrics, panel["title"])
                # What a legend names must be left in the outcome.
                named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                left = asked.grouped or set().union(
                    *(self.labels[metric] for metric in asked.metrics)) | ADDED
                self.assertLessEqual(named, left, panel["title"])

    def test_the_dashboard_shows_all_that_there_is(self):
        shown = {metric for panel in self.panels for target in panel["targets"]
                 for metric in Asked(target["expr"]).metrics}
        families = {re.sub(r"_(bucket|sum|count)$", "", metric) for metric in shown}
        known = {re.sub(r"_(bucket|sum|count)$", "", metric) for metric in self.labels}
        # How often it has begun to fail is seen from how long it did.
        self.assertEqual(known - families, {"weir_degraded_times_total"})

    def test_prometheus_reads_every_expression(self):
        if shutil.which("promtool") is None:
            self.fail("promtool is missing: install the package prometheus")
        rules = [{"record": "weir:panel", "labels": {"panel": str(number)},
                  "expr": expression.replace("$__rate_interval", "5m").replace("$instance", ".*")}
                 for number, expression in enumerate(
                     target["expr"] for panel in self.panels for target in panel["targets"])]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as file:
            yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}, file)
            file.flush()
            done = subprocess.run(["promtool", "check", "rules", file.name], capture_output=True,
                                  text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{len(rules)} rules found", done.stdout)

    def test_the_dashboard_can_be_imported(self):
        self.assertGreaterEqual(self.dashboard["schemaVersion"], 36)
        self.assertIsNone(self.dashboard.get("id"), "the number is for the server to choose")
        variables = {one["name"]: one for one in self.dashboard["templating"]["list"]}
        self.assertEqual(variables["datasource"]["type"], "datasource")
        self.assertEqual(variables["datasource"]["query"], "prometheus")
        metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)",
                                     variables["instance"]["definition"]).groups()
        self.assertIn(metric, self.labels)
        self.assertEqual(label, "instance")
        for panel in self.panels:
            for one in (panel, *panel["targets"]):
                self.assertEqual(one["datasource"]["uid"], "${datasource}", panel["title"])

    def test_panels_have_titles_units_and_a_place_of_their_own(self):
        everything = self.dashboard["panels"]
        self.assertEqual(len({panel["id"] for panel in everything}), len(everything))
        self.assertEqual(len({panel["title"] for panel in everything}), len(everything))
        for panel in self.panels:
            self.assertIn(panel["fieldConfig"]["defaults"]["unit"], UNITS, panel["title"])
            self.assertTrue(panel["description"].endswith("."), panel["title"])
            names = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(set(names)), len(names), panel["title"])
        taken = {}
        for panel in everything:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            for x in range(place["x"], place["x"] + place["w"]):
                for y in range(place["y"], place["y"] + place["h"]):
                    self.assertNotIn((x, y), taken, f"{panel['title']} lies on another")
                    taken[x, y] = panel["title"]


if __name__ == "__main__":
    daemon.main()
