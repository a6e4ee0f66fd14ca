#!/usr/bin/env python3
"""What goes with gRPC: health, reflection, tokens, unix sockets, and the tools that people have, which
are grpcurl, grpc-health-probe and h2load. Stubs made from Envoy's own .proto files talk to it as well.

    grpc_service_test.py SOURCE PROGRAM [TEST...]
"""

import json
import pathlib
import queue
import signal
import socket
import threading
import time
import unittest

import daemon
import grpc_client
import h2_wire
import http_wire
import metrics_text
from grpc_client import OK, OVER_LIMIT, Code, entries, error_of, grpc, limiter_pb2, made, run

# pylint: disable=wrong-import-order
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

LISTEN = "listen: { http: 127.0.0.1:0, grpc: 127.0.0.1:0 }\n"
RULES = """\
rules:
  - name: users
    match: { domain: shop, descriptor.user: present }
    key: descriptor.user
    limit: 3/h
  - name: many
    match: { domain: shop, descriptor.load: present }
    key: descriptor.load
    limit: 10M/s
"""
SERVICES = ["envoy.service.ratelimit.v3.RateLimitService", "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection",
            "weir.v1.Limiter"]
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
TOKEN, MANAGE = "a-token-that-is-long-enough", "another-token-to-manage-with"


class Service(unittest.TestCase):
    policy = LISTEN + RULES
    environment = {}

    @classmethod
    def setUpClass(cls):
        cls.service = cls.enterClassContext(daemon.Daemon(cls.policy, environment=cls.environment))

    def setUp(self):
        self.me = self.id().rpartition(".")[2]
        if "grpc: unix" not in self.policy:
            self.client = self.enterContext(grpc_client.Client(self.service.grpc))


class Health(Service):
    def stub(self):
        return health_pb2_grpc.HealthStub(self.client.channel)

    def test_check(self):
        for name in ("", "envoy.service.ratelimit.v3.RateLimitService", "weir.v1.Limiter"):
            said = self.stub().Check(health_pb2.HealthCheckRequest(service=name),
                                     timeout=daemon.PATIENCE)
            self.assertEqual(said.status, SERVING, name)
        error = error_of(self.stub().Check, health_pb2.HealthCheckRequest(service="nonsense"))
        self.assertEqual((error.code(), "nonsense" in error.details()), (Code.NOT_FOUND, True))
        for method in ("Check", "Watch"):
            error = error_of(self.client.raw, "/grpc.health.v1.Health/" + method, b"\x0a\x05x")
            self.assertEqual(error.code(), Code.INVALID_ARGUMENT)

    def test_watch_tells_what_is_and_goes_on(self):
        for name, status in (("", SERVING), ("weir.v1.Limiter", SERVING), ("nonsense", UNKNOWN)):
            watch = self.stub().Watch(health_pb2.HealthCheckRequest(service=name),
                                      timeout=daemon.PATIENCE)
            self.assertEqual(next(watch).status, status)
            self.assertTrue(watch.is_active())
            watch.cancel()

    def test_probe(self):
        probe, address = made("grpc-health-probe"), f"-addr=127.0.0.1:{self.service.grpc}"
        self.assertIn("SERVING", run(probe, address))
        self.assertIn("SERVING", run(probe, address, "-service=weir.v1.Limiter"))
        run(probe, address, "-service=nonsense", status=3)

    def test_probe_of_a_service_that_is_not_there(self):
        with daemon.Daemon(self.policy) as gone:
            port = gone.grpc
        run(made("grpc-health-probe"), f"-addr=127.0.0.1:{port}", "-connect-timeout=1s", status=2)


