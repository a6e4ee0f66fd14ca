#!/usr/bin/env python3
"""TLS from outside: who is let in, what is said to those who are not, and what it costs to try.

    tls_test.py SOURCE PROGRAM [TEST...]
"""

import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest
import warnings

import certificates
import daemon
import http_wire
import metrics_text
import resp_wire
import tls_wire

RULES = """\
manage: open
rules:
  - { name: per-user, match: { user: present }, key: user, limit: 5/h }
"""
BODY = {"user": "ann"}
CHECK = http_wire.request("POST", "/v1/check", BODY)


def setUpModule():
    global folder, authority, strangers, server, ann, expired, stranger
    folder = tempfile.TemporaryDirectory(prefix="weir-tls-")
    unittest.addModuleCleanup(folder.cleanup)
    authority = certificates.Authority(folder.name)
    strangers = certificates.Authority(folder.name, "strangers")
    server = authority.issue("server")
    ann = authority.issue("ann")
    expired = authority.issue("expired", days=-1)
    stranger = strangers.issue("stranger")


def tls(client_ca=False):
    more = f", client_ca: {authority.file}" if client_ca else ""
    return f"tls: {{ certificate: {server.certificate}, key: {server.key}{more} }}"


def policy(client_ca=False, more=""):
    settings = tls(client_ca)
    return (f"listen:\n  http: {{ address: 127.0.0.1:0, {settings} }}\n"
            f"  resp: {{ address: 127.0.0.1:0, {settings} }}\n{more}{RULES}")


class OnOneService(unittest.TestCase):
    client_ca = False
    more = ""

    def setUp(self):
        self.daemon = self.enterContext(daemon.Daemon(policy(self.client_ca, self.more)))
        pair = ann if self.client_ca else None
        self.trusting = authority.client(pair)
        self.client = self.enterContext(tls_wire.http(self.daemon.http, self.trusting))

    def refused(self, listener, why):
        metrics = metrics_text.Metrics.of(self.client)
        return metrics.value("weir_refused_total", listener=listener, why=why)

    def await_refused(self, listener, why, count):
        deadline = time.monotonic() + daemon.PATIENCE
        while self.refused(listener, why) != count:
            self.assertLess(time.monotonic(), deadline, f"{listener} {why}")
            time.sleep(0.01)

    def assert_nothing_charged(self):
        self.assertEqual(self.client.post("/v1/peek", BODY).json()["remaining"], 5)

    def assert_closed(self, connection):
        while connection.read_wire():
            pass

    def assert_no_answer(self, context, *, port=None):
        """Connects and asks; neither may come to anything, and it must be clear that it did not."""
        with self.assertRaises((ssl.SSLError, ConnectionError)) as raised:
            with tls_wire.http(port or self.daemon.http, context) as client:
                client.send(CHECK)
                client.receive()
        return raised.exception


