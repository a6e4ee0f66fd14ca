#!/usr/bin/env bash
# Measures Weir beside its peers, or beside another commit, in the same run on the same machine.
# `./bench.sh --help` prints the usage; bench/README.md says what is measured.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

suites=(core policy service redis grpc clients lab)

print_usage() {
  cat <<'USAGE'
usage: ./bench.sh SUITE [--json FILE] [--markdown]
       ./bench.sh SUITE --against COMMIT [--rows PATTERN] [--rounds N] [--json FILE] [--markdown]
       ./bench.sh SUITE --smoke

Without --against: builds what the suite needs and measures Weir beside its peers.

  SUITE    peers                                                           time
  core     checks in memory: boost maps, Rust's governor                   12 min, 8 GiB of memory
  policy   requests under many rules, loading of policies: none            2 min
  service  requests over RESP and HTTP: redis-server, nginx                15 min
  redis    limits shared on Redis: the usual script                        5 min
  grpc     Envoy's calls, forward-auth, TLS: a server on grpc++            4 min
  clients  middleware: frameworks without a limiter, other limiters        6 min
  lab      an access log through a policy: awk                             5 min, 2 GB of disk

  --against COMMIT  builds COMMIT in build/against/ (reused by the next run; `rm -rf build/against`
                    frees the disk) and measures Weir's own rows of that build (OLD) and of the
                    working tree (NEW) in turns: 7 minutes (core: 20), plus the build.
                    Prints new/old, its spread and a verdict per row. Peers are not measured.
  --rows PATTERN    with --against: only rows whose name matches the regular expression; parts of
                    the suite without such a row are skipped. No match: lists all rows.
  --rounds N        with --against: exactly N rounds, instead of those that fit the time.
  --smoke           runs every part with as little work as possible, in seconds per suite, to see
                    that it works. Figures are not judged. With --against: one round of both builds.
  --json FILE       writes the figures and the failed parts to FILE as well.
  --markdown        prints tables as a document has them.

A part that fails is printed as "FAILED: part: reason"; the other parts are measured and printed.
WEIR_JOBS is the number of parallel compile jobs.

Exit codes: 0 every part ran, whatever its figures are; 1 a part failed; 2 usage error
USAGE
}

usage_error() {
  echo "$1" >&2
  print_usage >&2
  exit 2
}

# --- The command line ---

suite=""
commit=""
rows=()
options=()
while [[ $# -gt 0 ]]; do
  case $1 in
    --json | --against | --rows | --rounds)
      [[ $# -ge 2 && -n $2 ]] || usage_error "$1 needs a value."
      case $1 in
        # Before the cd below, which would change its meaning.
        --json) options+=(--json "$(realpath -m -- "$2")") ;;
        --against) commit=$2 ;;
        --rows) rows=("--rows=$2") ;;
        --rounds)
          [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || usage_error "--rounds $2: not a number from 1 to 9999."
          options+=(--rounds "$2")
          ;;
      esac
      shift 2
      ;;
    --markdown)
      options+=(--markdown)
      shift
      ;;
    --smoke)
      options+=(--smoke)
      shift
      ;;
    -h | --help)
      print_usage
      exit 0
      ;;
    -*) usage_error "There is no option '$1'." ;;
    *)
      [[ -z $suite ]] || usage_error "There are two suites: '$suite' and '$1'."
      suite=$1
      shift
      ;;
  esac
done
[[ -n $suite ]] || usage_error "Which suite?"
[[ " ${suites[*]} " == *" $suite "* ]] || usage_error "There is no suite called '$suite'."
if [[ -z $commit && (${#rows[@]} -gt 0 || " ${options[*]} " == *" --rounds "*) ]]; then
  usage_error "--rows and --rounds need --against."
fi

cd "$root"
jobs=${WEIR_JOBS:-$(nproc)}

hash=""
if [[ -n $commit ]]; then
  if ! hash=$(git rev-parse --quiet --verify --end-of-options "$commit^{commit}"); then
    echo "--against $commit: there is no such commit in this clone. (A shallow clone has few:" \
      "\`git fetch --unshallow\` gets the others.)" >&2
    exit 2
  fi
fi

# --- Packages and peers ---

# A peer that cannot be had makes the parts that need it fail; the others are measured.
without_peer() {
  echo "FAILED: $1. Parts that need it will fail, the others are measured." >&2
}

tools/setup.sh tools/packages-program.txt tools/packages.txt || {
  echo "FAILED: installing the packages of tools/packages*.txt, see above." >&2
  exit 1
}
if [[ -n $commit ]]; then
  # Before the build, which takes minutes.
  bench/run.py "$suite" --list-rows "${rows[@]}" >/dev/null
fi
peers=tools/packages-bench-$suite.txt
# Without peers these suites need nothing more.
if [[ -n $commit && $suite =~ ^(core|service|lab)$ ]]; then peers=""; fi
if [[ -f $peers ]]; then
  tools/setup.sh "$peers" || without_peer "installing the packages of $peers"
fi

# --- Builds ---

# build FOLDER TARGET...: the release preset of the tree in this folder.
build() {
  local folder=$1
  shift
  (
    cd "$folder" && cmake --preset release >/dev/null &&
      cmake --build --preset release --parallel "$jobs" --target "$@"
  )
}

required=("bench_$suite")
case $suite in
  service | lab) required+=(weir_program) ;;
  grpc | clients) required=(weir_program) ;;
esac
build . "${required[@]}" || {
  echo "FAILED: building ${required[*]}, see above." >&2
  exit 1
}

if [[ -n $commit ]]; then
  old=build/against/${hash:0:12}
  # The load comes from the working tree's build; only core, policy and redis measure their own
  # program.
  old_target=weir_program
  if [[ $suite =~ ^(core|policy|redis)$ ]]; then old_target=bench_$suite; fi
  # shellcheck source=bench/old_build.sh
  source bench/old_build.sh
  if ! { make_old_tree "$hash" "$old" && build_old "$old" "$old_target"; }; then
    echo "FAILED: building $old_target of $commit in $old, see above." >&2
    exit 1
  fi
  describe_builds "$hash"
  options+=(--against "$old/build/release" "${rows[@]}")
else
  # Peers written in Rust are crates of their own under bench/. --locked: a benchmark whose peer
  # changes between two runs compares nothing.
  if [[ $suite == core ]]; then
    for manifest in bench/*/Cargo.toml; do
      cargo build --release --locked --jobs "$jobs" --manifest-path "$manifest" \
        --target-dir build/rust || without_peer "building $manifest"
    done
  fi
  if [[ $suite == grpc ]]; then
    build . bench_grpc || without_peer "building the server on grpc++"
  fi
fi
if [[ $suite == clients ]]; then
  for framework in fastapi express axum; do
    clients/setup.sh "bench-$framework" || without_peer "making the application for $framework"
  done
fi

exec bench/run.py "$suite" "${options[@]}"
