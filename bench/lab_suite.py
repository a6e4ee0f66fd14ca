"""The lab: an access log through `weir replay`, beside awk counting the first field of its lines.

bench_lab writes the log, of a day and of 100,000 clients. Both programs read it from the page cache
in turn; what is compared is processor time, user and system, of all their threads. The memory of
replay is looked at with a tenth of the lines, too: it may depend on clients, not on lines.
"""

import functools
import math
import os
import pathlib
import subprocess
import tempfile

from against import WeirPart
from measured import Part, median, noise_row
from report import Figure, Table

LINES = 10_000_000
SMOKE_LINES = 20_000
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
        self.lines = answers.get("lines", LINES)
        self.runs = answers.get("runs", {"replay": [], "replay, one thread": [], "awk": []})
        self.small_memory = answers.get("small", {}).get("memory", math.nan)

    def rate(self, who):
        """Lines per second of one core, by round."""
        return [self.lines / run["cpu"] for run in self.runs[who]]

    def ratio(self, who):
        return median(ours / awk for ours, awk in zip(self.rate(who), self.rate("awk")))

    def memory(self, who="replay"):
        return max((run["memory"] for run in self.runs[who]), default=math.nan)


def run(command):
    """Runs it to its end; what it took, by the kernel's count."""
    command = list(map(str, command))
    began = os.times().elapsed
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        except FileNotFoundError as error:
            raise RuntimeError(f"{error.filename} is missing") from error
        try:
            _, status, used = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip()[-500:]
    if process.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {said}")
    return {"cpu": used.ru_utime + used.ru_stime, "seconds": os.times().elapsed - began,
            "memory": used.ru_maxrss * 1024}


# --- Measuring ---


def parts(setup):
    lines = lines_of(setup.smoke)
    with tempfile.TemporaryDirectory(dir=setup.build) as folder:
        files = Files(folder, setup.build)
        log = files.log(lines)
        replay = [setup.build / "weir", "replay", "-c", files.policy]
        contestants = {"replay": [*replay, log],
                       "replay, one thread": [*replay, "--threads", "1", log],
                       "awk": ["mawk", AWK, log]}
        yield Part("replay and awk", functools.partial(
            measure_replay, contestants, lines, setup.rounds(ROUNDS)))
        small = [*replay, files.log(lines // 10)]
        yield Part("memory of a tenth of the lines", lambda: {"small": run(small)})


def lines_of(smoke):
    return SMOKE_LINES if smoke else LINES


class Files:
    """The policy and the logs of a run, in a folder of its own."""

    def __init__(self, folder, build):
        self._folder = pathlib.Path(folder)
        self._program = build / "bench/bench_lab"
        self.policy = self._folder / "weir.yaml"
        self.policy.write_text(POLICY, encoding="utf-8")

    def log(self, lines):
        path = self._folder / f"access-{lines}.log"
        with path.open("wb") as out:
            subprocess.run([self._program, str(lines), str(CLIENTS)], stdout=out, check=True)
        return path


def measure_replay(contestants, lines, rounds):
    runs = {who: [] for who in contestants}
    run(contestants["awk"])  # The log is in memory from here on.
    for _ in range(rounds):
        for who, command in contestants.items():
            runs[who].append(run(command))
    return {"lines": lines, "runs": runs}


# --- Against another commit ---

REPLAY_ROW = "lab/replay/10M/3_rules/vs_awk"
ONE_THREAD_ROW = "lab/replay/10M/3_rules/1thread"
MEMORY_ROW = "lab/replay/memory"


def weir_parts():
    """The rows of Weir's own, see WeirPart. Both builds read the same log."""
    yield WeirPart("replay", {REPLAY_ROW: "ns/line/core", MEMORY_ROW: "MiB"},
                   functools.partial(weir_replay, REPLAY_ROW, ()))
    yield WeirPart("replay, one thread", {ONE_THREAD_ROW: "ns/line/core"},
                   functools.partial(weir_replay, ONE_THREAD_ROW, ("--threads", "1")))


def weir_replay(row, words, setup, _rows):
    lines = lines_of(setup.smoke)
    files = setup.once("lab files", lambda: Files(setup.folder, setup.load))
    log = setup.once("lab log", lambda: files.log(lines))
    used = run([setup.build / "weir", "replay", "-c", files.policy, *words, log])
    values = {row: used["cpu"] * 1e9 / lines}
    if row == REPLAY_ROW:
        values[MEMORY_ROW] = used["memory"] / 2**20
    return values


# --- Figures and tables ---


def figures(results):
    awk = results.rate("awk")
    # Figures are better if they are lower: nanoseconds of one core for a line.
    def nanoseconds(rates):
        return 1e9 / median(rates)
    yield Figure(REPLAY_ROW, nanoseconds(results.rate("replay")),
                 "ns/line/core", nanoseconds(awk), LEAST_OF_AWK, paired_ratio=results.ratio("replay"))
    yield Figure(ONE_THREAD_ROW, nanoseconds(results.rate("replay, one thread")),
                 "ns/line/core", nanoseconds(awk),
                 paired_ratio=results.ratio("replay, one thread"))
    yield Figure(MEMORY_ROW, results.memory() / 2**20, "MiB")
    yield Figure("lab/replay/memory/10_times_the_lines", results.memory() / results.small_memory,
                 "times", target=MOST_TIMES_MEMORY, ceiling=True)


def tables(results):
    rows = []
    for who, runs in results.runs.items():
        target = ""
        if who == "replay":
            ratio = results.ratio(who)
            target = (f"at least {LEAST_OF_AWK:g}x: {'met' if ratio >= LEAST_OF_AWK else 'MISSED'}"
                      f", {STRETCH_OF_AWK:g}x {'reached' if ratio >= STRETCH_OF_AWK else 'not yet'}")
        rows.append([who, f"{median(results.rate(who)) / 1e6:.2f}",
                     f"{results.ratio(who):.2f}x",
                     f"{median(run['seconds'] for run in runs):.1f}",
                     f"{results.memory(who) / 2**20:.0f}", target])
    yield Table(f"{results.lines:,} lines through three rules",
                ["who", "M lines/s of one core", "to awk", "s", "MiB", "target"], rows)
    grows = results.memory() / results.small_memory
    yield Table("Memory, with the same clients", ["lines", "MiB", "target"],
                [[f"{results.lines // 10:,}", f"{results.small_memory / 2**20:.0f}", ""],
                 [f"{results.lines:,}", f"{results.memory() / 2**20:.0f}",
                  f"at most {MOST_TIMES_MEMORY:g}x: {'met' if grows <= MOST_TIMES_MEMORY else 'MISSED'}"
                  f" ({grows:.2f}x)"]])
    yield Table("Noise: spread of the middle half of the rounds", ["what", "typical", "worst"],
                [noise_row(who, [results.rate(who)]) for who in results.runs])
