#!/usr/bin/env bash
# Installs the Debian packages of one or more lists, as far as they are missing.
#
#   tools/setup.sh tools/packages-program.txt [more lists]
#
# It asks dpkg first, so that it costs milliseconds and needs neither root nor a network when
# everything is there.
set -euo pipefail

if [[ $# -eq 0 ]]; then
  echo "usage: ${0##*/} LIST..." >&2
  exit 2
fi

# Elsewhere the lists still say what is needed; the build says what it does not find.
if ! command -v dpkg-query >/dev/null; then
  echo "Not Debian, so nothing is installed. What is needed: $*" >&2
  exit 0
fi

mapfile -t wanted < <(sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$@")

# dpkg-query fails when it does not know one of the names, but still prints the others.
declare -A installed=()
while read -r name status; do
  [[ $status == installed ]] && installed[$name]=1
done < <(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null || true)

missing=()
for name in "${wanted[@]}"; do
  [[ -n "${installed[$name]:-}" ]] || missing+=("$name")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $EUID -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "Packages are missing and there is no sudo. As root, run:" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

# `env` carries the setting through sudo, which drops the environment.
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
  apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
echo "Installing: ${missing[*]}"
if ! "${apt[@]}" update || ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}"; then
  echo "${0##*/}: could not install: ${missing[*]}" >&2
  echo "apt-get says above why: no network, a full disk, or a name that this system does not know." >&2
  echo "Packages that were installed stay; the next run installs the others." >&2
  exit 1
fi
