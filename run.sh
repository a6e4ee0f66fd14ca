#!/usr/bin/env bash
# Try Weir: installs what is missing, builds the service without the lab and the tests, and starts it
# with a small policy, its state in memory. Arguments are passed on to `weir serve`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

tools/setup.sh tools/packages-program.txt
cmake --preset service >/dev/null
cmake --build --preset service --parallel "${WEIR_JOBS:-$(nproc)}" --target weir_program

cat <<'TRY'

Weir serves examples/quickstart.yaml on 127.0.0.1: HTTP on port 8080, RESP on 6380, gRPC on 8081.
Try:

  # five at once, then ten a minute: the sixth is denied, and says when to come back
  curl -i 127.0.0.1:8080/v1/check -d '{"user": "ann", "ip": "203.0.113.9", "path": "/orders"}'

  # a limit that comes with the call, from any Redis client
  redis-cli -p 6380 CL.THROTTLE ann 15 30 60

  # gRPC, if you have grpcurl; Envoy asks there, too
  grpcurl -plaintext -d '{"user": "ann", "ip": "203.0.113.9"}' 127.0.0.1:8081 weir.v1.Limiter/Check

  # two a second: ask five times at once, and each waits for its turn
  for i in 1 2 3 4 5; do curl -s 127.0.0.1:8080/v1/check \
    -d '{"user": "bob", "path": "/reports/1", "wait_ms": 5000}' & done; wait

  # what it has counted
  curl 127.0.0.1:8080/metrics

Ctrl-C ends it.

TRY
exec build/service/weir serve -c examples/quickstart.yaml "$@"
