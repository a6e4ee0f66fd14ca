#!/usr/bin/env python3
"""What is no call, or not a good one, on the gRPC listener: the right status, a message that helps, and
nothing charged.

    grpc_input_test.py SOURCE PROGRAM [TEST...]

WEIR_SEED=n repeats a run.
"""

import contextlib
import os
import random
import socket
import unittest

import daemon
import grpc_client
import h2_wire
import http_wire
import metrics_text
from grpc_client import Code, entries, error_of, grpc, limiter_pb2, ratelimit_pb2, request, rls_pb2
from h2_wire import CHECK, DATA, END_STREAM, RLS, frame

POLICY = """\
listen: { http: 127.0.0.1:0, grpc: 127.0.0.1:0 }
limits: { body: 64KiB, header: 8KiB, header_timeout: 1s, idle_timeout: 20s }
rules:
  - name: users
    match: { descriptor.user: present }
    key: descriptor.user
    limit: 1000/h
"""
# A call that is charged, if it is let through.
GOOD = request("shop", entries(user="ann")).SerializeToString()


class Input(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.service = cls.enterClassContext(daemon.Daemon(POLICY))

    def setUp(self):
        self.client = self.enterContext(grpc_client.Client(self.service.grpc))
        self.before = self.client.ask("shop", entries(0, user="ann")).statuses[0].limit_remaining

    def tearDown(self):
        """Whatever it was, nothing was charged, and the service goes on."""
        left = self.client.ask("shop", entries(0, user="ann")).statuses[0].limit_remaining
        self.assertGreaterEqual(left, self.before)

    def refused(self, why):
        return metrics_text.scrape(self.service.http).value("weir_refused_total", listener="grpc",
                                                            why=why)

    def connect(self, **more):
        return self.enterContext(h2_wire.Connection(self.service.grpc, **more))

    def assert_fails(self, code, words, call, *arguments, **more):
        error = error_of(call, *arguments, **more)
        self.assertEqual(error.code(), code, error)
        self.assertIn(words, error.details())
        return error


class NotGrpc(Input):
    def test_another_content_type(self):
        before = self.refused("protocol")
        for kind in ("application/json", "application/grpc-web", "application/grpc+json", None, ""):
            with self.subTest(kind):
                one = self.connect()
                one.send(h2_wire.head(1, h2_wire.fields(RLS, kind=kind))
                         + frame(DATA, END_STREAM, 1, h2_wire.message(GOOD)))
                answer = one.answer(1)
                self.assertEqual(answer.status, "415")
                self.assertIn(b"application/grpc", answer.body)
        self.assertEqual(self.refused("protocol") - before, 5)

    def test_content_types_that_are_grpc(self):
        for number, kind in enumerate(("application/grpc", "application/grpc+proto",
                                       "application/grpc;charset=utf-8")):
            one = self.connect()
            one.send(h2_wire.head(1, h2_wire.fields(RLS, kind=kind))
                     + frame(DATA, END_STREAM, 1, h2_wire.message(
                         request("shop", entries(0, user=str(number))).SerializeToString())))
            self.assertEqual(one.answer(1).grpc_status, 0, kind)

    def test_another_method(self):
        for method in ("GET", "PUT", "OPTIONS"):
            one = self.connect()
            one.send(h2_wire.head(1, h2_wire.fields(RLS, method=method), end=True))
            answer = one.answer(1)
            self.assertEqual((answer.status, answer.headers["allow"]), ("405", "POST"))

    def test_http_1_is_told_what_this_is(self):
        for data in (b"GET / HTTP/1.1\r\nHost: weir\r\n\r\n",
                     http_wire.request("POST", "/v1/check", {"user": "ann"}),
                     b"GET /\tx HTTP/1.1\r\nHost:\tweir\r\n\r\n" + b"\t\t\t\t\t\t\t\t\t\t" * 20,
                     b"GET / HTTP/1.0\r\n\r\n"):
            with self.subTest(data):
                with http_wire.Client(self.service.grpc) as client:
                    client.send(data)
                    response = client.receive()
                    self.assertEqual(response.status, 505)
                    self.assertIn(b"HTTP/2", response.body)
                    self.assertTrue(client.is_closed())

    def test_random_bytes(self):
        seed = int(os.environ.get("WEIR_SEED", random.SystemRandom().randrange(1 << 32)))
        randomly = random.Random(seed)
        with self.subTest(WEIR_SEED=seed):
            for number in range(300):
                data = randomly.randbytes(randomly.randrange(1, 2000))
                begin = h2_wire.PREFACE + h2_wire.settings() if number % 2 else b""
                if number % 4 == 3:  # A frame of each kind, with nonsense in it.
                    data = b"".join(
                        frame(randomly.randrange(12), randomly.randrange(256),
                              randomly.choice((0, 1, 2, 3, 5)), data[at:at + 60])
                        for at in range(0, len(data), 60))
                with h2_wire.Connection(self.service.grpc, begin=begin + data) as one:
                    with contextlib.suppress(OSError):
                        one.socket.shutdown(socket.SHUT_WR)
                    while not one.is_closed:
                        with contextlib.suppress(Exception):
                            one.drain()

    def test_half_requests(self):
        """Cut off anywhere, then closed: nothing happens, and nothing stays."""
        whole = h2_wire.PREFACE + h2_wire.settings() + h2_wire.call(1, RLS, GOOD)
        for size in range(1, len(whole), 7):
            with h2_wire.Connection(self.service.grpc, begin=whole[:size]):
                pass
        with http_wire.Client(self.service.http) as http:
            def is_open():
                return metrics_text.Metrics.of(http).value("weir_connections", listener="grpc") > 1
            deadline = daemon.time.monotonic() + daemon.PATIENCE
            while is_open():
                self.assertLess(daemon.time.monotonic(), deadline)

    def test_a_request_that_is_not_completed_in_time(self):
        before = self.refused("header_timeout")
        one = self.connect()
        one.send(h2_wire.head(1, h2_wire.fields(RLS))
                 + frame(DATA, 0, 1, h2_wire.message(GOOD)[:10]))
        answer = one.answer(1)
        self.assertEqual((answer.grpc_status, "in time" in answer.grpc_message), (4, True))
        self.assertEqual(self.refused("header_timeout") - before, 1)
        # Half a preface, half a frame, half a header block: nobody knows what it will be.
        whole = h2_wire.PREFACE + h2_wire.settings() + h2_wire.head(1, h2_wire.fields(RLS))
        block = h2_wire.frame(h2_wire.HEADERS, 0, 1, h2_wire.block(h2_wire.fields(RLS)))
        for begin in (whole[:5], whole[:30], whole[:40], whole[:80],
                      h2_wire.PREFACE + h2_wire.settings() + block):
            with self.subTest(begin):
                began = daemon.time.monotonic()
                self.connect(begin=begin, acknowledges=False).drain()
                self.assertLess(daemon.time.monotonic() - began, 5)
        self.assertEqual(self.refused("header_timeout") - before, 6)


    def test_frames_that_break_the_rules(self):
        """The connection is ended, and the peer told why."""
        head = h2_wire.head(1, h2_wire.fields(RLS))
        for name, data in (
                ("data of no stream", frame(DATA, 0, 0, b"x")),
                ("data before a head", frame(DATA, 0, 1, b"x")),
                ("a stream of the server", h2_wire.head(2, h2_wire.fields(RLS))),
                ("a head within a head", frame(h2_wire.HEADERS, 0, 1, b"") + head),
                ("settings of five bytes", frame(h2_wire.SETTINGS, 0, 0, b"12345")),
                ("a ping of five bytes", frame(h2_wire.PING, 0, 0, b"12345")),
                ("a window of none", frame(h2_wire.WINDOW_UPDATE, 0, 0, bytes(4))),
                ("too large a window", frame(h2_wire.WINDOW_UPDATE, 0, 0, b"\0\0\0\1")),
                ("too large a frame", b"\xff\xff\xff" + frame(DATA, 0, 1)[3:]),
                ("a promise", frame(h2_wire.PUSH_PROMISE, 4, 1, bytes(4))),
                ("no header block", frame(h2_wire.HEADERS, 5, 1, b"\xff\xff\xff\xff\xff"))):
            with self.subTest(name):
                before = self.refused("protocol")
                one = self.connect()
                one.send(data)
                one.drain()
                self.assertEqual([code > 0 for _, code in one.goaways], [True])
                self.assertEqual(self.refused("protocol") - before, 1)


class BadCalls(Input):
    def test_unknown_methods(self):
        for path in ("/weir.v1.Limiter/Nonsense", "/nonsense.Service/Check", "/", "/x" * 1000,
                     "/weir.v1.Limiter/check", CHECK + "/", "/envoy.service.ratelimit.v2"
                     ".RateLimitService/ShouldRateLimit"):
            with self.subTest(path[:60]):
                self.assert_fails(Code.UNIMPLEMENTED, path[:60], self.client.raw, path, b"")
        # Whatever stands in it.
        one = self.connect()
        one.send(h2_wire.head(1, h2_wire.fields("/%\x01\xff")) + frame(DATA, END_STREAM, 1))
        self.assertIn(one.answer(1).grpc_status or one.answer(1).reset, (12, 1))

    def test_compressed_messages(self):
        long = entries(user="ann", padding="x" * 5000)  # Else it is not worth while.
        self.assert_fails(Code.UNIMPLEMENTED, "compressed", self.client.ask, "shop", long,
                          compression=grpc.Compression.Gzip)
        one = self.connect()
        one.send(h2_wire.head(1, h2_wire.fields(RLS, [("grpc-encoding", "gzip")]))
                 + frame(DATA, END_STREAM, 1, h2_wire.message(GOOD, compressed=1)))
        answer = one.answer(1)
        self.assertEqual((answer.grpc_status, answer.headers["grpc-accept-encoding"]),
                         (12, "identity"))
        # Announced, and then not used: that is fine. Used, and not announced: that is not.
        look = request("shop", entries(0, user="ann")).SerializeToString()
        one.send(h2_wire.call(3, RLS, look, [("grpc-encoding", "gzip")]))
        self.assertEqual(one.answer(3).grpc_status, 0)
        one.send(h2_wire.head(5, h2_wire.fields(RLS))
                 + frame(DATA, END_STREAM, 5, h2_wire.message(GOOD, compressed=1)))
        self.assertEqual(one.answer(5).grpc_status, 13)

    def test_messages_that_are_too_large(self):
        before = self.refused("body")
        large = entries(user="ann", padding="x" * 70_000)
        self.assert_fails(Code.RESOURCE_EXHAUSTED, "65536", self.client.ask, "shop", large)
        # One that only says so is told before it comes.
        one = self.connect()
        one.send(h2_wire.head(1, h2_wire.fields(RLS))
                 + frame(DATA, 0, 1, h2_wire.message(b"", size=2**32 - 1)))
        self.assertEqual(one.answer(1).grpc_status, 8)
        self.assertEqual(self.refused("body") - before, 2)
        fits = entries(0, user="ann", padding="x" * 60_000)
        self.assertEqual(len(self.client.ask("shop", fits).statuses), 1)

    def test_many_that_are_too_large_together(self):
        """All calls of a connection that are not answered may together be as large as one."""
        one = self.connect()
        data = h2_wire.message(b"", size=60_000) + b"x" * 10_000
        one.send(b"".join(h2_wire.head(stream, h2_wire.fields(RLS)) + frame(DATA, 0, stream, data)
                          for stream in range(1, 19, 2)))
        self.assertEqual(one.answer(17).grpc_status, 8)

    def test_headers_that_are_too_large(self):
        before = self.refused("header")
        one = self.connect()
        one.send(h2_wire.call(1, RLS, GOOD, [(f"x-{number}", "x" * 10) for number in range(200)]))
        answer = one.answer(1)
        self.assertEqual((answer.grpc_status, "8192" in answer.grpc_message), (8, True))
        self.assertGreater(self.refused("header"), before)

    def test_what_is_no_message(self):
        one = self.connect()
        for number, data in enumerate((b"", b"\0", b"\0\0\0\0", h2_wire.message(GOOD)[:-1],
                                       h2_wire.message(GOOD) + b"\0",
                                       h2_wire.message(GOOD) * 2)):
            stream = 2 * number + 1
            one.send(h2_wire.head(stream, h2_wire.fields(RLS))
                     + frame(DATA, END_STREAM, stream, data))
            answer = one.answer(stream)
            self.assertEqual((answer.grpc_status, "message" in answer.grpc_message), (3, True), data)
        one.send(h2_wire.head(99, h2_wire.fields(RLS), end=True))
        self.assertEqual(one.answer(99).grpc_status, 3)

    def test_broken_protobuf(self):
        # Each ends too early, or is no field at all.
        for data in (b"\x0a", b"\x0a\x05shop", b"\xff" * 20, b"\x00\x01", b"\x0f", b"\x0b", b"\x0c",
                     b"\x0a\xff\xff\xff\xff\x0f", GOOD[:-1], GOOD + b"\x0a", b"\x0b" * 200,
                     GOOD + b"\x13\x1c"):
            with self.subTest(data):
                self.assert_fails(Code.INVALID_ARGUMENT, ".proto", self.client.raw, RLS, data)
                self.assert_fails(Code.INVALID_ARGUMENT, ".proto", self.client.raw, CHECK, data)
        self.assert_fails(Code.INVALID_ARGUMENT, "", self.client.raw, RLS, b"\x12\x02\x0a\x05")

    def test_every_call_cut_off_anywhere(self):
        """Protobuf cut off is mostly broken; where it is not, it is another message, and legal."""
        longer = request("shop", entries(3, user="ann", page="/pay", limit=(5, "MINUTE")),
                         entries(0, user="ben"), hits=7).SerializeToString()
        for size in range(len(longer)):
            with contextlib.suppress(grpc.RpcError):
                self.client.raw(RLS, longer[:size])

    def test_fields_that_are_unknown_are_passed_over(self):
        look = request("shop", entries(0, user="ann")).SerializeToString()
        unknown = b"\xf8\x07\x05" + b"\xfa\x07\x03abc" + b"\xf9\x07" + b"x" * 8 + b"\xfd\x07xxxx" \
            + b"\xfb\x07\x08\x01\xfc\x07"
        said = rls_pb2.RateLimitResponse.FromString(self.client.raw(RLS, unknown + look + unknown))
        self.assertEqual(said.statuses[0].limit_remaining, self.before)

    def test_texts_that_are_not_utf8(self):
        bad = b"\xc3\x28"
        entry = b"\x0a\x04user\x12\x02" + bad
        descriptor = b"\x0a" + bytes([len(entry)]) + entry
        for data in (b"\x0a\x02" + bad + GOOD,
                     b"\x0a\x04shop\x12" + bytes([len(descriptor)]) + descriptor):
            self.assert_fails(Code.INVALID_ARGUMENT, "", self.client.raw, RLS, data)
        for number in (1, 2, 9, 14):
            data = bytes([number << 3 | 2, 2]) + bad
            self.assert_fails(Code.INVALID_ARGUMENT, "UTF-8", self.client.raw, CHECK, data)

    def test_requests_that_ask_for_nothing(self):
        Descriptor = ratelimit_pb2.RateLimitDescriptor
        nameless = Descriptor(entries=[Descriptor.Entry(value="x")])
        good = entries(user="ann")
        for domain, descriptors, words in (
                ("", [good], "domain"), ("shop", [], "descriptors"),
                ("shop", [good, Descriptor()], "descriptors[1].entries"),
                ("shop", [nameless, good], "descriptors[0].entries"),
                ("shop", [good] * 65, "at most 64"),
                ("shop", [entries(**{f"k{n}": "x" for n in range(129)})], "at most 128"),
                ("shop", [entries(user="ann", limit=(5, 0))], "unit")):
            with self.subTest(words):
                self.assert_fails(Code.INVALID_ARGUMENT, words, self.client.ask, domain,
                                  *descriptors)

    def test_numbers_out_of_bounds(self):
        for fields, words in (({"cost": -1}, "cost"), ({"cost": 10**15 + 1}, "cost"),
                              ({"wait_ms": -5}, "wait_ms"),
                              ({"headers": grpc_client.named({f"h{n}": "x" for n in range(129)})},
                               "128"),
                              ({"rules": ["users"] * 65}, "64")):
            with self.subTest(words):
                self.assert_fails(Code.INVALID_ARGUMENT, words, self.client.check, **fields)

    def test_timeouts_that_are_none(self):
        look = limiter_pb2.CheckRequest(user="x").SerializeToString()
        one = self.connect()
        for number, text in enumerate(("", "1", "m", "1x", "-1S", "123456789S", "1.5S", "99999999H",
                                       "0n", "99999999S")):
            stream = 2 * number + 1
            one.send(h2_wire.call(stream, CHECK, look, [("grpc-timeout", text)]))
            self.assertEqual(one.answer(stream).grpc_status, 0, text)


if __name__ == "__main__":
    daemon.main()
