#!/usr/bin/env python3
"""Eight processes on the same keys of one store: never above the promise, and hardly below it.

    hammer_test.py FOLDER [TEST...]       FOLDER holds hammer and hammer_judge
"""

import itertools
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
import redis_servers  # pylint: disable=wrong-import-position

PROCESSES = 8
LIMITS = ("token_bucket", "leaky_bucket", "leaky_queue", "fixed_window", "sliding_window",
          "strict_window", "sliding_log", "concurrency")
EVENT = struct.Struct("<qqqiiBBBB4x")

folder = pathlib.Path()


class Hammered(unittest.TestCase):
    def setUp(self):
        self.logs = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def environment(self, servers, layout="servers"):
        return {**os.environ, "WEIR_TEST_LAYOUT": layout,
                "WEIR_TEST_SERVERS": ",".join(server.address for server in servers)}

    def hammer(self, what, environment, requests):
        """The logs of all processes."""
        paths = [self.logs / f"{what}-{number}" for number in range(PROCESSES)]
        running = [subprocess.Popen([str(folder / "hammer"), what, str(number), str(requests),
                                     str(path)], env=environment)
                   for number, path in enumerate(paths)]
        self.assertEqual([process.wait(timeout=120) for process in running], [0] * PROCESSES)
        return paths

    def judge(self, what, paths):
        judged = subprocess.run([str(folder / "hammer_judge"), what, *map(str, paths)], text=True,
                                capture_output=True, check=False, timeout=300)
        print(judged.stdout, end="")
        self.assertEqual(judged.returncode, 0, judged.stdout + judged.stderr)

    def every_limit(self, servers, layout="servers"):
        for what in LIMITS:
            with self.subTest(what):
                self.judge(what, self.hammer(what, self.environment(servers, layout), 2000))

    def test_one_server(self):
        with redis_servers.Server() as server:
            self.every_limit([server])

    def test_shards(self):
        with redis_servers.Shards(3) as shards:
            self.every_limit(shards.servers)

    def test_a_cluster(self):
        with redis_servers.Cluster(replicas=0) as cluster:
            self.every_limit(cluster.servers, "cluster")

    def groups(self, servers, layout="servers"):
        """What is left of the ample limit must be what the groups that passed left of it."""
        environment = self.environment(servers, layout)
        paths = self.hammer("groups", environment, 20000)
        events = [event for path in paths for event in EVENT.iter_unpack(path.read_bytes())]
        self.assertFalse([event for event in events if event[8]], "some requests failed")
        # Where the two limits are on two servers, the time of the decision is the later of the two:
        # the scarce limit was charged at some time between the request and that.
        exact = len(servers) == 1
        passed = [(event[0] if exact else event[1], event[0]) for event in events if event[6]]
        self.assertGreater(len(passed), 20)
        self.assertLess(len(passed), len(events) / 2)
        self.assertLessEqual(self.most_above(passed, burst=20, rate=60), 1e-6)
        left = subprocess.run([str(folder / "hammer"), "left"], env=environment, text=True,
                              capture_output=True, check=True).stdout.split()
        charged = int(left[2]) - int(left[0])
        print(f"{layout} of {len(servers)}: {len(passed)} of {len(events)} groups passed, "
              f"{charged} charged")
        # A window may have ended meanwhile; then it has forgotten some.
        self.assertLessEqual(charged, len(passed))
        if charged < len(passed):
            raise NewWindow
        return passed

    @staticmethod
    def most_above(passed, *, burst, rate):
        """By how much the worst interval is above burst + rate * t, at the least. Each of `passed` has
        the earliest and the latest time at which it may have been decided, in nanoseconds."""
        passed = sorted(passed, key=lambda times: times[1])
        # No request from this one on was decided earlier.
        earliest = list(itertools.accumulate(reversed([first for first, _ in passed]), min))[::-1]
        best = worst = -math.inf
        for number, ((_, latest), begin) in enumerate(zip(passed, earliest)):
            best = max(best, rate * (begin - earliest[0]) / 1e9 - number)
            worst = max(worst, number + 1 + best - rate * (latest - earliest[0]) / 1e9 - burst)
        return worst

    def groups_within_one_window(self, make, layout="servers"):
        for _ in range(2):
            with make() as servers:
                try:
                    self.groups(servers if isinstance(servers, list) else
                                getattr(servers, "servers", [servers]), layout)
                    return
                except NewWindow:
                    continue
        self.fail("charged less than passed, twice")

    def attack(self, servers, layout, ample, honest_requests):
        """Seven ask for what is used up together with what an honest one needs. What passed, of
        the honest one and of the others: when."""
        environment = {**self.environment(servers, layout), "WEIR_TEST_AMPLE": ample}
        paths = [self.logs / f"attack-{number}" for number in range(PROCESSES)]
        commands = [["groups", str(number), "30000", str(path)]
                    for number, path in enumerate(paths[1:])]
        running = [subprocess.Popen([str(folder / "hammer"), *words], env=environment)
                   for words in commands]
        running.append(subprocess.Popen(
            [str(folder / "hammer"), "honest", "0", str(honest_requests), str(paths[0])],
            env=environment))
        self.assertEqual([process.wait(timeout=120) for process in running], [0] * PROCESSES)
        events = [list(EVENT.iter_unpack(path.read_bytes())) for path in paths]
        self.assertFalse([event for log in events for event in log if event[8]])
        passed = [[event[0] for event in log if event[6]] for log in events]
        return sorted(passed[0]), sorted(time for log in passed[1:] for time in log)

    def attack_what_is_used_up(self, servers, layout="servers"):
        """The honest one must get nearly all: all but the cost of what the seven have under way."""
        ample, under_way = 3000, 16
        honest, others = self.attack(servers, layout, f"{ample}/8760h", ample)
        print(f"{layout} of {len(servers)}: the honest got {len(honest)} and the seven "
              f"{len(others)} of {ample}")
        self.assertLessEqual(len(honest) + len(others), ample)
        self.assertGreaterEqual(len(honest),
                                ample - len(others) - (PROCESSES - 1) * under_way)

    def attack_what_drains(self, servers, layout="servers"):
        """The same with a bucket that fills up again: at any time all but what is under way."""
        burst, rate, under_way = 200, 400, 16
        honest, others = self.attack(servers, layout, f"{rate}/s burst {burst}", 10000)
        time = (honest[-1] - honest[0]) / 1e9
        most = burst + rate * time
        print(f"{layout} of {len(servers)}: the honest got {len(honest)} in {time:.2f} s, "
              f"{most:.1f} is the most, and the seven {len(others)}")
        self.assertLessEqual(self.most_above(list(zip(honest, honest)), burst=burst, rate=rate), 1e-6)
        self.assertGreaterEqual(len(honest), most - len(others) - (PROCESSES - 1) * under_way)

    def everywhere(self, attack):
        with redis_servers.Server() as server:
            attack([server])
        with redis_servers.Shards(3) as shards:
            attack(shards.servers)
        with redis_servers.Cluster(replicas=0) as cluster:
            attack(cluster.servers, "cluster")

    def test_who_is_denied_cannot_keep_others_from_what_they_share(self):
        self.everywhere(self.attack_what_is_used_up)

    def test_who_is_denied_cannot_keep_others_from_a_bucket_that_fills_up(self):
        self.everywhere(self.attack_what_drains)

    def test_nothing_is_charged_to_any_when_one_denies(self):
        self.groups_within_one_window(redis_servers.Server)

    def test_nothing_stays_charged_across_shards(self):
        self.groups_within_one_window(lambda: redis_servers.Shards(3))

    def test_nothing_stays_charged_across_slots_of_a_cluster(self):
        self.groups_within_one_window(lambda: redis_servers.Cluster(replicas=0), "cluster")


class NewWindow(Exception):
    """The ample limit's window ended in the middle."""


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
