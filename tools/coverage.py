#!/usr/bin/env python3
"""The coverage gates, from the profiles that the coverage preset's tests left behind.

    tools/coverage.py [build/coverage]

Algorithms are small, pure and the promise of the product: every line and every branch of
src/algorithm is covered. The other folders keep 95 % of their lines. What cannot be covered is
listed in tools/coverage-exclusions.txt, each with its reason; an entry that excludes nothing is
an error, so that the list does not outlive the code.
"""

import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
from collections import defaultdict

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXCLUSIONS = ROOT / "tools" / "coverage-exclusions.txt"
LLVM = "-19"

LINE_FLOOR = 95.0
FULL = ("src/algorithm",)  # 100 % of lines and branches


class Exclusion:
    """`path:reason` or `path:line-regex:reason`. The path may be a pattern with * in it."""

    def __init__(self, text, number):
        first, last = text.find(":"), text.rfind(":")
        if first <= 0 or not text[last + 1 :].strip():
            raise ValueError(f"{EXCLUSIONS.name}:{number}: want path:reason or path:regex:reason")
        self.number, self.used = number, False
        self.path = text[:first].strip()
        self.regex = re.compile(text[first + 1 : last]) if last > first else None

    def covers(self, path, line_text=None):
        if not fnmatch.fnmatch(path, self.path):
            return False
        if self.regex is None:
            return line_text is None
        return line_text is not None and self.regex.search(line_text) is not None


def excluded(path, exclusions, line_text=None):
    """Whether an exclusion covers the line, or the whole file; notes which one was of use."""
    matching = [exclusion for exclusion in exclusions if exclusion.covers(path, line_text)]
    for exclusion in matching:
        exclusion.used = True
    return bool(matching)


