"""Behind the HAProxy of Debian."""

import gateway_checks
import proxies
from gateway_checks import POLICY
from gateway_nginx import ON_UNIX


class HaProxy(gateway_checks.Gateway):
    proxy = proxies.HaProxy
    gone_statuses = (503,)

    def test_denials_reach_the_client_whole(self):
        running = self.weir(POLICY)
        proxy = self.start(running)
        response = self.exhaust(proxy)
        self.check_denial(response)
        self.assertEqual(response.json()["message"], "Too often")
        problem = self.call(proxy, "POST", "/login", {"Accept": "application/problem+json"})
        self.assertEqual(problem.json()["violated-policies"], ["login"])

    def test_a_unix_socket_will_do(self):
        running = self.weir(ON_UNIX + POLICY)
        path = running.addresses["http"].removeprefix("unix:")
        self.check_denial(self.exhaust(self.start(f"unix@{path}")))

    def most_connections(self):
        """Each probe of its health is one more."""
        return 12
