#!/usr/bin/env python3
"""Certificates and tokens that are replaced while the service is used: nobody may notice.

    tls_reload_test.py SOURCE PROGRAM [TEST...]
"""

import os
import pathlib
import shutil
import signal
import tempfile
import threading
import time
import unittest

import certificates
import daemon
import metrics_text
import resp_wire
import tls_wire

RULES = "rules:\n  - { name: per-user, match: { user: present }, key: user, limit: 1M/h }\n"
BODY = {"user": "ann"}
ROTATIONS = 100


def setUpModule():
    global folder, authority, pairs
    folder = tempfile.TemporaryDirectory(prefix="weir-tls-")
    unittest.addModuleCleanup(folder.cleanup)
    authority = certificates.Authority(folder.name)
    pairs = [authority.issue(f"pair-{number}") for number in range(10)]


class Reload(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.certificate, self.key = self.place / "server.crt", self.place / "server.key"
        shutil.copy(pairs[0].certificate, self.certificate)
        shutil.copy(pairs[0].key, self.key)
        settings = f"certificate: {self.certificate}, key: {self.key}"
        self.policy = (f"listen:\n  http: {{ address: 127.0.0.1:0, tls: {{ {settings} }} }}\n"
                       f"  resp: {{ address: 127.0.0.1:0, tls: {{ {settings} }} }}\n{RULES}")
        self.daemon = self.enterContext(daemon.Daemon(self.policy))
        self.context = authority.client()
        self.client = self.enterContext(tls_wire.http(self.daemon.http, self.context))

    def replace(self, file, source):
        new = file.with_suffix(".new")
        shutil.copy(source, new)
        os.replace(new, file)

    def write_policy(self, text):
        new = self.daemon.policy_file.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        os.replace(new, self.daemon.policy_file)

    def shown(self):
        return tls_wire.serial(self.daemon.http, self.context)

    def await_shown(self, pair, *, in_a_row=1):
        deadline = time.monotonic() + daemon.PATIENCE
        seen = 0
        while seen < in_a_row:
            seen = seen + 1 if self.shown() == pair.serial else 0
            self.assertLess(time.monotonic(), deadline, "\n".join(self.daemon.log))

    def reloads(self, result, listener="http"):
        metrics = metrics_text.Metrics.of(self.client)
        return metrics.value("weir_tls_reloads_total", listener=listener, result=result)

    def errors(self):
        return [line for line in self.daemon.log if " error " in line]

    def test_a_new_pair_is_for_new_connections_and_old_ones_go_on(self):
        self.assertEqual(self.shown(), pairs[0].serial)
        self.replace(self.certificate, pairs[1].certificate)
        self.replace(self.key, pairs[1].key)
        # Each thread has some of the connections: on all of them.
        self.await_shown(pairs[1], in_a_row=30)
        self.assertEqual(self.client.post("/v1/check", BODY).status, 200)
        self.assertEqual(self.client.socket.getpeercert()["serialNumber"], pairs[0].serial)
        self.assertEqual((self.reloads("applied"), self.reloads("applied", "resp")), (1, 1))
        ends = metrics_text.Metrics.of(self.client).value("weir_tls_certificate_expiry_seconds",
                                                          listener="http")
        self.assertAlmostEqual(ends, time.time() + 30 * 86400, delta=3600)

    def test_a_pair_that_is_replaced_in_two_steps(self):
        for number, (first, second) in enumerate((("certificate", "key"), ("key", "certificate")), 1):
            before, pair = pairs[number - 1], pairs[number]
            self.replace(getattr(self, first), getattr(pair, first))
            # Long enough for it to be looked at, and to be found not to fit.
            until = time.monotonic() + 0.3
            while time.monotonic() < until:
                self.assertEqual(self.shown(), before.serial)
            self.replace(getattr(self, second), getattr(pair, second))
            self.await_shown(pair)
        self.assertEqual(self.errors(), [])
        self.assertEqual((self.reloads("applied"), self.reloads("refused")), (2, 0))

    def test_what_cannot_be_used_changes_nothing_and_is_said_once(self):
        for number, wrong in enumerate((pairs[1].certificate.read_bytes(), b"", b"nonsense",
                                        pairs[0].certificate.read_bytes()[:200]), 1):
            after = len(self.daemon.log)
            self.certificate.write_bytes(wrong)
            deadline = time.monotonic() + daemon.PATIENCE
            while self.reloads("refused") != number:
                self.assertLess(time.monotonic(), deadline)
                self.assertEqual(self.shown(), pairs[0].serial)
                time.sleep(0.05)
            # The metric may be there before the line.
            self.daemon.wait_for("listen: http: ", after=after)
        self.replace(self.certificate, pairs[2].certificate)
        self.replace(self.key, pairs[2].key)
        self.await_shown(pairs[2])
        self.assertEqual(self.reloads("applied"), 1)
        about_http = [line for line in self.errors() if "listen: http: " in line]
        self.assertEqual(len(about_http), 4, about_http)
        self.assertIn(f"{self.key} is not the key of {self.certificate}", about_http[0])
        for line in about_http[1:]:
            self.assertIn(f"{self.certificate} has no certificate to show", line)

    def test_sighup_says_nothing_about_a_pair_that_is_in_force(self):
        self.certificate.write_bytes(b"nonsense")
        self.daemon.wait_for("listen: http: ")
        self.certificate.write_bytes(pairs[0].certificate.read_bytes())
        self.daemon.tell(signal.SIGHUP)
        # The service handles one signal after the other: when it has stopped, it has also looked
        # at the files because of SIGHUP, and its log is complete.
        self.daemon.terminate()
        self.daemon.wait_for("SIGHUP")
        about_http = [line for line in self.daemon.log if "listen: http: " in line]
        self.assertEqual(len(about_http), 1, about_http)

    def test_files_that_are_gone_for_a_moment(self):
        self.certificate.unlink()
        self.key.unlink()
        until = time.monotonic() + 0.3
        while time.monotonic() < until:
            self.assertEqual(self.shown(), pairs[0].serial)
        shutil.copy(pairs[3].key, self.key)
        shutil.copy(pairs[3].certificate, self.certificate)
        self.await_shown(pairs[3])
        self.assertEqual(self.errors(), [])

    def test_sighup_looks_and_speaks_at_once(self):
        self.key.write_bytes(b"nonsense")
        self.daemon.tell(signal.SIGHUP)
        self.daemon.wait_for(f"listen: http: {self.key} has no key that can be read")
        self.assertEqual(self.shown(), pairs[0].serial)

    def test_links_that_are_swapped(self):
        for number in (1, 2):
            version = self.place / f"version-{number}"
            version.mkdir()
            shutil.copy(pairs[number].certificate, version / "server.crt")
            shutil.copy(pairs[number].key, version / "server.key")
        current = self.place / "current"
        current.symlink_to("version-1")
        self.write_policy(self.policy.replace(str(self.place) + "/", f"{current}/"))
        self.await_shown(pairs[1])
        new = self.place / "new"
        new.symlink_to("version-2")
        os.replace(new, current)
        self.await_shown(pairs[2])
        self.assertEqual(self.errors(), [])

    def test_a_policy_that_names_other_files_or_wants_certificates(self):
        other = self.policy.replace(str(self.certificate), str(pairs[4].certificate))
        other = other.replace(str(self.key), str(pairs[4].key))
        self.write_policy(other)
        self.await_shown(pairs[4])
        key = f"key: {pairs[4].key}"
        self.write_policy(other.replace(key, f"{key}, client_ca: {authority.file}"))
        self.daemon.wait_for("version 3 is in force")
        deadline = time.monotonic() + daemon.PATIENCE
        while True:
            try:
                with tls_wire.http(self.daemon.http, self.context) as client:
                    client.get("/healthz")
            except OSError:
                break
            self.assertLess(time.monotonic(), deadline)
        with tls_wire.http(self.daemon.http, authority.client(pairs[5])) as client:
            self.assertEqual(client.get("/healthz").status, 200)
        # Who was let in before is not asked again.
        self.assertEqual(self.client.post("/v1/check", BODY).status, 200)

    def test_whether_tls_is_spoken_takes_a_new_start(self):
        self.write_policy(f"listen: {{ http: 127.0.0.1:0, resp: 127.0.0.1:0 }}\n{RULES}")
        self.daemon.wait_for("restart to change them")
        self.assertEqual(self.shown(), pairs[0].serial)
        self.replace(self.certificate, pairs[1].certificate)
        self.replace(self.key, pairs[1].key)
        self.await_shown(pairs[1])

    def test_a_hundred_rotations_under_load(self):
        load = Load(self.daemon, self.context)
        with load:
            for number in range(1, ROTATIONS + 1):
                after, pair = len(self.daemon.log), pairs[number % len(pairs)]
                way = number % 3
                if way == 0:
                    self.replace(self.certificate, pair.certificate)
                    self.replace(self.key, pair.key)
                elif way == 1:
                    self.replace(self.key, pair.key)
                    self.replace(self.certificate, pair.certificate)
                else:  # In place: for a moment there is half a file.
                    self.certificate.write_bytes(pair.certificate.read_bytes())
                    self.key.write_bytes(pair.key.read_bytes())
                for protocol in ("http", "resp"):
                    self.daemon.wait_for(f"listen: {protocol}: another certificate", after=after)
                self.await_shown(pair)
                if load.wrong:
                    break
        self.assertEqual(load.wrong, [])
        self.assertEqual(self.errors(), [])
        self.assertEqual(self.reloads("refused"), 0)
        self.assertGreaterEqual(self.reloads("applied"), ROTATIONS)
        for name, count in load.counts.items():
            self.assertGreater(count, ROTATIONS, name)
        metrics = metrics_text.Metrics.of(self.client)
        for listener in ("http", "resp"):
            self.assertEqual(metrics.value("weir_refused_total", listener=listener, why="tls"), 0)


class Load:
    """Clients that ask all the time, on connections that they keep and on new ones."""

    def __init__(self, running, context):
        self.daemon, self.context = running, context
        self.counts, self.wrong = {}, []
        self.ending = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(ask,))
                        for ask in (self.keep_http, self.keep_resp, self.new_http, self.new_resp)]

    def run(self, ask):
        try:
            for is_right in ask():
                self.counts[ask.__name__] = self.counts.get(ask.__name__, 0) + 1
                if not is_right:
                    self.wrong.append(ask.__name__)
                if self.ending.is_set() or self.wrong:
                    return
        except Exception as error:  # Whatever it was, it is one that a user would have seen.
            self.wrong.append(f"{ask.__name__}: {error!r}")

    def keep_http(self):
        with tls_wire.http(self.daemon.http, self.context) as client:
            while True:
                yield client.post("/v1/check", BODY).status == 200

    def keep_resp(self):
        with tls_wire.resp(self.daemon.resp, self.context) as client:
            while True:
                yield resp_wire.named(client.call("WEIR.CHECK", "*", "user", "ann"))["allowed"] == 1

    def new_http(self):
        while True:
            with tls_wire.http(self.daemon.http, self.context) as client:
                yield client.post("/v1/check", BODY).status == 200

    def new_resp(self):
        while True:
            with tls_wire.resp(self.daemon.resp, self.context) as client:
                yield client.call("PING") == "PONG"

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join()


