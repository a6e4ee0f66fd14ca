#!/usr/bin/env python3
"""Another store, other settings for it, and another bound on memory, while requests are served: nobody
is left without an answer, and nobody gets more than a store allows.

    hot_store_test.py SOURCE PROGRAM [TEST...]
"""

import collections
import os
import pathlib
import re
import signal
import sys
import tempfile
import threading
import time
import unittest

import daemon
import grpc_client
import http_wire
import metrics_text
import resp_wire

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
# pylint: disable=wrong-import-position
import chaos_proxy
import redis_servers

LISTEN = "listen: { http: 127.0.0.1:0, resp: 127.0.0.1:0, grpc: 127.0.0.1:0 }\nfleet_size: 1\n"
LIMIT = 20
RULES = f"""\
rules:
  - {{ name: per-user, match: {{ user: present }}, key: user, limit: {LIMIT}/day }}
  - {{ name: logged, match: {{ org: present }}, key: org, limit: 5/h, algorithm: sliding_log }}
"""


SHAPED = "  - { name: shaped, match: { host: present }, key: host, limit: 1/min }\n"


class Moving(unittest.TestCase):
    def start(self, store="", rules=RULES, **options):
        self.rules = rules
        self.service = self.enterContext(daemon.Daemon(LISTEN + store + rules, threads=2, **options))
        self.version = 1
        return self.service

    def change(self, store):
        """Until the policy is in force. A thread that has to connect to another store decides under the
        policy before until it is connected (decision 0027). Returns where the log of this begins."""
        new = self.service.policy_file.with_suffix(".new")
        new.write_text(LISTEN + store + self.rules, encoding="utf-8")
        after = len(self.service.log)
        os.replace(new, self.service.policy_file)
        self.service.tell(signal.SIGHUP)
        self.version += 1
        self.service.wait_for(f"version {self.version} is in force", after=after)
        redis_servers.wait_until(
            lambda: self.metrics().value("weir_policy_reloads_total",
                                         result="applied") == self.version - 1, "it is counted")
        return after

    def metrics(self):
        return metrics_text.scrape(self.service.http)

    def check(self, **body):
        with http_wire.Client(self.service.http) as client:
            return client.post("/v1/check", body).json()

    def await_source(self, source):
        redis_servers.wait_until(lambda: self.check(user="somebody")["source"] == source, source)

    def connections_at(self, server):
        """The identifiers of the service's connections to that server."""
        lines = str(server.call("CLIENT", "LIST")).splitlines()
        return {int(re.match(r"id=(\d+) ", line)[1]) for line in lines if "cmd=client" not in line}

    def await_connections(self, server, number):
        redis_servers.wait_until(lambda: len(self.connections_at(server)) == number,
                                 f"{number} connections")

    def await_left(self, server, connections):
        """Until these are closed: a thread closes them when it decides with new ones."""
        redis_servers.wait_until(lambda: self.connections_at(server).isdisjoint(connections),
                                 "the connections are closed")

    def test_counts_where_the_policy_says(self):
        first = self.enterContext(redis_servers.Server())
        second = self.enterContext(redis_servers.Server())
        settings = "store: {}\nredis: {{ timeout: 2s }}\n"
        self.start()
        # One connection, so that one thread answers all of it.
        with http_wire.Client(self.service.http) as client:

            def check(user):
                return client.post("/v1/check", {"user": user}).json()

            self.assertEqual(check("ann")["remaining"], LIMIT - 1)
            self.change(settings.format(first.url))
            redis_servers.wait_until(lambda: check("probe")["source"] == "store",
                                     "the thread uses the first server")
            self.assertEqual(check("ann")["remaining"], LIMIT - 1)
            self.change(settings.format(second.url))
            # Nothing goes on at the server that was left: neither connections nor heartbeats.
            self.await_connections(first, 0)
            self.assertEqual(check("ann")["remaining"], LIMIT - 1)
            # The first server still has what was charged there.
            self.change(settings.format(first.url))
            self.await_connections(second, 0)
            self.assertEqual(check("ann")["remaining"], LIMIT - 2)
            self.change("")
            self.assertEqual(check("ann")["source"], "memory")
            self.await_connections(first, 0)
            self.assertEqual(self.connections_at(second), set())

    def test_is_well_again_with_another_server(self):
        broken = self.enterContext(redis_servers.Server())
        other = self.enterContext(redis_servers.Server())
        self.start(f"store: {broken.url}\n")
        self.await_source("store")
        broken.kill()
        self.await_source("fallback")
        self.change(f"store: {other.url}\n")
        self.await_source("store")
        redis_servers.wait_until(lambda: self.metrics().value("weir_degraded_seconds") == 0, "it is well")

    def test_settings_of_the_store(self):
        server = self.enterContext(redis_servers.Server())
        store = f"store: {server.url}\n"
        self.start(store + "redis: { timeout: 2s }\n")
        self.await_source("store")
        self.assertEqual(self.check(user="ann")["remaining"], LIMIT - 1)
        # Two threads that serve, and one for those who wait.
        self.await_connections(server, 3)
        before = self.connections_at(server)
        self.change(store + "redis: { timeout: 2s, connections: 3 }\n")
        self.await_left(server, before)
        self.await_connections(server, 9)
        self.assertEqual(self.check(user="ann")["remaining"], LIMIT - 2)
        before = self.connections_at(server)
        self.change(store + "redis: { timeout: 20ms }\n")
        self.await_left(server, before)
        server.call("CLIENT", "PAUSE", 1_000)
        began = time.monotonic()
        while self.check(user="bob")["source"] == "store":
            self.assertLess(time.monotonic() - began, 1.5)

    def test_nobody_is_denied_while_connections_are_made(self):
        """Far from the server, with TLS: to connect takes twice as long as to ask, and to do one
        after the other longer than the timeout."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        certificates = redis_servers.Certificates(folder)
        server = self.enterContext(redis_servers.Server(tls=certificates))
        proxy = self.enterContext(chaos_proxy.ChaosProxy(server.port))
        proxy.set("delay", 0.25)
        store = (f"on_store_failure: closed\n"
                 f"store: rediss://127.0.0.1:{proxy.port}?ca={certificates.path('ca.pem')}\n"
                 "redis: { timeout: 680ms, connect_timeout: 3s, connections: %d }\n")
        self.start(store % 1)
        self.await_source("store")
        over = threading.Event()
        sources = collections.Counter()

        def ask(number):
            with http_wire.Client(self.service.http) as client:
                while not over.is_set():
                    sources[client.post("/v1/check", {"user": f"u{number}"}).json()["source"]] += 1

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        try:
            for connections in (2, 1, 2):
                self.change(store % connections)
                time.sleep(0.5)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        self.assertGreater(sources["store"], 20)
        self.assertEqual(set(sources), {"store"}, sources)

    def test_one_who_waits_does_not_keep_a_store_that_was_left(self):
        broken = self.enterContext(redis_servers.Server())
        other = self.enterContext(redis_servers.Server())
        self.start(f"store: {broken.url}\n", rules=RULES + SHAPED)
        self.await_source("store")
        for _ in range(2):
            self.check(host="shaped")
        with http_wire.Client(self.service.http) as waiting:
            waiting.send(http_wire.request("POST", "/v1/check",
                                           {"host": "shaped", "wait_ms": 60_000}))
            redis_servers.wait_until(lambda: self.metrics().value("weir_waiters") == 1, "it waits")
            broken.kill()
            self.await_source("fallback")
            self.change(f"store: {other.url}\n")
            self.await_source("store")
            redis_servers.wait_until(
                lambda: self.metrics().value("weir_degraded_seconds") == 0, "it is well")
            # Its heartbeats came every second.
            time.sleep(2.5)
            self.assertEqual(self.metrics().value("weir_degraded_seconds"), 0)
            self.assertEqual(self.metrics().value("weir_waiters"), 1)

    def test_a_password_that_is_replaced(self):
        server = self.enterContext(redis_servers.Server(password="first"))
        self.start(f"store: redis://:file:secret@{server.address}\nredis: {{ timeout: 2s }}\n",
                   files={"secret": "first"})
        self.await_source("store")
        self.await_connections(server, 3)
        self.assertEqual(self.check(user="ann")["remaining"], LIMIT - 1)
        # As it is done without a gap: the server takes the new one besides.
        server.call("ACL", "SETUSER", "default", ">second", ">third")
        after = len(self.service.log)
        for password in ("second", "third"):
            before = self.connections_at(server)
            secret = self.service.policy_file.with_name("secret")
            secret.with_suffix(".new").write_text(password, encoding="utf-8")
            os.replace(secret.with_suffix(".new"), secret)
            self.version += 1
            self.service.wait_for(f"version {self.version} is in force", after=after)
            self.await_left(server, before)
        server.call("ACL", "SETUSER", "default", "<first", "<second")
        server.password = "third"
        self.assertEqual(self.check(user="ann")["remaining"], LIMIT - 2)
        self.assertNotIn("the store failed", "\n".join(self.service.log))
        # It knows the password, and not only connections that were made with the one before.
        server.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        redis_servers.wait_until(lambda: len(self.connections_at(server)) >= 3,
                                 "it is there again")
        self.await_source("store")

    def test_a_store_that_cannot_be_used_changes_nothing(self):
        self.start()
        new = LISTEN + "store: redis://:env:WEIR_NOT_THERE@127.0.0.1:1\n" + RULES
        self.service.policy_file.write_text(new, encoding="utf-8")
        self.service.wait_for("the policy that was in force stays")
        self.service.wait_for('the environment has no variable "WEIR_NOT_THERE"')
        self.assertEqual(self.check(user="ann")["source"], "memory")
        self.assertEqual(self.metrics().value("weir_policy_version"), 1)

    def test_nobody_is_left_without_an_answer(self):
        """Clients of all protocols ask all the time, through twenty changes."""
        servers = [self.enterContext(redis_servers.Server()) for _ in range(2)]
        self.start()
        stores = ["", *(f"store: {server.url}\nredis: {{ timeout: 2s }}\n" for server in servers),
                  f"store: {servers[1].url}\nredis: {{ timeout: 3s, connections: 2 }}\n"]
        over = threading.Event()
        admitted = collections.Counter()
        asked = collections.Counter()
        wrong = []

        def ask(protocol, number, check):
            """Few users, so that most are denied by the end."""
            try:
                while not over.is_set():
                    user = f"{protocol}-{asked[protocol, number] % 3}"
                    asked[protocol, number] += 1
                    if check(user):
                        admitted[user] += 1
            except Exception as error:  # pylint: disable=broad-except
                wrong.append((protocol, repr(error)))

        def over_http(client, user):
            reply = client.post("/v1/check", {"user": user})
            assert reply.status in (200, 429), reply
            return reply.json()["allowed"]

        def over_resp(client, user):
            reply = client.call("WEIR.CHECK", "per-user", "user", user)
            assert not isinstance(reply, resp_wire.ErrorReply), reply
            return dict(zip(reply[::2], reply[1::2]))["allowed"] == 1

        def everything_else(_):
            """Batches, waits, reservations that may be settled elsewhere, limits of one's own, and
            descriptors that are charged together."""
            reply = other.post("/v1/check/batch", [{"org": "batch"}] * 3)
            assert reply.status == 200 and len(reply.json()) == 3, reply
            reply = other.post("/v1/check", {"org": "waits", "wait_ms": 5})
            assert reply.status in (200, 429), reply
            reply = other.post("/v1/reserve", {"org": f"reserves-{time.monotonic()}"})
            assert reply.status == 200, reply
            settled = other.post("/v1/commit", {"reservation": reply.json()["reservation"]})
            assert settled.status in (200, 404), settled
            reply = other_resp.call("CL.THROTTLE", "own", 5, 10, 60)
            assert len(reply) == 5, reply
            reply = grpc.ask("shop", grpc_client.entries(user="a"), grpc_client.entries(user="b"))
            assert len(reply.statuses) == 2, reply
            return False

        with http_wire.Client(self.service.http) as http, resp_wire.Client(self.service.resp) as resp, \
                http_wire.Client(self.service.http) as other, \
                resp_wire.Client(self.service.resp) as other_resp, \
                grpc_client.Client(self.service.grpc) as grpc:
            threads = [threading.Thread(target=ask, args=arguments) for arguments in (
                ("http", 0, lambda user: over_http(http, user)),
                ("resp", 0, lambda user: over_resp(resp, user)),
                ("grpc", 0, lambda user: grpc.check(user=user).allowed),
                ("other", 0, everything_else))]
            for thread in threads:
                thread.start()
            try:
                for turn in range(20):
                    self.change(stores[(turn + 1) % len(stores)])
            finally:
                over.set()
                for thread in threads:
                    thread.join()
        self.assertEqual(wrong, [])
        self.assertGreater(min(asked.values()), 10)
        self.assertEqual(len(asked), 4)
        # Servers remember. In memory every visit begins anew: it is left five times, and was there
        # at the beginning.
        most = LIMIT * (len(servers) + 6)
        for user, count in admitted.items():
            self.assertLessEqual(count, most, user)
        self.assertGreater(sum(admitted.values()), LIMIT)
        text = "\n".join(self.service.log)
        self.assertNotIn("the store failed", text)

    def test_the_bound_on_memory(self):
        self.start("memory: { cap: 32MiB }\n")
        while self.check(org="exhausted")["allowed"]:
            pass
        while self.check(user="exhausted")["allowed"]:
            pass
        count = 120_000
        self.fill(count)
        full = self.metrics().value("weir_table_bytes")
        self.assertGreater(full, 2 << 20)
        self.assertGreaterEqual(self.metrics().value("weir_table_entries"), count)
        self.change("memory: { cap: 2MiB }\n")
        self.assertLessEqual(self.metrics().value("weir_table_bytes"), 2 << 20)
        # Who was being denied still is.
        self.assertFalse(self.check(org="exhausted")["allowed"])
        self.assertFalse(self.check(user="exhausted")["allowed"])
        self.fill(1_000)
        self.assertLessEqual(self.metrics().value("weir_table_bytes"), 2 << 20)
        self.change("memory: { cap: 32MiB }\n")
        gone = self.metrics().value("weir_evictions_total", kind="live")
        self.fill(count)
        self.assertGreaterEqual(self.metrics().value("weir_table_bytes"), full * 0.7)
        self.assertEqual(self.metrics().value("weir_evictions_total", kind="live"), gone)
        self.assertFalse(self.check(user="exhausted")["allowed"])

    def fill(self, count):
        with resp_wire.Client(self.service.resp) as client:
            step = 500
            for first in range(0, count, step):
                words = b"".join(resp_wire.command("CL.THROTTLE", f"key-{number}", 10, 1, 100_000)
                                 for number in range(first, first + step))
                client.socket.sendall(words)
                for _ in range(step):
                    client.receive()


if __name__ == "__main__":
    daemon.main()