class Clients(OnOneService):
    def test_http_over_each_version(self):
        for version, name in ((ssl.TLSVersion.TLSv1_2, "TLSv1.2"),
                              (ssl.TLSVersion.TLSv1_3, "TLSv1.3")):
            context = authority.client(minimum_version=version, maximum_version=version)
            with tls_wire.http(self.daemon.http, context) as client:
                self.assertEqual(client.socket.version(), name)
                self.assertEqual(client.post("/v1/check", BODY).status, 200)
                self.assertEqual(client.get("/healthz").status, 200)
                self.assertIsNone(client.socket.compression())

    def test_versions_of_the_past_are_refused(self):
        context = authority.client()
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():  # They are deprecated: that is what this is about.
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = ssl.TLSVersion.TLSv1
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        error = self.assert_no_answer(context)
        self.assertRegex(str(error).upper(), "PROTOCOL.VERSION")
        self.await_refused("http", "tls", 1)
        self.assert_nothing_charged()

    def test_protocols_that_clients_name(self):
        for named, spoken in ((["h2", "http/1.1"], "http/1.1"), (["http/1.1"], "http/1.1")):
            context = authority.client()
            context.set_alpn_protocols(named)
            with tls_wire.http(self.daemon.http, context) as client:
                self.assertEqual(client.socket.selected_alpn_protocol(), spoken)
        context = authority.client()
        context.set_alpn_protocols(["h2"])
        error = self.assert_no_answer(context)
        self.assertRegex(str(error).upper(), "NO.APPLICATION.PROTOCOL")
        # A browser that was sent to the wrong port.
        context.set_alpn_protocols(["h2", "http/1.1"])
        self.assert_no_answer(context, port=self.daemon.resp)
        self.assert_nothing_charged()

    def test_curl(self):
        ran = subprocess.run(
            ["curl", "-sS", "--cacert", authority.file, f"https://localhost:{self.daemon.http}"
             "/v1/check", "-d", '{"user": "bob"}'], capture_output=True, text=True, timeout=30)
        self.assertIn('"allowed":true', ran.stdout, ran.stderr)

    @unittest.skipUnless(shutil.which("redis-cli"), "no redis-cli")
    def test_redis_cli(self):
        ran = subprocess.run(
            ["redis-cli", "-p", str(self.daemon.resp), "--tls", "--cacert", authority.file,
             "CL.THROTTLE", "key", "15", "30", "60"], capture_output=True, text=True, timeout=30)
        self.assertEqual(ran.stdout.split(), ["0", "16", "15", "-1", "2"], ran.stderr)

    def test_pipelines_and_large_bodies(self):
        with tls_wire.resp(self.daemon.resp, self.trusting) as client:
            replies = client.pipeline([("CL.THROTTLE", f"k{i}", 15, 30, 60) for i in range(5000)])
            self.assertEqual(set(map(tuple, replies)), {(0, 16, 15, -1, 2)})
        batch = [{"user": f"user-{i}"} for i in range(1000)]
        self.assertEqual(len(self.client.post("/v1/check/batch", batch).json()), 1000)
        self.assertEqual(len(self.client.post("/v1/check/batch", batch).json()), 1000)

    def test_a_session_is_resumed(self):
        context = authority.client(maximum_version=ssl.TLSVersion.TLSv1_2)
        with tls_wire.http(self.daemon.http, context) as first:
            first.get("/healthz")
            session = first.socket.session
        raw = socket.create_connection(("127.0.0.1", self.daemon.http), timeout=30)
        with context.wrap_socket(raw, server_hostname="localhost", session=session) as second:
            self.assertTrue(second.session_reused)

    def test_a_client_that_leaves_without_a_farewell_is_answered(self):
        with tls_wire.ByHand(self.daemon.http, self.trusting).handshake() as connection:
            connection.send(CHECK)
            connection.socket.shutdown(socket.SHUT_WR)
            self.assertIn(b'"allowed":true', connection.read())
            self.assertEqual(connection.read(), b"")

    def test_the_end_of_the_service_waits_for_a_handshake(self):
        with tls_wire.ByHand(self.daemon.http, self.trusting) as far_away:
            far_away.socket.sendall(far_away.first_words())
            far_away.came.write(far_away.read_wire())  # The other side is waiting for us now.
            self.daemon.tell(signal.SIGTERM)
            # Much longer than one who says nothing is waited for, and the next words are as late.
            time.sleep(0.35)
            far_away.handshake()
            far_away.send(CHECK)
            self.assertTrue(far_away.read().startswith(b"HTTP/1.1 200"))
        self.assertEqual(self.daemon.process.wait(daemon.PATIENCE), 0)

    def test_a_farewell_is_said(self):
        with tls_wire.ByHand(self.daemon.http, self.trusting).handshake() as connection:
            connection.send(http_wire.request("GET", "/healthz",
                                              headers=[("Connection", "close")]))
            self.assertIn(b"200 OK", connection.read())
            self.assertEqual(connection.read(), b"")
            self.assertEqual(connection.read_wire(), b"")


