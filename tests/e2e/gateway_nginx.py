"""Behind the nginx of Debian."""

import threading
import time

import gateway_checks
import http_wire
import proxies
from gateway_checks import POLICY

ON_UNIX = 'listen: { http: "unix:{folder}/http.sock", resp: "127.0.0.1:0" }\n'


class Nginx(gateway_checks.Gateway):
    proxy = proxies.Nginx
    gone_statuses = (500,)
    whole_denials = False

    def test_denials_by_429_are_understood_as_well(self):
        running = self.weir(POLICY)
        proxy = self.enterContext(proxies.Nginx429(running.http, self.backend))
        self.check_requests(running, proxy)

    def test_what_never_fits_has_no_retry_after(self):
        running = self.weir("trusted_proxies: [127.0.0.1]\n"
                            "rules: [{ name: dear, key: ip, limit: 2/h, cost: 3 }]\n")
        response = self.call(self.start(running), "GET", "/")
        self.check_denial(response, retries=False)
        self.assertIsNone(response.header("Retry-After"))
        self.assertIsNone(response.json()["retry_after"])

    def test_a_client_is_who_the_login_of_nginx_says(self):
        running = self.weir(POLICY)
        proxy = self.start(running, more={'set $weir_user "";': "set $weir_user $cookie_user;"})
        for who in ("ann", "bob"):
            headers = {"X-User-Id": "carl", "Cookie": f"user={who}"}
            statuses = [self.call(proxy, "GET", "/", headers).status for _ in range(3)]
            self.assertEqual(statuses, [200, 200, 429])

    def test_addresses_count_from_the_right_where_they_are_added_to(self):
        running = self.weir(POLICY)
        proxy = self.start(running, more={
            "X-Forwarded-For $remote_addr": "X-Forwarded-For $proxy_add_x_forwarded_for"})
        statuses = [self.call(proxy, "POST", "/login", {"X-Forwarded-For": forged}).status
                    for forged in ("198.51.100.1", "198.51.100.2", "127.0.0.1, 8.8.8.8")]
        # What the client wrote is not its address; that is what nginx saw.
        self.assertEqual(statuses, [200, 200, 429])

    def test_connections_are_kept_also_on_a_unix_socket(self):
        running = self.weir(ON_UNIX + POLICY)
        path = running.addresses["http"].removeprefix("unix:")
        proxy = self.start(f"unix:{path}")
        self.check_denial(self.exhaust(proxy))
        with http_wire.Client(proxy.port) as client:
            for _ in range(200):
                self.assertEqual(client.get("/").status, 200)
        metrics = http_wire.once(path, "GET", "/metrics").body.decode()
        self.assertIn('weir_requests_total{frontend="http",code="200"}', metrics)
        # One to nginx, and this one here.
        self.assertIn('weir_connections{listener="http"} 2\n', metrics)

    def test_denials_are_denials_also_where_failures_pass(self):
        running = self.weir(POLICY)
        proxy = self.start(running, marks=["fail open"])
        self.check_denial(self.exhaust(proxy))
        contradiction = {"X-Forwarded-Uri": "/cheap", "X-Original-URI": "/other"}
        self.check_denial(self.call(proxy, "POST", "/login", contradiction), retries=False)

    def test_a_service_that_hangs_is_soon_not_waited_for(self):
        running, proxy = self.started(marks=["fail open"])
        with gateway_checks.hanging(running):
            waits = []
            for _ in range(8):
                began = time.monotonic()
                self.assertEqual(self.call(proxy, "GET", "/").status, 200)
                waits.append(time.monotonic() - began)
            # Three of them waited for a second each, the others for nothing.
            self.assertLess(sorted(waits)[4], 0.9, waits)

    def test_many_clients_at_once_get_what_there_is(self):
        running = self.weir(POLICY.replace("limit: 2/h, message", "limit: 50/h, message"))
        proxy, statuses = self.start(running), []

        def ask():
            with http_wire.Client(proxy.port) as client:
                statuses.extend(client.post("/login", b"").status for _ in range(40))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((statuses.count(200), statuses.count(429)), (50, 270))
