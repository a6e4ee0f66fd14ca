#!/usr/bin/env bash
# Checks the repository; `./test.sh --help` says what each form builds, runs and costs.
#
# Every stage runs even when an earlier one failed, so that one run shows everything that is wrong;
# only tests whose build failed are left out. The last line is `N passed, M failed`: ctest's tests
# over all presets, and a stage that failed without a failing test counts as one failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
  cat <<'USAGE'
usage: ./test.sh [--quick | --full | FOLDER]

./test.sh  What CI runs; 18 to 28 minutes from nothing, on 2 cores. Release build: every test below
           tests/, and the clients. AddressSanitizer and UndefinedBehaviorSanitizer: every test
           below src/, and those below tests/ that read input. ThreadSanitizer: tests that start
           threads. 8 s of every fuzz target.
--quick    While you work; 6 minutes from nothing, 1 to 2 after a change of one .cc file. Format, and
           a release build with the tests below src/ and tests/conformance.
FOLDER     The tests of one folder and of those inside it in the release build, for example
           src/policy, src/lab, tests/e2e.
--full     Before a release; 64 to 75 minutes from nothing. ./test.sh, and: tests below src/ in the
           release build, long faults and random runs, the tests that ./test.sh leaves out of the
           sanitizers, a build of every source by itself, clang-tidy, coverage, every benchmark
           suite as a smoke test, and the Debian package in a clean root.

WEIR_JOBS=n       compile with n processes (default: one for each core)
WEIR_FUZZ_SEED=n  repeat a fuzz run
USAGE
}