class Tokens(unittest.TestCase):
    """Other tokens, in the clear or not, need no new start either."""

    def check(self, client, token):
        headers = [("Authorization", f"Bearer {token}")]
        return client.post("/v1/check", BODY, headers=headers).status

    def await_status(self, client, token, status):
        deadline = time.monotonic() + daemon.PATIENCE
        while self.check(client, token) != status:
            self.assertLess(time.monotonic(), deadline)

    def test_a_file_with_another_token(self):
        place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        file = place / "token"
        file.write_text("the-first-of-two-tokens\n", encoding="ascii")
        listen = f"listen:\n  http: {{ address: 127.0.0.1:0, token: 'file:{file}' }}\n"
        with daemon.Daemon(listen + RULES) as running:
            client = self.enterContext(tls_wire.http_wire.Client(running.http))
            self.assertEqual(self.check(client, "the-first-of-two-tokens"), 200)
            file.write_text("the-second-of-two-tokens\n", encoding="ascii")
            self.await_status(client, "the-second-of-two-tokens", 200)
            self.assertEqual(self.check(client, "the-first-of-two-tokens"), 401)
            # Without a token nobody would be kept out: what was stays.
            file.unlink()
            running.tell(signal.SIGHUP)
            running.wait_for("the tokens that were in force stay")
            self.assertEqual(self.check(client, "the-second-of-two-tokens"), 200)
            self.assertEqual(self.check(client, "another"), 401)

    def test_a_policy_with_another_token_and_another_right_to_manage(self):
        tokens = {"WEIR_E2E_ONE": "the-first-of-two-tokens",
                  "WEIR_E2E_TWO": "the-second-of-two-tokens"}
        text = "listen:\n  http: { address: 127.0.0.1:0, token: env:WEIR_E2E_ONE }\n" + RULES
        with daemon.Daemon(text, environment=tokens) as running:
            client = self.enterContext(tls_wire.http_wire.Client(running.http))

            def write(policy):
                new = running.policy_file.with_suffix(".new")
                new.write_text(policy, encoding="utf-8")
                os.replace(new, running.policy_file)

            self.assertEqual(self.check(client, "the-first-of-two-tokens"), 200)
            write(text.replace("_ONE", "_TWO"))
            self.await_status(client, "the-second-of-two-tokens", 200)
            self.assertEqual(self.check(client, "the-first-of-two-tokens"), 401)
            write("manage: open\nlisten:\n  http: { address: 127.0.0.1:0 }\n" + RULES)
            self.await_status(client, "none", 200)
            refund = {**BODY, "rules": ["per-user"]}
            self.assertEqual(client.post("/v1/refund", refund).status, 200)
            self.assertFalse([line for line in running.log if "restart" in line])

    def test_what_is_written_for_another_address_lets_nobody_in(self):
        token = {"WEIR_E2E_ONE": "the-only-token-there-is"}
        text = "listen:\n  http: { address: 127.0.0.1:0, token: env:WEIR_E2E_ONE }\n" + RULES
        with daemon.Daemon(text, environment=token) as running:
            client = self.enterContext(tls_wire.http_wire.Client(running.http))
            for version, listen in enumerate(("listen: { http: 127.0.0.1:1 }\n", ""), 2):
                new = running.policy_file.with_suffix(".new")
                new.write_text(listen + RULES, encoding="utf-8")
                after = len(running.log)
                os.replace(new, running.policy_file)
                running.wait_for(f"version {version} is in force", after=after)
                running.wait_for("keep their tokens and certificates", after=after)
                # Said after the listeners were told: whoever is told by now refuses.
                self.assertEqual(self.check(client, "none"), 401)
                self.assertEqual(self.check(client, "the-only-token-there-is"), 200)


if __name__ == "__main__":
    daemon.main()
