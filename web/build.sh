#!/usr/bin/env bash
# Builds the page that shows reports, src/lab/page.html, from the sources here.
#
#   web/build.sh          build it
#   web/build.sh --check  fail if the committed page is not what the sources give
#   web/build.sh --fetch  only install what building and checking it needs
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)
page=$root/src/lab/page.html
made=$root/build/web-made-from
cd "$here"

mode=${1:-}
case "$mode" in
  "" | --check | --fetch) ;;
  *)
    echo "usage: web/build.sh [--check | --fetch]" >&2
    exit 2
    ;;
esac

mkdir -p "$root/build"
for command in node npm; do
  if ! command -v "$command" >/dev/null; then
    # Debian's npm cannot stand beside another Node.js, so only what is missing is installed.
    if [[ $command == node ]]; then echo nodejs; else echo npm; fi >"$root/build/.web-package"
    "$root/tools/setup.sh" "$root/build/.web-package"
  fi
done

# Again only when what it is made from has changed, so that a second run needs no network.
if [[ ! -d node_modules ]] || ! cat package.json package-lock.json | cmp -s - "$made"; then
  npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
  cat package.json package-lock.json >"$made"
fi
if [[ $mode == --fetch ]]; then exit; fi

node_modules/.bin/tsc --noEmit
node check_values.mjs
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
node_modules/.bin/vite build --logLevel warn --outDir "$out" --emptyOutDir
if [[ $mode == --check ]]; then
  if ! cmp "$out/index.html" "$page"; then
    echo "src/lab/page.html is not what web/ gives: run web/build.sh" >&2
    exit 1
  fi
  echo "src/lab/page.html is what web/ gives"
else
  cp "$out/index.html" "$page"
  echo "built src/lab/page.html, $(wc -c <"$page") bytes"
fi