def read_exclusions():
    found = []
    for number, line in enumerate(EXCLUSIONS.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            found.append(Exclusion(line, number))
    return found


def decoys(text):
    """A second record for each function of a profile, in its text form, that llvm-cov would get wrong.

    A program that includes a header and does not use one of its functions says so by a record with
    hash 0. llvm-cov drops that if the profile knows the function by another hash, and takes the
    record of a program that does use it. But bit 60 of a hash stands for another kind of profile,
    and half of the hashes of larger functions happen to have it. Those it does not compare: it takes
    the function for unknown and never run, and every later record of it for a repetition. A record
    whose hash has not got the bit is enough for it to compare. (What it compared and dropped it calls
    mismatched data; that is as it should be.)
    """
    found = []
    for name, number in re.findall(r"^(.+)\n# Func Hash:\n(\d+)$", text, re.MULTILINE):
        if int(number) >> 60 & 1:
            found.append(f"{name}\n# Func Hash:\n1\n# Num Counters:\n1\n# Counter Values:\n0\n\n")
    return "".join(found)


def merge(build, profiles):
    """All profiles as one file, whose path it returns."""
    merged, decoy = build / "coverage.profdata", build / "coverage-decoys.proftext"
    program = [f"llvm-profdata{LLVM}", "merge", "-sparse"]
    # A service that was killed while it wrote its counts leaves half a file. By standard input:
    # hundreds of tests make a long command line.
    subprocess.run([*program, "--failure-mode=all", "-o", str(merged), "-f", "-"],
                   input="\n".join(profiles), text=True, check=True)
    text = subprocess.run([*program, "-text", "-o", "-", str(merged)], stdout=subprocess.PIPE,
                          text=True, check=True).stdout
    decoy.write_text(decoys(text), encoding="utf-8")
    subprocess.run([*program, "-o", str(merged), str(merged), str(decoy)], check=True)
    return merged


def test_programs(build):
    """The GoogleTest programs that CMake lists, each of which must be there."""
    wanted = {line.split()[1]
              for line in (build / "test_programs.txt").read_text(encoding="utf-8").splitlines()}
    wanted = {name for name in wanted if re.search(r"_tests?$", name)}
    found = {path.name: str(path) for top in ("src", "tests") for path in (build / top).rglob("*")
             if path.name in wanted and path.is_file() and os.access(path, os.X_OK)}
    if missing := sorted(wanted - set(found)):
        sys.exit(f"{build} lacks programs: {', '.join(missing)}")
    return sorted(found.values())


def export(build):
    """What llvm-cov knows, as its JSON export describes it."""
    profiles = sorted(map(str, (build / "profiles").glob("*.profraw")))
    if not profiles:
        sys.exit(f"{build}/profiles is empty: run `ctest --preset coverage` first")
    merged = merge(build, profiles)

    # Programs of tests that are there no more would speak of lines that are not, either.
    subprocess.run(["ninja", "-C", str(build), "-t", "cleandead"],
                   stdout=subprocess.DEVNULL, check=True)
    programs = test_programs(build)
    programs.append(str(build / "weir"))
    command = [f"llvm-cov{LLVM}", "export", f"-instr-profile={merged}", "-skip-expansions"]
    command += [programs[0], *(f"-object={program}" for program in programs[1:])]
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return json.loads(output)["data"][0]["files"]


def line_counts(segments):
    """{line: count} by llvm-cov's own rule (LineCoverageStats).

    A segment is [line, column, count, has_count, is_region_entry, is_gap]; it holds until the
    next one. A line counts as often as its most frequent region, or as the region it lies in.
    """
    counts = {}
    by_line = defaultdict(list)
    for segment in segments:
        by_line[segment[0]].append(segment)
    wrapped = None  # the segment that reaches into the line from above
    for line in range(segments[0][0], segments[-1][0] + 1) if segments else ():
        here = by_line.get(line, [])
        starts = [s for s in here if s[3] and s[4] and not s[5]]
        skipped = bool(here) and not here[0][3] and here[0][4]
        inherited = wrapped is not None and wrapped[3]
        if starts or (inherited and not skipped):
            counts[line] = max([s[2] for s in starts] + ([wrapped[2]] if inherited else []))
        if here:
            wrapped = here[-1]
    return counts


def branch_counts(branches):
    """{(line, column): [times true, times false]}, summed over template instantiations.

    A condition that was never evaluated is left out. It is either a constant, which has no
    second side, or it lies behind a branch or in a function that is itself reported.
    """
    counts = defaultdict(lambda: [0, 0])
    for line, column, _, _, taken, not_taken, *_ in branches:
        counts[line, column][0] += taken
        counts[line, column][1] += not_taken
    return {place: sides for place, sides in counts.items() if any(sides)}


class Folder:
    def __init__(self):
        self.lines = self.lines_hit = self.branches = self.branches_hit = 0
        self.missing_lines, self.missing_branches = [], []

    def add(self, path, entry, exclusions):
        text = (ROOT / path).read_text(encoding="utf-8").splitlines()

        for line, count in line_counts(entry["segments"]).items():
            if count == 0 and excluded(path, exclusions, text[line - 1]):
                continue
            self.lines += 1
            self.lines_hit += count > 0
            if count == 0:
                self.missing_lines.append(f"{path}:{line}: not run")
        for (line, column), sides in sorted(branch_counts(entry.get("branches", [])).items()):
            if 0 in sides and excluded(path, exclusions, text[line - 1]):
                continue
            self.branches += 2
            self.branches_hit += sum(side > 0 for side in sides)
            for side, word in zip(sides, ("true", "false")):
                if side == 0:
                    self.missing_branches.append(f"{path}:{line}:{column}: never {word}")


def percent(part, whole):
    return 100.0 * part / whole if whole else 100.0


def measure(files, exclusions):
    """Folders by name, and the sources that no test program links: llvm-cov never saw them."""
    folders = defaultdict(Folder)
    unseen = {path.relative_to(ROOT).as_posix() for path in (ROOT / "src").rglob("*.cc")}
    unseen = {path for path in unseen if not path.endswith(("_test.cc", "_bench.cc"))}
    for entry in files:
        path = pathlib.Path(entry["filename"]).resolve()
        if not path.is_relative_to(ROOT):
            continue
        path = path.relative_to(ROOT).as_posix()
        if not path.startswith(("src/", "include/")) or path.endswith("_test.cc"):
            continue
        unseen.discard(path)
        if not excluded(path, exclusions):
            folders[path.rpartition("/")[0]].add(path, entry, exclusions)
    return folders, sorted(path for path in unseen if not excluded(path, exclusions))


def main(arguments):
    build = pathlib.Path(arguments[0] if arguments else ROOT / "build" / "coverage")
    try:
        exclusions = read_exclusions()
    except (ValueError, re.error) as error:
        sys.exit(str(error))
    folders, unseen = measure(export(build), exclusions)

    problems = [f"{path}:1: part of no test program" for path in unseen]
    print(f"{'folder':<24} {'lines':>13} {'%':>6}  {'branches':>13} {'%':>6}")
    for name, folder in sorted(folders.items()):
        lines = percent(folder.lines_hit, folder.lines)
        branches = percent(folder.branches_hit, folder.branches)
        full = name in FULL
        if full:
            failed = folder.missing_lines + folder.missing_branches
        else:
            failed = folder.missing_lines if lines < LINE_FLOOR else []
        print(
            f"{name:<24} {f'{folder.lines_hit}/{folder.lines}':>13} {lines:6.1f}"
            f"  {f'{folder.branches_hit}/{folder.branches}':>13} {branches:6.1f}"
            f"{f'  below {100 if full else LINE_FLOOR:g} %' if failed else ''}"
        )
        problems += failed
    for exclusion in exclusions:
        if not exclusion.used:
            problems.append(f"{EXCLUSIONS.name}:{exclusion.number}: excludes nothing any more")
    print("\n".join(["", *problems]) if problems else "\nall gates hold")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
