#!/usr/bin/env python3
"""Runs a benchmark suite and reports it; ./bench.sh builds everything first and then calls this.

    run.py SUITE [--json FILE] [--markdown] [--again | --smoke]
    run.py SUITE --against BUILD [--rows PATTERN] [--rounds N] [--json FILE] [--markdown] [--smoke]
    run.py SUITE --list-rows [--rows PATTERN]

--json FILE writes an array with one entry per figure (see report.py). --markdown prints the
tables for a document rather than for a terminal. --again reports the last run once more instead
of measuring. --smoke does as little work as possible, to see that every part runs; its figures
mean nothing and are not printed. --against compares with another build folder, see against.py;
--list-rows prints the rows that this compares.

Exit codes: 0 every part was measured, 1 a part failed (the others are reported), 2 usage error.
"""

import argparse
import json
import math
import pathlib
import re
import signal
import sys
import tempfile
import time

import against
import clients_suite
import core_suite
import grpc_suite
import lab_suite
import measured
import policy_suite
import redis_suite
import report
import service_suite

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITES = {"core": core_suite, "policy": policy_suite, "service": service_suite,
          "redis": redis_suite, "grpc": grpc_suite, "clients": clients_suite,
          "lab": lab_suite}


def absolute(folder):
    """Servers run in folders of their own, where a relative path names something else."""
    return pathlib.Path(folder).resolve()


def parse_options(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--against", type=absolute, metavar="BUILD")
    parser.add_argument("--rows", metavar="PATTERN")
    parser.add_argument("--rounds", type=int, metavar="N")
    parser.add_argument("--list-rows", action="store_true")
    parser.add_argument("--build", type=absolute, default=ROOT / "build/release")
    parser.add_argument("--rust", type=absolute, default=ROOT / "build/rust/release")
    options = parser.parse_args(words)
    if options.again and (options.smoke or options.against):
        parser.error("--again measures nothing, so it goes with neither --smoke nor --against")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds must be at least 1")
    if not (options.against or options.list_rows) and (options.rows or options.rounds):
        parser.error("--rows and --rounds need --against")
    return options


def main():
    options = parse_options()
    # Ends as after Ctrl-C does: every `with` stops its servers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if options.smoke:
        measured.LONGEST_RUN_S = measured.LONGEST_SMOKE_RUN_S
    suite = SUITES[options.suite]
    try:
        if options.against or options.list_rows:
            selected = against.select(list(suite.weir_parts()), options.rows)
            if options.list_rows:
                list_rows(selected)
                return 0
            return compare(selected, options)
        return measure(suite, options)
    except against.UnknownRows as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 128 + signal.SIGINT


# --- Weir beside its peers ---


def measure(suite, options):
    kept = options.build / f"bench/{options.suite}-runs.json"
    setup = measured.Setup(options.build, options.rust, options.smoke)
    failures = []
    if options.again:
        setup.answers, failures = read_kept(kept)
    else:
        began = time.monotonic()
        failures = measured.run_parts(
            setup, suite.parts(setup),
            lambda: None if options.smoke else write_kept(kept, setup.answers, []))
        if not options.smoke:
            write_kept(kept, setup.answers, failures)
        print(f"{(time.monotonic() - began) / 60:.1f} minutes", file=sys.stderr)
    # Answers as --again finds them.
    results = suite.Results(json.loads(json.dumps(setup.answers)))
    figures, tables = [], []
    try:
        figures, tables = list(suite.figures(results)), list(suite.tables(results))
    except Exception as error:  # What was measured is kept; --again reports it.
        failures.append(measured.Failure.of("the report", error))
    failures += unmeasured(figures, failures)
    figures = [figure for figure in figures if not math.isnan(figure.value)]

    if options.smoke:
        print(f"smoke test of {options.suite}: {len(figures)} figures, none of them judged")
    else:
        for table in tables:
            print(table.markdown() if options.markdown else table.text())
        print(report.verdict(figures))
    return finish(figures, failures, options)


def unmeasured(figures, failures):
    """A figure without a value is a failure of its own, unless a part failed."""
    names = [figure.name for figure in figures if math.isnan(figure.value)]
    if not names or failures:
        return []
    return [measured.Failure("the report", f"nothing was measured for {', '.join(names)}")]


def finish(entries, failures, options):
    for failure in failures:
        print(failure)
    if options.json:
        report.write_json([*entries, *failures], options.json)
    return 1 if failures else 0


def write_kept(path, answers, failures):
    kept = {"answers": answers, "failures": [vars(failure) for failure in failures]}
    path.write_text(json.dumps(kept))


def read_kept(path):
    try:
        kept = json.loads(path.read_text())
        return kept["answers"], [measured.Failure(**failure) for failure in kept["failures"]]
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"There is no run to report again in {path}: {error}")


# --- Weir beside another commit ---


def compare(selected, options):
    rounds = options.rounds or (1 if options.smoke else None)
    # The log of the lab is large, and /tmp may be memory. Paths of unix sockets must be short.
    place = options.build if options.suite == "lab" else None
    with tempfile.TemporaryDirectory(prefix="weir-bench-", dir=place) as folder:
        shared = {}
        old, new = (against.BuildSetup(build, options.build, options.smoke, pathlib.Path(folder),
                                       shared) for build in (options.against, options.build))
        comparisons, failures = against.compare(selected, old, new, rounds)
    if options.rows:  # The old build may have rows that the pattern was not tried on.
        comparisons = [row for row in comparisons if re.search(options.rows, row.name)]
    table = against.table(f"{options.suite}: the new build beside the old one", comparisons)
    print(table.markdown() if options.markdown else table.text())
    print(against.summary(comparisons))
    return finish(comparisons, failures, options)


def list_rows(selected):
    for part, rows in selected:
        print("\n".join(part.rows if rows is None else rows))


if __name__ == "__main__":
    sys.exit(main())
