#!/usr/bin/env bash
# Measure Weir beside its peers, in the same run on the same machine.
#
#   ./bench.sh SUITE [--json FILE] [--markdown]
#
# --markdown prints the tables as a document has them. bench/README.md says what is measured.
#
# core: checks in memory, embedded, against other tables and limiters
# policy: requests under policies of many rules, and the loading of those
# service: requests over RESP and HTTP, against redis-server and nginx
# redis: limits shared on Redis, against the script that everybody uses
# grpc: calls of Envoy's against a server on grpc++; forward-auth and TLS against their plain forms
# clients: middleware against the frameworks without a limiter, and with the usual ones
# lab: an access log through a policy, against awk counting the first field of its lines
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

suites=(core policy service redis grpc clients lab)

usage() {
  echo "usage: ./bench.sh SUITE [--json FILE] [--markdown]" >&2
  echo "suites: ${suites[*]}" >&2
  exit 2
}

suite=""
options=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --json)
      [[ $# -ge 2 ]] || usage
      # Before the cd below, which would change its meaning.
      options+=(--json "$(realpath -m -- "$2")")
      shift 2
      ;;
    --markdown)
      options+=(--markdown)
      shift
      ;;
    -*) usage ;;
    *)
      [[ -z $suite ]] || usage
      suite=$1
      shift
      ;;
  esac
done
[[ -n $suite ]] || usage
if [[ " ${suites[*]} " != *" $suite "* ]]; then
  echo "There is no suite called '$suite'." >&2
  usage
fi

cd "$root"
jobs=${WEIR_JOBS:-$(nproc)}
packages=(tools/packages.txt)
# Its peers, if it has any.
[[ -f tools/packages-bench-$suite.txt ]] && packages+=("tools/packages-bench-$suite.txt")
tools/setup.sh "${packages[@]}"
targets=("bench_$suite")
[[ $suite == service || $suite == grpc || $suite == lab ]] && targets+=(weir_program)
[[ $suite == clients ]] && targets=(weir_program)
cmake --preset release >/dev/null
cmake --build --preset release --parallel "$jobs" --target "${targets[@]}"

# Peers written in Rust are crates of their own under bench/. --locked: a benchmark whose peer
# changes between two runs compares nothing.
for manifest in bench/*/Cargo.toml; do
  [[ $suite == core ]] || break
  cargo build --release --locked --jobs "$jobs" --manifest-path "$manifest" \
    --target-dir build/rust
done

if [[ $suite == clients ]]; then clients/setup.sh bench-fastapi bench-express bench-axum; fi

exec bench/run.py "$suite" "${options[@]}"
