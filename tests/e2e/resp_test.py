#!/usr/bin/env python3
"""What the RESP interface says: every command, both versions of the protocol, rights and errors.

    resp_test.py SOURCE PROGRAM [TEST...]
"""

import socket
import time
import unittest

import daemon
import resp_wire

RULES = """\
deny:
  - { ip: 192.0.2.66 }
rules:
  - name: per-user
    match: { user: present }
    key: user
    limit: 3/min
  - name: jobs
    match: { org: present }
    key: org
    limit: 2 concurrent lease 30s
  - name: shaped
    match: { path: /shaped }
    key: host
    limit: 10/s burst 20
    algorithm: leaky_bucket
    queue: true
  - name: plans
    match: { header.x-plan: present }
    key: header.x-plan
    limit: 1/h
"""
OPEN = "manage: open\n" + RULES
WITH_TOKENS = """\
listen:
  resp: { address: 127.0.0.1:0, token: env:WEIR_E2E_TOKEN, manage_token: env:WEIR_E2E_MANAGE }
""" + RULES
TOKEN, MANAGE_TOKEN = "a-token-for-those-who-ask", "a-token-for-those-who-manage"

FIELDS = ["allowed", "rule", "limit", "remaining", "cost", "retry_after", "retry_after_ms",
          "reset_after", "reset_after_ms", "reset_at", "delay_ms", "reason", "source"]
NEXT = iter(range(1 << 30))


def somebody():
    return f"somebody-{next(NEXT)}"


class OnOneConnection(unittest.TestCase):
    policy = OPEN
    environment = None

    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(daemon.Daemon(cls.policy, environment=cls.environment))

    def setUp(self):
        self.client = self.enterContext(resp_wire.Client(self.daemon.resp))

    def decide(self, *words):
        return resp_wire.named(self.client.call(*words))

    def assert_error(self, reply, words):
        self.assertIsInstance(reply, resp_wire.ErrorReply)
        self.assertRegex(reply, words)


