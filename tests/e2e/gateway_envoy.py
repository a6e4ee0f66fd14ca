"""Behind a real Envoy: its external authorisation, and its rate limit filter."""

import gateway_checks
import proxies
from gateway_checks import FORGED, OTHER, POLICY, TOKEN


class Envoy(gateway_checks.Gateway):
    proxy = proxies.Envoy
    gone_statuses = (503,)
    counts_wrong_passwords = False

    def setUp(self):
        super().setUp()
        if proxies.envoy_program() is None:
            self.skipTest("SKIPPED: Envoy could not be had; see tests/e2e/setup.sh")

    def start_behind_a_proxy(self, running):
        """It adds to X-Forwarded-For whatever came before it; the policy says whom to believe."""
        return self.start(running)

    def test_denials_reach_the_client_whole(self):
        running = self.weir(POLICY)
        proxy = self.start(running)
        left = self.call(proxy, "GET", "/").header("RateLimit")
        self.assertTrue(left.startswith('"per-ip";r=999;'), left)
        response = self.exhaust(proxy)
        self.check_denial(response)
        self.assertEqual(response.json()["message"], "Too often")
        # What a client can choose, and nothing else.
        chosen = self.call(proxy, "POST", "/login?deny_status=403")
        self.assertEqual(chosen.status, 403)
        self.check_denial(self.call(proxy, "POST", "/login?deny_status=200"), retries=False)


class EnvoyRateLimit(Envoy):
    """The same site, by descriptors over gRPC."""

    proxy = proxies.EnvoyRateLimit
    listener = "grpc"

    def policy(self, marks=()):
        return proxies.policy_file("envoy/weir-ratelimit.yaml")

    def attributes_of(self, address):
        return {"domain": "shop", "descriptors": {"remote_address": address}, "rules": ["per-ip"]}

    def attributes_of_user(self, user):
        return {"domain": "shop", "descriptors": {"user": user}, "rules": ["per-user"]}

    def start_behind_a_proxy(self, running):
        return self.start(running, marks=["behind a proxy"])

    def exhaust(self, proxy, headers=()):
        """Denied once the five that may have passed."""
        for _ in range(5):
            self.assertEqual(self.call(proxy, "POST", "/login?n=1", headers).status, 200)
        return self.call(proxy, "POST", "/login?n=1", headers)

    def test_denials_reach_the_client_whole(self):
        """As those of an address do."""

    def test_requests_are_what_they_are(self):
        """By Envoy's own idea of what a path is."""
        running, proxy = self.started()
        self.check_denial(self.exhaust(proxy))
        for path in ("/login", "//login", "/a/../login", "/%6cogin", "/login?x=/"):
            self.check_denial(self.call(proxy, "POST", path))
        for forged in ({name: value} for name, value in FORGED.items()):
            with self.subTest(forged=forged):
                self.check_denial(self.call(proxy, "POST", "/login", forged))
        self.assertEqual(len(self.backend.requests), 5)
        self.assertEqual(self.call(proxy, "POST", "/login", source=OTHER).status, 200)
        for path in ("/login", "/logins", "/status/404"):
            self.assertIn(self.call(proxy, "GET", path).status, (200, 404))
        self.assertNotIn("per-user", self.rules_asked(running))

    def test_the_token_is_sent_beside_the_clients_authorization(self):
        policy = self.policy().replace("grpc: 127.0.0.1:0",
                                       'grpc: { address: "127.0.0.1:0", token: env:TOKEN }')
        running = self.weir(policy, environment={"TOKEN": TOKEN})
        proxy = self.start(running, marks=["with a token"])
        for headers in ({}, {"Authorization": "Bearer somebody"}):
            self.assertEqual(self.call(proxy, "GET", "/", headers).status, 200, headers)
        self.assertEqual(self.backend.requests[1][2]["Authorization"], "Bearer somebody")
        self.check_denial(self.exhaust(proxy))
