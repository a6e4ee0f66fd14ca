#!/usr/bin/env python3
"""Runs a benchmark suite and reports it; ./bench.sh builds everything first and then calls this.

    run.py SUITE [--json FILE] [--markdown] [--again]

--json FILE writes an array with one entry per figure (see report.py). --markdown prints the
tables for a document rather than for a terminal. --again reports the last run once more instead
of measuring. --quick does a twentieth of the work, to see that the suite works; its figures mean
nothing.
"""

import argparse
import json
import pathlib
import sys
import time

import clients_suite
import core_suite
import grpc_suite
import lab_suite
import policy_suite
import redis_suite
import report
import service_suite

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITES = {"core": core_suite, "policy": policy_suite, "service": service_suite,
          "redis": redis_suite, "grpc": grpc_suite, "clients": clients_suite,
          "lab": lab_suite}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--rust", type=pathlib.Path, default=ROOT / "build/rust/release")
    options = parser.parse_args()

    suite = SUITES[options.suite]
    kept = options.build / f"bench/{options.suite}-runs.json"
    if not options.again:
        began = time.monotonic()
        answers = {}
        for answer in suite.measure(options.build, options.rust, options.quick):
            answers |= answer
            kept.write_text(json.dumps(answers))
        print(f"{(time.monotonic() - began) / 60:.1f} minutes", file=sys.stderr)
    results = suite.Results(json.loads(kept.read_text()))
    figures = list(suite.figures(results))
    for table in suite.tables(results):
        print(table.markdown() if options.markdown else table.text())
    print(report.verdict(figures))
    if options.json:
        report.write_json(figures, options.json)


if __name__ == "__main__":
    main()
