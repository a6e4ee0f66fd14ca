#!/usr/bin/env bash
# Checks a client as its own ecosystem does:
#
#   clients/check.sh python|node|rust lint|test|package|conformance
#
# WEIR_PROGRAM=FILE    the service that tests start (default: build/release/weir)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)
export WEIR_PROGRAM=${WEIR_PROGRAM:-$root/build/release/weir}
if [[ $# -ne 2 || ! $1 =~ ^(python|node|rust)$ || ! $2 =~ ^(lint|test|package|conformance)$ ]]; then
  echo "usage: ${0##*/} python|node|rust lint|test|package|conformance" >&2
  exit 2
fi
client=$1
step=$2

"$here/setup.sh" "$client"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$here/$client"
export PATH=$root/build/clients/weir-python/bin:$PATH
# shellcheck source=clients/cargo.sh
source "$here/cargo.sh"

python_lint() {
  ruff format --check .
  ruff check .
  mypy
}
python_test() { pytest -q; }
python_package() {
  python -m build --outdir "$work" . >"$work/log" || {
    cat "$work/log"
    return 1
  }
  twine check --strict "$work"/*.whl "$work"/*.tar.gz
  # What a stranger gets: no more than what the wheel says that it needs.
  python3 -m venv "$work/stranger"
  "$work/stranger/bin/pip" install -q --disable-pip-version-check "$work"/*.whl
  cd /
  "$work/stranger/bin/python" -c 'import weir_limiter; weir_limiter.WeirClient'
}

node_lint() { npm run --silent lint; }
node_test() { npm test --silent; }
# Its tests install it elsewhere and use it both ways; here it is seen what it holds.
node_package() {
  npm pack --silent --pack-destination "$work"
  tar -tzf "$work"/weir-limiter-*.tgz | sort >"$work/list"
  cat "$work/list"
  for wanted in README.md LICENSE package.json dist/esm/index.js dist/esm/index.d.ts \
    dist/cjs/index.js dist/cjs/index.d.ts; do
    grep -qx "package/$wanted" "$work/list" || {
      echo "$wanted is missing"
      return 1
    }
  done
}

rust_lint() {
  cargo fmt --check
  cargo clippy --quiet --locked --all-features --all-targets -- -D warnings
}
rust_test() { cargo test --quiet --locked --all-features; }
rust_package() { cargo package --quiet --locked --allow-dirty --all-features; }

conformance() {
  if [[ $client == rust ]]; then
    cargo build --quiet --locked --all-features --example conformance_driver
  fi
  "$here/conformance/run.py" "$WEIR_PROGRAM" "$client"
}

if [[ $step == conformance ]]; then conformance; else "${client}_$step"; fi
