#!/usr/bin/env bash
# Draws the pictures in docs/img with the lab itself, so that they show what the program does.
#
#     tools/draw_lab.sh PROGRAM           write the pictures
#     tools/draw_lab.sh PROGRAM --check   fail if the files are not what the program draws
#
# The same bytes on every machine: the lab runs in virtual time, from a seed.
set -euo pipefail

usage() {
  sed -n 's/^# \{0,1\}//; 2,6p' "$0" >&2
  exit 2
}

[[ $# -ge 1 && $# -le 2 && ${2:---check} == --check ]] || usage
[[ -x $1 ]] || { echo "$1 is no program; build it: cmake --build --preset release" >&2; exit 2; }
program=$(realpath "$1")
check=${2:-}
cd "$(dirname "$0")/.."

# A picture, and the command that draws it.
pictures=(
  "compare-boundary.svg     compare 100/s --traffic boundary --duration 4s"
  "compare-late-window.svg  compare 100/s --traffic late-window --duration 4s"
  "compare-poisson.svg      compare 100/s --traffic poisson --duration 20s"
  "compare-burst.svg        compare 100/s --traffic burst --duration 4s"
)
# And of every scenario what happened.
for scenario in examples/scenarios/*.yaml; do
  pictures+=("simulate-$(basename "$scenario" .yaml).svg  simulate $scenario")
done

folder=docs/img
if [[ -n $check ]]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"
wrong=0
for picture in "${pictures[@]}"; do
  read -r name command <<<"$picture"
  # shellcheck disable=SC2086 # The command is words.
  "$program" $command --svg "$folder/$name" >"$folder/said.txt" 2>&1 || {
    echo "weir $command:" >&2
    cat "$folder/said.txt" >&2
    exit 1
  }
  rm "$folder/said.txt"
  if [[ -n $check ]] && ! cmp -s "$folder/$name" "docs/img/$name"; then
    echo "docs/img/$name is not what weir $command draws" >&2
    wrong=1
  fi
done
# What nobody draws any more.
for file in docs/img/*.svg; do
  if [[ ! " ${pictures[*]} " == *" $(basename "$file") "* ]]; then
    echo "$file is drawn by nothing in tools/draw_lab.sh" >&2
    wrong=1
  fi
done
if [[ $wrong == 1 ]]; then
  echo "Draw them again: tools/draw_lab.sh PROGRAM" >&2
  exit 1
fi
[[ -z $check ]] && echo "${#pictures[@]} pictures in docs/img" || echo "${#pictures[@]} pictures are as drawn"
