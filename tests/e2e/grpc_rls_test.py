#!/usr/bin/env python3
"""Envoy's RateLimitService through grpcio: what each descriptor is told, and that all or nothing of a
call is charged.

    grpc_rls_test.py SOURCE PROGRAM [TEST...]
"""

import json
import time
import unittest

import daemon
import grpc_client
import http_wire
import metrics_text
from grpc_client import OK, OVER_LIMIT, Code, entries, error_of, rls_pb2

LISTEN = "listen: { http: 127.0.0.1:0, grpc: 127.0.0.1:0 }\n"
RULES = """\
deny: [ { descriptor.user: mallory } ]
allow: [ { descriptor.user: root } ]
rules:
  - name: users
    match: { domain: shop, descriptor.user: present }
    key: descriptor.user
    limit: 10/h
  - name: pages
    match: { domain: shop, descriptor.page: present }
    key: descriptor.page
    limit: 3/min
    message: Slow down, please
  - name: user-on-page
    match: { domain: shop, descriptor.user: present, descriptor.page: /pay }
    key: [descriptor.user, descriptor.page]
    limit: 2/day
  - name: free
    match: { domain: shop, descriptor.free: present }
    key: descriptor.free
    limit: unlimited
  - name: closed
    match: { domain: shop, descriptor.closed: present }
    key: descriptor.closed
    limit: deny
  - name: watched
    match: { domain: shop, descriptor.watched: present }
    key: descriptor.watched
    limit: 1/h
    mode: shadow
  - name: odd
    match: { domain: shop, descriptor.odd: present }
    key: descriptor.odd
    limit: 7/h
  - name: queue
    match: { domain: shop, descriptor.queue: present }
    key: descriptor.queue
    limit: 1/s burst 5
    algorithm: leaky_bucket
    queue: true
"""
UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86_400, "MONTH": 2_592_000,
         "YEAR": 31_536_000}


class Rls(unittest.TestCase):
    """Each test has keys of its own."""

    policy = LISTEN + "manage: open\n" + RULES

    @classmethod
    def setUpClass(cls):
        cls.service = cls.enterClassContext(daemon.Daemon(cls.policy))

    def setUp(self):
        self.client = self.enterContext(grpc_client.Client(self.service.grpc))
        self.me = self.id().rpartition(".")[2]

    def ask(self, *descriptors, **more):
        return self.client.ask("shop", *descriptors, **more)

    def left(self, **values):
        """What is left for a descriptor, by a question that takes nothing."""
        said = self.ask(entries(0, **values))
        self.assertEqual(len(said.statuses), 1)
        return said.statuses[0].limit_remaining

    def headers(self, said):
        found = {}
        for header in said.response_headers_to_add:
            self.assertNotIn(header.key, found)
            self.assertEqual(header.key, header.key.lower())
            found[header.key] = header.value
        return found