class Decisions(OnOneConnection):
    def test_a_list_in_resp2_and_a_map_in_resp3(self):
        user = somebody()
        reply = self.client.call("WEIR.CHECK", "per-user", "user", user)
        self.assertIsInstance(reply, list)
        self.assertEqual(reply[::2], FIELDS)
        self.assertEqual(reply[1], 1)
        self.assertEqual(self.client.call("HELLO", "3")["proto"], 3)
        reply = self.client.call("WEIR.CHECK", "*", "user", user)
        self.assertIsInstance(reply, dict)
        self.assertEqual(list(reply), FIELDS)
        self.assertIs(reply["allowed"], True)
        self.assertEqual((reply["rule"], reply["limit"], reply["remaining"], reply["cost"],
                          reply["reset_after"], reply["reason"], reply["source"]),
                         ("per-user", 3, 1, 1, 40, "ok", "memory"))
        self.assertAlmostEqual(reply["reset_at"], time.time() + 40, delta=5)

    def test_what_never_fits_has_no_time_to_retry(self):
        decision = self.decide("WEIR.CHECK", "per-user", "user", somebody(), "@cost", 4)
        self.assertEqual((decision["allowed"], decision["reason"], decision["retry_after"],
                          decision["retry_after_ms"]), (0, "never_fits", None, None))
        self.client.call("HELLO", 3)
        decision = self.client.call("WEIR.CHECK", "*", "ip", "192.0.2.66")
        self.assertEqual((decision["allowed"], decision["reason"], decision["retry_after"],
                          decision["rule"]), (False, "deny_list", None, ""))

    def test_attributes_with_names(self):
        plan = somebody()
        words = ("WEIR.CHECK", "*", "header.X-Plan", plan, "cookie.a", "b", "query.c", "d",
                 "descriptor.e", "f", "method", "GET", "path", "/", "api_key", "k", "tier", "t",
                 "domain", "d")
        self.assertEqual(self.decide(*words)["rule"], "plans")
        self.assertEqual(self.decide(*words)["reason"], "limited")

    def test_a_limit_that_comes_along(self):
        key = somebody()
        decision = self.decide("WEIR.LIMIT", key, "2/h burst 3", "@cost", 2)
        self.assertEqual((decision["allowed"], decision["limit"], decision["remaining"],
                          decision["rule"]), (1, 3, 1, ""))
        self.assertEqual(self.decide("WEIR.LIMIT", key, "2/h burst 3", "token_bucket")["remaining"],
                         0)
        log = ("WEIR.LIMIT", key + "-log", "1/h", "sliding_log", "@cost", 1)
        self.assertEqual([self.decide(*log)["allowed"] for _ in range(2)], [1, 0])

    def test_a_look_takes_nothing(self):
        user = somebody()
        for _ in range(5):
            self.assertEqual(self.decide("WEIR.PEEK", "per-user", "user", user)["remaining"], 3)

    def test_reserve_commit_and_cancel(self):
        user = somebody()
        decision = self.decide("WEIR.RESERVE", "per-user", "user", user, "@cost", 3, "@ttl_ms",
                               60_000)
        self.assertEqual(list(decision), [*FIELDS, "reservation"])
        self.assertRegex(decision["reservation"], r"^[0-9a-f]{16}$")
        self.decide("WEIR.COMMIT", decision["reservation"], "@cost", 1)
        self.assertEqual(self.decide("WEIR.PEEK", "per-user", "user", user)["remaining"], 2)
        self.assert_error(self.client.call("WEIR.COMMIT", decision["reservation"], "@cost", 1),
                          "^ERR ")
        again = self.decide("WEIR.RESERVE", "*", "user", user)
        self.decide("WEIR.CANCEL", again["reservation"])
        self.assertEqual(self.decide("WEIR.PEEK", "per-user", "user", user)["remaining"], 2)

    def test_places_that_are_released(self):
        org = somebody()
        leases = [self.decide("WEIR.CHECK", "jobs", "org", org)["reservation"] for _ in range(2)]
        self.assertEqual(self.decide("WEIR.CHECK", "jobs", "org", org)["allowed"], 0)
        self.decide("WEIR.RELEASE", leases[0])
        self.assertEqual(self.decide("WEIR.CHECK", "jobs", "org", org)["allowed"], 1)

    def test_a_place_that_is_released_goes_to_who_waits(self):
        org = somebody()
        leases = [self.decide("WEIR.CHECK", "jobs", "org", org)["reservation"] for _ in range(2)]
        with resp_wire.Client(self.daemon.resp) as waiting:
            waiting.send("WEIR.CHECK", "jobs", "org", org, "@wait_ms", 20_000)
            self.decide("WEIR.RELEASE", leases[0])
            self.assertEqual(resp_wire.named(waiting.receive())["allowed"], 1)

    def test_refund_penalize_and_reset(self):
        who = ("per-user", "user", somebody())
        self.decide("WEIR.CHECK", *who, "@cost", 3)
        self.decide("WEIR.REFUND", *who, "@cost", 2)
        self.assertEqual(self.decide("WEIR.PEEK", *who)["remaining"], 2)
        self.decide("WEIR.PENALIZE", *who, "@cost", 3)
        self.assertEqual(self.decide("WEIR.CHECK", *who)["retry_after"], 40)
        self.decide("WEIR.RESET", *who)
        self.assertEqual(self.decide("WEIR.PEEK", *who)["remaining"], 3)

    def test_throttle_as_throttlecrab_has_it(self):
        """Allowed first, the burst itself as limit, and time to reset before time to retry."""
        key = somebody()
        replies = self.client.pipeline([("THROTTLE", key, 10, 100, 60)] * 11)
        self.assertEqual(replies[0], [1, 10, 9, 1, 0])
        self.assertEqual([reply[:3] for reply in replies],
                         [[1, 10, 10 - number, ] for number in range(1, 11)] + [[0, 10, 0]])
        self.assertEqual(replies[-1], [0, 10, 0, 6, 1])
        self.assert_error(self.client.call("THROTTLE", key, 0, 100, 60), "^ERR max_burst")

    def test_waits_hold_back_what_is_behind_them(self):
        host = somebody()
        words = ("WEIR.CHECK", "shaped", "path", "/shaped", "host", host, "@wait_ms", 5000)
        began = time.monotonic()
        replies = self.client.pipeline([words, words, words, ("PING",), ("PING", "last")])
        self.assertGreater(time.monotonic() - began, 0.19)
        self.assertEqual([resp_wire.named(reply)["delay_ms"] for reply in replies[:3]], [0] * 3)
        self.assertEqual(replies[3:], ["PONG", "last"])
        # Without being ready to wait, the answer says how long to.
        self.assertGreater(self.decide(*words[:-2])["delay_ms"], 0)

    def test_bad_words_are_named(self):
        for words, said in (
                (("WEIR.CHECK", "nothing", "user", "x"), '"nothing"'),
                (("WEIR.CHECK", "*", "usr", "x"), '"usr"'),
                (("WEIR.CHECK", "*", "user"), '"user"'),
                (("WEIR.CHECK", "*", "user", "x", "user", "y"), '"user"'),
                (("WEIR.CHECK", "*", "user", "x", "@cost", "-1"), "@cost"),
                (("WEIR.CHECK", "*", "user", "x", "@cost", "1.5"), "@cost"),
                (("WEIR.CHECK", "*", "user", "x", "@cost", 10 ** 15 + 1), "@cost"),
                (("WEIR.CHECK", "*", "user", "x", "@wait_ms", "soon"), "@wait_ms"),
                (("WEIR.CHECK", "*", "user", "x", "@ttl_ms", "5"), "@ttl_ms"),
                (("WEIR.CHECK", "*", "header.", "x"), '"header."'),
                (("WEIR.CHECK",), "wrong number of arguments"),
                (("WEIR.LIMIT", "k", "5/fortnight"), "fortnight"),
                (("WEIR.LIMIT", "k", "5/h", "hope"), "hope"),
                (("WEIR.LIMIT", "k", "5/h", "@cost"), "@cost"),
                (("WEIR.CANCEL", "xyz"), "id"),
                (("WEIR.RESET", "*", "user", "x"), "rule"),
                (("GET", "key"), "unknown command 'GET'"),
                (("SELECT", "1"), "ERR")):
            with self.subTest(words):
                self.assert_error(self.client.call(*words), f"^ERR .*{said}|^{said}")
        self.assertEqual(self.client.call("PING"), "PONG")


