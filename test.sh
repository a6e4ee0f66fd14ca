#!/usr/bin/env bash
# Check the repository. ./test.sh is what CI runs; --full adds faults that take long, clang-tidy and
# the coverage gates.
#
# Every stage runs even when an earlier one failed, so that one run shows everything that is
# wrong. The last line is `N passed, M failed`: ctest's tests over all presets, and a stage that
# failed without a failing test counts as one failure.
#
# WEIR_JOBS=n      compile with n processes (default: one per core)
# WEIR_FUZZ_SEED=n repeat a fuzz run
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

full=no
sanitized=asan
case "${1:-}" in
  "") ;;
  --full)
    full=yes
    sanitized=coverage # The same, and counts what was run.
    ;;
  *)
    echo "usage: ./test.sh [--full]" >&2
    exit 2
    ;;
esac

root=$PWD
jobs=${WEIR_JOBS:-$(nproc)}
work=$(mktemp -d)
fetching=""
building=""
stop() {
  local group
  for group in $fetching $building; do
    kill -- "-$group" 2>/dev/null && wait "$group" || true
  done
  rm -rf "$work"
}
trap stop EXIT

total_passed=0
total_failed=0
table=()

# stage NAME FUNCTION [ARGUMENT...]: runs it in a subshell and notes result and time.
# The subshell must not stand in a condition: bash would switch `set -e` off inside it.
stage() {
  local name=$1 began=$SECONDS status result
  shift
  printf '\n== %s\n' "$name"
  echo "0 0" >"$work/counts"
  set +e
  (
    set -e
    "$@"
  )
  status=$?
  set -e
  local passed failed
  read -r passed failed <"$work/counts"
  result=ok
  if [[ $status -ne 0 ]]; then
    result=FAILED
    [[ $failed -gt 0 ]] || failed=1
  fi
  total_passed=$((total_passed + passed))
  total_failed=$((total_failed + failed))
  table+=("$(awk -v n="$name" -v s="$((SECONDS - began))" -v r="$result" \
    'BEGIN { printf "%-28s %6.1f  %s", n, s / 60, r }')")
}

build() { # PRESET [TARGET]
  cmake --preset "$1" >"$work/configure.log" 2>&1 || {
    cat "$work/configure.log"
    return 1
  }
  cmake --build --preset "$1" --parallel "$jobs" ${2:+--target "$2"}
}

# Tests wait more than they work, so the next preset is compiled beside them, but only with what
# nobody else wants of the machine. Its stage then builds what is left.
begin_to_build() { # PRESET [TARGET]
  local idle=()
  if chrt --idle 0 true 2>/dev/null; then idle=(chrt --idle 0); else idle=(nice -n 19); fi
  setsid "${idle[@]}" bash -c "cmake --preset $1 && cmake --build --preset $1 --parallel $jobs \
    ${2:+--target $2}" >"$work/begun-$1.log" 2>&1 &
  building=$!
}
stop_building() {
  # What was being compiled is compiled again.
  kill -- "-$building" 2>/dev/null && wait "$building" || true
  while kill -0 -- "-$building" 2>/dev/null; do sleep 0.1; done
  building=""
}

# Runs ctest and keeps its counts from the line "98% tests passed, 1 tests failed out of 50".
# A selection that matches no test is an error: it would pass for ever without testing anything.
run_ctest() { # PRESET [CTEST ARGUMENT...]; without those of the label $without_label
  local preset=$1 status=0 failed total labels=${without_label:-}
  shift
  [[ $full == yes ]] || labels=${labels:+$labels|}long
  [[ -z $labels ]] || set -- -LE "^($labels)\$" "$@"
  ctest --preset "$preset" --output-on-failure --no-tests=error -j2 "$@" |
    tee "$work/ctest.log" || status=$?
  read -r failed total < <(sed -nE \
    's/^[0-9]+% tests passed, ([0-9]+) tests? failed out of ([0-9]+).*/\1 \2/p' \
    "$work/ctest.log") || return 1
  echo "$((total - failed)) $failed" >"$work/counts"
  # What could not run here: ctest keeps what tests print to itself.
  grep -hE '^SKIPPED ' "build/$preset/Testing/Temporary/LastTest.log" | sort | uniq -c || true
  return "$status"
}

packages() { tools/setup.sh tools/packages.txt; }