class Descriptors(Rls):
    def test_are_matched_with_their_domain_and_all_their_entries(self):
        said = self.ask(entries(user=self.me))
        self.assertEqual((said.overall_code, len(said.statuses)), (OK, 1))
        status = said.statuses[0]
        self.assertEqual((status.code, status.limit_remaining), (OK, 9))
        limit = status.current_limit
        self.assertEqual((limit.requests_per_unit, limit.unit, limit.name),
                         (10, rls_pb2.RateLimitResponse.RateLimit.HOUR, "users"))
        self.assertAlmostEqual(status.duration_until_reset.seconds, 360, delta=1)
        # Two entries of one descriptor are a conjunction: all three rules count.
        said = self.ask(entries(user=self.me, page="/pay"))
        self.assertEqual((said.statuses[0].current_limit.name, said.statuses[0].limit_remaining),
                         ("user-on-page", 1))
        self.assertEqual((self.left(user=self.me), self.left(page="/pay")), (8, 2))
        # Two descriptors are not: the rule on both does not.
        said = self.ask(entries(user=self.me), entries(page="/pay"))
        self.assertEqual([one.current_limit.name for one in said.statuses], ["users", "pages"])

    def test_that_match_nothing_pass_without_a_limit(self):
        for domain, descriptor in (("shop", entries(nobody="knows")), ("other", entries(user="a")),
                                   ("shop", entries(user=""))):
            with self.subTest(domain):
                said = self.client.ask(domain, descriptor)
                self.assertEqual((said.overall_code, said.statuses[0].code), (OK, OK))
                self.assertFalse(said.statuses[0].HasField("current_limit"))
                self.assertEqual(said.statuses[0].limit_remaining, 0)
                self.assertEqual((len(said.response_headers_to_add), said.raw_body), (0, b""))

    def test_that_are_unlimited_say_so_as_others_do(self):
        said = self.ask(entries(free=self.me))
        self.assertEqual((said.overall_code, said.statuses[0].code), (OK, OK))
        self.assertFalse(said.statuses[0].HasField("current_limit"))
        self.assertEqual(said.statuses[0].limit_remaining, 4294967295)

    def test_are_denied_by_a_limit_of_none_and_by_lists(self):
        for descriptor in (entries(closed=self.me), entries(user="mallory")):
            said = self.ask(descriptor, entries(page=self.me))
            self.assertEqual((said.overall_code, said.statuses[0].code, said.statuses[1].code),
                             (OVER_LIMIT, OVER_LIMIT, OK))
            self.assertEqual(json.loads(said.raw_body)["reason"], "deny_list")
            self.assertNotIn("retry-after", self.headers(said))
        self.assertEqual(self.left(page=self.me), 3)
        said = self.ask(entries(user="root"))
        self.assertEqual((said.overall_code, said.statuses[0].HasField("current_limit")),
                         (OK, False))

    def test_in_shadow_are_let_through_and_counted(self):
        with http_wire.Client(self.service.http) as http:
            def denials():
                return metrics_text.Metrics.of(http).total(
                    "weir_decisions_total", rule="watched", outcome="shadow_denied")
            before = denials()
            for _ in range(3):
                said = self.ask(entries(watched=self.me))
                self.assertEqual((said.overall_code, said.statuses[0].code), (OK, OK))
            self.assertEqual(denials() - before, 2)

    def test_that_would_have_to_wait_are_denied(self):
        """Envoy cannot hold a request back by itself."""
        codes = [self.ask(entries(queue=self.me)).overall_code for _ in range(3)]
        self.assertEqual(codes, [OK, OVER_LIMIT, OVER_LIMIT])

    def test_that_say_the_same_twice_are_charged_twice(self):
        said = self.ask(entries(page=self.me), entries(page=self.me))
        self.assertEqual((said.overall_code, len(said.statuses)), (OK, 2))
        self.assertEqual(self.left(page=self.me), 1)
        said = self.ask(entries(page=self.me), entries(page=self.me))
        self.assertEqual(said.overall_code, OVER_LIMIT)
        self.assertEqual(self.left(page=self.me), 1)

    def test_of_a_limit_that_does_not_divide_its_period_have_a_unit(self):
        limit = self.ask(entries(odd=self.me)).statuses[0].current_limit
        self.assertEqual((limit.requests_per_unit, limit.unit),
                         (7, rls_pb2.RateLimitResponse.RateLimit.HOUR))

    def test_many_at_once_are_answered_one_to_one(self):
        said = self.ask(*[entries(page=f"{self.me}-{number}") for number in range(32)])
        self.assertEqual([one.limit_remaining for one in said.statuses], [2] * 32)
        self.assertEqual(self.headers(said)["ratelimit-policy"], '"pages";q=3;w=60')


class AllOrNothing(Rls):
    def test_one_that_is_denied_costs_the_others_nothing(self):
        self.assertEqual(self.ask(entries(page=self.me), hits=3).overall_code, OK)
        for order in (1, -1):
            descriptors = [entries(user=self.me), entries(page=self.me), entries(none="x")][::order]
            said = self.ask(*descriptors)
            self.assertEqual(said.overall_code, OVER_LIMIT)
            self.assertEqual([one.code for one in said.statuses], [OK, OVER_LIMIT, OK][::order])
            self.assertEqual(said.statuses[1].current_limit.name, "pages")
            self.assertFalse(said.statuses[1 + order].HasField("current_limit"))
            self.assertEqual(json.loads(said.raw_body)["rule"], "pages")
        self.assertEqual(self.left(user=self.me), 10)

    def test_each_is_told_its_own(self):
        said = self.ask(entries(user=self.me), entries(none="x"), entries(page=self.me))
        self.assertEqual([(one.current_limit.name, one.limit_remaining) for one in said.statuses],
                         [("users", 9), ("", 0), ("pages", 2)])
        headers = self.headers(said)
        self.assertEqual(headers["ratelimit-policy"], '"users";q=10;w=3600, "pages";q=3;w=60')
        self.assertRegex(headers["ratelimit"], '^"pages";r=2;t=20$')
        self.assertEqual(headers["x-ratelimit-remaining"], "2")


