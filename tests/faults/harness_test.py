#!/usr/bin/env python3
"""The servers, the proxy and the judge that the fault tests rely on, tried out by themselves: a
fault that is not injected is a test that cannot fail.

    harness_test.py [TEST...]
"""

import contextlib
import socket
import time
import unittest

import redis_servers
from chaos_proxy import ChaosProxy
from redis_servers import resp_wire


class Proxied(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(redis_servers.Server())

    def setUp(self):
        self.proxy = self.enterContext(ChaosProxy(self.server.port))
        self.client = self.enterContext(resp_wire.Client(self.proxy.port, timeout=0.3))
        self.assertEqual(self.client.call("PING"), "PONG")
        self.server.call("DEL", "count")

    def test_it_passes_large_values_both_ways(self):
        value = "v" * 3_000_000
        self.client.socket.settimeout(10)
        self.assertEqual(self.client.call("SET", "large", value), "OK")
        self.assertEqual(self.client.call("GET", "large"), value)

    def test_replies_are_late_by_as_much_as_it_is_told(self):
        self.proxy.set("delay", 0.1)
        began = time.monotonic()
        self.client.call("PING")
        self.assertGreater(time.monotonic() - began, 0.1)

    def test_late_replies_keep_their_order(self):
        self.proxy.set("random", 0.0, 0.05)
        self.client.socket.settimeout(5)
        told = [self.client.call("ECHO", str(number)) for number in range(5)]
        self.assertEqual(told, [str(number) for number in range(5)])

    def test_a_lost_reply_is_of_a_request_that_took_effect(self):
        self.proxy.set("drop_replies")
        with self.assertRaises(TimeoutError):
            self.client.call("INCR", "count")
        self.assertEqual(self.server.call("GET", "count"), "1")

    def test_nothing_comes_through_a_black_hole(self):
        self.proxy.set("blackhole")
        with self.assertRaises(TimeoutError):
            self.client.call("INCR", "count")
        self.assertIsNone(self.server.call("GET", "count"))
        with resp_wire.Client(self.proxy.port, timeout=0.1) as other:
            with self.assertRaises(TimeoutError):
                other.call("PING")

    def test_it_refuses_and_takes_connections_again(self):
        self.proxy.set("refuse")
        with self.assertRaises(ConnectionRefusedError):
            resp_wire.Client(self.proxy.port)
        with self.assertRaises(ConnectionError):
            self.client.call("PING")
        self.proxy.set("pass")
        with resp_wire.Client(self.proxy.port) as other:
            self.assertEqual(other.call("PING"), "PONG")

    def test_half_a_reply_and_a_reset_or_an_end(self):
        for mode, ends in (("reset_mid_reply", True), ("truncate", False)):
            with self.subTest(mode), resp_wire.Client(self.proxy.port, timeout=1) as client:
                client.call("PING")
                self.proxy.set(mode)
                client.send("INCR", "count")
                got, was_reset = b"", False
                with contextlib.suppress(ConnectionResetError):
                    while data := client.socket.recv(100):
                        got += data
                    was_reset = None
                self.assertLess(len(got), len(b":1\r\n"))
                self.assertEqual(was_reset is False, ends)
                self.proxy.set("pass")

    def test_half_closed_it_still_takes_requests(self):
        self.proxy.set("half_close")
        self.client.send("INCR", "count")
        self.assertEqual(self.client.socket.recv(10), b"")
        self.client.send("INCR", "count")
        redis_servers.wait_until(lambda: self.server.call("GET", "count") == "2", "both counted")

    def test_byte_by_byte_is_still_the_reply(self):
        self.proxy.set("split")
        self.assertEqual(self.client.call("ECHO", "x" * 1000), "x" * 1000)

    def test_what_makes_no_sense(self):
        self.proxy.set("garbage")
        self.client.send("ECHO", "x" * 100)
        self.assertNotIn(b"xxxx", self.client.socket.recv(1000))
        self.proxy.set("wrong_type")
        with resp_wire.Client(self.proxy.port, timeout=1) as other:
            self.assertNotEqual(other.call("ECHO", "hello"), "hello")

    def test_it_flaps(self):
        self.proxy.set("flap", 0.05)
        seen = set()
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline and len(seen) < 2:
            try:
                socket.create_connection(("127.0.0.1", self.proxy.port)).close()
                seen.add("taken")
            except ConnectionRefusedError:
                seen.add("refused")
        self.assertEqual(seen, {"taken", "refused"})


if __name__ == "__main__":
    unittest.main()
