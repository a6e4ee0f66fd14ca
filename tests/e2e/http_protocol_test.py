#!/usr/bin/env python3
"""HTTP/1 as bytes: what keeps a connection, what ends it, and what is refused.

    http_protocol_test.py SOURCE PROGRAM [TEST...]
"""

import json
import socket
import unittest

import daemon
import http_wire
import metrics_text

POLICY = """\
rules:
  - name: per-user
    match: { user: present }
    key: user
    limit: 1000/h
"""
CHECK = b'{"user": "ann"}'


class HttpBytes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(daemon.Daemon(POLICY))

    def connect(self):
        client = http_wire.Client(self.daemon.http)
        self.addCleanup(client.close)
        return client

    def test_keeps_its_connection(self):
        client = self.connect()
        for _ in range(100):
            self.assertEqual(client.post("/v1/check", {"user": "kept"}).status, 200)
        response = client.get("/healthz", headers=[("Connection", "close")])
        self.assertEqual(response.header("Connection"), "close")
        self.assertTrue(client.is_closed())

    def test_answers_pipelined_requests_in_order(self):
        client = self.connect()
        requests, expected = [], []
        for number in range(300):
            kind = number % 4
            if kind == 0:
                requests.append(http_wire.request("GET", "/healthz"))
            elif kind == 1:
                requests.append(http_wire.request("POST", "/v1/nothing", {}))
            elif kind == 2:
                requests.append(http_wire.request("POST", "/v1/check", b"{"))
            else:
                requests.append(http_wire.request("POST", "/v1/check", {"user": "piped"}))
            expected.append((200, 404, 400, 200)[kind])
        client.send(b"".join(requests))
        responses = [client.receive() for _ in requests]
        self.assertEqual([response.status for response in responses], expected)
        left = [response.json()["remaining"] for response in responses[3::4]]
        self.assertEqual(left, list(range(999, 999 - 75, -1)))

    def test_a_request_that_waits_holds_back_those_behind_it(self):
        client = self.connect()
        with daemon.Daemon("""\
rules:
  - { name: shaped, key: user, limit: 10/s burst 9, algorithm: leaky_bucket, queue: true }
""") as service:
            client = http_wire.Client(service.http)
            self.addCleanup(client.close)
            body = {"user": "ann", "wait_ms": 5000}
            client.send(http_wire.request("POST", "/v1/check", body) * 2
                        + http_wire.request("GET", "/healthz")
                        + http_wire.request("POST", "/v1/check", body))
            said = [client.receive() for _ in range(4)]
            self.assertEqual([response.body == b"ok" for response in said],
                             [False, False, True, False])
            client.close()

    def test_takes_requests_byte_by_byte(self):
        client = self.connect()
        for byte in http_wire.request("POST", "/v1/check", {"user": "slow"}):
            client.send(bytes([byte]))
        self.assertEqual(client.receive().status, 200)

    def test_http_1_0(self):
        client = self.connect()
        response = client.get("/healthz", version="1.0", host=None)
        self.assertEqual((response.version, response.status, response.body),
                         ("HTTP/1.1", 200, b"ok"))
        self.assertEqual(response.header("Connection"), "close")
        self.assertTrue(client.is_closed())
        client = self.connect()
        for _ in range(3):
            response = client.get("/healthz", version="1.0",
                                  headers=[("Connection", "keep-alive")])
            self.assertEqual(response.header("Connection"), "keep-alive")

    def test_head(self):
        client = self.connect()
        for path in ("/healthz", "/metrics", "/v1/limits", "/openapi.json"):
            whole = client.get(path)
            head = client.call("HEAD", path)
            self.assertEqual((head.status, head.body), (200, b""))
            self.assertEqual(head.header("Content-Type"), whole.header("Content-Type"))
            if path != "/metrics":  # It changes.
                self.assertEqual(head.header("Content-Length"), str(len(whole.body)))
        self.assertEqual(client.call("HEAD", "/v1/check").status, 405)
        self.assertEqual(client.call("HEAD", "/none").status, 404)
        self.assertEqual(client.get("/healthz").status, 200)

    def test_expect_100_continue(self):
        client = self.connect()
        client.send(b"POST /v1/check HTTP/1.1\r\nHost: weir\r\nExpect: 100-continue\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(CHECK))
        go_on = client.receive()
        self.assertEqual((go_on.status, go_on.headers), (100, []))
        client.send(CHECK)
        self.assertEqual(client.receive().status, 200)
        # Whoever does not wait for it is not told.
        client.send(b"POST /v1/check HTTP/1.1\r\nHost: weir\r\nExpect: 100-continue\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(CHECK) + CHECK)
        self.assertEqual(client.receive().status, 200)
        # And HTTP/1.0 does not know it.
        client.send(b"POST /v1/check HTTP/1.0\r\nExpect: 100-continue\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(CHECK) + CHECK)
        self.assertEqual(client.receive().status, 200)
        # Nobody is asked to send what would be refused.
        client = self.connect()
        client.send(b"POST /v1/check HTTP/1.1\r\nHost: weir\r\nExpect: 100-continue\r\n"
                    b"Content-Length: 99999999\r\n\r\n")
        self.assertEqual(client.receive().status, 413)
        client = self.connect()
        client.send(b"POST /v1/check HTTP/1.1\r\nHost: weir\r\nExpect: miracles\r\n"
                    b"Content-Length: 2\r\n\r\n{}")
        self.assertEqual(client.receive().status, 417)

    def test_chunks(self):
        client = self.connect()
        head = b"POST /v1/check HTTP/1.1\r\nHost: weir\r\nTransfer-Encoding: chunked\r\n\r\n"
        client.send(head + b"5\r\n" + CHECK[:5] + b"\r\nA\r\n" + CHECK[5:] + b"\r\n0\r\n\r\n")
        self.assertEqual(client.receive().status, 200)
        pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in CHECK)
        client.send(head + pieces + b"0\r\nX-Trailer: ignored\r\n\r\n" + head + pieces
                    + b"0\r\n\r\n")
        self.assertEqual([client.receive().status for _ in range(2)], [200, 200])

    def test_targets(self):
        client = self.connect()
        self.assertEqual(client.get("/healthz?why=not").status, 200)
        self.assertEqual(client.get("http://weir.example/healthz").status, 200)
        self.assertEqual(client.call("OPTIONS", "*").status, 404)
        self.assertEqual(client.get("/v1/../healthz").status, 404)
        self.assertEqual(client.call("CONNECT", "weir.example:443").status, 501)
        self.assertTrue(client.is_closed())

    def test_half_closed_clients_are_answered(self):
        client = self.connect()
        client.send(http_wire.request("POST", "/v1/check", {"user": "half"}) * 3)
        client.socket.shutdown(socket.SHUT_WR)
        self.assertEqual([client.receive().status for _ in range(3)], [200] * 3)
        self.assertTrue(client.is_closed())

    def test_empty_lines_before_a_request(self):
        client = self.connect()
        client.send(b"\r\n" + http_wire.request("GET", "/healthz"))
        self.assertEqual(client.receive().status, 200)


BODY = b"Content-Length: 2\r\n\r\n{}"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
HOST = b"Host: weir\r\n"
POST = b"POST /v1/check HTTP/1.1\r\n"

# What is ambiguous about where a request ends, or about what it says. Each is refused and ends the
# connection, because what stands behind it cannot be told from it.
MALFORMED = {
    "two lengths that differ": POST + HOST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "a length twice": POST + HOST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    "a list of lengths": POST + HOST + b"Content-Length: 2, 2\r\n\r\n{}",
    "a length with a sign": POST + HOST + b"Content-Length: +2\r\n\r\n{}",
    "a negative length": POST + HOST + b"Content-Length: -2\r\n\r\n{}",
    "a length in hex": POST + HOST + b"Content-Length: 0x2\r\n\r\n{}",
    "an empty length": POST + HOST + b"Content-Length:\r\n\r\n{}",
    "a length and chunks": POST + HOST + b"Content-Length: 2\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks and a length": POST + HOST + CHUNKED + b"Content-Length: 2\r\n\r\n0\r\n\r\n",
    "chunked twice": POST + HOST + CHUNKED + CHUNKED + b"\r\n0\r\n\r\n",
    "chunked, chunked": POST + HOST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "gzip, chunked": POST + HOST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "identity": POST + HOST + b"Transfer-Encoding: identity\r\n" + BODY,
    "xchunked": POST + HOST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked in HTTP/1.0": b"POST /v1/check HTTP/1.0\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "two hosts": POST + HOST + HOST + BODY,
    "no host": POST + BODY,
    "an ending without CR": POST + b"Host: weir\n" + BODY,
    "a request line without CR": b"POST /v1/check HTTP/1.1\n" + HOST + BODY,
    "a CR alone": POST + b"Host: we\rir\r\n" + BODY,
    "a folded header": POST + HOST + b"X-Long: a\r\n b\r\n" + BODY,
    "a blank before the colon": POST + HOST + b"Content-Length : 2\r\n\r\n{}",
    "a blank before the name": POST + b" Host: weir\r\n" + BODY,
    "a header without colon": POST + HOST + b"Nonsense\r\n" + BODY,
    "a header without name": POST + HOST + b": nonsense\r\n" + BODY,
    "a NUL in a value": POST + HOST + b"X-Nul: a\x00b\r\n" + BODY,
    "a control character in the target": b"GET /heal\x01thz HTTP/1.1\r\n" + HOST + b"\r\n",
    "two blanks in the request line": b"GET  /healthz HTTP/1.1\r\n" + HOST + b"\r\n",
    "no target": b"GET HTTP/1.1\r\n" + HOST + b"\r\n",
    "no version": b"GET /healthz\r\n" + HOST + b"\r\n",
    "a version in lower case": b"GET /healthz http/1.1\r\n" + HOST + b"\r\n",
    "a method with odd characters": b"G@T /healthz HTTP/1.1\r\n" + HOST + b"\r\n",
    "a chunk with an odd size": POST + HOST + CHUNKED + b"\r\n0x2\r\n{}\r\n0\r\n\r\n",
    "a chunk with a blank before its size": POST + HOST + CHUNKED + b"\r\n 2\r\n{}\r\n0\r\n\r\n",
    "a chunk that does not end": POST + HOST + CHUNKED + b"\r\n2\r\n{}x\r\n0\r\n\r\n",
    "a chunk that overflows": POST + HOST + CHUNKED + b"\r\nffffffffffffffff2\r\n{}",
    "a chunk that ends in LF": POST + HOST + CHUNKED + b"\r\n2\n{}\r\n0\r\n\r\n",
    "a folded trailer": POST + HOST + CHUNKED + b"\r\n0\r\nA: b\r\n c\r\n\r\n",
}


class Malformed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.daemon = cls.enterClassContext(daemon.Daemon(POLICY))

    def assert_refused(self, data, statuses, *, why):
        """The request before it is answered; it is refused; nothing behind it is looked at."""
        with http_wire.Client(self.daemon.http) as observer:
            before = metrics_text.Metrics.of(observer)
            with http_wire.Client(self.daemon.http) as client:
                client.send(http_wire.request("GET", "/healthz") + data
                            + http_wire.request("GET", "/healthz"))
                self.assertEqual(client.receive().body, b"ok")
                response = client.receive()
                self.assertIn(response.status, statuses, response)
                self.assertEqual(response.header("Connection"), "close")
                self.assertEqual(list(response.json()), ["error", "message"])
                self.assertTrue(client.is_closed())
            after = metrics_text.Metrics.of(observer)
            labels = {"listener": "http", "why": why}
            self.assertEqual(after.value("weir_refused_total", **labels),
                             before.value("weir_refused_total", **labels) + 1)

    def test_is_refused_and_ends_the_connection(self):
        for name, data in MALFORMED.items():
            with self.subTest(name):
                self.assert_refused(data, (400,), why="protocol")

    def test_other_versions(self):
        for version in (b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1.2", b"HTTP/3.0"):
            with self.subTest(version=version):
                self.assert_refused(b"GET /healthz " + version + b"\r\n" + HOST + b"\r\n",
                                    (400, 505), why="protocol")

    def test_http_2_with_prior_knowledge(self):
        with http_wire.Client(self.daemon.http) as client:
            client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            self.assertIn(client.receive().status, (400, 505))
            self.assertTrue(client.is_closed())

    def test_too_large(self):
        large = b"x" * 20_000
        self.assert_refused(b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + large + b"\r\n\r\n",
                            (431,), why="header")
        self.assert_refused(b"GET /" + large + b" HTTP/1.1\r\n" + HOST + b"\r\n", (414, 431),
                            why="header")
        self.assert_refused(POST + HOST + b"Content-Length: 1048577\r\n\r\n", (413,), why="body")
        self.assert_refused(POST + HOST + CHUNKED + b"\r\n100001\r\n", (413,), why="body")

    def test_as_large_as_allowed(self):
        body = json.dumps({"user": "large"}).encode()
        with http_wire.Client(self.daemon.http) as client:
            response = client.post("/v1/check", body + b" " * ((1 << 20) - len(body)))
            self.assertEqual(response.status, 200)
            response = client.get("/healthz", headers=[("X", "x" * 15_000)])
            self.assertEqual(response.status, 200)


if __name__ == "__main__":
    daemon.main()
