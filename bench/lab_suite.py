"""The lab: an access log through `weir replay`, beside awk counting the first field of its lines.

bench_lab writes the log, of a day and of 100,000 clients. Both programs read it from the page cache
in turn; what is compared is processor time, user and system, of all their threads. The memory of
replay is looked at with a tenth of the lines, too: it may depend on clients, not on lines.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from measured import noise_row
from report import Figure, Table

LINES = 10_000_000
CLIENTS = 100_000
ROUNDS = 5
# Lines per processor second, as a share of awk's: asked for, and hoped for.
LEAST_OF_AWK = 0.5
STRETCH_OF_AWK = 1
# Ten times as many lines of the same clients may take this many times the memory.
MOST_TIMES_MEMORY = 1.15

POLICY = """\
rules:
  - name: per-ip
    key: ip
    limit: 600/min
    algorithm: sliding_window
  - name: per-page
    key: path
    limit: 200/s burst 400
  - name: login
    match: { path: /auth/login, method: POST }
    key: ip
    limit: 5/min
    algorithm: sliding_log
"""
AWK = "{ c[$1]++ } END { for (k in c) n++; print n }"


class Results:
    """What was measured: {who: [{"cpu", "seconds", "memory"}]}, and the lines of the log."""

    def __init__(self, answers):
        self.lines = answers["lines"]
        self.runs = answers["runs"]
        self.small = answers["small"]

    def rate(self, who):
        """Lines per second of one core, by round."""
        return [self.lines / run["cpu"] for run in self.runs[who]]

    def ratio(self, who):
        return statistics.median(ours / awk
                                 for ours, awk in zip(self.rate(who), self.rate("awk")))

    def memory(self):
        return max(run["memory"] for run in self.runs["replay"])


def run(command):
    """Runs it to its end; what it took, by the kernel's count."""
    began = os.times().elapsed
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return {"cpu": used.ru_utime + used.ru_stime, "seconds": os.times().elapsed - began,
            "memory": used.ru_maxrss * 1024}


def measure(build, _rust, quick):
    lines, rounds = (LINES // 20, 3) if quick else (LINES, ROUNDS)
    with tempfile.TemporaryDirectory(dir=build) as folder:
        log = pathlib.Path(folder, "access.log")
        small = pathlib.Path(folder, "small.log")
        policy = pathlib.Path(folder, "weir.yaml")
        policy.write_text(POLICY, encoding="utf-8")
        for path, count in ((log, lines), (small, lines // 10)):
            with path.open("wb") as out:
                subprocess.run([build / "bench/bench_lab", str(count), str(CLIENTS)], stdout=out,
                               check=True)
        replay = [build / "weir", "replay", "-c", policy]
        contestants = {"replay": [*replay, log],
                       "replay, one thread": [*replay, "--threads", "1", log],
                       "awk": ["mawk", AWK, log]}
        runs = {who: [] for who in contestants}
        run(contestants["awk"])  # The log is in memory from here on.
        for number in range(rounds):
            for who, command in contestants.items():
                runs[who].append(run(list(map(str, command))))
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        yield {"lines": lines, "runs": runs, "small": run(list(map(str, [*replay, small])))}


def figures(results):
    awk = results.rate("awk")
    # Figures are better if they are lower: nanoseconds of one core for a line.
    def nanoseconds(rates):
        return 1e9 / statistics.median(rates)
    yield Figure("lab/replay/10M/3_rules/vs_awk", nanoseconds(results.rate("replay")),
                 "ns/line/core", nanoseconds(awk), LEAST_OF_AWK, paired_ratio=results.ratio("replay"))
    yield Figure("lab/replay/10M/3_rules/1thread", nanoseconds(results.rate("replay, one thread")),
                 "ns/line/core", nanoseconds(awk),
                 paired_ratio=results.ratio("replay, one thread"))
    yield Figure("lab/replay/memory", results.memory() / 2**20, "MiB")
    yield Figure("lab/replay/memory/10_times_the_lines", results.memory() / results.small["memory"],
                 "times", target=MOST_TIMES_MEMORY, ceiling=True)


def tables(results):
    rows = []
    for who, runs in results.runs.items():
        target = ""
        if who == "replay":
            ratio = results.ratio(who)
            target = (f"at least {LEAST_OF_AWK:g}x: {'met' if ratio >= LEAST_OF_AWK else 'MISSED'}"
                      f", {STRETCH_OF_AWK:g}x {'reached' if ratio >= STRETCH_OF_AWK else 'not yet'}")
        rows.append([who, f"{statistics.median(results.rate(who)) / 1e6:.2f}",
                     f"{results.ratio(who):.2f}x",
                     f"{statistics.median(run['seconds'] for run in runs):.1f}",
                     f"{max(run['memory'] for run in runs) / 2**20:.0f}", target])
    yield Table(f"{results.lines:,} lines through three rules",
                ["who", "M lines/s of one core", "to awk", "s", "MiB", "target"], rows)
    grows = results.memory() / results.small["memory"]
    yield Table("Memory, with the same clients", ["lines", "MiB", "target"],
                [[f"{results.lines // 10:,}", f"{results.small['memory'] / 2**20:.0f}", ""],
                 [f"{results.lines:,}", f"{results.memory() / 2**20:.0f}",
                  f"at most {MOST_TIMES_MEMORY:g}x: {'met' if grows <= MOST_TIMES_MEMORY else 'MISSED'}"
                  f" ({grows:.2f}x)"]])
    yield Table("Noise: spread of the middle half of the rounds", ["what", "typical", "worst"],
                [noise_row(who, [results.rate(who)]) for who in results.runs])
