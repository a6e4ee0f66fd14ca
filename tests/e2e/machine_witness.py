#!/usr/bin/env python3
"""Sees what a machine keeps from a process: the times for which it could not run, though ready to.

    machine_witness.py CPU PID

For a process that is bound to one CPU. This one binds itself to the same, looks around every
millisecond until its input ends, and prints JSON; all times are nanoseconds since 1970:

    kept   [from, to] pairs: either a thread of the process stood in the queue for the CPU, by the
           kernel's count; or the CPU itself stood still (a hypervisor had other plans), which is when
           this process was woken too late and had not stood in the queue for that time either.
    looks  [when, for how long the process had run] at each look.

A process that is stopped, asleep or busy is not kept from anything: its threads stand in no queue,
and this witness goes on being woken in time. Run it before the process (see chrt), if that is
allowed: then it is in nobody's way for longer than some microseconds, and nobody is in its own.
"""

import glob
import json
import os
import select
import sys
import time

TICK = 1_000_000
# Shorter than this is what waking up takes.
LEAST = 200_000


class Thread:
    """The kernel's count of one: how long it ran, and how long it was ready and did not."""

    def __init__(self, path):
        self.file = os.open(path, os.O_RDONLY)
        self.ran, self.waited = 0, 0
        self.look()

    def look(self):
        """For how long it ran and waited since the last look."""
        ran, waited = self.ran, self.waited
        try:
            self.ran, self.waited = map(int, os.pread(self.file, 128, 0).split()[:2])
        except (OSError, ValueError):
            pass  # It has ended, or the kernel does not count.
        return self.ran - ran, self.waited - waited


def main(cpu, pid):
    os.sched_setaffinity(0, {cpu})
    myself = Thread("/proc/self/schedstat")
    threads = [Thread(path) for path in glob.glob(f"/proc/{pid}/task/*/schedstat")]
    kept, looks, ran = [], [], 0
    before = time.time_ns()
    print("looking", flush=True)
    while not select.select([sys.stdin], [], [], TICK / 1e9)[0]:
        now = time.time_ns()
        stood_still = now - before - TICK - sum(myself.look())
        if stood_still > LEAST:
            kept.append([before + TICK, before + TICK + stood_still])
        for thread in threads:
            has_run, waited = thread.look()
            ran += has_run
            if waited > LEAST:
                kept.append([now - waited, now])
        looks.append([now, ran])
        before = now
    json.dump({"kept": kept, "looks": looks}, sys.stdout)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
