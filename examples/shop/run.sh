#!/usr/bin/env bash
# Starts the service with weir.yaml, and one of the shops before it:
#
#   examples/shop/run.sh fastapi|express|axum
#
# It installs and builds what is missing. Ctrl-C ends both.
#
# SHOP_PORT=8000       where the shop listens on 127.0.0.1
# SHOP_POLICY=FILE     another policy than weir.yaml
# WEIR_PROGRAM=FILE    a weir that is built already
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
shop=${1:-}
case $shop in
  fastapi) client=python ;;
  express) client=node ;;
  axum) client=rust ;;
  *)
    echo "usage: ${0##*/} fastapi|express|axum" >&2
    exit 2
    ;;
esac
export SHOP_PORT=${SHOP_PORT:-8000}
policy=${SHOP_POLICY:-$here/weir.yaml}

weir_program() {
  if [[ -n ${WEIR_PROGRAM:-} ]]; then return; fi
  "$root/tools/setup.sh" "$root/tools/packages-program.txt"
  (
    cd "$root"
    cmake --preset service >/dev/null
    cmake --build --preset service --target weir_program
  )
  WEIR_PROGRAM=$root/build/service/weir
}

weir_program
"$root/clients/setup.sh" "$client" "shop-$shop"

service=""
app=""
stop() {
  trap - EXIT
  # The shop first, so that nobody is served without limits.
  for process in $app $service; do
    kill "$process" 2>/dev/null && wait "$process" || true
  done
}
trap stop EXIT
trap 'exit 0' INT TERM

"$WEIR_PROGRAM" serve -c "$policy" &
service=$!

cat <<TRY

The shop is at http://127.0.0.1:$SHOP_PORT. Try:

  # 30 at once, then two a second: strangers are limited by their address
  for i in \$(seq 40); do curl -s -o /dev/null -w '%{http_code} ' 127.0.0.1:$SHOP_PORT/products; done; echo

  # five attempts a minute, right or wrong
  curl -i 127.0.0.1:$SHOP_PORT/auth/login -H 'Content-Type: application/json' \\
    -d '{"user": "ann", "password": "apple"}'

  # ann is on the free plan, pia pays: five at once, or twenty
  curl -i 127.0.0.1:$SHOP_PORT/me -H "Authorization: Bearer TOKEN"

TRY

case $shop in
  fastapi) "$root/build/clients/shop-fastapi/bin/python" "$here/fastapi/shop.py" & ;;
  express) node "$here/express/shop.js" & ;;
  axum) "$root/build/rust-clients/debug/shop" & ;;
esac
app=$!
# Whichever ends first ends both.
wait -n "$service" "$app"
