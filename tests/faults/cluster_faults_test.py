#!/usr/bin/env python3
"""Redis Cluster and Sentinel: masters that die, hand over, or lose their slots.

    cluster_faults_test.py SOURCE PROGRAM [TEST...]
"""

import re
import threading
import time

import fault_case
import redis_servers
from fault_case import ASKS, BURST, RATE, FaultCase, judge


def redis_key(ask):
    """The braces part is what a subject's slot goes by."""
    return f"{{user={ask.key}}}"


class Clustered(FaultCase):
    def setUp(self):
        self.cluster = self.enterContext(redis_servers.Cluster())
        self.service = self.weir(self.cluster.url)
        self.wait_for_store(self.service)
        # Every slot that will be asked for has been asked for, and left something behind.
        for ask in dict.fromkeys(ASKS):
            self.decide(self.service, "counted", ask.key)
        self.check_keys()

    def check_keys(self):
        """The keys are where this test thinks they are."""
        found = [key for server in self.cluster.masters() for key in server.call("KEYS", "weir1:*")]
        tags = {match[0] for key in found if (match := re.search(r"\{[^}]*\}", key))}
        self.assertIn(redis_key(ASKS[0]), tags)

    def served_by(self, master):
        """The asks whose slots it has."""
        return {ask for ask in ASKS if self.cluster.master_of_key(redis_key(ask)) is master}

    def busiest(self):
        return max(self.cluster.masters(), key=lambda master: len(self.served_by(master)))

    def check_others(self, run, touched):
        """Those whose master was well were answered by the store all the while."""
        others = [one for one in run.answers if one.ask not in touched]
        self.assertTrue(others)
        self.assert_from_store(others, but=0.01)
        self.assert_promise(others)

    def lost_master(self, row, what, breaks, master, *, seconds, slack):
        touched = self.served_by(master)
        run = self.break_and_heal(self.service, breaks, lambda: None, seconds=seconds, after=4)
        self.assert_in_time(run.answers)
        self.assert_bounded(run)
        self.check_others(run, touched)
        self.assert_promise([one for one in run.answers if one.ask in touched], slack=slack)
        last = max((one.sent for one in self.undisturbed(run.answers) if one.source != "store"),
                   default=run.phase.broke)
        self.assertLess(last, run.phase.ended - 0.5, "the new master is not found")
        print(f"normal {last - run.phase.broke:.2f} s after the fault")
        self.report(row, what, run, normal=last - run.phase.broke, opened=False)

    def test_row_13_a_master_dies(self):
        master = self.busiest()
        # What the replica did not have yet, and what was decided here meanwhile.
        self.lost_master(13, "cluster: a master killed", master.kill, master, seconds=4,
                         slack=2 * fault_case.OUTAGE + RATE)

    def test_row_14_a_master_hands_over(self):
        master = self.busiest()
        replica = self.cluster.replica_of(master)
        touched = self.served_by(master)
        run = self.break_and_heal(self.service,
                                  lambda: replica.call("CLUSTER", "FAILOVER"), lambda: None,
                                  seconds=2)
        self.assertEqual(replica.call("ROLE")[0], "master")
        self.check_others(run, touched)
        self.assert_in_time(run.answers)
        # Nothing is lost, so only those that were decided here may be above.
        self.assert_promise(run.answers, rules=("by-closed",))
        self.assert_promise(run.answers, slack=fault_case.OUTAGE)
        self.assert_healed(run)

    def test_row_14_a_replica_takes_over_unasked(self):
        master = self.busiest()
        replica = self.cluster.replica_of(master)
        self.lost_master(14, "cluster: FAILOVER TAKEOVER",
                         lambda: replica.call("CLUSTER", "FAILOVER", "TAKEOVER"), master,
                         seconds=2, slack=2 * fault_case.OUTAGE + RATE)

    def migrate(self, slot, source, target):
        """As redis-cli does it."""
        source_id, target_id = self.cluster.node_id(source), self.cluster.node_id(target)
        target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", source_id)
        source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", target_id)
        time.sleep(0.05)  # Some requests meet a slot that is half here and half there.
        while keys := source.call("CLUSTER", "GETKEYSINSLOT", slot, 10):
            source.call("MIGRATE", target.host, target.port, "", 0, 1000, "KEYS", *keys)
        time.sleep(0.05)
        for server in (target, source):
            server.call("CLUSTER", "SETSLOT", slot, "NODE", target_id)
        for server in self.cluster.masters():
            server.call("CLUSTER", "SETSLOT", slot, "NODE", target_id)

    def test_row_15_slots_move_under_load(self):
        ask = fault_case.HOT[0]
        slot = self.cluster.servers[0].call("CLUSTER", "KEYSLOT", redis_key(ask))
        over = threading.Event()
        moves, faults = [], []

        def move():
            try:
                while not over.is_set():
                    source = self.cluster.master_of_key(redis_key(ask))
                    target = next(one for one in self.cluster.masters() if one is not source)
                    self.migrate(slot, source, target)
                    moves.append(target)
            except AssertionError as fault:
                faults.append(fault)

        mover = threading.Thread(target=move)

        def calm():
            over.set()
            mover.join()

        run = self.break_and_heal(self.service, mover.start, calm, seconds=3,
                                  store_decides=True)
        self.assertEqual(faults, [])
        self.assertGreater(len(moves), 3)
        self.assert_promise(run.answers)
        self.assert_in_time(run.answers)
        self.assert_from_store(run.answers, but=0.005)
        self.report(15, f"cluster: a slot moved {len(moves)} times", run, opened=False)

    def test_row_16_two_of_three_masters_and_their_replicas_are_gone(self):
        masters = self.cluster.masters()
        victims = masters[:2] + [self.cluster.replica_of(master) for master in masters[:2]]

        def kill():
            for server in victims:
                server.kill()

        run = self.break_and_heal(self.service, kill, lambda: None, seconds=4, after=0)
        self.assert_in_time(run.answers)
        self.assert_bounded(run)
        late = judge.between(run.answers, run.phase.broke + 3, run.phase.healed)
        self.assertFalse([one for one in late if one.source == "store"][:1],
                         "a cluster that is down decided")
        self.assert_labelled(late)
        self.assert_promise(run.answers, slack=fault_case.OUTAGE)
        self.report(16, "cluster down", run)