class HealthAtTheEnd(unittest.TestCase):
    def test_who_watches_is_told_that_it_ends(self):
        with daemon.Daemon(LISTEN + RULES) as service, \
                grpc_client.Client(service.grpc) as client:
            watch = health_pb2_grpc.HealthStub(client.channel).Watch(
                health_pb2.HealthCheckRequest(), timeout=daemon.PATIENCE)
            told = queue.SimpleQueue()

            def listen():
                try:
                    for one in watch:
                        told.put(one.status)
                except grpc.RpcError as error:
                    told.put(error.code())

            listener = threading.Thread(target=listen)
            listener.start()
            self.assertEqual(told.get(timeout=daemon.PATIENCE), SERVING)
            service.tell(signal.SIGTERM)
            self.assertEqual(told.get(timeout=daemon.PATIENCE), NOT_SERVING)
            self.assertEqual(told.get(timeout=daemon.PATIENCE), Code.UNAVAILABLE)
            listener.join()
            self.assertEqual(service.process.wait(daemon.PATIENCE), 0)

    def test_who_watches_is_not_idle(self):
        with daemon.Daemon("limits: { idle_timeout: 1s }\n" + LISTEN + RULES) as service, \
                grpc_client.Client(service.grpc) as client:
            watch = health_pb2_grpc.HealthStub(client.channel).Watch(
                health_pb2.HealthCheckRequest(), timeout=3)
            self.assertEqual(next(watch).status, SERVING)
            error = error_of(next, watch)
            # It was the client who had enough.
            self.assertEqual(error.code(), Code.DEADLINE_EXCEEDED)

    def test_who_watches_and_vanishes_will_be_noticed(self):
        """A host that is switched off says nothing: the kernel asks it now and then."""
        with daemon.Daemon(LISTEN + RULES) as service, h2_wire.Connection(service.grpc) as one:
            one.send(h2_wire.call(1, "/grpc.health.v1.Health/Watch", b""))
            frames = one.frames()
            while next(frames)[0] != h2_wire.DATA:
                pass
            ends = tuple(f"{socket.inet_aton(host)[::-1].hex().upper()}:{port:04X}"
                         for host, port in (("127.0.0.1", service.grpc), one.socket.getsockname()))
            keepalive = "02"

            def timer():
                for line in pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines():
                    words = line.split()
                    if tuple(words[1:3]) == ends:
                        return words[5].partition(":")[0]
                return None
            # Until what was sent is acknowledged, another timer runs.
            deadline = time.monotonic() + daemon.PATIENCE
            while timer() != keepalive:
                self.assertLess(time.monotonic(), deadline, f"the timer is {timer()}")

    def test_who_watches_and_leaves_is_gone(self):
        path, asks = "/grpc.health.v1.Health/Watch", b""
        with daemon.Daemon(LISTEN + RULES) as service, http_wire.Client(service.http) as http:
            def connections():
                return metrics_text.Metrics.of(http).value("weir_connections", listener="grpc")
            with h2_wire.Connection(service.grpc) as one:
                one.send(h2_wire.call(1, path, asks))
                frames = one.frames()
                while next(frames)[0] != h2_wire.DATA:
                    pass
                self.assertEqual(connections(), 1)
            deadline = time.monotonic() + daemon.PATIENCE
            while connections() > 0:
                self.assertLess(time.monotonic(), deadline, "it is kept")


