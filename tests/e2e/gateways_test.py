#!/usr/bin/env python3
"""Real gateways before the service, configured by the files in gateways/.

    gateways_test.py SOURCE PROGRAM [TEST...]
"""

import daemon
# pylint: disable=unused-import
from gateway_caddy import Caddy
from gateway_envoy import Envoy, EnvoyRateLimit
from gateway_haproxy import HaProxy
from gateway_nginx import Nginx
from gateway_traefik import Traefik, TraefikProtocol

if __name__ == "__main__":
    daemon.main()
