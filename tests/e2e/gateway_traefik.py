"""Traefik's forward-auth: as it is documented, played by hand; and behind a real one where there is
one in build/clients/traefik or among the programs of the machine.
"""

import unittest

import daemon
import gateway_checks
import http_wire
import proxies
import yaml
from gateway_checks import CLIENT, FORGED, OTHER


class Traefik(gateway_checks.Gateway):
    proxy = proxies.Traefik
    gone_statuses = (500,)
    headers_on_allow = False
    counts_wrong_passwords = False

    def setUp(self):
        super().setUp()
        if proxies.traefik_program() is None:
            self.skipTest("SKIPPED: there is no Traefik; its protocol is played by hand instead")

    def start(self, running, *, marks=(), more=None):
        if "fail open" not in marks:
            return super().start(running, marks=marks, more=more)
        return self.enterContext(proxies.TraefikFailOpen(running.http, self.backend))

    def test_clients_are_refused_while_the_service_hangs(self):
        self.skipTest("after 30 s, which nothing can change")


class TraefikProtocol(unittest.TestCase):
    """What Traefik says it sends, for the requests of clients who would like to be others."""

    def setUp(self):
        self.service = self.enterContext(daemon.Daemon(proxies.policy_file("weir.yaml")))
        self.dynamic = yaml.safe_load(proxies.gateway_file("traefik/weir.yml"))["http"]
        self.asks = self.dynamic["middlewares"]["weir"]["forwardAuth"]

    def ask(self, method, path, headers=(), *, user=None, source=CLIENT):
        """The way of a request through the middlewares: GET, X-Forwarded-* of the request as it is,
        and of the client's headers those that are named."""
        headers = {name.title(): value for name, value in dict(headers).items()}
        headers.pop("X-User-Id", None)
        if user is not None:
            headers[self.dynamic["middlewares"]["login"]["basicAuth"]["headerField"]] = user
        sent = {name: headers[name] for name in self.asks["authRequestHeaders"] if name in headers}
        sent |= {"X-Forwarded-For": source, "X-Forwarded-Method": method, "X-Forwarded-Uri": path,
                 "X-Forwarded-Proto": "http", "X-Forwarded-Host": "shop.example",
                 "X-Forwarded-Port": "80", "X-Forwarded-Server": "edge", "Accept-Encoding": "gzip"}
        target = "/" + self.asks["address"].split("/", 3)[3]
        return http_wire.once(self.service.http, "GET", target, headers=list(sent.items()))

    def test_addresses_users_and_logins_are_limited(self):
        self.assertEqual([self.ask("POST", "/login").status for _ in range(6)], [200] * 5 + [429])
        self.assertEqual(self.ask("POST", "/login", source=OTHER).status, 200)
        statuses = [self.ask("GET", "/account/", user="ann", source=source).status
                    for _ in range(15) for source in (CLIENT, OTHER)]
        self.assertEqual(statuses[:20], [200] * 20)
        self.assertIn(429, statuses)
        self.assertEqual(self.ask("GET", "/account/", user="ben").status, 200)

    def test_a_denial_has_all_that_is_passed_on(self):
        for _ in range(6):
            denial = self.ask("POST", "/login")
        self.assertEqual(denial.status, 429)
        for name in (*gateway_checks.RATE_LIMIT_HEADERS, "Retry-After"):
            self.assertIsNotNone(denial.header(name), name)
        self.assertEqual(denial.json()["message"], "Too many attempts to log in.")
        self.assertLess(len(denial.body), self.asks["maxResponseBodySize"])

    def test_nothing_that_a_client_sends_makes_it_another(self):
        forged = [{}, *({name: value} for name, value in FORGED.items())]
        passed = [self.ask("POST", "/login", headers).status for headers in forged]
        self.assertEqual(passed, [200] * 5 + [429] * (len(forged) - 5))
        # Of what may be forged, nothing is among the headers that are sent.
        names = {name.lower() for name in self.asks["authRequestHeaders"]}
        self.assertEqual(names & {name.lower() for name in FORGED}, {"x-user-id", "x-weir-token"})
        self.assertIs(self.asks["trustForwardHeader"], False)

    def test_every_way_in_says_who_it_is_and_asks(self):
        """Whoever reaches the shop was asked about, with a name that Traefik itself has set."""
        middlewares = self.dynamic["middlewares"]
        for name, router in self.dynamic["routers"].items():
            first, *_, last = router["middlewares"]
            self.assertIn(first, ("nobody", "login"), name)
            self.assertEqual(middlewares[last]["chain"]["middlewares"][-1], "weir", name)
        self.assertEqual(middlewares["nobody"],
                         {"headers": {"customRequestHeaders": {"X-User-Id": ""}}})
        failing_open = yaml.safe_load(proxies.gateway_file("traefik/weir-fail-open.yml"))["http"]
        for name in ("nobody", "login", "as-it-is"):
            self.assertEqual(failing_open["middlewares"][name], middlewares[name])