class CertificatesOfClients(OnOneService):
    client_ca = True

    def test_only_those_with_a_good_certificate_are_let_in(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            for pair, words in ((None, "REQUIRED|HANDSHAKE"), (expired, "EXPIRED"),
                                (stranger, "UNKNOWN")):
                with self.subTest(version=version, words=words):
                    context = authority.client(pair, minimum_version=version,
                                               maximum_version=version)
                    error = self.assert_no_answer(context)
                    self.assertRegex(str(error).upper(), words)
        self.await_refused("http", "tls", 6)
        self.assert_nothing_charged()
        with tls_wire.resp(self.daemon.resp, self.trusting) as client:
            self.assertEqual(client.call("PING"), "PONG")

    def test_one_line_of_the_log_for_many_failures(self):
        for _ in range(20):
            self.assert_no_answer(authority.client(expired))
        self.await_refused("http", "tls", 20)
        lines = [line for line in self.daemon.log if "handshake failed" in line]
        self.assertEqual(len(lines), 1)
        self.assertIn("the client's certificate is not accepted: certificate has expired", lines[0])

    def test_no_session_takes_the_place_of_a_certificate(self):
        context = authority.client(ann, maximum_version=ssl.TLSVersion.TLSv1_2)
        with tls_wire.http(self.daemon.http, context) as first:
            first.get("/healthz")
            session = first.socket.session
        raw = socket.create_connection(("127.0.0.1", self.daemon.http), timeout=30)
        with context.wrap_socket(raw, server_hostname="localhost", session=session) as second:
            self.assertFalse(second.session_reused)


class Hostile(OnOneService):
    more = "limits: { header_timeout: 500ms, connections: 30, per_address: 20 }\n"

    def test_what_is_no_tls(self):
        for port, listener in ((self.daemon.http, "http"), (self.daemon.resp, "resp")):
            for number, data in enumerate((CHECK, resp_wire.command("PING"), b"\0" * 500,
                                           b"\x16\x03\x01\x40\x00\x01\x01\x00\x00"), 1):
                with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                    connection.sendall(data)
                    answer = b""
                    try:
                        while more := connection.recv(65536):
                            answer += more
                    except ConnectionResetError:
                        pass
                    # An alert at most.
                    self.assertNotIn(b"HTTP", answer)
                    self.assertLess(len(answer), 10)
                self.await_refused(listener, "tls", number)
        self.assert_nothing_charged()

    def test_tls_where_none_is_spoken(self):
        with daemon.Daemon(RULES) as plain:
            for port in (plain.http, plain.resp):
                with self.assertRaises((ssl.SSLError, ConnectionError)):
                    tls_wire.http(port, self.trusting).close()
            with http_wire.Client(plain.http) as client:
                self.assertEqual(client.post("/v1/check", BODY).status, 200)

    def test_a_handshake_that_is_never_done_is_cut_off(self):
        began = time.monotonic()
        with (tls_wire.ByHand(self.daemon.http, self.trusting) as silent,
              tls_wire.ByHand(self.daemon.http, self.trusting) as slow,
              tls_wire.ByHand(self.daemon.http, self.trusting) as half_way):
            half_way.socket.sendall(half_way.first_words())
            words = slow.first_words()
            slow.socket.settimeout(0.05)
            for byte in words:
                try:
                    slow.socket.sendall(bytes([byte]))
                    if not slow.socket.recv(1):
                        break
                except TimeoutError:
                    continue
                except ConnectionError:
                    break
            else:
                self.fail("a byte now and then bought time")
            self.assert_closed(silent)
            self.assert_closed(half_way)
        self.assertGreater(time.monotonic() - began, 0.4)
        self.await_refused("http", "header_timeout", 3)
        self.assertEqual(self.refused("http", "tls"), 0)

    def test_those_who_only_look_whether_somebody_is_there(self):
        for _ in range(10):
            socket.create_connection(("127.0.0.1", self.daemon.http)).close()
        self.client.get("/healthz")
        self.assertEqual(self.refused("http", "tls"), 0)
        self.assertFalse([line for line in self.daemon.log if "handshake failed" in line])

    def test_half_open_handshakes_are_bounded_and_the_rest_cost_nothing(self):
        begun = [self.enterContext(tls_wire.ByHand(self.daemon.http, self.trusting))
                 for _ in range(60)]
        # One place is taken by the client of this test.
        self.await_refused("http", "per_address", 60 - 19)
        closed = 0
        for connection in begun:
            connection.socket.settimeout(0)
            try:
                connection.socket.sendall(connection.first_words())
            except ConnectionError:
                pass
        for connection in begun:
            connection.socket.settimeout(30)
            data = connection.read_wire()
            # Who was let in gets an answer to his first words; who was not gets nothing.
            self.assertTrue(data == b"" or data[0] == 22, data[:20])
            closed += data == b""
        self.assertEqual(closed, 60 - 19)
        for connection in begun:
            self.assert_closed(connection)
        self.await_refused("http", "header_timeout", 19)
        with tls_wire.http(self.daemon.http, self.trusting) as client:
            self.assertEqual(client.get("/healthz").status, 200)

    def test_garbage_after_the_handshake(self):
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x17\x03\x03\x00\x20" + b"x" * 32,
                        b"\x16\x03\x03\x00\x04\x01\x00\x00\x00", b"\xff" * 1000):
            with tls_wire.ByHand(self.daemon.http, self.trusting).handshake() as connection:
                connection.socket.sendall(garbage)
                self.assert_closed(connection)
        self.assert_nothing_charged()

    def test_nobody_negotiates_again(self):
        ran = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{self.daemon.http}", "-tls1_2"],
            input="R\n" * 3, capture_output=True, text=True, timeout=30)
        self.assertIn("RENEGOTIATING", ran.stdout + ran.stderr)
        self.assertIn("no renegotiation", ran.stdout + ran.stderr)
        self.assertEqual(self.client.get("/healthz").status, 200)


