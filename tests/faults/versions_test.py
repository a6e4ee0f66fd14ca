#!/usr/bin/env python3
"""Other servers than Debian's Redis, and values that another version of Weir, or somebody else
altogether, left under our keys.

    versions_test.py SOURCE PROGRAM [TEST...]
"""

import fault_case
import redis_servers
from fault_case import BURST, FaultCase


class Versions(FaultCase):
    def test_every_server_that_can_be_had_decides_alike(self):
        for version in redis_servers.VERSIONS:
            with self.subTest(version):
                if version not in redis_servers.available_versions():
                    self.skipTest(f"{version} is not there")
                server = self.enterContext(redis_servers.Server(version=version))
                service = self.weir(server.url)
                self.wait_for_store(service)
                run = self.break_and_heal(service, server.kill, server.start)
                self.assert_outage(4, f"{version} killed, restarted empty", run)

    def test_every_server_that_can_be_had_is_known_by_what_it_refuses(self):
        for version in redis_servers.VERSIONS:
            with self.subTest(version):
                if version not in redis_servers.available_versions():
                    self.skipTest(f"{version} is not there")
                server = self.enterContext(redis_servers.Server(version=version))
                service = self.weir(server.url)
                for kind, breaks, heals in (
                        ("no_memory", ("CONFIG", "SET", "maxmemory", "1"),
                         ("CONFIG", "SET", "maxmemory", "0")),
                        ("not_writable", ("CONFIG", "SET", "min-replicas-to-write", "3"),
                         ("CONFIG", "SET", "min-replicas-to-write", "0")),
                        ("read_only", ("REPLICAOF", "127.0.0.1", str(server.port)),
                         ("REPLICAOF", "NO", "ONE"))):
                    self.wait_for_store(service)
                    server.call(*breaks)

                    def is_known(kind=kind):
                        # A server that is busy changing may be late first, which is another kind.
                        self.assertEqual(self.decide(service, "by-closed", "refused")["source"],
                                         "closed")
                        return self.metric(service, "weir_store_errors_total", kind=kind) > 0
                    redis_servers.wait_until(is_known, f"{kind} is counted")
                    server.call(*heals)

    def test_a_cluster_of_every_version(self):
        for version in redis_servers.VERSIONS:
            with self.subTest(version):
                if version not in redis_servers.available_versions():
                    self.skipTest(f"{version} is not there")
                with redis_servers.Cluster(replicas=0, version=version) as cluster:
                    service = self.weir(cluster.url)
                    self.wait_for_store(service)
                    with self.load(service, rate=2000) as running:
                        self.sleep_undisturbed(1.5)
                    self.assert_promise(running.answers)
                    self.assert_from_store(running.answers, but=0.02)


class Foreign(FaultCase):
    RULES = """\
  - { name: fixed, match: { user: present }, key: user, limit: 50/min, algorithm: fixed_window }
  - { name: sliding, match: { user: present }, key: user, limit: 50/min, algorithm: sliding_window }
  - name: strict
    match: { user: present }
    key: user
    limit: 50/min
    algorithm: sliding_window
    strict: true
  - { name: log, match: { user: present }, key: user, limit: 50/min, algorithm: sliding_log }
  - { name: jobs, match: { user: present }, key: user, limit: 50 concurrent lease 30s }
"""
    NAMES = ("by-closed", "fixed", "sliding", "strict", "log", "jobs")

    def setUp(self):
        self.server = self.enterContext(redis_servers.Server())
        self.service = self.weir(self.server.url, rules=self.RULES, redis=fault_case.PATIENT)
        self.wait_for_store(self.service)

    def key_of(self, rule, user):
        """Where its state is."""
        self.decide(self.service, rule, user)
        found = [key for key in self.server.call("KEYS", f"weir1:{{user={user}}}:*")
                 if f":{rule}:" in key or key.endswith(f":{rule}")]
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_row_48_what_is_not_ours_is_replaced_by_fresh_state_and_counted(self):
        foreign = [("SET", "garbage"), ("SET", ""), ("SET", "nan"), ("SET", "99999999999999999999"),
                   ("SET", "-5"), ("SET", "1e300"), ("SET", "x" * 5000), ("HSET", "tat", "1"),
                   ("RPUSH", "a"), ("ZADD", "1", "member"), ("SADD", "a")]
        for rule in self.NAMES:
            for number, (verb, *words) in enumerate(foreign):
                with self.subTest(rule=rule, value=(verb, *words)[:3]):
                    user = f"foreign-{number}"
                    key = self.key_of(rule, user)
                    self.server.call("DEL", key)
                    self.server.call(verb, key, *words)
                    decision = self.decide(self.service, rule, user)
                    self.assertEqual(decision["source"], "store", decision)
                    again = self.decide(self.service, rule, user)
                    self.assertEqual((again["allowed"], again["source"]), (1, "store"), again)
                    self.assertLess(again["reset_after_ms"] or 0, 130_000)
                    # And it will not stay for ever.
                    self.assertGreater(self.server.call("PTTL", key), 0)
        self.assertGreater(self.metric(self.service, "weir_store_errors_total", kind="corrupt"),
                           0)
        self.assertNotIn("degraded", self.readiness(self.service))

    def test_row_48_a_damaged_value_of_one_key_does_not_touch_others_of_the_request(self):
        key = self.key_of("fixed", "both")
        self.server.call("DEL", key)
        self.server.call("RPUSH", key, "not a window")
        before = self.remaining(self.service, "log", "both")
        with fault_case.resp_wire.Client(self.service.resp) as client:
            told = fault_case.resp_wire.named(client.call("WEIR.CHECK", "*", "user", "both"))
        self.assertEqual((told["allowed"], told["source"]), (1, "store"))
        self.assertEqual(self.remaining(self.service, "log", "both"), before - 1)

    def test_row_48_state_of_another_version_is_left_alone(self):
        for version in ("weir0", "weir2"):
            self.server.call("SET", f"{version}:{{user=next}}:by-closed:t", "whatever")
        self.assertEqual(self.decide(self.service, "by-closed", "next")["remaining"], BURST - 1)
        for version in ("weir0", "weir2"):
            self.assertEqual(self.server.call("GET", f"{version}:{{user=next}}:by-closed:t"),
                             "whatever")

    def test_row_48_two_that_roll_over_share_every_limit(self):
        """One ends and another takes over, back and forth, with no slack at all."""
        answers = []
        with self.load(self.service) as first:
            fault_case.time.sleep(1)
            other = self.weir(self.server.url, rules=self.RULES, redis=fault_case.PATIENT)
            self.wait_for_store(other)
            with self.load(other) as second:
                fault_case.time.sleep(1)
        answers = first.answers + second.answers
        self.assert_promise(answers)


if __name__ == "__main__":
    fault_case.main()