class Reflection(Service):
    def grpcurl(self, *words, status=0, flags=()):
        return run(made("grpcurl"), "-plaintext", *flags, f"127.0.0.1:{self.service.grpc}", *words,
                   status=status)

    def test_grpcurl_finds_everything(self):
        """It speaks v1, and v1alpha to those who do not."""
        self.assertEqual(self.grpcurl("list").split(), SERVICES)
        methods = self.grpcurl("list", "weir.v1.Limiter").split()
        names = limiter_pb2.DESCRIPTOR.services_by_name["Limiter"].methods_by_name
        self.assertEqual(methods, sorted(f"weir.v1.Limiter.{name}" for name in names))
        for symbol, words in (("weir.v1.Decision", "retry_after_ms"),
                              ("weir.v1.Limiter.Check", "rpc Check"),
                              ("weir.v1.Reason", "REASON_NEVER_FITS"),
                              ("envoy.extensions.common.ratelimit.v3.RateLimitDescriptor",
                               "UInt64Value hits_addend"),
                              ("envoy.service.ratelimit.v3.RateLimitResponse.DescriptorStatus",
                               "duration_until_reset"),
                              ("google.protobuf.Duration", "nanos"),
                              ("grpc.health.v1.Health", "Watch")):
            self.assertIn(words, self.grpcurl("describe", symbol), symbol)
        self.grpcurl("describe", "nonsense.Nothing", status=1)

    def test_grpcurl_calls_by_what_it_finds(self):
        asks = {"domain": "shop", "descriptors": [{"entries": [{"key": "user", "value": self.me}]}],
                "hits_addend": 3}
        method = "envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
        said = json.loads(self.grpcurl(method, flags=("-d", json.dumps(asks))))
        self.assertEqual((said["overallCode"], said["statuses"][0]["currentLimit"]),
                         ("OK", {"requestsPerUnit": 3, "unit": "HOUR", "name": "users"}))
        said = json.loads(self.grpcurl(method, flags=("-d", json.dumps(asks))))
        self.assertEqual(said["overallCode"], "OVER_LIMIT")
        said = json.loads(self.grpcurl("weir.v1.Limiter/Check", flags=("-d", "{}")))
        self.assertEqual(said["reason"], "REASON_NO_RULE")
        # gRPC's code is 3: it adds 64.
        said = self.grpcurl(method, status=64 + 3, flags=("-d", "{}"))
        self.assertIn("domain", said)

    def ask(self, *requests):
        stub = reflection_pb2_grpc.ServerReflectionStub(self.client.channel)
        return list(stub.ServerReflectionInfo(iter(requests), timeout=daemon.PATIENCE))

    def test_by_the_older_name(self):
        Request = reflection_pb2.ServerReflectionRequest
        listed, by_name, by_symbol, missing, none, nothing = self.ask(
            Request(host="here", list_services=""),
            Request(file_by_filename="weir/v1/limiter.proto"),
            Request(file_containing_symbol="weir.v1.CheckRequest"),
            Request(file_by_filename="nonsense.proto"),
            Request(all_extension_numbers_of_type="weir.v1.Decision"),
            Request())
        self.assertEqual([one.name for one in listed.list_services_response.service],
                         sorted(SERVICES))
        self.assertEqual((listed.valid_host, listed.original_request.host), ("here", "here"))
        for said in (by_name, by_symbol):
            file = descriptor_pb2.FileDescriptorProto.FromString(
                said.file_descriptor_response.file_descriptor_proto[0])
            self.assertEqual(file.name, "weir/v1/limiter.proto")
        self.assertEqual(missing.error_response.error_code, Code.NOT_FOUND.value[0])
        self.assertEqual(list(none.all_extension_numbers_response.extension_number), [])
        self.assertEqual(nothing.error_response.error_code, Code.INVALID_ARGUMENT.value[0])

    def test_every_method_that_is_told_of_is_there(self):
        """None is unimplemented, whatever it says to an empty message."""
        files = {}

        def add(name):
            said, = self.ask(reflection_pb2.ServerReflectionRequest(file_containing_symbol=name))
            data = said.file_descriptor_response.file_descriptor_proto[0]
            file = descriptor_pb2.FileDescriptorProto.FromString(data)
            files[file.name] = file

        for service in SERVICES:
            add(service)
        asked = 0
        for file in files.values():
            for service in file.service:
                for method in service.method:
                    path = f"/{file.package}.{service.name}/{method.name}"
                    call = self.client.channel.stream_stream(path)(iter([b""]), timeout=1)
                    try:
                        next(call)
                        call.cancel()
                    except (grpc.RpcError, StopIteration):
                        self.assertNotEqual(call.code(), Code.UNIMPLEMENTED, path)
                    asked += 1
        self.assertEqual(asked, 16)


class Tokens(Service):
    policy = """\
listen:
  http: 127.0.0.1:0
  grpc: { address: 127.0.0.1:0, token: env:WEIR_E2E_TOKEN, manage_token: env:WEIR_E2E_MANAGE }
""" + RULES
    environment = {"WEIR_E2E_TOKEN": TOKEN, "WEIR_E2E_MANAGE": MANAGE}

    def client_of(self, token):
        return self.enterContext(grpc_client.Client(self.service.grpc, token=token))

    def refused(self):
        return metrics_text.scrape(self.service.http).value("weir_refused_total", listener="grpc",
                                                            why="token")

    def test_that_are_missing_or_wrong(self):
        before = self.refused()
        for token in (None, "wrong", TOKEN[:-1], TOKEN + "x"):
            client = self.client_of(token)
            for call in (lambda: client.ask("shop", entries(user=self.me)),
                         lambda: client.check(user=self.me)):
                error = error_of(call)
                self.assertEqual((error.code(), "token" in error.details()),
                                 (Code.UNAUTHENTICATED, True))
        self.assertEqual(self.refused() - before, 8)
        said = self.client_of(TOKEN).ask("shop", entries(0, user=self.me))
        self.assertEqual(said.statuses[0].limit_remaining, 3)

    def test_give_their_rights(self):
        used, managed = self.client_of(TOKEN), self.client_of(MANAGE)
        for client, left in ((used, 2), (managed, 1)):
            said = client.ask("shop", entries(user=self.me))
            self.assertEqual(said.statuses[0].limit_remaining, left)
        request = limiter_pb2.CheckRequest(
            domain="shop", descriptors=grpc_client.named({"user": self.me}), rules=["users"])
        for method in ("Refund", "Penalize", "Reset"):
            self.assertEqual(error_of(used.call, method, request).code(), Code.PERMISSION_DENIED)
        error = error_of(used.ask, "shop", entries(1, user=self.me, negative=True))
        self.assertEqual(error.code(), Code.PERMISSION_DENIED)
        said = managed.ask("shop", entries(1, user=self.me, negative=True))
        self.assertEqual(said.statuses[0].limit_remaining, 2)
        self.assertEqual(managed.call("Reset", request).remaining, 3)

    def test_are_not_needed_for_health(self):
        run(made("grpc-health-probe"), f"-addr=127.0.0.1:{self.service.grpc}")
        error = run(made("grpcurl"), "-plaintext", f"127.0.0.1:{self.service.grpc}", "list",
                    status=1)
        self.assertIn("token", error)
        listed = run(made("grpcurl"), "-plaintext", "-H", f"authorization: Bearer {TOKEN}",
                     f"127.0.0.1:{self.service.grpc}", "list")
        self.assertEqual(listed.split(), SERVICES)