mode=default
folder=""
sanitized=asan
case "${1:-}" in
  "") ;;
  --quick) mode=quick ;;
  --full)
    mode=full
    sanitized=coverage # The same, and counts what was run.
    ;;
  -h | --help)
    usage
    exit
    ;;
  src | src/* | tests | tests/* | clients | examples)
    mode=folder
    folder=${1%/}
    ;;
  *)
    echo "./test.sh: no such option or folder of tests: $1" >&2
    usage >&2
    exit 2
    ;;
esac
if [[ $# -gt 1 ]]; then
  usage >&2
  exit 2
fi
if [[ -n $folder && ! -d $folder ]]; then
  echo "./test.sh: there is no folder $folder" >&2
  usage >&2
  exit 2
fi

root=$PWD
jobs=${WEIR_JOBS:-$(nproc)}
work=$(mktemp -d)
declare -A beside=() # what runs beside the stages: its name, and its process group
stop() {
  local name
  for name in "${!beside[@]}"; do stop_beside "$name"; done
  stop_children $$
  rm -rf "$work"
}
# The stage that runs, if a signal came to this script alone.
stop_children() { # PROCESS
  local child
  for child in $(pgrep -P "$1"); do
    stop_children "$child"
    kill "$child" 2>/dev/null || true
  done
}
# At SIGTERM bash does the same without a trap, and at once: a trap would wait for the stage.
trap stop EXIT
trap 'exit 130' INT

total_passed=0
total_failed=0
table=()
declare -A failed_stage=()

# stage NAME FUNCTION [ARGUMENT...]: runs it in a subshell and notes result and time.
# The subshell must not stand in a condition: bash would switch `set -e` off inside it.
stage() {
  local name=$1 began=$SECONDS cpu_began status result
  shift
  count_cpu
  cpu_began=$cpu_seconds
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
    failed_stage[$name]=yes
    [[ $failed -gt 0 ]] || failed=1
    echo "./test.sh: the stage \"$name\" failed" >&2
  fi
  total_passed=$((total_passed + passed))
  total_failed=$((total_failed + failed))
  count_cpu
  note_stage "$name" "$((SECONDS - began))" "$((cpu_seconds - cpu_began))" "$result"
}
note_stage() { # NAME SECONDS CPU_SECONDS RESULT
  table+=("$(awk -v n="$1" -v s="$2" -v c="$3" -v r="$4" \
    'BEGIN { printf "%-28s %6.1f %9.1f  %s", n, s / 60, c / 60, r }')")
}
# Sets cpu_seconds to the user and system time of all processes that have ended. Must not run in a
# subshell, which has no such processes. What a stage is charged with therefore includes background
# work that ended or was stopped during the stage.
count_cpu() {
  times >"$work/times"
  cpu_seconds=$(awk 'NR == 2 { gsub(/[ms]/, " "); print int(($1 + $3) * 60 + $2 + $4) }' "$work/times")
}

# stage_after EARLIER NAME FUNCTION [ARGUMENT...]: not if the earlier stage failed.
stage_after() {
  local earlier=$1
  shift
  if [[ -n ${failed_stage[$earlier]:-} ]]; then
    failed_stage[$1]=yes
    note_stage "$1" 0 0 "NOT RUN: \"$earlier\" failed"
  else
    stage "$@"
  fi
}

build() { # PRESET TARGET...
  local preset=$1
  shift
  cmake --preset "$preset" >"$work/configure.log" 2>&1 || {
    cat "$work/configure.log"
    return 1
  }
  cmake --build --preset "$preset" --parallel "$jobs" --target "$@"
}

# begin_beside NAME COMMAND: in the background, as a process group of its own.
begin_beside() {
  # The trap lets the shell wait for its children at SIGTERM, so that their time is counted.
  setsid bash -c "trap 'exit 143' TERM; $2" >"$work/$1.log" 2>&1 &
  beside[$1]=$!
  # Until the process is a group leader, stop_beside would not find it.
  until kill -0 -- "-$!" 2>/dev/null || ! kill -0 "$!" 2>/dev/null; do sleep 0.01; done
}
# begin_idle NAME COMMAND: the same, after what was begun like this before. It only gets what all
# others leave of the machine. A group of its own (setsid) has a share of its own, which its
# processes' priorities do not change.
begin_idle() {
  begin_beside "$1" "{ echo 19 >/proc/self/autogroup; } 2>/dev/null
    chrt --idle --pid 0 \$\$ 2>/dev/null || renice -n 19 \$\$ >/dev/null
    while [[ -n '$last_idle' ]] && kill -0 -- '-$last_idle' 2>/dev/null; do sleep 0.5; done
    $2"
  last_idle=${beside[$1]}
}
last_idle=""
# Stops the process group; the stage then builds the rest. A file that was being compiled is compiled
# again.
stop_beside() { # NAME
  local group=${beside[$1]}
  kill -- "-$group" 2>/dev/null && wait "$group" 2>/dev/null || true
  while kill -0 -- "-$group" 2>/dev/null; do sleep 0.1; done
  unset "beside[$1]"
}
# Waits for the end of the process group; `ended` then prints its output and returns its status.
end_beside() { # NAME
  local group=${beside[$1]} status=0 process
  # From here on it may use all cores.
  { echo 0 >"/proc/$group/autogroup"; } 2>/dev/null || true
  for process in $(pgrep -g "$group"); do chrt --other --pid 0 "$process" 2>/dev/null || true; done
  wait "$group" || status=$?
  unset "beside[$1]"
  echo "$status" >"$work/$1.status"
}
ended() { # NAME
  cat "$work/$1.log"
  return "$(<"$work/$1.status")"
}
# Tests wait more than they work, so the next preset is compiled beside them.
begin_to_build() { # PRESET TARGET...
  begin_idle "build-$1" \
    "cmake --preset $1 && ninja -C build/$1 -j $jobs ${*:2}"
}

# Runs ctest and keeps its counts from the line "98% tests passed, 1 tests failed out of 50".
# A selection that matches no test is an error: it would pass for ever without testing anything.
run_ctest() { # PRESET [CTEST ARGUMENT...]; without tests that have one of the labels $without
  local preset=$1 status=0 failed total labels=${without:-}
  shift
  [[ $mode == full ]] || labels=${labels:+$labels|}long
  [[ -z $labels ]] || set -- -LE "^($labels)\$" "$@"
  ctest --preset "$preset" --output-on-failure --no-tests=error -j2 "$@" |
    tee "$work/ctest.log" || status=$?
  read -r failed total < <(sed -nE \
    's/^[0-9]+% tests passed, ([0-9]+) tests? failed out of ([0-9]+).*/\1 \2/p' \
    "$work/ctest.log") || return 1
  echo "$((total - failed)) $failed" >"$work/counts"
  # What could not run here: ctest does not print the output of tests that pass.
  grep -hE '^SKIPPED ' "build/$preset/Testing/Temporary/LastTest.log" | sort | uniq -c || true
  return "$status"
}

packages() { tools/setup.sh tools/packages-program.txt tools/packages.txt; }

# A build that runs out of disk fails in the middle with errors that name everything but the disk.
disk() { # GIGABYTES that build/ has at the end
  local whole=$1 has free
  mkdir -p build
  has=$(du -s -BG build | tr -dc '0-9\t' | cut -f1)
  free=$(df --output=avail -BG build | tail -n 1 | tr -dc 0-9)
  if ((free < 1 || has + free < whole)); then
    echo "build/ will grow to $whole GB; it has $has GB, and the disk has $free GB free." >&2
    return 1
  fi
}

# Clients of several languages for the end-to-end tests, servers of other versions than the machine
# has, and what builds the page for reports and looks at it. Most of it is waiting for the network,
# so it goes on beside the first build.
fetch="tests/e2e/setup.sh && tests/faults/setup.sh && web/build.sh --fetch &&
  clients/setup.sh python node rust shop-fastapi shop-express shop-axum"

format() {
  # Untracked files too: a format error is cheapest before the commit.
  git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cc' |
    while IFS= read -r -d '' file; do
      if [[ -e $file ]]; then printf '%s\0' "$file"; fi
    done | xargs -0 --no-run-if-empty -n 40 -P "$jobs" clang-format-19 --dry-run -Werror
}

