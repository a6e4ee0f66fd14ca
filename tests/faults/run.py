#!/usr/bin/env python3
"""Runs the fault tests one after the other and writes what they measured as a table.

    run.py SOURCE PROGRAM SHIFTED_CLOCK [--long] [TABLE.md]
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

NAMES = ("single_server", "broken_wire", "service_faults", "cluster_faults", "partition", "access",
         "shards", "clocks", "versions")


def cell(distribution):
    if not distribution:
        return ""
    return f"{distribution['p50']:.2f} / {distribution['p99']:.1f} / {distribution['max']:.0f}"


def table(entries):
    lines = ["| row | fault | lasted s | healthy ms | broken ms | open ms | normal after s |",
             "|---|---|---|---|---|---|---|"]
    for entry in sorted(entries, key=lambda one: (one["row"], one["what"])):
        normal = "" if entry["normal"] is None else f"{entry['normal']:.2f}"
        cells = [cell(entry[phase]) for phase in ("healthy", "broken", "open")]
        lines.append(" | ".join([f"| {entry['row']}", entry["what"], str(entry["seconds"]), *cells,
                                 normal]) + " |")
    return "\n".join(lines) + "\n"


def main():
    words = [word for word in sys.argv[1:] if word != "--long"]
    if len(words) not in (3, 4):
        print(__doc__, file=sys.stderr)
        return 2
    source, program, clock = words[:3]
    failed, here = [], pathlib.Path(__file__).resolve().parent
    with tempfile.NamedTemporaryFile(mode="r", suffix=".json") as report:
        environment = {**os.environ, "WEIR_FAULTS_REPORT": report.name,
                       "WEIR_SHIFTED_CLOCK": str(pathlib.Path(clock).resolve())}
        if "--long" in sys.argv:
            environment["WEIR_FAULTS_LONG"] = "1"
        for name in NAMES:
            ran = subprocess.run([sys.executable, str(here / f"{name}_test.py"), source, program],
                                 env=environment, check=False)
            if ran.returncode != 0:
                failed.append(name)
        entries = [json.loads(line) for line in report]
    text = table(entries)
    if len(words) == 4:
        pathlib.Path(words[3]).write_text(text, encoding="utf-8")
    print(text, "failed: " + ", ".join(failed) if failed else "all passed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
