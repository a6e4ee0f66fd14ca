#!/usr/bin/env python3
"""The description of the HTTP interface against the running service, both ways: what is described
is there and answers as described, and what is there is described.

    openapi_test.py SOURCE PROGRAM [TEST...]
"""

import email.utils
import http.client
import json
import pathlib
import re
import sys
import time
import unittest

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import daemon  # pylint: disable=wrong-import-position

POLICY = """\
listen: { http: { address: "127.0.0.1:0", token: env:USE, manage_token: env:MANAGE } }
trusted_proxies: [ 127.0.0.1 ]
deny: [ { user: mallory } ]
rules:
  - { name: per-user, key: user, limit: 5/min, match: { user: present } }
  - { name: exports, key: user, limit: 1 concurrent lease 30s, match: { path: /export } }
  - { name: tiered, key: user, limit: { tier: api }, match: { path: /tiered } }
  - { name: watched, key: ip, limit: 1/day, mode: shadow }
identity: { tier: { default: plain }, user: { header: x-user } }
tiers: { plain: { api: 10/min }, gold: { api: 100/min } }
"""
USE, MANAGE = "token-of-those-who-ask", "token-of-those-who-manage"
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
# As in the table of the implementation, which is not asked here on purpose.
UNDESCRIBED = ("/", "/v1", "/v1/", "/v1/authx", "/v1/auth%2fx", "/v1/checks", "/v1/check/", "/admin/v1",
               "/health", "/metrics/", "/openapi", "/openapi.yaml", "/v1/commits", "/v2/check")
# Takes every method; only one is described.
ANY = "/v1/auth"


