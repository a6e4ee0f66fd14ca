#!/usr/bin/env python3
"""Who may ask Redis: passwords, users and their rights, certificates, sockets. Secrets stay secret.

    access_test.py SOURCE PROGRAM [TEST...]
"""

import pathlib
import re
import tempfile

import fault_case
import redis_servers
from fault_case import BURST, FaultCase, daemon

SECRET = "s3cret-of-a-test"
RULES = """\
  - { name: jobs, match: { org: present }, key: org, limit: 5 concurrent lease 30s }
  - { name: log, match: { org: present }, key: org, limit: 5/min, algorithm: sliding_log }
  - { name: fixed, match: { org: present }, key: org, limit: 5/min, algorithm: fixed_window }
"""


def documented_rights():
    """The rights that docs/operations.md says are enough."""
    text = (pathlib.Path(daemon.source) / "docs" / "operations.md").read_text(encoding="utf-8")
    found = re.search(r"^ACL SETUSER weir (.*)$", text, re.MULTILINE)
    if found is None:
        raise AssertionError("docs/operations.md names no rights")
    return [word for word in found[1].split() if word not in ("on", ">PASSWORD", "reset")]


class Access(FaultCase):
    def url(self, server, user="weir", secret=SECRET, scheme="redis"):
        return f"{scheme}://{user}:{secret}@{server.address}"

    def with_rights(self, rights):
        return redis_servers.Server(users=[f"weir on >{SECRET} {' '.join(rights)}"])

    def assert_no_secrets(self, *services):
        for service in services:
            for line in service.log:
                self.assertNotIn(SECRET, line)

    def degraded(self, service):
        """It decides in the store's place, says so, and tells nobody a secret."""
        for _ in range(3):
            decision = self.decide(service, "by-closed", "somebody")
            self.assertEqual((decision["allowed"], decision["reason"], decision["source"]),
                             (0, "store_failure", "closed"))
            self.assertEqual(self.decide(service, "by-open", "somebody")["source"], "open")
        self.assertIn("degraded", self.readiness(service))
        self.assert_no_secrets(service)

    def start(self, server):
        """A service with every algorithm, whose every verb may be used."""
        return daemon.Daemon(fault_case.policy(self.url(server), rules=RULES,
                                               more="manage: open\n"))

    def ask_everything(self, service):
        """Who decided, for every verb that there is."""
        sources = []
        with fault_case.resp_wire.Client(service.resp) as client:
            for verb in ("CHECK", "PEEK", "REFUND", "PENALIZE", "RESET"):
                for rule in ("by-open", "log", "fixed", "jobs"):
                    for _ in range(3):
                        reply = client.call("WEIR." + verb, rule, "user", "a", "org", "b")
                        sources.append(fault_case.resp_wire.named(reply)["source"])
            held = fault_case.resp_wire.named(client.call("WEIR.RESERVE", "jobs", "org", "c"))
            sources.append(held["source"])
            client.call("WEIR.RELEASE", held["reservation"])
        return sources

    def test_a_user_with_the_documented_rights_is_enough(self):
        server = self.enterContext(self.with_rights(documented_rights()))
        service = self.enterContext(self.start(server))
        self.wait_for_store(service)
        self.assertEqual(set(self.ask_everything(service)), {"store"})
        complaints = [line for line in service.log if "rights" in line or "NOPERM" in line]
        self.assertEqual(complaints, [])
        self.assert_no_secrets(service)

    def test_one_right_fewer_is_named(self):
        rights = documented_rights()
        commands = [right for right in rights if right.startswith("+")]
        self.assertTrue(commands)
        for missing in commands:
            with self.subTest(missing):
                left = [right for right in rights if right != missing]
                with self.with_rights(left) as server:
                    with self.start(server) as service:
                        self.ask_everything(service)
                        self.assertIn(missing, service.wait_for("missing rights"))
                        self.assert_no_secrets(service)

    def test_row_22_a_wrong_password(self):
        server = self.enterContext(self.with_rights(documented_rights()))
        service = self.weir(self.url(server, secret=SECRET + "-not"))
        self.degraded(service)
        self.assertGreater(self.metric(service, "weir_store_errors_total"), 0)
        service.wait_for("WRONGPASS")
        self.assert_no_secrets(service)

    def test_row_22_no_password_where_one_is_asked_for(self):
        server = self.enterContext(redis_servers.Server(password=SECRET))
        service = self.weir(f"redis://{server.address}")
        self.degraded(service)
        service.wait_for("NOAUTH")
        good = self.weir(server.url)
        self.wait_for_store(good)
        self.assert_no_secrets(good)

    def test_row_22_rights_are_taken_away_and_given_back(self):
        server = self.enterContext(self.with_rights(documented_rights()))
        service = self.weir(self.url(server))
        self.wait_for_store(service)

        def revoke():
            server.call("ACL", "SETUSER", "weir", "off")
            server.call("CLIENT", "KILL", "USER", "weir")

        run = self.break_and_heal(service, revoke,
                                  lambda: server.call("ACL", "SETUSER", "weir", "on"))
        self.assert_outage(22, "ACL user switched off", run)
        self.assert_no_secrets(service)

    def test_row_22_a_command_is_taken_away(self):
        server = self.enterContext(self.with_rights(documented_rights()))
        service = self.weir(self.url(server))
        self.wait_for_store(service)
        run = self.break_and_heal(
            service, lambda: server.call("ACL", "SETUSER", "weir", "-evalsha"),
            lambda: server.call("ACL", "SETUSER", "weir", "+evalsha"))
        self.assert_outage(22, "ACL right taken away (NOPERM)", run)
        self.assertGreater(self.metric(service, "weir_store_errors_total", kind="credentials"), 0)

    def test_a_unix_socket(self):
        server = self.enterContext(redis_servers.Server(unix=True))
        service = self.weir(f"redis+unix://{server.unix}")
        self.wait_for_store(service)
        self.assertGreater(server.call("DBSIZE"), 0)


class Encrypted(FaultCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.certificates = redis_servers.Certificates(folder)

    def settings(self):
        return f"ca: {self.certificates.path('ca.pem')}"

    def test_tls_under_load_and_a_restart(self):
        server = self.enterContext(redis_servers.Server(tls=self.certificates))
        service = self.weir(server.url, environment={
            "SSL_CERT_FILE": self.certificates.path("ca.pem")})
        self.wait_for_store(service)
        run = self.break_and_heal(service, server.kill, server.start)
        self.assert_outage(4, "Redis with TLS killed, restarted empty", run, slack=fault_case.OUTAGE)

    def test_row_22_a_certificate_that_has_expired(self):
        server = self.enterContext(redis_servers.Server(tls=self.certificates,
                                                        certificate="expired"))
        service = self.weir(server.url, environment={
            "SSL_CERT_FILE": self.certificates.path("ca.pem")})
        self.assertEqual(self.decide(service, "by-closed", "x")["source"], "closed")
        line = service.wait_for("certificate")
        self.assertIn("expired", line)

    def test_row_22_a_certificate_of_nobody_we_trust(self):
        server = self.enterContext(redis_servers.Server(tls=self.certificates))
        service = self.weir(server.url)
        self.assertEqual(self.decide(service, "by-closed", "x")["source"], "closed")
        service.wait_for("certificate")


if __name__ == "__main__":
    fault_case.main()
