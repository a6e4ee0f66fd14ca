#!/usr/bin/env python3
"""Sees what a machine keeps from a process: the times for which it could not run, though ready to.

    machine_witness.py CPU PID

For a process that is bound to one CPU. This one binds itself to the same, looks around every
millisecond until its input ends, and prints JSON; all times are nanoseconds since 1970:

    kept   [from, to] pairs: either a thread of the process stood in the queue for the CPU, by the
           kernel's count; or the CPU itself stood still (a hypervisor had other plans), which is when
           this process was woken too late, or took too long to look around, and had not stood in the
           queue for that time either.
    looks  [from, to, ran, stolen, states] for each look: when it began and ended, and for how long
           the process had run by then. What was before `from` was seen, what is behind `to` was not.
           `stolen` is the time that the hypervisor says it took from the CPU by then, in steps of
           10 ms; `states` has a letter for each thread of the process, as in ps: R runs or is ready,
           S sleeps, D is blocked in the kernel. They excuse nothing; they explain a failure.

A CPU that stands still does so in the middle of something, and the kernel takes it for work of
whoever that was. Of this process it is the same to the other one, which cannot run meanwhile. Of the
other one it is not: what it is said to have run while nobody could wake this process is not counted.

A process that is stopped, asleep or busy is not kept from anything: its threads stand in no queue,
and this witness goes on being woken in time. Run it before the process (see chrt), if that is
allowed: then it is in nobody's way for longer than some microseconds, and nobody is in its own.
"""

import contextlib
import gc
import json
import os
import select
import sys
import time

TICK = 1_000_000
# Shorter than this is what waking up and looking around take.
LEAST = 200_000
LEAST_LOOK = 500_000


class Thread:
    """The kernel's count of one: how long it ran, and how long it was ready and did not."""

    def __init__(self, folder):
        self.file = os.open(f"{folder}/schedstat", os.O_RDONLY)
        self.status = os.open(f"{folder}/stat", os.O_RDONLY)
        self.counts = (0, 0, 0)

    def state(self):
        """As a letter; X if it has ended."""
        try:
            return os.pread(self.status, 512, 0).rpartition(b") ")[2][:1].decode()
        except OSError:
            return "X"

    def read(self):
        """Time it ran, time it waited, how often it was let run."""
        try:
            return tuple(map(int, os.pread(self.file, 128, 0).split()))
        except OSError:
            return self.counts  # It has ended.

    def look(self):
        """For how long it ran and waited since the last look."""
        before, self.counts = self.counts, self.read()
        return self.counts[0] - before[0], self.counts[1] - before[1]

    def look_at_myself(self):
        """Of who asks: what time it is, and for how long it waited by then since the last look."""
        before = self.counts
        while True:
            self.counts, now = self.read(), time.time_ns()
            if self.read() == self.counts:
                return now, self.counts[1] - before[1]


class Process:
    """All its threads, those that it starts later as well."""

    def __init__(self, pid):
        self.folder = f"/proc/{pid}/task"
        self.threads = {}

    def look(self):
        with contextlib.suppress(OSError):
            for name in os.listdir(self.folder):
                if name not in self.threads:
                    self.threads[name] = Thread(f"{self.folder}/{name}")
        return [thread.look() for thread in self.threads.values()]

    def states(self):
        return "".join(thread.state() for thread in self.threads.values())


class Steal:
    """The time for which the hypervisor ran others on a CPU, as far as it says so."""

    def __init__(self, cpu):
        self.file = os.open("/proc/stat", os.O_RDONLY)
        self.name = f"cpu{cpu}".encode()
        self.tick = 1_000_000_000 // os.sysconf("SC_CLK_TCK")

    def read(self):
        for line in os.pread(self.file, 4096, 0).splitlines():
            words = line.split()
            if words[0] == self.name:
                return int(words[8]) * self.tick
        return 0


class Account:
    """What is made of the looks: pure, so that it can be tried on machines that are made up."""

    def __init__(self):
        self.kept, self.looks, self.ran = [], [], 0

    def note_look(self, began, ended, waited):
        """This process looked around from one time to the other."""
        if ended - began - waited > LEAST_LOOK:
            self.kept.append([began, ended - waited])

    def note_sleep(self, began, ended, waited):
        """This process wanted to sleep for a tick. Gives for how long the CPU stood still."""
        stood_still = max(0, ended - began - TICK - waited)
        if stood_still > LEAST:
            self.kept.append([began + TICK, began + TICK + stood_still])
        return stood_still

    def note_process(self, began, ended, seen, stood_still, stolen=0, states=""):
        """`seen`: for how long each thread of the other process ran and waited."""
        self.ran += max(0, sum(ran for ran, _ in seen) - stood_still)
        self.kept += [[ended - waited, ended] for _, waited in seen if waited > LEAST]
        self.looks.append([began, ended, self.ran, stolen, states])


def main(cpu, pid):
    os.sched_setaffinity(0, {cpu})
    gc.disable()
    myself = Thread("/proc/self")
    process = Process(pid)
    steal = Steal(cpu)
    process.look()
    account = Account()
    woken, _ = myself.look_at_myself()
    print("looking", flush=True)
    while True:
        asleep, waited = myself.look_at_myself()
        account.note_look(woken, asleep, waited)
        if select.select([sys.stdin], [], [], TICK / 1e9)[0]:
            break
        woken, waited = myself.look_at_myself()
        stood_still = account.note_sleep(asleep, woken, waited)
        seen = process.look()
        # The end is much later, if this process was not let run meanwhile.
        account.note_process(woken, time.time_ns(), seen, stood_still, steal.read(),
                             process.states())
    json.dump({"kept": account.kept, "looks": account.looks}, sys.stdout)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
