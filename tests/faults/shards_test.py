#!/usr/bin/env python3
"""Keys divided among servers that know nothing of each other.

    shards_test.py SOURCE PROGRAM [TEST...]
"""

import collections
import random
import time

import fault_case
import redis_servers
from fault_case import BURST, FaultCase


class Sharded(FaultCase):
    def setUp(self):
        self.shards = self.enterContext(redis_servers.Shards(3))

    def placed(self):
        """Which server has the state of which key."""
        places = collections.defaultdict(set)
        for number, server in enumerate(self.shards.servers):
            for key in server.call("KEYS", "weir1:{user=*"):
                places[key].add(number)
        return places

    def touch(self, service, count):
        with fault_case.resp_wire.Client(service.resp) as client:
            for number in range(count):
                client.call("WEIR.CHECK", "counted", "user", f"somebody-{number}")

    def test_row_23_the_order_of_the_list_does_not_matter(self):
        loads = []
        for seed in range(3):
            urls = list(self.shards.urls)
            random.Random(seed).shuffle(urls)
            service = self.weir(urls, redis=fault_case.PATIENT)
            for number in range(30):
                self.wait_for_store(service)
                self.decide(service, "by-closed", f"first-{number}")
            loads.append(self.enterContext(self.load(service, rate=1500)))
        time.sleep(2)
        answers = [one for running in loads for one in running.stop()]
        self.assert_promise(answers, rules=("by-static", "by-open", "by-closed"))
        for ask in dict.fromkeys(fault_case.ASKS):
            self.decide(service, "counted", ask.key)
        # As many as it takes for every server to have one, whatever its name.
        self.touch(service, 100)
        places = self.placed()
        self.assertTrue(all(len(where) == 1 for where in places.values()), places)
        self.assertEqual({number for where in places.values() for number in where}, {0, 1, 2})

    def test_row_23_a_server_less_moves_only_its_keys(self):
        count = 600
        self.touch(self.weir(self.shards.urls), count)
        before = self.placed()
        self.assertEqual(len(before), count)
        self.touch(self.weir(self.shards.urls[:2]), count)
        moved = 0
        for key, where in self.placed().items():
            was = before[key]
            if was == {2}:
                moved += 1
            else:
                self.assertEqual(where, was, f"{key} moved without need")
        # A third, give or take.
        self.assertLess(abs(moved - count / 3), count / 10)
        print(f"of {count} keys, {moved} moved")

    def test_one_of_three_is_gone(self):
        service = self.weir(self.shards.urls)
        for number in range(30):
            self.decide(service, "by-closed", f"first-{number}")
        self.wait_for_store(service)
        for ask in dict.fromkeys(fault_case.ASKS):
            self.decide(service, "counted", ask.key)
        victim = max(self.shards.servers, key=lambda server: server.call("DBSIZE"))
        gone = {key for key in victim.call("KEYS", "weir1:{user=*")}
        run = self.break_and_heal(service, victim.kill, victim.start)
        others = [one for one in run.answers
                  if not any(key.startswith(f"weir1:{{user={one.ask.key}}}") for key in gone)]
        self.assertTrue(others)
        self.assert_from_store(others, but=0.01)
        self.assert_promise(others)
        self.assert_promise(run.answers, slack=fault_case.OUTAGE)
        self.assert_in_time(run.answers)
        self.report(4, "one of three shards killed", run, normal=self.assert_healed(run))


if __name__ == "__main__":
    fault_case.main()