# A compiler that runs beside them would be measured, too.
measuring_tests() { run_ctest release -L '^measuring$'; }
# Tests of single files find more under the sanitizers, so the release build runs them with --full;
# those that count allocations (`heap`) cannot run under a sanitizer.
release_tests() {
  local without=measuring
  [[ $mode == full ]] || without+="|unit"
  run_ctest release
}
quick_tests() { without=measuring run_ctest release -L '^(unit|heap|tests/conformance)$'; }

sanitized_tests() {
  # Counts of an older binary would be merged with the new ones by coverage.py.
  rm -rf "build/$sanitized/profiles"
  run_ctest "$sanitized"
}

# ThreadSanitizer is slow and has nothing to say about code that runs on one thread.
tsan_tests() { run_ctest tsan -L '^threads$'; }

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

# fuzz_one SEED TARGET: prints what it found in one piece, since several run side by side.
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

coverage() { tools/coverage.py build/coverage; }

smoke() { ./bench.sh "$1" --smoke; }

# The program of ./run.sh, which has no lab.
service_alone() {
  local printed
  build service weir_program
  build/service/weir check-config examples/quickstart.yaml
  if printed=$(build/service/weir compare 100/s 2>&1) || [[ $printed != *"built without the lab"* ]]
  then
    echo "weir compare in a program without the lab: $printed" >&2
    return 1
  fi
}

# The programs of a folder and of those inside it, as CMake has listed them.
folder_tests() {
  local programs
  cmake --preset release >"$work/configure.log" 2>&1 || {
    cat "$work/configure.log"
    return 1
  }
  mapfile -t programs < <(awk -v folder="$folder" \
    '$1 == folder || index($1, folder "/") == 1 { print $2 }' build/release/test_programs.txt |
    sort -u)
  if [[ ${#programs[@]} -eq 0 ]]; then
    echo "$folder has no tests. These folders have:" >&2
    awk '{ print "  " $1 }' build/release/test_programs.txt | sort -u >&2
    return 2
  fi
  case $folder in
    tests | tests/e2e | tests/faults | tests/servers | clients) bash -c "$fetch" ;;
  esac
  cmake --build --preset release --parallel "$jobs" --target "${programs[@]}"
  run_ctest release -L "^$folder(/|\$)"
}

finish() {
  printf '\n%-28s %6s %9s\n' "stage" "min" "core-min"
  printf '%s\n' "${table[@]}"
  count_cpu
  note_stage "all" "$SECONDS" "$cpu_seconds" ""
  printf '%s\n' "${table[-1]}"
  printf '\n%d passed, %d failed\n' "$total_passed" "$total_failed"
  exit $((total_failed > 0))
}

stage "packages" packages
# Nothing else can work without them.
[[ -z ${failed_stage[packages]:-} ]] || finish

case $mode in
  folder)
    stage "$folder" folder_tests
    finish
    ;;
  quick)
    stage "format" format
    stage "release: build" build release unit_tests conformance_tests
    stage_after "release: build" "release: tests" quick_tests
    finish
    ;;
esac

release_targets=(cross_tests)
sanitized_targets=(unit_tests cross_tests fuzzers)
separate_targets=(all examples fuzzers micro_benchmarks)
if [[ $mode == full ]]; then
  stage "disk" disk 20
  release_targets=(all examples)
  sanitized_targets=(all fuzzers)
else
  stage "disk" disk 8
fi
[[ -z ${failed_stage[disk]:-} ]] || finish
begin_beside fetch "$fetch"
stage "format" format
stage "release: build" build release "${release_targets[@]}"
end_beside fetch
stage "clients, servers" ended fetch
stage_after "release: build" "release: measuring tests" measuring_tests
if [[ $mode == full ]]; then begin_idle tidy tools/tidy.sh; fi
begin_to_build "$sanitized" "${sanitized_targets[@]}"
stage_after "release: build" "release: tests" release_tests
stage_after "release: build" "install" install_test
if [[ $mode == full ]]; then
  end_beside tidy
  stage "clang-tidy" ended tidy
fi
stop_beside "build-$sanitized"
stage "asan, ubsan: build" build "$sanitized" "${sanitized_targets[@]}"
begin_to_build tsan unit_tests
if [[ $mode == full ]]; then begin_to_build separate "${separate_targets[@]}"; fi
stage_after "asan, ubsan: build" "asan, ubsan: tests" sanitized_tests
stop_beside build-tsan
stage "tsan: build" build tsan unit_tests
stage_after "tsan: build" "tsan: tests" tsan_tests
stage_after "asan, ubsan: build" "fuzz" fuzz
if [[ $mode == full ]]; then
  stage_after "asan, ubsan: build" "coverage" coverage
  stop_beside build-separate
  stage "separate: build" build separate "${separate_targets[@]}"
  stage "service alone" service_alone
  for suite in core policy service redis grpc clients lab; do
    stage "bench $suite: smoke" smoke "$suite"
  done
fi
finish
