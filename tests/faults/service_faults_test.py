#!/usr/bin/env python3
"""The service itself is killed, stopped, or told to end, while it shares a store with others.

    service_faults_test.py SOURCE PROGRAM [TEST...]
"""

import signal
import time

import fault_case
import judge
import redis_servers
from fault_case import Ask, BURST, FaultCase, LONG, Phase, Run, Watch, daemon


class ServiceFaults(FaultCase):
    def setUp(self):
        self.server = self.enterContext(redis_servers.Server())

    def start_on(self, port, http, store):
        listen = f"listen: {{ http: 127.0.0.1:{http}, resp: 127.0.0.1:{port} }}\n"
        return daemon.Daemon(listen + fault_case.policy(store), before=fault_case.at_once())

    def killed(self, store):
        """What came of a service that was killed twice under load."""
        ports = redis_servers.free_port(), redis_servers.free_port()
        service = self.start_on(*ports, store)
        try:
            with Watch(service.pid) as watch, self.load(service) as running:
                began = time.monotonic()
                kills, restarts = [], []
                for _ in range(2):
                    self.sleep_undisturbed(1)
                    kills.append(time.monotonic())
                    service.process.kill()
                    self.assertEqual(service.terminate(), -signal.SIGKILL)
                    broke = time.monotonic()
                    service = self.start_on(*ports, store)
                    restarts.append(time.monotonic() - broke)
                time.sleep(1)
        finally:
            service.terminate()
        now = time.monotonic()
        self.assertLess(max(restarts), 1.0 + 2 * daemon.instrumented)
        return Run(running.answers, Phase(began, kills[0], now, now), watch)

    def test_row_01_killed_it_forgets_nothing_that_is_in_redis(self):
        run = self.killed(self.server.url)
        self.assertTrue([one for one in run.answers if one.lost])
        self.assert_sane(run, but=0.1)
        # What is decided before the first connection is up is decided by the mode: a burst each.
        self.assert_promise(run.answers, rules=("by-closed",))
        self.assert_promise(run.answers, slack=2 * fault_case.OUTAGE)

    def test_row_01_killed_it_begins_anew_what_is_in_memory(self):
        run = self.killed("memory")
        self.assert_promise(run.answers, slack=2 * fault_case.OUTAGE)

    def test_row_02_stopped_and_let_go_on(self):
        service = self.weir(self.server.url)
        self.wait_for_store(service)
        run = self.break_and_heal(service, lambda: service.tell(signal.SIGSTOP),
                                  lambda: service.tell(signal.SIGCONT), seconds=5 if LONG else 2)
        self.assert_sane(run)
        self.assert_promise(run.answers, rules=("by-closed",))
        self.assert_promise(run.answers, slack=fault_case.OUTAGE)
        self.assert_healed(run)

    def test_row_03_told_to_end_it_answers_what_it_charged(self):
        service = self.weir(self.server.url, redis=fault_case.PATIENT)
        self.wait_for_store(service)
        asks = [Ask("counted", f"ends-{number}") for number in range(4)]
        with self.load(service, asks, rate=10_000, connections=8) as running:
            time.sleep(1)
            service.tell(signal.SIGTERM)
            self.assertEqual(service.process.wait(timeout=15), 0)
        answers = running.answers
        second = self.weir(self.server.url)
        self.wait_for_store(second)
        for ask in asks:
            its = [one for one in answers if one.ask == ask]
            charged = fault_case.MUCH - self.remaining(second, "counted", ask.key)
            admitted = sum(one.allowed for one in its)
            lost = sum(one.lost for one in its)
            self.assertGreaterEqual(charged + 1, admitted)
            self.assertLessEqual(charged, admitted + lost)
            self.assertGreater(admitted, 1000)
        self.assertEqual([one for one in answers if not one.lost and one.source != "store"], [])

    def test_many_share_one_limit(self):
        services = [self.weir(self.server.url, redis=fault_case.PATIENT) for _ in range(3)]
        for service in services:
            self.wait_for_store(service)
        loads = [self.enterContext(self.load(service, rate=1500)) for service in services]
        loads.append(self.enterContext(fault_case.load.Load(
            services[0].http, fault_case.ASKS, rate=300, protocol="http")))
        time.sleep(2)
        answers = [one for running in loads for one in running.stop()]
        self.assert_promise(answers, rules=("by-static", "by-open", "by-closed"))
        hot = [one for one in answers if one.ask == fault_case.HOT[0] and one.allowed]
        self.assertGreater(len(hot), 0.95 * fault_case.RATE * 2)
        self.assertGreater(judge.distribution(answers)["count"], 5000)


if __name__ == "__main__":
    fault_case.main()
