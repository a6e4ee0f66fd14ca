#!/usr/bin/env python3
"""Records when a CPU of this machine stood still because the hypervisor ran other machines.

    with machine_stalls.Stalls() as stalls:
        ...
    stalls.between(began, ended)   # [Stall(began, ended), ...], by the steady clock

One process for each CPU sleeps for a moment, again and again, and notes when it was woken too late.
Where real-time priority is allowed, it has a higher one than all other processes of the tests, so
that no load on the machine makes it late.
"""

import collections
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
import daemon

Stall = collections.namedtuple("Stall", "began ended")
TICK = 0.002
# Shorter stalls are not recorded. A call to a store has 50 ms in these tests.
SHORTEST = 0.02
# The record of a CPU: until when it is complete, then the stalls.
LOOKED, STALL = struct.Struct("<d"), struct.Struct("<dd")


class Record:
    """The process that records the stalls of one CPU, from outside."""

    def __init__(self, cpu):
        # In memory: the process must not wait for a disk.
        self.file = tempfile.TemporaryFile(dir="/dev/shm")
        self.process = subprocess.Popen(
            [*daemon.at_once(2), sys.executable, __file__, str(cpu), str(os.getpid())],
            stdin=subprocess.DEVNULL, stdout=self.file)

    def read(self, until):
        """All stalls, once the record is complete until that time."""
        while True:
            data = os.pread(self.file.fileno(), 1 << 24, 0)
            if len(data) >= LOOKED.size and LOOKED.unpack_from(data)[0] >= until:
                return [Stall(*one) for one in STALL.iter_unpack(data[LOOKED.size:])]
            if self.process.poll() is not None:
                raise AssertionError(f"the record of stalls ended with {self.process.returncode}")
            time.sleep(TICK)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.file.close()


class Stalls:
    """Those of all CPUs."""

    def __init__(self):
        self.records = [Record(cpu) for cpu in sorted(os.sched_getaffinity(0))]
        try:
            self.between(0.0, 0.0)  # Waits until all records have begun.
        except BaseException:
            self.close()
            raise

    def between(self, began, ended):
        """Those that touch this time, in order. Stalls of several CPUs at the same time are one."""
        return merged(stall for record in self.records for stall in record.read(ended)
                      if stall.began < ended and stall.ended > began)

    def close(self):
        for record in self.records:
            record.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def merged(stalls):
    """The stalls in order; those that overlap as one."""
    found = []
    for stall in sorted(stalls):
        if found and stall.began <= found[-1].ended:
            found[-1] = Stall(found[-1].began, max(found[-1].ended, stall.ended))
        else:
            found.append(stall)
    return found


def record_stalls(cpu, parent):
    """Writes the record to standard output, which is a file."""
    os.sched_setaffinity(0, {cpu})
    began, end = time.monotonic(), LOOKED.size
    while os.getppid() == parent:  # A test that is killed leaves no process behind.
        time.sleep(TICK)
        now = time.monotonic()
        if now - began > TICK + SHORTEST:
            end += os.pwrite(1, STALL.pack(began + TICK, now), end)
        os.pwrite(1, LOOKED.pack(now), 0)
        began = now


if __name__ == "__main__":
    record_stalls(int(sys.argv[1]), int(sys.argv[2]))