class Sessions(OnOneConnection):
    def test_hello(self):
        said = resp_wire.named(self.client.call("HELLO"))
        self.assertEqual((said["server"], said["proto"], said["mode"], said["role"]),
                         ("weir", 2, "standalone", "master"))
        self.assertEqual(self.client.call("HELLO", 3, "SETNAME", "me")["proto"], 3)
        self.assertEqual(self.client.call("CLIENT", "GETNAME"), "me")
        self.assert_error(self.client.call("HELLO", 4), "^NOPROTO ")
        self.assertIsInstance(self.client.call("HELLO", 2), list)

    def test_what_clients_ask(self):
        self.assertEqual(self.client.call("CLIENT", "SETNAME", "me"), "OK")
        self.assertEqual(self.client.call("client", "setinfo", "LIB-NAME", "mine"), "OK")
        self.assertGreater(self.client.call("CLIENT", "ID"), 0)
        self.assertIn("name=me", self.client.call("CLIENT", "INFO"))
        self.assertEqual(self.client.call("SELECT", 0), "OK")
        self.assertEqual(self.client.call("ECHO", "hello"), "hello")
        self.assertIn("loading:0", self.client.call("INFO"))
        listed = {row[0] for row in self.client.call("COMMAND")}
        self.assertLessEqual({"cl.throttle", "throttle", "weir.check", "ping", "hello"}, listed)
        self.assertEqual(self.client.call("COMMAND", "COUNT"), len(listed))
        self.assertIsInstance(self.client.call("COMMAND", "DOCS"), list)
        self.client.call("HELLO", 3)
        self.assertIsInstance(self.client.call("COMMAND", "DOCS"), dict)

    def test_reset_and_quit(self):
        self.client.call("HELLO", 3)
        self.assertEqual(self.client.call("RESET"), "RESET")
        self.assertIsInstance(self.client.call("WEIR.CHECK", "*"), list)
        self.assertEqual(self.client.call("QUIT"), "OK")
        self.assertTrue(self.client.is_closed())

    def test_words_in_a_line(self):
        """As by telnet."""
        self.client.socket.sendall(b'PING\r\nPING "hello world"\r\n\r\nPING x\n')
        self.assertEqual([self.client.receive() for _ in range(3)], ["PONG", "hello world", "x"])

    def test_pieces_of_any_size(self):
        data = resp_wire.command("PING", "a" * 100) + resp_wire.command("PING", b"\r\n$*\r\n")
        for byte in data:
            self.client.socket.sendall(bytes([byte]))
        self.assertEqual([self.client.receive() for _ in range(2)], ["a" * 100, "\r\n$*\r\n"])

    def test_half_closed_clients_are_answered(self):
        self.client.socket.sendall(resp_wire.command("PING") * 100)
        self.client.socket.shutdown(socket.SHUT_WR)
        self.assertEqual([self.client.receive() for _ in range(100)], ["PONG"] * 100)
        self.assertTrue(self.client.is_closed())


