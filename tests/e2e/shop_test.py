#!/usr/bin/env python3
"""The shops of examples/shop, each started by the command of its README, from outside: all three
must behave alike.

    shop_test.py SOURCE PROGRAM [TEST...]
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import daemon

# Clients on this machine, at addresses of their own.
STRANGER, OTHER = "127.0.0.2", "127.0.0.3"
FORGED = {"X-Forwarded-For": "198.51.100.1", "Forwarded": "for=198.51.100.1",
          "X-Real-IP": "198.51.100.1", "X-User-Id": "pia", "X-Tier": "pro",
          "CF-Connecting-IP": "198.51.100.1"}


class Response:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:300]!r}>"


class Shop:
    """A shop and its service, as run.sh starts them."""

    def __init__(self, name):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-shop-")
        policy = (daemon.source / "examples/shop/weir.yaml").read_text(encoding="utf-8")
        listen = f"listen: {{ http: 127.0.0.1:0, resp: \"unix:{self.folder.name}/resp.sock\" }}"
        policy, changed = re.subn(r"(?m)^listen: .*$", listen, policy)
        assert changed == 1
        file = pathlib.Path(self.folder.name) / "weir.yaml"
        file.write_text(policy, encoding="utf-8")
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port = sock.getsockname()[1]
        self.log = open(pathlib.Path(self.folder.name) / "log", "w+b")
        self.process = subprocess.Popen(
            [daemon.source / "examples/shop/run.sh", name], stdout=self.log, stderr=self.log,
            start_new_session=True,
            env={**os.environ, "SHOP_PORT": str(self.port), "SHOP_POLICY": str(file),
                 "WEIR_PROGRAM": str(daemon.program),
                 "WEIR_SERVERS": f"unix:{self.folder.name}/resp.sock"})

    def __enter__(self):
        try:
            self._wait_until_open()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=daemon.PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            raise AssertionError("the shop did not end:\n" + self.said()) from None
        finally:
            if kind is not None:
                print(self.said())
            self.log.close()
            self.folder.cleanup()

    def said(self):
        self.log.flush()
        return pathlib.Path(self.log.name).read_text(encoding="utf-8", errors="replace")

    def _wait_until_open(self):
        # The first start may have to fetch and build what the shop needs.
        deadline = time.monotonic() + 20 * daemon.PATIENCE
        while True:
            with contextlib.suppress(OSError, http.client.HTTPException):
                # By the policy, so that it is known to be asked.
                if "ratelimit" in self.get("/products", source="127.0.0.9").headers:
                    return
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("the shop does not open:\n" + self.said())
            time.sleep(0.05)

    def call(self, method, path, body=None, *, source=STRANGER, token=None, headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=daemon.PATIENCE,
                                                source_address=(source, 0))
        told = dict(headers)
        if token is not None:
            told["Authorization"] = f"Bearer {token}"
        if body is not None:
            told["Content-Type"] = "application/json"
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body), told)
            return Response(connection.getresponse())

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def log_in(self, user, password, **more):
        return self.call("POST", "/auth/login", {"user": user, "password": password}, **more)

    def token(self, user, password):
        return self.log_in(user, password, source=OTHER).json()["token"]


class Alike:
    """What holds in every shop."""

    shop_name = ""

    def setUp(self):
        self.shop = self.enterContext(Shop(self.shop_name))

    def check_denial(self, response, rule, *, most):
        """429 with all that a client needs, who is to come back within `most` seconds."""
        self.assertEqual(response.status, 429, response)
        self.assertTrue(response.headers["content-type"].startswith("application/json"))
        self.assertEqual(response.headers["cache-control"], "no-store")
        wait = int(response.headers["retry-after"])
        self.assertTrue(1 <= wait <= most, response)
        self.assertRegex(response.headers["ratelimit"], rf'^"{rule}";r=0;t=\d+$')
        self.assertIn(f'"{rule}";q=', response.headers["ratelimit-policy"])
        self.assertEqual(response.headers["x-ratelimit-remaining"], "0")
        body = response.json()
        self.assertEqual((body["error"], body["allowed"], body["rule"], body["reason"]),
                         ("rate_limited", False, rule, "limited"))
        self.assertLessEqual(body["retry_after"], wait)
        return body

    def exhaust(self, *, source=STRANGER, headers=()):
        """Requests of a stranger until one is denied: that, and how many passed."""
        for passed in range(60):
            response = self.shop.get("/products", source=source, headers=headers)
            if response.status != 200:
                return response, passed
        raise AssertionError("nobody was denied")

    def test_a_stranger_is_limited_by_the_address_and_nobody_else(self):
        first = self.shop.get("/products")
        self.assertEqual(first.status, 200, first)
        self.assertEqual(first.headers["x-ratelimit-limit"], "30")
        self.assertEqual(first.headers["x-ratelimit-remaining"], "29")
        self.assertRegex(first.headers["ratelimit"], r'^"per-ip";r=29;t=1$')
        self.assertEqual(first.headers["ratelimit-policy"], '"per-ip";q=30;w=15')
        self.assertEqual([item["name"] for item in first.json()][:1], ["tea"])
        denied, passed = self.exhaust()
        self.assertGreaterEqual(passed, 29)
        self.check_denial(denied, "per-ip", most=2)
        self.assertEqual(self.shop.get("/products", source=OTHER).status, 200)
        self.assertEqual(self.shop.get("/healthz").status, 200)

    def test_nothing_that_a_stranger_writes_makes_it_another(self):
        self.exhaust()
        # Two a second come back; forging would let all of these pass.
        passed = sum(self.shop.get("/products", headers=dict([forged])).status == 200
                     for forged in list(FORGED.items()) * 4)
        self.assertLess(passed, len(FORGED))
        answer = self.shop.get("/me", headers=FORGED, source=OTHER)
        self.assertEqual(answer.status, 401, answer)

    def test_a_user_is_limited_by_the_plan(self):
        ann, pia = self.shop.token("ann", "apple"), self.shop.token("pia", "pear")
        first = self.shop.get("/me", token=ann)
        self.assertEqual((first.status, first.json()), (200, {"user": "ann", "tier": "free"}))
        self.assertEqual(first.headers["x-ratelimit-limit"], "5")
        self.assertEqual(set(re.findall(r'"([a-z-]+)";q=', first.headers["ratelimit-policy"])),
                         {"per-ip", "per-user", "daily-quota"})
        statuses = [self.shop.get("/me", token=ann) for _ in range(8)]
        denied = next(response for response in statuses if response.status != 200)
        self.check_denial(denied, "per-user", most=2)
        # By whichever address she comes, and whatever she says about herself.
        again = [self.shop.get("/me", token=ann, source=OTHER, headers=FORGED).status
                 for _ in range(4)]
        self.assertIn(429, again)
        paid = [self.shop.get("/me", token=pia, source="127.0.0.5") for _ in range(12)]
        self.assertEqual({response.status for response in paid}, {200})
        self.assertEqual(paid[0].headers["x-ratelimit-limit"], "20")
        self.assertEqual(self.shop.get("/me", token="nonsense").status, 401)

    def test_attempts_to_log_in_are_limited_by_endpoint(self):
        answers = [self.shop.log_in("ann", "wrong") for _ in range(5)]
        self.assertEqual({answer.status for answer in answers}, {401})
        denied = self.shop.log_in("ann", "apple")
        body = self.check_denial(denied, "credentials", most=66)
        self.assertEqual(body["message"], "Too many attempts to log in")
        self.assertEqual(self.shop.log_in("ann", "apple", source=OTHER).status, 200)
        self.assertEqual(self.shop.get("/products").status, 200)

    def test_who_comes_back_when_told_is_let_in(self):
        """With curl, which waits for as long as Retry-After says, and comes back once."""
        denied, _ = self.exhaust()
        self.assertEqual(denied.status, 429)
        ran = subprocess.run(
            ["curl", "-sS", "-o", f"{self.shop.folder.name}/body", "-w", "%{http_code}",
             "--interface", STRANGER, "--retry", "1",
             f"http://127.0.0.1:{self.shop.port}/products"],
            capture_output=True, text=True, check=True, timeout=daemon.PATIENCE)
        self.assertEqual(ran.stdout, "200", ran.stderr)

    def test_orders_and_limits_in_code_work_beside_the_policy(self):
        pia = self.shop.token("pia", "pear")
        order = self.shop.call("POST", "/orders", {"product": 2}, token=pia)
        self.assertEqual((order.status, order.json()["user"]), (201, "pia"))
        self.assertEqual(self.shop.call("POST", "/orders", {"product": 2}).status, 401)
        answers = [self.shop.get("/reviews", source="127.0.0.4") for _ in range(8)]
        self.assertIn(429, [answer.status for answer in answers])
        passed = [answer for answer in answers if answer.status == 200]
        self.assertGreaterEqual(len(passed), 3)
        self.assertEqual(passed[0].headers["x-ratelimit-limit"], "3")
        self.assertEqual(self.shop.get("/products", source="127.0.0.4").status, 200)

    def test_one_export_at_a_time_until_it_is_done(self):
        pia = self.shop.token("pia", "pear")
        answers = []

        def export():
            answers.append(self.shop.get("/exports", token=pia).status)

        threads = [threading.Thread(target=export) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(answers), [200, 429, 429, 429])
        self.assertEqual(self.shop.get("/exports", token=pia).status, 200)


class FastApi(Alike, unittest.TestCase):
    shop_name = "fastapi"


class Express(Alike, unittest.TestCase):
    shop_name = "express"


class Axum(Alike, unittest.TestCase):
    shop_name = "axum"


if __name__ == "__main__":
    daemon.main()