# Clients of several languages for the end-to-end tests, servers of other versions than the machine
# has, and what builds the page for reports and looks at it. Most of it is waiting for the network,
# so it goes on beside the first build.
begin_to_fetch() {
  setsid bash -c "tests/e2e/setup.sh && tests/faults/setup.sh && web/build.sh --fetch &&
    clients/setup.sh python node rust shop-fastapi shop-express shop-axum" \
    >"$work/fetched.log" 2>&1 &
  fetching=$!
}
fetched() { # STATUS
  cat "$work/fetched.log"
  return "$1"
}

# What measures how much something costs would measure the compiler beside it.
measuring_tests() { run_ctest release -L measuring; }
release_tests() { without_label=measuring run_ctest release; }

format() {
  # Untracked files too: a format error is cheapest before the commit.
  git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cc' |
    while IFS= read -r -d '' file; do
      if [[ -e $file ]]; then printf '%s\0' "$file"; fi
    done | xargs -0 --no-run-if-empty clang-format-19 --dry-run -Werror
}

sanitized_tests() {
  # Counts of an older binary would be merged with the new ones by coverage.py.
  rm -rf "build/$sanitized/profiles"
  run_ctest "$sanitized"
}

# ThreadSanitizer is slow and has nothing to say about code that runs on one thread.
tsan() {
  build tsan thread_tests
  run_ctest tsan -L threads
}

# A stranger's project, which knows nothing of this source tree but where it was installed.
install_test() {
  cmake --install build/release --prefix "$work/prefix" >"$work/install.log"
  cmake -S tests/integration/consumer -B "$work/consumer" -G Ninja \
    -DCMAKE_PREFIX_PATH="$work/prefix"
  cmake --build "$work/consumer"
  "$work/consumer/consumer"
  "$work/consumer/policy_consumer"
  echo "The consumer project found, linked and used the installed library."
}

# fuzz_one SEED TARGET: what it found is told in one piece, since several run side by side.
fuzz_one() {
  local seed=$1 target=$2 name=${2##*/} corpus
  # New inputs go to the first folder, so the committed corpus stays as it is.
  corpus=("$work/corpus-$name")
  mkdir -p "${corpus[0]}"
  if [[ -d tests/fuzz/corpus/$name ]]; then corpus+=("tests/fuzz/corpus/$name"); fi
  if "$target" -max_total_time=8 -timeout=10 -rss_limit_mb=2048 -seed="$seed" \
    -artifact_prefix="$findings/$name-" "${corpus[@]}" >"$work/$name.log" 2>&1; then
    echo "$name: 8 s, seed $seed"
  else
    tail -n 60 "$work/$name.log"
    echo "$name failed with seed $seed; its input is in $findings"
    return 1
  fi
}

fuzz() {
  local seed=${WEIR_FUZZ_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
  export work findings=$root/build/$sanitized/fuzz-findings
  mkdir -p "$findings"
  # Random inputs must not count as coverage: it would differ from run to run.
  export LLVM_PROFILE_FILE=$work/fuzz-%p.profraw
  export -f fuzz_one
  # Without a target, xargs would have nothing to fail with.
  ls "build/$sanitized"/tests/fuzz/*_fuzz >"$work/fuzzers"
  xargs -P 2 -I {} bash -c "fuzz_one $seed {}" <"$work/fuzzers"
}

tidy() {
  # Headers are looked at through the sources that include them. Tests are left out: GoogleTest's
  # macros trip half of the checks.
  run-clang-tidy-19 -quiet -j "$jobs" -p "build/$sanitized" -warnings-as-errors='*' \
    "^$root/(src|apps)/(?!.*_(test|bench)\.cc\$).*\.cc\$" |
    sed -E '/^[0-9]+ warnings? generated\.$/d' # those in system headers, which are not shown
}

coverage() { tools/coverage.py build/coverage; }

stage "packages" packages
begin_to_fetch
stage "format" format
stage "release: build" build release
wait "$fetching" && fetch_status=0 || fetch_status=$?
fetching=""
stage "clients, servers" fetched "$fetch_status"
stage "release: measuring tests" measuring_tests
begin_to_build "$sanitized"
stage "release: tests" release_tests
stage "install" install_test
stop_building
stage "asan, ubsan: build" build "$sanitized"
begin_to_build tsan thread_tests
stage "asan, ubsan: tests" sanitized_tests
stop_building
stage "tsan: build, tests" tsan
stage "fuzz" fuzz
if [[ $full == yes ]]; then
  stage "clang-tidy" tidy
  stage "coverage" coverage
fi

printf '\n%-28s %6s\n' "stage" "min"
printf '%s\n' "${table[@]}"
printf '\n%d passed, %d failed\n' "$total_passed" "$total_failed"
[[ $total_failed -eq 0 ]]
