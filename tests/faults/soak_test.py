#!/usr/bin/env python3
"""Everything at random, for as long as one likes: faults of every kind, one after the other, with
the promises checked all along and the memory of the service looked at.

    soak_test.py SOURCE PROGRAM [TEST...]

WEIR_SOAK_SEED=n      repeat the order of the faults (the seed is printed)
WEIR_SOAK_MINUTES=n   how long; half a minute unless told otherwise, or 30 for the long tests
"""

import os
import random
import signal
import statistics
import threading
import time

import fault_case
import judge
import redis_servers
from chaos_proxy import ChaosProxy
from fault_case import BURST, FaultCase, Watch

MINUTES = float(os.environ.get("WEIR_SOAK_MINUTES") or (30 if fault_case.LONG else 0.5))
SEED = int(os.environ.get("WEIR_SOAK_SEED") or random.randrange(1 << 31))
# The log of answers is judged in pieces, so that it does not grow without end.
PIECE = 20.0


class Nemesis:
    """Does harm, undoes it, and says how many bursts of slack that was worth."""

    def __init__(self, dice, server, proxy, service):
        self.dice, self.server, self.proxy, self.service = dice, server, proxy, service
        self.faults = [self.spoil, self.kill_redis, self.stop_redis, self.flush, self.flush_scripts,
                       self.pause_clients, self.fill, self.stop_service, self.drop_clients]

    def strike(self):
        """(what was done, how many bursts it may cost)."""
        fault = self.dice.choice(self.faults)
        cost = fault()
        return fault.__name__, cost

    def hold(self, low=0.05, high=2.0):
        time.sleep(self.dice.uniform(low, high))

    def spoil(self):
        mode = self.dice.choice([("delay", 0.02), ("delay", 0.06), ("delay", 0.3),
                                 ("random", 0.0, 0.08), ("drop_replies",), ("blackhole",),
                                 ("refuse",), ("reset_mid_reply",), ("truncate",), ("half_close",),
                                 ("garbage",), ("wrong_type",), ("flap", 0.2)])
        self.proxy.set(*mode)
        held = time.monotonic()
        self.hold()
        self.proxy.set("pass")
        return 1 + int((time.monotonic() - held) / 0.4) if mode[0] in ("flap", "random") else 1

    def kill_redis(self):
        self.server.kill()
        self.hold()
        self.server.start()
        return 1

    def stop_redis(self):
        self.server.pause()
        self.hold()
        self.server.resume()
        return 1

    def flush(self):
        self.server.call("FLUSHALL")
        return 1

    def flush_scripts(self):
        for _ in range(20):
            self.server.call("SCRIPT", "FLUSH")
            time.sleep(0.01)
        return 1

    def pause_clients(self):
        self.server.call("CLIENT", "PAUSE", "700", self.dice.choice(["WRITE", "ALL"]))
        time.sleep(0.8)
        return 1

    def fill(self):
        used = int(self.server.info("memory", "used_memory"))
        self.server.call("CONFIG", "SET", "maxmemory", str(used // 2))
        self.hold()
        self.server.call("CONFIG", "SET", "maxmemory", "0")
        return 1

    def stop_service(self):
        self.service.tell(signal.SIGSTOP)
        self.hold(0.05, 1.0)
        self.service.tell(signal.SIGCONT)
        return 1

    def drop_clients(self):
        self.server.call("CLIENT", "KILL", "TYPE", "normal")
        return 1


class Soak(FaultCase):
    def check_piece(self, answers, slack):
        self.assert_promise(answers, slack=slack)
        self.assertFalse([one for one in answers if one.failed][:1])
        for one in answers:
            if one.lost or one.source == "store":
                continue
            mode = one.ask.rule.removeprefix("by-")
            self.assertEqual(one.source, fault_case.BOTH[mode], one)
            if mode == "closed":
                self.assertFalse(one.allowed, one)
            if mode == "open":
                self.assertTrue(one.allowed, one)

    def test_row_50_everything_at_random(self):
        print(f"WEIR_SOAK_SEED={SEED} for {MINUTES} minutes", flush=True)
        server = self.enterContext(redis_servers.Server())
        proxy = self.enterContext(ChaosProxy(server.port, before=fault_case.at_once()))
        service = self.weir(proxy.url)
        self.wait_for_store(service)
        nemesis = Nemesis(random.Random(SEED), server, proxy, service)
        # Keys that are never asked for again: what must not pile up.
        strangers = threading.Event()
        crowd = threading.Thread(target=self.many_keys, args=(service, strangers))
        crowd.start()
        end = time.monotonic() + 60 * MINUTES
        struck, late, decided = {}, [], 0
        try:
            with Watch(service.pid) as watch:
                while time.monotonic() < end:
                    slack, piece_end = 0, min(end, time.monotonic() + PIECE)
                    with self.load(service, rate=2000) as running:
                        while time.monotonic() < piece_end:
                            time.sleep(nemesis.dice.uniform(0.1, 2.0))
                            what, cost = nemesis.strike()
                            struck[what] = struck.get(what, 0) + 1
                            slack += cost
                        time.sleep(1.0)
                    self.assertTrue(service.is_alive())
                    self.check_piece(running.answers, slack * fault_case.OUTAGE)
                    decided += len(running.answers)
                    late.append(judge.distribution(running.answers)["p999"])
                    print(f"{decided} answers, {watch.memory[-1] / 1e6:.1f} MB, "
                          f"{watch.descriptors[-1]} descriptors", flush=True)
        finally:
            strangers.set()
            crowd.join()
        self.wait_for_store(service)
        self.wait_for_calm(service)
        self.check_growth(watch)
        print(f"{decided} answers, {struck}, p99.9 {statistics.median(late):.1f} ms, "
              f"memory {watch.memory[0] >> 20} to {watch.memory[-1] >> 20} MiB, "
              f"descriptors at most {max(watch.descriptors)}")

    @staticmethod
    def many_keys(service, over):
        number = 0
        while not over.is_set():
            try:
                with fault_case.resp_wire.Client(service.resp, timeout=5) as client:
                    while not over.wait(0.05):
                        client.pipeline([("WEIR.CHECK", "by-static", "user", f"s-{number + at}")
                                         for at in range(20)])
                        number += 20
            except OSError:
                pass

    def check_growth(self, watch):
        """The last third of the time is no larger than the middle one, once all has been touched."""
        if MINUTES < 10:
            return
        third = len(watch.memory) // 3
        middle, last = watch.memory[third:2 * third], watch.memory[2 * third:]
        self.assertLess(statistics.median(last), statistics.median(middle) + (8 << 20))
        self.assertLess(max(watch.descriptors), watch.descriptors[0] + 60)


if __name__ == "__main__":
    fault_case.main()