class Described(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.running = daemon.Daemon(POLICY, threads=1, environment={"USE": USE, "MANAGE": MANAGE})
        path = daemon.source / "docs" / "openapi.json"
        cls.document = json.loads(path.read_text(encoding="utf-8"))
        cls.met = set()  # (method, path, status)

    @classmethod
    def tearDownClass(cls):
        assert cls.running.terminate() == 0
        described = {(method.upper(), path, int(status))
                     for path, item in cls.document["paths"].items()
                     for method, operation in item.items() for status in operation["responses"]}
        # Nobody can be overloaded, or end, or be late on demand.
        never = {what for what in described - cls.met if what[2] not in (503, 504)}
        if len(sys.argv) == 3:
            assert not never, f"described, but never seen: {sorted(never)}"

    def send(self, method, path, body=None, *, token=MANAGE, accept=None, more=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.running.http,
                                                timeout=daemon.PATIENCE)
        headers = dict(more)
        if token is not None:
            headers["Authorization"] = "Bearer " + token
        if accept is not None:
            headers["Accept"] = accept
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        try:
            connection.request(method, path, body=body, headers=headers)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def resolve(self, node):
        while "$ref" in node:
            _, _, kind, name = node["$ref"].split("/")
            node = self.document["components"][kind][name]
        return node

    def validate(self, value, schema):
        whole = {**schema, "components": self.document["components"]}
        jsonschema.Draft202012Validator(whole).validate(value)

    def ask(self, method, path, body=None, **how):
        """Sends it, and compares the reply with its description."""
        return self.compare(method, path, body, *self.send(method, path, body, **how))

    def compare(self, method, path, body, status, headers, text):
        plain = path.partition("?")[0]
        operation = self.document["paths"][plain][method.lower()]
        self.assertIn(str(status), operation["responses"], (path, body, text))
        described = self.resolve(operation["responses"][str(status)])
        self.met.add((method, plain, status))
        if "content" not in described:
            self.assertEqual((headers["Content-Type"], text), (None, b""))
            self.check_headers(headers, described["headers"])
            return status, headers, text
        kind = headers["Content-Type"].partition(";")[0]
        self.assertIn(kind, described["content"])
        schema = described["content"][kind]["schema"]
        self.validate(json.loads(text) if kind.endswith("json") else text.decode(), schema)
        self.check_headers(headers, described.get("headers", {}))
        self.assertEqual(int(headers["Content-Length"]), len(text))
        return status, headers, text

    def check_headers(self, headers, described):
        usual = {"content-type", "content-length", "date"}
        self.assertRegex(headers["Date"], r"^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$")
        made = email.utils.parsedate_to_datetime(headers["Date"]).timestamp()
        self.assertLess(abs(made - time.time()), daemon.PATIENCE)
        known = {name.lower(): self.resolve(header) for name, header in described.items()}
        for name, value in headers.items():
            if name.lower() in usual:
                continue
            self.assertIn(name.lower(), known)
            schema = known[name.lower()]["schema"]
            self.validate(int(value) if schema.get("type") == "integer" else value, schema)

    def test_the_document_is_the_one_that_is_served(self):
        self.assertEqual(json.loads(self.ask("GET", "/openapi.json")[2]), self.document)

    def test_the_document_is_in_order(self):
        self.assertEqual(self.document["openapi"], "3.1.0")
        names = []
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                self.assertIn(method, ("get", "post"), path)
                names.append(operation.get("operationId", path))
                for reply in operation["responses"].values():
                    self.assertTrue(self.resolve(reply)["description"])
        self.assertEqual(len(names), len(set(names)))
        for name, schema in self.document["components"]["schemas"].items():
            with self.subTest(name):
                jsonschema.Draft202012Validator.check_schema(schema)
        # Every reference leads somewhere, and everything is referred to.
        text = json.dumps(self.document)
        references = set(re.findall(r'"\$ref": "#/components/([^"]+)"', text))
        there = {f"{kind}/{name}" for kind, things in self.document["components"].items()
                 for name in things if kind != "securitySchemes"}
        self.assertEqual(references, there)

    def test_paths_and_methods_are_those_of_the_document(self):
        for path, item in self.document["paths"].items():
            described = {method.upper() for method in item}
            if "GET" in described:
                described.add("HEAD")
            if path == ANY:
                described = set(METHODS)
            for method in METHODS:
                with self.subTest(path=path, method=method):
                    status, headers, _ = self.send(method, path, b"" if method == "POST" else None)
                    self.assertEqual(status != 405, method in described)
                    self.assertNotEqual(status, 404)
                    if status == 405:
                        self.assertEqual(set(headers["Allow"].split(", ")), described)
        for path in UNDESCRIBED:
            for method in METHODS:
                self.assertEqual(self.send(method, path)[0], 404, (method, path))

    def test_bodies_of_the_document_are_understood(self):
        for path, item in self.document["paths"].items():
            if "post" not in item:
                continue
            content = item["post"]["requestBody"]["content"]["application/json"]
            self.validate(content["example"], content["schema"])
            status, _, text = self.ask("POST", path, content["example"])
            self.assertIn(status, (200, 404, 429), (path, text))

    def test_every_field_that_is_described_is_taken_and_no_other(self):
        values = {"string": "x", "integer": 1, "array": [], "object": {"a": "b", "c": ["d"]}}
        for path, item in self.document["paths"].items():
            if "post" not in item or path == "/v1/check/batch":
                continue
            schema = self.resolve(item["post"]["requestBody"]["content"]["application/json"]["schema"])
            example = {}
            for name, field in schema["properties"].items():
                field = self.resolve(field)
                if "examples" in field:
                    example[name] = field["examples"][0]
                else:
                    example[name] = field["const"] if "const" in field else (
                        values[field["type"]] if "type" in field else field["enum"][0])
            example.update({"limit": "5/min"} if "limit" in example else {})
            example.update({"reservation": "00000000000000ff"} if "reservation" in example else {})
            self.validate(example, schema)
            with self.subTest(path):
                self.assertIn(self.ask("POST", path, example)[0], (200, 404))
                for name in schema.get("required", ()):
                    less = {other: value for other, value in example.items() if other != name}
                    self.assertEqual(self.ask("POST", path, less)[0], 400)
                self.assertEqual(self.ask("POST", path, {**example, "no_such": 1})[0], 400)
                for name in example:
                    self.assertEqual(self.ask("POST", path, {**example, name: None})[0], 400, name)

    def test_bounds_are_those_of_the_document(self):
        for path, item in self.document["paths"].items():
            if "post" not in item or path == "/v1/check/batch":
                continue
            schema = self.resolve(item["post"]["requestBody"]["content"]["application/json"]["schema"])
            base = {"key": "k", "limit": "5/min", "reservation": "00000000000000ff", "cost": 1}
            base = {name: base[name] for name in schema.get("required", ())}
            for name, field in schema["properties"].items():
                field = self.resolve(field)
                if field.get("type") != "integer":
                    continue
                if "const" in field:
                    more = {**base, name: field["const"] + 1}
                    self.assertEqual(self.ask("POST", path, more)[0], 400)
                    continue
                with self.subTest(path=path, field=name):
                    # A wait that long would be held; that it is taken is seen by another field.
                    most = field["maximum"]
                    for value in (field["minimum"] - 1, most + 1, "1", 1.5):
                        self.assertEqual(self.ask("POST", path, {**base, name: value})[0], 400)
                    self.assertNotEqual(self.ask("POST", path, {**base, name: most})[0], 400)

    def test_checks_are_allowed_limited_and_refused(self):
        for _ in range(6):
            status, headers, text = self.ask("POST", "/v1/check", {"user": "checker"})
        self.assertEqual(status, 429)
        self.assertGreaterEqual(int(headers["Retry-After"]), json.loads(text)["retry_after"])
        self.assertEqual(headers["Cache-Control"], "no-store")
        self.assertIn("RateLimit", headers)
        self.assertEqual(self.ask("POST", "/v1/check", {"user": "mallory"})[0], 403)
        for problem in ({"user": "checker"}, {"user": "mallory"}, {"cost": -1}):
            _, headers, text = self.ask("POST", "/v1/check", problem, accept="application/problem+json")
            self.assertEqual(headers["Content-Type"], "application/problem+json")
        body = {"key": "a", "limit": "1/min"}
        self.assertEqual(self.ask("POST", "/v1/limit", body)[0], 200)
        self.assertEqual(self.ask("POST", "/v1/limit", body)[0], 429)
        self.assertEqual(self.ask("POST", "/v1/limit", {"key": "a", "limit": "deny"})[0], 403)

    def test_forward_auth_answers_by_headers(self):
        def auth(user, query="", **more):
            return self.ask("GET", "/v1/auth" + query, more={"X-User": user, **more})

        for _ in range(5):
            self.assertEqual(auth("client")[0], 200)
        for query, expected in (("", 429), ("?deny_status=403", 403), ("?deny_status=200", 429)):
            status, headers, _ = auth("client", query)
            self.assertEqual((status, headers["X-Weir-Reason"]), (expected, "limited"))
        self.assertEqual(auth("client", Accept="application/problem+json")[0], 429)
        self.assertEqual(auth("mallory")[1]["X-Weir-Reason"], "deny_list")
        twice = {"X-Forwarded-Uri": "/a", "X-Original-URI": "/b"}
        self.assertEqual(auth("other", **twice)[0], 400)
        self.assertEqual(self.ask("GET", "/v1/auth", token=None, more={"X-Weir-Token": USE})[0], 200)
        self.assertEqual(self.ask("GET", "/v1/auth", token=None, more={"X-Weir-Token": "no"})[0], 401)

    def test_reservations_are_settled_once(self):
        for settle, more in (("commit", {"cost": 1}), ("commit", {}), ("cancel", {})):
            _, _, text = self.ask("POST", "/v1/reserve", {"user": f"{settle}{len(more)}", "cost": 2})
            body = {"reservation": json.loads(text)["reservation"], **more}
            self.assertEqual(self.ask("POST", f"/v1/{settle}", body)[0], 200)
            self.assertEqual(self.ask("POST", f"/v1/{settle}", body)[0], 404)
        _, _, text = self.ask("POST", "/v1/check", {"user": "exporter", "path": "/export"})
        body = {"reservation": json.loads(text)["reservation"]}
        self.assertEqual(self.ask("POST", "/v1/release", body)[0], 200)
        self.assertEqual(self.ask("POST", "/v1/reserve", {"user": "much", "cost": 6})[0], 429)
        self.assertEqual(self.ask("POST", "/v1/reserve", {"user": "mallory"})[0], 403)

    def test_addresses_must_be_such(self):
        for path, item in self.document["paths"].items():
            if "post" not in item:
                continue
            schema = item["post"]["requestBody"]["content"]["application/json"]["schema"]
            is_list = "items" in schema
            if "ip" not in self.resolve(schema["items"] if is_list else schema)["properties"]:
                continue
            for address in ("1.2.3.4:5678", "999.1.1.1", "unknown", "[::1]", "fe80::1%eth0"):
                body = {"ip": address}
                status, _, text = self.ask("POST", path, [{}, body] if is_list else body)
                self.assertEqual(status, 400, (path, address))
                self.assertIn("ip: write an address", json.loads(text)["message"])

    def test_limits_that_come_with_requests_are_called_default(self):
        body = {"key": "named", "limit": "2/min", "cost": 2}
        _, headers, _ = self.ask("POST", "/v1/limit", body)
        self.assertEqual(headers["RateLimit-Policy"], '"default";q=2;w=60')
        _, _, text = self.ask("POST", "/v1/limit", body, accept="application/problem+json")
        self.assertEqual(json.loads(text)["violated-policies"], ["default"])
        _, headers, _ = self.ask("POST", "/v1/limit", body, accept="application/problem+json;q=0")
        self.assertEqual(headers["Content-Type"], "application/json")
        for algorithm in ("", "magic"):
            status, _, text = self.ask("POST", "/v1/limit", {**body, "algorithm": algorithm})
            self.assertEqual(status, 400)
            self.assertTrue(json.loads(text)["message"].startswith("algorithm: "), text)

    def test_batches_are_bounded(self):
        _, _, text = self.ask("POST", "/v1/check/batch", [{"user": "mallory"}, {"user": "b"}])
        self.assertEqual([item["allowed"] for item in json.loads(text)], [False, True])
        self.assertEqual(self.ask("POST", "/v1/check/batch", [{}] * 1000)[0], 200)
        self.assertEqual(self.ask("POST", "/v1/check/batch", [{}] * 1001)[0], 413)
        self.assertEqual(self.ask("POST", "/v1/check/batch", {})[0], 400)
        self.assertEqual(self.ask("POST", "/v1/check/batch", [{"cost": -1}])[0], 400)

    def test_bodies_that_are_no_json_are_refused(self):
        for path, item in self.document["paths"].items():
            for body in ("", "{", "nix", "\xff".encode("latin1"), "{}{}") if "post" in item else ():
                self.assertEqual(self.ask("POST", path, body)[0], 400, (path, body))

    def test_bodies_that_are_too_large_are_refused_before_they_are_sent(self):
        for path, item in self.document["paths"].items():
            if "post" not in item and path != ANY:
                continue
            method = "POST" if "post" in item else "GET"
            connection = http.client.HTTPConnection("127.0.0.1", self.running.http,
                                                    timeout=daemon.PATIENCE)
            connection.putrequest(method, path)
            connection.putheader("Content-Length", str(1 << 30))
            connection.endheaders()
            reply = connection.getresponse()
            self.assertEqual((reply.status, reply.headers["Connection"]), (413, "close"))
            del reply.headers["Connection"]
            self.compare(method, path, None, reply.status, reply.headers, reply.read())
            connection.close()

    def test_tokens_are_wanted_as_described(self):
        for path, item in self.document["paths"].items():
            for method, operation in item.items():
                method = method.upper()
                body = "{" if method == "POST" else None
                open_to_all = operation.get("security") == [{}]
                with self.subTest(path):
                    status = self.ask(method, path, body, token=None)[0]
                    self.assertEqual(status == 401, not open_to_all)
                    self.assertEqual(self.ask(method, path, body, token="wrong")[0], status)
                    manages = "management" in operation["tags"]
                    self.assertEqual(self.ask(method, path, body, token=USE)[0] == 403, manages)

    def test_what_can_be_got_is_as_described(self):
        for path in ("/v1/limits", "/healthz", "/readyz", "/metrics", "/v1/top"):
            self.assertEqual(self.ask("GET", path)[0], 200)
            _, headers, text = self.send("HEAD", path)
            self.assertEqual(text, b"")
            self.assertGreater(int(headers["Content-Length"]), 0)
        self.assertEqual(self.ask("GET", "/v1/top?n=3")[0], 200)
        self.assertEqual(self.ask("GET", "/v1/top?n=0")[0], 400)
        names = [rule["name"] for rule in json.loads(self.ask("GET", "/v1/limits")[2])["limits"]]
        self.assertEqual(names, ["per-user", "exports", "tiered", "watched"])


if __name__ == "__main__":
    daemon.main()