class Watched(FaultCase):
    def test_row_12_sentinels_choose_another_master(self):
        sentinels = self.enterContext(redis_servers.Sentinels())
        service = self.weir(sentinels.url)
        self.wait_for_store(service)
        master = sentinels.present_master()
        run = self.break_and_heal(service, master.kill, lambda: None, seconds=3, after=4)
        self.assertIsNot(sentinels.present_master(), master)
        self.assert_sane(run)
        self.assert_in_time(run.answers)
        self.assert_labelled(run.broken())
        self.assert_promise(run.answers, slack=2 * fault_case.OUTAGE + RATE)
        last = max((one.sent for one in self.undisturbed(run.answers) if one.source != "store"),
                   default=run.phase.broke)
        self.assertLess(last, run.phase.ended - 0.5, "the new master is not found")
        self.report(12, "Sentinel: the master killed", run, normal=last - run.phase.broke,
                    opened=False)

    def test_row_12_sentinels_hand_over_while_the_old_master_lives_on_as_a_replica(self):
        sentinels = self.enterContext(redis_servers.Sentinels())
        service = self.weir(sentinels.url)
        self.wait_for_store(service)

        def hand_over():
            sentinels.sentinels[0].call("SENTINEL", "FAILOVER", sentinels.NAME)

        run = self.break_and_heal(service, hand_over, lambda: None, seconds=3, after=4)
        self.assert_in_time(run.answers)
        self.assert_promise(run.answers, slack=2 * fault_case.OUTAGE + RATE)
        last = max((one.sent for one in self.undisturbed(run.answers) if one.source != "store"),
                   default=run.phase.broke)
        self.assertLess(last, run.phase.ended - 0.5, "the new master is not found")
        new = sentinels.present_master()
        self.decide(service, "counted", "after-the-change")
        self.assertTrue(new.call("KEYS", "weir1:{user=after-the-change}*"))
        self.report(12, "Sentinel: handed over", run, normal=last - run.phase.broke, opened=False)


if __name__ == "__main__":
    fault_case.main()
