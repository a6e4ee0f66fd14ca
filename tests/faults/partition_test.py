#!/usr/bin/env python3
"""Cables that are pulled, between network namespaces. Needs root; says SKIPPED where it has none.

    partition_test.py SOURCE PROGRAM [TEST...]
"""

import contextlib
import os
import random
import subprocess
import unittest

import fault_case
import redis_servers
from fault_case import BURST, FaultCase, RATE, daemon, judge


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Cable(contextlib.ExitStack):
    """A namespace of its own for one side, and a cable to it from ours."""

    def __init__(self):
        super().__init__()
        number = random.randrange(1, 1 << 14)
        self.name, self.ours, self.theirs = f"weir{number}", f"wf{number}a", f"wf{number}b"
        net = f"10.{200 + number // 8192 % 50}.{number // 64 % 256}.{number % 64 * 4}"
        base = net.rpartition(".")
        self.our_address = f"{base[0]}.{int(base[2]) + 1}"
        self.their_address = f"{base[0]}.{int(base[2]) + 2}"
        self.within = ("ip", "netns", "exec", self.name)
        try:
            self._lay()
        except BaseException:
            self.close()
            raise

    def _lay(self):
        ip("netns", "add", self.name)
        self.callback(ip, "netns", "del", self.name)
        ip("link", "add", self.ours, "type", "veth", "peer", "name", self.theirs, "netns",
           self.name)
        ip("addr", "add", f"{self.our_address}/30", "dev", self.ours)
        ip("link", "set", self.ours, "up")
        ip("-n", self.name, "addr", "add", f"{self.their_address}/30", "dev", self.theirs)
        for device in (self.theirs, "lo"):
            ip("-n", self.name, "link", "set", device, "up")

    def pull(self):
        """Our end, so that the other side is told nothing."""
        ip("link", "set", self.ours, "down")

    def plug(self):
        ip("link", "set", self.ours, "up")


def can_lay_cables():
    if os.geteuid() != 0:
        return False
    try:
        with Cable():
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@unittest.skipUnless(can_lay_cables(), "needs root, ip netns and veth")
class Partition(FaultCase):
    def setUp(self):
        self.cable = self.enterContext(Cable())

    def beyond(self, store):
        """The service and its load on the far side."""
        words = (*self.cable.within, *fault_case.at_once())
        return self.enterContext(daemon.Daemon(fault_case.policy(store), before=words))

    def wait_beyond(self, service):
        """As wait_for_store, from over there: by a load, because only that is there."""
        def decides():
            with fault_case.load.Load(service.resp, [fault_case.Ask("by-closed", "first")],
                                      rate=50, connections=1, before=self.cable.within) as running:
                fault_case.time.sleep(0.2)
            return bool(running.answers) and running.answers[-1].source == "store"

        redis_servers.wait_until(decides, "the store decides")

    def pull_and_plug(self, service, *, seconds, after=2.5, heals=None):
        return self.break_and_heal(service, self.cable.pull, heals or self.cable.plug,
                                   seconds=seconds, after=after,
                                   before=(*self.cable.within, *fault_case.at_once()))

    def test_row_18_half_open(self):
        server = self.enterContext(redis_servers.Server(host=self.cable.our_address))
        service = self.beyond(server.url)
        self.wait_beyond(service)
        run = self.pull_and_plug(service, seconds=10 if fault_case.LONG else 3)
        self.assert_outage(18, "half-open TCP (peer's link down)", run)

    def test_row_17_on_the_side_of_the_few(self):
        """The service and one master of three are cut off; the others elect another."""
        settings = {"cluster-enabled": "yes", "cluster-node-timeout": 1000}
        group = self.enterContext(PartedCluster(self.cable, settings))
        service = self.beyond(group.url)
        self.wait_beyond(service)
        run = self.pull_and_plug(service, seconds=5, after=5)
        self.assert_in_time(run.answers)
        self.assert_bounded(run)
        late = judge.between(run.answers, run.phase.broke + 3, run.phase.healed)
        self.assertFalse([one for one in late if one.source == "store"][:1],
                         "the few went on deciding")
        self.assert_labelled(late)
        # What the few admitted until they noticed is lost when the others' word counts again.
        self.assert_promise(run.answers, slack=2 * fault_case.OUTAGE + RATE * 2)
        last = max((one.sent for one in self.undisturbed(run.answers) if one.source != "store"),
                   default=run.phase.healed)
        self.assertLess(last, run.phase.ended - 0.3, "the store does not decide again")
        self.report(17, "cluster: cut off with the minority", run, normal=last - run.phase.healed)


class PartedCluster(redis_servers.Cluster):
    """Its first master is on the far side of a cable."""

    def __init__(self, cable, settings):  # pylint: disable=super-init-not-called
        redis_servers.Group.__init__(self)
        try:
            far = {"host": cable.their_address, "before": cable.within}
            near = {"host": cable.our_address}
            for side in (far, near, near, near, near, near):
                self.add(settings=settings, port=redis_servers.free_port(), **side)
            self._create(1)
        except BaseException:
            self.close()
            raise


if __name__ == "__main__":
    fault_case.main()
