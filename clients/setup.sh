#!/usr/bin/env bash
# Makes what the clients, their tests and the shops need, as far as it is missing:
#
#   clients/setup.sh python|node|rust...         the clients, and what their tests need
#   clients/setup.sh shop-fastapi|shop-express|shop-axum...
#   clients/setup.sh bench-fastapi|bench-express|bench-axum...
#
# Python's are virtual environments under build/clients/, Node's beside their package.json, Rust's
# under build/rust-clients/. Each is made again only when what it is made from has changed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)
made=$root/build/clients
mkdir -p "$made"
# shellcheck source=clients/cargo.sh
source "$here/cargo.sh"

install() {
  echo "$1" >"$made/.package"
  "$root/tools/setup.sh" "$made/.package"
}

# need PACKAGE COMMAND: Debian's package unless the command is there already, from wherever.
need() {
  if ! command -v "$2" >/dev/null; then install "$1"; fi
}

# once NAME FILE... -- FUNCTION: unless it was last made from these very files.
once() {
  local name=$1 files=()
  shift
  while [[ $1 != -- ]]; do
    files+=("$1")
    shift
  done
  shift
  if cat "${files[@]}" | cmp -s - "$made/.$name.made-from"; then return; fi
  "$@"
  cat "${files[@]}" >"$made/.$name.made-from"
}

# venv NAME WORD...: a new virtual environment, with what pip installs by these words.
venv() {
  local folder=$made/$1 python=/usr/bin/python3
  shift
  [[ -x $python ]] || python=python3
  "$python" -c 'import ensurepip' 2>/dev/null || install python3-venv
  rm -rf "$folder"
  "$python" -m venv "$folder"
  "$folder/bin/pip" install -q --disable-pip-version-check "$@"
}

npm_ci() { (cd "$1" && npm ci --no-audit --no-fund --loglevel=error); }

client_python() {
  once weir-python "$here/python/requirements-dev.txt" "$here/python/pyproject.toml" -- \
    venv weir-python -r "$here/python/requirements-dev.txt" -e "$here/python"
}

node_package() {
  npm_ci "$here/node"
  (cd "$here/node" && npm run --silent build)
}
client_node() {
  need nodejs node
  need npm npm
  mapfile -t sources < <(find "$here/node/src" -name '*.ts' | sort)
  once weir-node "$here/node/package-lock.json" "$here/node/package.json" "${sources[@]}" -- \
    node_package
}

client_rust() {
  need cargo-web cargo
  need rustc-web rustc
}

# What uses the clients: NAME FOLDER, from what the folder says.
fastapi() {
  mapfile -t sources < <(find "$here/python/src" -name '*.py' | sort)
  once "$1" "$2/requirements.txt" "$here/python/pyproject.toml" "${sources[@]}" -- \
    venv "$1" -r "$2/requirements.txt" "$here/python"
}
express() {
  client_node
  once "$1" "$2/package-lock.json" "$2/package.json" -- npm_ci "$2"
}
axum() { # NAME FOLDER [WORD...]
  client_rust
  cargo build --quiet --locked --manifest-path "$2/Cargo.toml" "${@:3}"
}

for what in "$@"; do
  case $what in
    python | node | rust) "client_$what" ;;
    shop-fastapi | shop-express | shop-axum)
      "${what#shop-}" "$what" "$root/examples/shop/${what#shop-}"
      ;;
    bench-fastapi | bench-express) "${what#bench-}" "$what" "$root/bench/clients/${what#bench-}" ;;
    bench-axum) axum "$what" "$root/bench/clients/axum" --release ;;
    *)
      echo "usage: ${0##*/} python|node|rust|shop-FRAMEWORK|bench-FRAMEWORK..." >&2
      exit 2
      ;;
  esac
done
