#!/usr/bin/env bash
# Runs clang-tidy over src/ and apps/, as ./test.sh --full does.
#
#   tools/tidy.sh            every source; 11 minutes on two cores
#   tools/tidy.sh src/policy the sources of one folder, or one source
#
# clang-tidy comes from its Python package into build/tools/: since version 22 it does not match
# system headers, which makes it four times as fast as Debian's version 19 (decision 0033).
# Headers are checked through the sources that include them. Tests are left out, because
# GoogleTest's macros break half of the checks.
#
# Exit codes: 0 no findings, 1 findings or a failure, 2 usage error
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=$PWD
path=$(realpath -m -- "${1:-$root}")
if [[ $# -gt 1 || ! $path =~ ^$root(/(src|apps)(/.*)?)?$ || ! -e $path ||
  (! -d $path && (! $path =~ \.cc$ || $path =~ _(test|bench)\.cc$)) ]]; then
  echo "usage: tools/tidy.sh [FOLDER | SOURCE]: a folder below src or apps, or a .cc file there" \
    "that is no test" >&2
  exit 2
fi
jobs=${WEIR_JOBS:-$(nproc)}

wanted=tools/tidy-requirements.txt
environment=build/tools/clang-tidy
if ! cmp -s "$wanted" "$environment/made-from.txt"; then
  rm -rf "$environment"
  python3 -m venv "$environment"
  "$environment/bin/pip" install -q --disable-pip-version-check -r "$wanted" || {
    echo "tools/tidy.sh: could not install $(<"$wanted"), see above. The next run tries again." >&2
    exit 1
  }
  cp "$wanted" "$environment/made-from.txt"
fi

# A build that compiles every source by itself has a command for every source.
cmake --preset separate >"$environment/configure.log" 2>&1 || {
  cat "$environment/configure.log"
  exit 1
}
selected="^(?=$path(/|\$))$root/(src|apps)/(?!.*_(test|bench)\\.cc\$).*\\.cc\$"
# The sed removes counts of warnings that are not shown.
"$environment/bin/python" "$environment/bin/run-clang-tidy.py" \
  -clang-tidy-binary "$environment/bin/clang-tidy" -quiet -j "$jobs" -p build/separate \
  -warnings-as-errors='*' "$selected" |
  sed -E '/^[0-9]+ warnings? generated\.$/d'
