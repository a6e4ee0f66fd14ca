#!/usr/bin/env python3
"""The conformance suite on real servers: alone in every version that can be had, as shards, and as
a cluster. Their clocks are moved while it runs, so that windows of a year end in milliseconds.

    conformance_test.py FOLDER [TEST...]       FOLDER holds redis_store_oracle and shifted_clock.so
"""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
import redis_servers  # pylint: disable=wrong-import-position

folder = pathlib.Path()


class Conformance(unittest.TestCase):
    def setUp(self):
        self.clock = self.enterContext(tempfile.NamedTemporaryFile())
        self.clock.write(struct.pack("<q", 0))
        self.clock.flush()

    def options(self, version, moved):
        if version not in redis_servers.available_versions():
            print(f"SKIPPED {version} is not there", flush=True)
            self.skipTest(f"{version} is not there")
        if not moved:
            return {"version": version}
        return {"version": version, "environment": {"LD_PRELOAD": str(folder / "shifted_clock.so"),
                                                    "WEIR_CLOCK_FILE": self.clock.name}}

    def agree(self, servers, *, layout="servers", moved=True):
        environment = {**os.environ, "WEIR_TEST_SERVERS": ",".join(one.address for one in servers),
                       "WEIR_TEST_LAYOUT": layout}
        if moved:
            environment["WEIR_TEST_CLOCK"] = self.clock.name
        ran = subprocess.run([str(folder / "redis_store_oracle"), "--gtest_brief=1"],
                             env=environment, text=True, capture_output=True, check=False,
                             timeout=600)
        version = servers[0].info("server", "redis_version")
        name = "valkey" if servers[0].version.startswith("valkey") else "redis"
        print(f"{layout} of {len(servers)}: {servers[0].version} ({name} says {version})")
        self.assertEqual(ran.returncode, 0, ran.stdout[-6000:] + ran.stderr[-2000:])
        self.assertNotIn("SKIPPED", ran.stdout)
        self.assertGreater(self.keys_that_end(servers), 0, "there was nothing to look at")

    def keys_that_end(self, servers):
        """How many there are. There must be no others."""
        count = 0
        for server in servers:
            with server.connect() as client:
                for key in client.call("KEYS", "*"):
                    left = client.call("PTTL", key)
                    self.assertIsInstance(left, int, f"PTTL {key}: {left}")
                    # -2: it has ended since; -1: it never will.
                    self.assertNotEqual(left, -1, f"{key} stays for ever")
                    count += 1
        return count

    def test_a_key_that_stays_for_ever_would_be_found(self):
        with redis_servers.Server() as server:
            server.call("SET", "ends", "1", "PX", "600000")
            self.assertEqual(self.keys_that_end([server]), 1)
            server.call("SET", "stays", "1")
            with self.assertRaisesRegex(AssertionError, "stays stays for ever"):
                self.keys_that_end([server])

    def alone(self, version):
        with redis_servers.Server(**self.options(version, True)) as server:
            self.agree([server])

    def test_redis_7_0(self):
        self.alone("redis-7.0")

    def test_redis_6_2(self):
        self.alone("redis-6.2")

    def test_valkey_8(self):
        self.alone("valkey-8")

    def test_three_shards(self):
        with redis_servers.Shards(3, **self.options("redis-7.0", True)) as shards:
            self.agree(shards.servers)

    def test_a_cluster(self):
        # Nodes whose clocks jump would take each other for dead.
        with redis_servers.Cluster(replicas=0, **self.options("redis-7.0", False)) as cluster:
            self.agree(cluster.servers, layout="cluster", moved=False)


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