class Hits(Rls):
    def test_of_the_request(self):
        for hits, left in ((0, 9), (1, 8), (5, 3)):
            self.assertEqual(self.ask(entries(user=self.me), hits=hits).statuses[0].limit_remaining,
                             left)
        self.assertEqual(self.ask(entries(user=self.me), hits=4).overall_code, OVER_LIMIT)
        self.assertEqual(self.ask(entries(user=self.me), hits=3).overall_code, OK)

    def test_of_a_descriptor_come_first(self):
        said = self.ask(entries(4, user=self.me), entries(page=self.me), hits=2)
        self.assertEqual([one.limit_remaining for one in said.statuses], [6, 1])
        said = self.ask(entries(0, user=self.me), entries(0, page=self.me), hits=2)
        self.assertEqual([one.limit_remaining for one in said.statuses], [6, 1])

    def test_that_can_never_fit(self):
        for hits in (11, 2**32 - 1):
            said = self.ask(entries(user=self.me), hits=hits)
            self.assertEqual((said.overall_code, json.loads(said.raw_body)["reason"]),
                             (OVER_LIMIT, "never_fits"))
            self.assertNotIn("retry-after", self.headers(said))
        said = self.ask(entries(2**64 - 1, user=self.me))
        self.assertEqual(said.overall_code, OVER_LIMIT)
        self.assertEqual(self.left(user=self.me), 10)

    def test_that_are_negative_give_back(self):
        self.ask(entries(6, user=self.me))
        said = self.ask(entries(4, user=self.me, negative=True))
        self.assertEqual((said.overall_code, said.statuses[0].limit_remaining), (OK, 8))
        # Never more than there was.
        self.ask(entries(100, user=self.me, negative=True))
        self.assertEqual(self.left(user=self.me), 10)

    def test_that_are_negative_beside_others(self):
        self.ask(entries(6, user=self.me))
        said = self.ask(entries(page=self.me), entries(2, user=self.me, negative=True))
        self.assertEqual([(one.current_limit.name, one.limit_remaining) for one in said.statuses],
                         [("pages", 2), ("users", 6)])
        # Nothing is given back for what was denied.
        said = self.ask(entries(2, user=self.me, negative=True), entries(3, page=self.me))
        self.assertEqual((said.overall_code, [one.code for one in said.statuses]),
                         (OVER_LIMIT, [OK, OVER_LIMIT]))
        self.assertFalse(said.statuses[0].HasField("current_limit"))
        self.assertEqual((self.left(user=self.me), self.left(page=self.me)), (6, 2))


class WithoutTheRight(Rls):
    policy = LISTEN + RULES

    def test_nothing_is_given_back(self):
        self.ask(entries(6, user=self.me))
        for descriptors in ([entries(2, user=self.me, negative=True)],
                            [entries(user=self.me), entries(2, user=self.me, negative=True)]):
            error = error_of(self.ask, *descriptors)
            self.assertEqual((error.code(), "is_negative_hits" in error.details()),
                             (Code.PERMISSION_DENIED, True))
        self.assertEqual(self.left(user=self.me), 4)