class UnixSocket(Service):
    policy = "listen: { http: 127.0.0.1:0, grpc: unix:{folder}/grpc.sock }\n" + RULES

    def test_is_as_good(self):
        path = f"{self.service.folder.name}/grpc.sock"
        with grpc_client.Client(path) as client:
            codes = [client.ask("shop", entries(user=self.me)).overall_code for _ in range(4)]
        self.assertEqual(codes, [OK] * 3 + [OVER_LIMIT])
        run(made("grpc-health-probe"), f"-addr=unix:{path}")


class Load(Service):
    def load(self, connections, streams, calls):
        """h2load, as ./bench.sh uses it."""
        request = grpc_client.request("shop", entries(load="x")).SerializeToString()
        body = pathlib.Path(self.service.folder.name) / "body"
        body.write_bytes(len(request).to_bytes(5, "big") + request)
        said = run("h2load", "-n", str(calls), "-c", str(connections), "-m", str(streams), "-t", "1",
                   "-d", str(body), "-H", "content-type: application/grpc", "-H", "te: trailers",
                   f"http://127.0.0.1:{self.service.grpc}"
                   "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit")
        self.assertIn(f"{calls} succeeded, 0 failed, 0 errored, 0 timeout", said)
        self.assertIn(f"status codes: {calls} 2xx, 0 3xx, 0 4xx, 0 5xx", said)

    def test_is_answered_whole(self):
        def decided():
            metrics = metrics_text.scrape(self.service.http)
            return (metrics.value("weir_requests_total", frontend="grpc", code="OK"),
                    metrics.total("weir_decisions_total", rule="many"))
        for connections, streams in ((50, 1), (4, 100), (1, 250)):
            with self.subTest(connections=connections, streams=streams):
                before = decided()
                self.load(connections, streams, 10_000)
                after = decided()
                # h2load looks at no trailers; the service counted what it said.
                self.assertEqual((after[0] - before[0], after[1] - before[1]), (10_000, 10_000))
        metrics = metrics_text.scrape(self.service.http)
        self.assertEqual(metrics.total("weir_refused_total", listener="grpc"), 0)


class Originals(Service):
    def test_talk_to_it(self):
        """In a process of their own: they have the names of ours."""
        script = pathlib.Path(__file__).parent / "python" / "envoy_stubs_client.py"
        said = json.loads(run(grpc_client.PYTHON, str(script), made("grpc-py/originals"),
                              made("grpc-py/weir.protoset"), str(self.service.grpc)))
        self.assertEqual(said["differences"], [])
        # Envoy has had it since April 2026, these stubs not yet.
        self.assertLessEqual(
            set(said["newer"]),
            {"envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.is_negative_hits"})
        self.assertGreater(said["fields"], 25)
        self.assertEqual(said["codes"], ["OK", "OK", "OK", "OVER_LIMIT"])
        self.assertEqual(said["limit"], {"requests_per_unit": 3, "unit": "HOUR", "name": "users"})
        self.assertIn("retry-after", said["headers"])
        self.assertEqual(json.loads(said["body"])["rule"], "users")
        self.assertEqual(said["override"], ["OK", 6, "DAY"])


if __name__ == "__main__":
    daemon.main()
