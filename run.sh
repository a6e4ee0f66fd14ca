#!/usr/bin/env bash
# Try Weir: installs what is missing, builds the quickstart example and runs it.
# Arguments are passed on to the example.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

tools/setup.sh tools/packages.txt
cmake --preset release >/dev/null
cmake --build --preset release --parallel "${WEIR_JOBS:-$(nproc)}" --target quickstart
exec build/release/examples/quickstart "$@"