class Overrides(Rls):
    def test_of_every_unit(self):
        for unit, seconds in UNITS.items():
            with self.subTest(unit):
                said = self.ask(entries(who=self.me, unit=unit, limit=(5, unit)))
                status = said.statuses[0]
                self.assertEqual((said.overall_code, status.limit_remaining), (OK, 4))
                limit = rls_pb2.RateLimitResponse.RateLimit
                self.assertEqual((status.current_limit.requests_per_unit,
                                  limit.Unit.Name(status.current_limit.unit)), (5, unit))
                self.assertAlmostEqual(status.duration_until_reset.seconds, seconds / 5, delta=1)

    def test_count_by_the_whole_descriptor_and_apart_from_rules(self):
        for values in ({"user": self.me}, {"user": self.me, "page": "x"}, {"page": self.me}):
            descriptor = entries(limit=(2, "DAY"), **values)
            codes = [self.ask(descriptor).overall_code for _ in range(3)]
            self.assertEqual(codes, [OK, OK, OVER_LIMIT])
            # Values cannot pretend to be several entries.
            (first, value), *rest = values.items()
            forged = {first: "&".join([value, *(f"{key}={its}" for key, its in rest)])}
            if forged != values:
                self.assertEqual(self.ask(entries(limit=(2, "DAY"), **forged)).overall_code, OK)
        self.assertEqual((self.left(user=self.me), self.left(page=self.me)), (10, 3))
        # Nor is it the same elsewhere.
        said = self.client.ask("other", entries(user=self.me, limit=(2, "DAY")))
        self.assertEqual(said.statuses[0].limit_remaining, 1)

    def test_of_zero_deny(self):
        said = self.ask(entries(user=self.me, limit=(0, "HOUR")), entries(page=self.me))
        self.assertEqual((said.overall_code, [one.code for one in said.statuses]),
                         (OVER_LIMIT, [OVER_LIMIT, OK]))
        self.assertEqual((self.left(user=self.me), self.left(page=self.me)), (10, 3))

    def test_are_in_one_group_with_rules(self):
        mine = {"what": self.me, "limit": (1, "DAY")}
        self.assertEqual(self.ask(entries(page=self.me), entries(**mine)).overall_code, OK)
        said = self.ask(entries(page=self.me), entries(**mine))
        self.assertEqual([one.code for one in said.statuses], [OK, OVER_LIMIT])
        self.assertEqual(self.left(page=self.me), 2)

    def test_can_be_given_back_and_asked_about(self):
        mine = {"what": self.me, "limit": (10, "DAY")}
        self.assertEqual(self.ask(entries(6, **mine)).statuses[0].limit_remaining, 4)
        said = self.ask(entries(2, negative=True, **mine))
        self.assertEqual((said.overall_code, said.statuses[0].limit_remaining), (OK, 6))
        self.assertEqual(self.ask(entries(0, **mine)).statuses[0].limit_remaining, 6)

    def test_of_a_unit_that_is_none(self):
        for unit in (0, 7, 99):
            error = error_of(self.ask, entries(user=self.me, limit=(5, unit)))
            self.assertEqual((error.code(), "limit.unit" in error.details()),
                             (Code.INVALID_ARGUMENT, True))


class Denials(Rls):
    def test_say_what_http_says(self):
        self.assertEqual(self.ask(entries(page=self.me), hits=3).overall_code, OK)
        said = self.ask(entries(page=self.me))
        self.assertEqual(said.overall_code, OVER_LIMIT)
        status, headers, body = said.statuses[0], self.headers(said), json.loads(said.raw_body)
        self.assertEqual((status.limit_remaining, status.duration_until_reset.seconds), (0, 20))
        self.assertEqual((body["error"], body["message"], body["rule"], body["reason"],
                          body["retry_after"], body["allowed"]),
                         ("rate_limited", "Slow down, please", "pages", "limited", 20, False))
        self.assertIn(int(headers["retry-after"]), (20, 21, 22))
        self.assertEqual((headers["content-type"], headers["cache-control"]),
                         ("application/json", "no-store"))
        self.assertAlmostEqual(int(headers["x-ratelimit-reset"]), time.time() + 60, delta=3)
        self.assertEqual(headers["ratelimit"], '"pages";r=0;t=20')
        self.assertEqual(len(said.request_headers_to_add), 0)


class Headers(unittest.TestCase):
    """Which families there are is for the policy to say."""

    def names(self, settings):
        with daemon.Daemon(LISTEN + settings + RULES) as service, \
                grpc_client.Client(service.grpc) as client:
            said = client.ask("shop", entries(user="a"))
            return {header.key: header.value for header in said.response_headers_to_add}

    def test_of_one_family(self):
        self.assertEqual(sorted(self.names("headers: [ratelimit]\n")),
                         ["ratelimit", "ratelimit-policy"])
        x_names = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]
        self.assertEqual(sorted(self.names("headers: [x-ratelimit]\n")), x_names)
        self.assertEqual(self.names("headers: []\n"), {})

    def test_with_a_reset_that_is_a_length(self):
        self.assertEqual(self.names("reset: delta\n")["x-ratelimit-reset"], "360")


if __name__ == "__main__":
    daemon.main()
