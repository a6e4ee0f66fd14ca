#!/usr/bin/env python3
"""Between the service and Redis: late, lost, cut off, torn to pieces, or not RESP at all.

    broken_wire_test.py SOURCE PROGRAM [TEST...]
"""

import time

import fault_case
import judge
import redis_servers
import resp_wire
from chaos_proxy import ChaosProxy
from fault_case import BURST, LONG, Ask, FaultCase


class BrokenWire(FaultCase):
    def setUp(self):
        self.server = self.enterContext(redis_servers.Server())
        self.proxy = self.enterContext(ChaosProxy(self.server.port, before=fault_case.at_once()))
        self.service = self.weir(self.proxy.url)
        self.wait_for_store(self.service)

    def spoil(self, mode, *values, **options):
        return self.break_and_heal(self.service, lambda: self.proxy.set(mode, *values),
                                   lambda: self.proxy.set("pass"), **options)

    def test_row_06_slow(self):
        for seconds in (0.04, 0.06, 0.5) if LONG else (0.06,):
            with self.subTest(seconds):
                run = self.spoil("delay", seconds)
                self.assert_outage(6, f"replies {seconds * 1000:.0f} ms late", run)

    def test_row_06_now_and_then_a_little_slow_is_no_outage(self):
        run = self.spoil("random", 0.0, 0.01, store_decides=True)
        self.assert_sane(run)
        self.assert_promise(run.answers)
        self.assert_in_time(run.answers)
        self.assert_from_store(run.answers, but=0.01)
        self.report(6, "replies 0 to 10 ms late", run, opened=False)

    def test_row_19_reset_in_the_middle_of_a_reply(self):
        run = self.spoil("reset_mid_reply")
        self.assert_outage(19, "RST in mid-reply", run)

    def test_row_19_refused(self):
        run = self.spoil("refuse")
        self.assert_outage(19, "connections refused", run)

    def test_row_20_replies_are_lost(self):
        run = self.spoil("drop_replies")
        self.assert_outage(20, "replies lost after the fact", run)

    def charges_while(self, mode):
        """How much was charged for requests of which nobody knows what became."""
        asks = [Ask("counted", f"{mode}-{number}") for number in range(3)]
        for ask in asks:
            self.decide(self.service, ask.rule, ask.key)
        run = self.spoil(mode, asks=asks, rate=1000, calm=0.5, seconds=1.5)
        for ask in asks:
            its = [one for one in run.answers if one.ask == ask]
            charged = fault_case.MUCH - self.remaining(self.service, ask.rule, ask.key)
            # Everything admitted was charged, once, and nothing was charged that nobody sent.
            self.assertGreaterEqual(charged + 1, 1 + sum(one.allowed for one in its))
            self.assertLessEqual(charged, 1 + len(its))
            unknown = [one for one in its if one.source != "store"]
            self.assertTrue(unknown)
            # Far fewer than were refused: the breaker stopped asking, and nothing was asked twice.
            self.assertLess(charged - 1 - sum(one.allowed for one in its), len(unknown))
        return run

    def test_row_20_what_was_lost_is_charged_once_at_most(self):
        self.charges_while("drop_replies")

    def test_row_19_what_was_cut_off_is_charged_once_at_most(self):
        self.charges_while("reset_mid_reply")

    def test_row_20_a_request_whose_reply_is_lost_is_sent_once(self):
        # One connection, so that one thread answers: another might have no connection to the store
        # yet, and would have nothing to send.
        with resp_wire.Client(self.service.resp) as client:
            def ask():
                return resp_wire.named(client.call("WEIR.CHECK", "counted", "user", "alone"))

            redis_servers.wait_until(lambda: ask()["source"] == "store", "the store decides")
            before = self.remaining(self.service, "counted", "alone")
            self.proxy.set("drop_replies")
            decision = ask()
        self.assertEqual((decision["allowed"], decision["reason"], decision["source"]),
                         (0, "store_failure", "closed"))
        time.sleep(0.3)  # For whoever would send it again.
        self.proxy.set("pass")
        self.wait_for_store(self.service)
        self.assertEqual(self.remaining(self.service, "counted", "alone"), before - 1)

    def test_row_21_replies_that_are_no_replies(self):
        for mode in ("truncate", "garbage", "wrong_type", "half_close") if LONG else ("garbage",):
            with self.subTest(mode):
                run = self.spoil(mode)
                self.assert_outage(21, f"replies: {mode}", run)

    def test_row_21_byte_by_byte(self):
        run = self.spoil("split", rate=500, store_decides=True)
        self.assert_promise(run.answers)
        self.assert_in_time(run.answers)
        self.assert_from_store(run.answers, but=0.01)

    def test_row_18_a_black_hole(self):
        run = self.spoil("blackhole", seconds=3)
        self.assert_outage(18, "black hole", run)

    def test_row_24_few_connections_are_tried_while_nobody_answers(self):
        before = self.proxy.accepted()
        seconds = 60 if LONG else 6
        run = self.spoil("truncate", seconds=seconds)
        tried = self.proxy.accepted() - before
        # One probe at a time, every half second at the most, and what the threads need at the end.
        self.assertLessEqual(tried, 2 * seconds + 30)
        self.assert_outage(24, "long outage behind a proxy", run)

    def test_row_25_up_and_down_five_times_a_second(self):
        seconds = 20 if LONG else 5
        openings = []

        def watch():
            self.proxy.set("flap", 0.2)
            state, end = 0.0, time.monotonic() + seconds
            while time.monotonic() < end:
                now = self.metric(self.service, "weir_breaker_state")
                if now and not state:
                    openings.append(now)
                state = now
                time.sleep(0.02)

        run = self.break_and_heal(self.service, watch, lambda: self.proxy.set("pass"),
                                  seconds=seconds)
        self.assert_sane(run)
        self.assert_in_time(run.answers)
        self.assert_bounded(run)
        # Each time it comes back may be one burst.
        self.assert_promise(run.answers, slack=fault_case.OUTAGE * 2.5 * seconds)
        self.assertLessEqual(len(openings), 2 * seconds)
        self.report(25, "flapping every 200 ms", run, opened=False,
                    normal=self.assert_healed(run))

    def test_the_judge_would_see_a_limit_that_is_not_shared(self):
        """Two stores for one limit: what every test above would notice."""
        other = self.enterContext(redis_servers.Server())
        second = self.weir(other.url)
        self.wait_for_store(second)
        with self.load(self.service, rate=2000) as one, self.load(second, rate=2000) as two:
            time.sleep(1.5)
        merged = one.answers + two.answers
        self.assertGreater(max(judge.excess([answer for answer in merged if answer.ask == ask],
                                            burst=BURST, rate=fault_case.RATE)
                               for ask in fault_case.HOT), BURST / 2)


if __name__ == "__main__":
    fault_case.main()