class Settings(unittest.TestCase):
    def test_tokens_besides(self):
        token = "a-token-for-those-who-ask"
        text = policy().replace("address:", "token: env:WEIR_E2E_TOKEN, address:")
        with daemon.Daemon(text, environment={"WEIR_E2E_TOKEN": token}) as running:
            context = authority.client()
            with tls_wire.http(running.http, context) as client:
                self.assertEqual(client.post("/v1/check", BODY).status, 401)
                bearer = [("Authorization", f"Bearer {token}")]
                self.assertEqual(client.post("/v1/check", BODY, headers=bearer).status, 200)
            with tls_wire.resp(running.resp, context) as client:
                self.assertTrue(client.call("WEIR.CHECK", "*", "user", "ann").startswith("NOAUTH"))
                self.assertEqual(client.call("AUTH", token), "OK")
                self.assertEqual(client.call("WEIR.CHECK", "*", "user", "ann")[1], 1)

    def test_unix_sockets_with_and_without(self):
        for settings in ("", ", " + tls(), ", " + tls(client_ca=True)):
            text = f"listen:\n  http: {{ address: 'unix:{{folder}}/http'{settings} }}\n{RULES}"
            with daemon.Daemon(text) as running:
                path = running.addresses["http"].removeprefix("unix:")
                client = http_wire.Client(path)
                if settings:
                    client = tls_wire.wrap(client, authority.client(ann))
                with client:
                    self.assertEqual(client.post("/v1/check", BODY).status, 200)

    def test_files_are_found_beside_the_policy(self):
        text = ("listen:\n  http: { address: 127.0.0.1:0, token: file:token, tls: "
                "{ certificate: ../{name}/server.crt, key: ../{name}/server.key } }\n" + RULES)
        with tempfile.TemporaryDirectory() as place:
            shutil.copy(server.certificate, f"{place}/server.crt")
            shutil.copy(server.key, f"{place}/server.key")
            with open(f"{place}/token", "w", encoding="ascii") as file:
                file.write("a-token-for-those-who-ask\n")
            with open(f"{place}/weir.yaml", "w", encoding="ascii") as file:
                file.write(text.replace("{name}", place.rpartition("/")[2]))
            running = subprocess.Popen(
                [daemon.program, "serve", "-c", f"{place}/weir.yaml"], cwd="/",
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            try:
                self.assertEqual(running.stdout.readline(), "ready\n")
            finally:
                running.terminate()
                running.wait()
                running.stdout.close()

    def complaint(self, settings):
        with tempfile.TemporaryDirectory() as place:
            with open(f"{place}/weir.yaml", "w", encoding="ascii") as file:
                file.write(f"listen:\n  http: {{ address: 127.0.0.1:0, tls: {settings} }}\n{RULES}")
            ran = subprocess.run([daemon.program, "serve", "-c", f"{place}/weir.yaml"],
                                 capture_output=True, text=True, timeout=30)
            self.assertNotEqual(ran.returncode, 0)
            return ran.stderr

    def test_files_that_cannot_be_used_are_named_at_the_start(self):
        for settings, words in (
                (f"{{ certificate: nowhere.crt, key: {server.key} }}", "nowhere.crt"),
                (f"{{ certificate: {server.key}, key: {server.key} }}",
                 f"{server.key} has no certificate to show"),
                (f"{{ certificate: {server.certificate}, key: {server.certificate} }}",
                 f"{server.certificate} has no key that can be read"),
                (f"{{ certificate: {server.certificate}, key: {ann.key} }}",
                 f"{ann.key} is not the key of {server.certificate}"),
                (f"{{ certificate: {server.certificate}, key: {server.key}, client_ca: /dev/null }}",
                 "/dev/null"),
                (f"{{ certificate: {folder.name}, key: {server.key} }}", folder.name)):
            with self.subTest(settings):
                complaint = self.complaint(settings)
                self.assertIn("listen: http: ", complaint)
                self.assertIn(words, complaint)

    def test_a_certificate_that_ends_soon_is_warned_of(self):
        for days, words in ((3, "the certificate expires in 2 days"),
                            (-1, "the certificate has expired"), (20, None)):
            pair = authority.issue(f"ends-{days}", days=days)
            text = (f"listen:\n  http: {{ address: 127.0.0.1:0, tls: "
                    f"{{ certificate: {pair.certificate}, key: {pair.key} }} }}\n{RULES}")
            with daemon.Daemon(text) as running:
                if words:
                    self.assertIn("warning", running.wait_for(words))
                else:
                    self.assertFalse([line for line in running.log if "certificate" in line])


if __name__ == "__main__":
    daemon.main()