class Rights(OnOneConnection):
    policy = WITH_TOKENS
    environment = {"WEIR_E2E_TOKEN": TOKEN, "WEIR_E2E_MANAGE": MANAGE_TOKEN}

    def test_nothing_without_a_token(self):
        for words in (("PING",), ("CL.THROTTLE", "k", 15, 30, 60), ("WEIR.CHECK", "*"),
                      ("CLIENT", "ID"), ("INFO",), ("NONSENSE",), ("COMMAND",), ("HELLO", 3)):
            self.assert_error(self.client.call(*words), "^NOAUTH ")

    def test_a_wrong_token(self):
        self.assert_error(self.client.call("AUTH", "wrong"), "^WRONGPASS ")
        self.assert_error(self.client.call("AUTH", "default", TOKEN + "x"), "^WRONGPASS ")
        self.assert_error(self.client.call("HELLO", 3, "AUTH", "default", "wrong"), "^WRONGPASS ")
        self.assert_error(self.client.call("PING"), "^NOAUTH ")

    def test_the_right_token(self):
        self.assertEqual(self.client.call("AUTH", TOKEN), "OK")
        self.assertEqual(self.client.call("PING"), "PONG")
        self.assert_error(self.client.call("WEIR.RESET", "per-user", "user", "x"), "^NOPERM ")
        self.assert_error(self.client.call("CL.THROTTLE", "k", 15, 30, 60, -1), "^NOPERM ")
        # A wrong one takes nothing away, and RESET everything.
        self.assert_error(self.client.call("AUTH", "wrong"), "^WRONGPASS ")
        self.assertEqual(self.client.call("PING"), "PONG")
        self.assertEqual(self.client.call("RESET"), "RESET")
        self.assert_error(self.client.call("PING"), "^NOAUTH ")

    def test_the_one_for_managing(self):
        said = self.client.call("HELLO", 3, "AUTH", "default", MANAGE_TOKEN)
        self.assertEqual(said["proto"], 3)
        self.assertTrue(self.client.call("WEIR.RESET", "per-user", "user", "x")["allowed"])
        self.assertEqual(self.client.call("CL.THROTTLE", "k", 15, 30, 60, -1)[:2], [0, 16])


class NobodyManages(OnOneConnection):
    policy = RULES

    def test_on_loopback_unless_it_is_open(self):
        for verb in ("WEIR.REFUND", "WEIR.PENALIZE", "WEIR.RESET"):
            self.assert_error(self.client.call(verb, "per-user", "user", "x"), "^NOPERM ")
        self.assert_error(self.client.call("AUTH", "x"), "^ERR ")


class UnixSocket(unittest.TestCase):
    def test_serves(self):
        policy = "listen: { resp: 'unix:{folder}/weir.sock' }\n" + RULES
        with daemon.Daemon(policy) as service:
            with socket.socket(socket.AF_UNIX) as one:
                one.settimeout(daemon.PATIENCE)
                one.connect(service.addresses["resp"].removeprefix("unix:"))
                one.sendall(resp_wire.command("PING"))
                self.assertEqual(one.recv(100), b"+PONG\r\n")


if __name__ == "__main__":
    daemon.main()
