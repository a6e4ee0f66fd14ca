#!/usr/bin/env python3
"""Clients that people have, as they come: redis-cli, redis-py, ioredis, node-redis, go-redis, curl.

    clients_test.py SOURCE PROGRAM [TEST...]

Every one connects with its own default settings and runs the same commands; what it understood is
compared. Then again with RESP3, with RESP2 where that is not the default, and with a token. The
clients are made by tests/e2e/setup.sh.
"""

import json
import os
import pathlib
import re
import subprocess
import unittest

import daemon
import resp_wire

POLICY = """\
rules:
  - name: per-user
    match: { user: present }
    key: user
    limit: 1/h
"""
TOKEN = "a-token-that-is-long-enough"
WITH_TOKEN = """\
listen:
  http: { address: 127.0.0.1:0, token: env:WEIR_E2E_TOKEN }
  resp: { address: 127.0.0.1:0, token: env:WEIR_E2E_TOKEN }
""" + POLICY
NODE_FOR_6 = 20

FIELDS = ["allowed", "rule", "limit", "remaining", "cost", "retry_after", "retry_after_ms",
          "reset_after", "reset_after_ms", "reset_at", "delay_ms", "reason", "source"]


def commands(name):
    """What every client does, under keys of its own."""
    return {
        "one_by_one": [
            ["PING"],
            ["CL.THROTTLE", f"{name}:first", "15", "30", "60"],
            ["CL.THROTTLE", f"{name}:large", "15", "30", "60", "17"],
            ["CL.THROTTLE", f"{name}:one", "0", "1", "2"],
            ["CL.THROTTLE", f"{name}:one", "0", "1", "2"],
            ["WEIR.CHECK", "per-user", "user", name],
            ["WEIR.CHECK", "per-user", "user", name],
            ["WEIR.LIMIT", f"{name}:limit", "5/h"],
            ["WEIR.CHECK", "no-such-rule", "user", name],
        ],
        "pipelined": [["CL.THROTTLE", f"{name}:many", "15", "30", "60"]] * 17
        + [["WEIR.CHECK", "*", "ip", "203.0.113.9"], ["NONSENSE"],
           ["CL.THROTTLE", f"{name}:behind", "15", "30", "60"]],
    }


def run(command, *, stdin=None, environment=None):
    """Its standard output."""
    ran = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False,
                         timeout=daemon.PATIENCE, env={**os.environ, **(environment or {})})
    if ran.returncode != 0:
        raise AssertionError(f"{command}: {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def made(name):
    path = daemon.source / "build" / "clients" / name
    if not path.exists():
        raise AssertionError(f"{path} is not there: run tests/e2e/setup.sh")
    return str(path)


def node_version():
    return int(re.match(r"v(\d+)", run(["node", "--version"]))[1])


def python_client(interpreter):
    def command(port, protocol, password):
        script = pathlib.Path(__file__).parent / "python" / "redis_py_client.py"
        return [interpreter(), str(script), "127.0.0.1", str(port), protocol, password]
    return command


def node_client(script, package):
    def command(port, protocol, password):
        path = pathlib.Path(__file__).parent / "node" / script
        return ["env", f"NODE_PATH={made('node/node_modules')}", "node", str(path), package,
                "127.0.0.1", str(port), protocol, password]
    return command


def go_client(port, protocol, password):
    return [made("go-redis-client"), "127.0.0.1", str(port), protocol, password]


class RedisClients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.open = cls.enterClassContext(daemon.Daemon(POLICY))
        cls.guarded = cls.enterClassContext(
            daemon.Daemon(WITH_TOKEN, environment={"WEIR_E2E_TOKEN": TOKEN}))

    def check_decision(self, reply, expected, *, as_map):
        """`as_map`: it must have come as a RESP3 map, or as a flat list, or either (None)."""
        if as_map is not None:
            self.assertEqual(isinstance(reply, dict), as_map, reply)
        decision = resp_wire.named(reply)
        self.assertEqual(sorted(decision), sorted(FIELDS))
        if as_map:
            self.assertIsInstance(decision["allowed"], bool)
        self.assertEqual({name: decision[name] for name in expected}, expected)

    def check_replies(self, name, replies, *, as_map=None):
        (ping, first, large, one, one_again, allowed, denied, limit,
         unknown) = replies["one_by_one"]
        self.assertIn(ping, ("PONG", True))  # redis-py says it in its own way.
        self.assertEqual(first, [0, 16, 15, -1, 2])
        self.assertEqual(large, [1, 16, 16, -1, 0])
        self.assertEqual(one, [0, 1, 0, -1, 2])
        self.assertEqual(one_again, [1, 1, 0, 2, 2])
        self.check_decision(allowed, {
            "allowed": True, "rule": "per-user", "limit": 1, "remaining": 0, "cost": 1,
            "retry_after": 0, "retry_after_ms": 0, "reset_after": 3600, "delay_ms": 0,
            "reason": "ok", "source": "memory"}, as_map=as_map)
        self.check_decision(denied, {
            "allowed": False, "rule": "per-user", "limit": 1, "remaining": 0, "retry_after": 3600,
            "reset_after": 3600, "reason": "limited"}, as_map=as_map)
        self.check_decision(limit, {
            "allowed": True, "rule": "", "limit": 5, "remaining": 4, "reset_after": 720},
            as_map=as_map)
        self.assertRegex(unknown["error"], r'^(ERR )?unknown rule "no-such-rule"$')

        *many, no_rule, nonsense, behind = replies["pipelined"]
        self.assertEqual(many, [[0, 16, 16 - k, -1, 2 * k] for k in range(1, 17)]
                         + [[1, 16, 0, 2, 32]])
        self.check_decision(no_rule, {"allowed": True, "reason": "no_rule"}, as_map=as_map)
        self.assertRegex(nonsense["error"], r"^(ERR )?unknown command 'NONSENSE'")
        self.assertEqual(behind, [0, 16, 15, -1, 2], name)

    def run_client(self, name, command, *, version, resp3_by_default, protocols):
        """`protocols`: those that it can be told to speak, besides its default."""
        # Some try again for seconds; they do so beside the rest.
        refused = [self.start_refused(name, command, password) for password in ("", "wrong")]
        for protocol in ("default", *protocols):
            with self.subTest(client=name, protocol=protocol):
                key = f"{name}-{protocol}"
                said = run(command(self.open.resp, protocol, ""),
                           stdin=json.dumps(commands(key)))
                replies = json.loads(said)
                self.assertRegex(replies["version"], version)
                as_map = resp3_by_default if protocol == "default" else protocol == "3"
                self.check_replies(key, replies, as_map=as_map)
        with self.subTest(client=name, token="right"):
            said = run(command(self.guarded.resp, "default", TOKEN),
                       stdin=json.dumps(commands(name)))
            self.check_replies(name, json.loads(said))
        for process, complaint in zip(refused, ("NOAUTH|Authentication|HELLO must be called",
                                                "WRONGPASS|invalid username-password")):
            with self.subTest(client=name, expects=complaint):
                said = "".join(process.communicate(timeout=daemon.PATIENCE))
                self.assertRegex(said, complaint)
                self.assertNotRegex(said, r"\[0, ?16")

    def start_refused(self, name, command, password):
        """One that asks without the token. It must not get an answer."""
        work = {"one_by_one": [["CL.THROTTLE", name, "15", "30", "60"]], "pipelined": []}
        process = subprocess.Popen(command(self.guarded.resp, "default", password), text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        process.stdin.write(json.dumps(work))
        process.stdin.close()
        process.stdin = None  # Which communicate() would close again.
        return process

    def test_redis_py_of_debian(self):
        self.run_client("redis-py-debian", python_client(lambda: "/usr/bin/python3"),
                        version=r"^4\.3\.", resp3_by_default=False, protocols=())

    def test_redis_py_of_today(self):
        self.run_client("redis-py", python_client(lambda: made("redis-py/bin/python")),
                        version=r"^8\.", resp3_by_default=None, protocols=("2", "3"))

    def test_ioredis(self):
        self.run_client("ioredis", node_client("ioredis_client.js", "ioredis"),
                        version=r"^5\.", resp3_by_default=False, protocols=())

    def test_node_redis(self):
        self.run_client("node-redis", node_client("node_redis_client.js", "redis"),
                        version=r"^5\.", resp3_by_default=False, protocols=("3",))

    def test_ioredis_of_today(self):
        if node_version() < NODE_FOR_6:
            self.skipTest("ioredis 6 needs Node.js 20")
        self.run_client("ioredis-6", node_client("ioredis_client.js", "ioredis-6"),
                        version=r"^6\.", resp3_by_default=None, protocols=("2", "3"))

    def test_node_redis_of_today(self):
        if node_version() < NODE_FOR_6:
            self.skipTest("node-redis 6 needs Node.js 20")
        self.run_client("node-redis-6", node_client("node_redis_client.js", "redis-6"),
                        version=r"^6\.", resp3_by_default=None, protocols=("2", "3"))

    def test_go_redis(self):
        self.run_client("go-redis", go_client, version=r"^9\.", resp3_by_default=True,
                        protocols=("2", "3"))


class RedisCli(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.open = cls.enterClassContext(daemon.Daemon(POLICY))
        cls.guarded = cls.enterClassContext(
            daemon.Daemon(WITH_TOKEN, environment={"WEIR_E2E_TOKEN": TOKEN}))

    def cli(self, port, *words, stdin=None):
        return run(["redis-cli", "-p", str(port), *words], stdin=stdin)

    def test_throttles(self):
        port = self.open.resp
        self.assertEqual(self.cli(port, "PING"), "PONG\n")
        self.assertEqual(self.cli(port, "CL.THROTTLE", "cli", "15", "30", "60"),
                         "0\n16\n15\n-1\n2\n")
        self.assertEqual(self.cli(port, "-3", "CL.THROTTLE", "cli-3", "15", "30", "60", "17"),
                         "1\n16\n16\n-1\n0\n")

    def test_reads_commands_from_a_file(self):
        said = self.cli(self.open.resp, stdin="CL.THROTTLE cli-file 15 30 60\n" * 17)
        rows = [said.split()[at:at + 5] for at in range(0, 85, 5)]
        self.assertEqual(rows, [["0", "16", str(16 - k), "-1", str(2 * k)] for k in range(1, 17)]
                         + [["1", "16", "0", "2", "32"]])

    def test_shows_decisions_as_lists_and_as_maps(self):
        port = self.open.resp
        said = self.cli(port, "WEIR.CHECK", "per-user", "user", "cli").splitlines()
        decision = dict(zip(said[::2], said[1::2]))
        self.assertEqual((decision["allowed"], decision["rule"], decision["reason"]),
                         ("1", "per-user", "ok"))
        # --json speaks RESP3.
        said = json.loads(self.cli(port, "--json", "WEIR.CHECK", "per-user", "user", "cli"))
        self.assertEqual(sorted(said), sorted(FIELDS))
        self.assertEqual((said["allowed"], said["retry_after"], said["reason"]),
                         (False, 3600, "limited"))

    def test_says_errors(self):
        said = self.cli(self.open.resp, "WEIR.CHECK", "no-such-rule", "user", "cli")
        self.assertEqual(said.strip(), 'ERR unknown rule "no-such-rule"')

    def test_loads_many_commands_by_its_pipe(self):
        bulk = resp_wire.command("CL.THROTTLE", "cli-pipe", 15, 30, 60) * 20_000
        ran = subprocess.run(["redis-cli", "-p", str(self.open.resp), "--pipe"], input=bulk,
                             capture_output=True, timeout=daemon.PATIENCE, check=True)
        self.assertIn(b"errors: 0, replies: 20000", ran.stdout)

    def test_presents_its_token(self):
        port = self.guarded.resp
        self.assertEqual(self.cli(port, "--no-auth-warning", "-a", TOKEN, "PING"), "PONG\n")
        self.assertEqual(self.cli(port, "--no-auth-warning", "-3", "-a", TOKEN, "--user", "default",
                                  "CL.THROTTLE", "cli", "15", "30", "60"), "0\n16\n15\n-1\n2\n")
        self.assertIn("NOAUTH", self.cli(port, "PING"))
        ran = subprocess.run(["redis-cli", "-p", str(port), "-a", "wrong", "PING"], text=True,
                             capture_output=True, timeout=daemon.PATIENCE, check=False)
        self.assertIn("WRONGPASS", ran.stderr)
        self.assertIn("NOAUTH", ran.stdout)


class Curl(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.open = cls.enterClassContext(daemon.Daemon(POLICY))

    def curl(self, path, *words, port=None):
        return run(["curl", "-sS", f"http://127.0.0.1:{port or self.open.http}{path}", *words])

    def test_checks(self):
        said = self.curl("/v1/check", "-i", "-d", '{"user": "curl"}')
        head, _, body = said.partition("\n\n")
        self.assertTrue(head.startswith("HTTP/1.1 200 OK"), head)
        self.assertIn("X-RateLimit-Remaining: 0", head)
        self.assertTrue(json.loads(body)["allowed"])
        said = self.curl("/v1/check", "-i", "-d", '{"user": "curl"}')
        head, _, body = said.partition("\n\n")
        self.assertTrue(head.startswith("HTTP/1.1 429 Too Many Requests"), head)
        self.assertRegex(head, r"(?m)^Retry-After: \d+$")
        self.assertEqual(json.loads(body)["error"], "rate_limited")

    def test_sends_large_bodies(self):
        """Over a megabyte curl asks first whether it should (Expect: 100-continue)."""
        batch = json.dumps([{"user": f"batch-{i}", "path": "/" + "x" * 900} for i in range(1000)])
        folder = pathlib.Path(self.open.folder.name)
        (folder / "batch").write_text(batch, encoding="ascii")
        said = json.loads(self.curl("/v1/check/batch", "-d", f"@{folder / 'batch'}"))
        self.assertEqual([decision["allowed"] for decision in said], [True] * 1000)
        status = self.curl("/v1/check", "-o", "/dev/null", "-w", "%{http_code}",
                           "-H", "Expect: 100-continue", "-d", '{"user": "expects"}')
        self.assertEqual(status, "200")
        (folder / "large").write_bytes(b" " * (3 << 20))
        status = self.curl("/v1/check", "-o", "/dev/null", "-w", "%{http_code}",
                           "--data-binary", f"@{folder / 'large'}")
        self.assertEqual(status, "413")

    def test_offers_http_2_and_stays_with_http_1(self):
        said = self.curl("/v1/check", "--http2", "-w", " %{http_version} %{http_code}",
                         "-d", '{"user": "curl-2"}')
        self.assertTrue(said.endswith(" 1.1 200"), said)

    def test_keeps_its_connection(self):
        said = run(["curl", "-sS", "-w", "%{num_connects} "]
                   + [f"http://127.0.0.1:{self.open.http}/healthz"] * 3)
        self.assertEqual(said, "ok1 ok0 ok0 ")

    def test_sends_chunks(self):
        ran = subprocess.run(["curl", "-sS", "-T", "-", "-X", "POST",
                              f"http://127.0.0.1:{self.open.http}/v1/check"], text=True,
                             input='{"user": "curl-chunked"}', capture_output=True, check=True,
                             timeout=daemon.PATIENCE)
        self.assertTrue(json.loads(ran.stdout)["allowed"])

    def test_uses_a_unix_socket_and_a_token(self):
        policy = WITH_TOKEN.replace("127.0.0.1:0", "unix:{folder}/http.sock", 1)
        with daemon.Daemon(policy, environment={"WEIR_E2E_TOKEN": TOKEN}) as guarded:
            path = guarded.addresses["http"].removeprefix("unix:")
            words = ["curl", "-sS", "--unix-socket", path, "-w", " %{http_code}",
                     "http://weir/v1/check", "-d", '{"user": "curl"}']
            self.assertTrue(run(words).endswith(" 401"))
            said = run([*words, "-H", f"Authorization: Bearer {TOKEN}"])
            self.assertTrue(said.endswith(" 200"), said)


if __name__ == "__main__":
    daemon.main()
