"""Checks in memory: Weir's Limiter beside sharded boost maps and Rust's governor.

bench_core measures, in one process for each outcome and number of keys; here its runs become
figures: medians over the rounds, and ratios of medians.
"""

import dataclasses
import functools
import math

from against import WeirPart, run_google_benchmark
from measured import Part, ask, median, noise_row
from report import Figure, Table

OUTCOMES = ("allow", "deny")
KEYS = {"1": 1, "1k": 1_000, "1M": 1_000_000, "20M": 20_000_000}
ROUNDS = 7
NEW_KEY_ROUNDS = 5
LAST_BYTES_KEYS = 40_000_000

# Boost's map on fingerprints is what every figure is compared with; the others come beside it.
REFERENCE = "boost_fingerprint"
PEERS = {
    "boost_fingerprint": "boost, fingerprints",
    "boost_string": "boost, strings",
    "governor": "governor, strings",
    "governor_number": "governor, u64",
}

# The floors asked for.
AGAINST_BOOST = {("1k", "single"): 1.0, ("1M", "single"): 1.2, ("20M", "single"): 1.6,
                 ("20M", "batch32"): 2.5}
AGAINST_GOVERNOR = 3.0
TWO_THREADS = 1.8
TWO_THREADS_ON_A_HOT_KEY = 1.5
BYTES_PER_KEY = 30
BYTES_ROW = "core/bytes_per_key/5M_to_40M/worst"


@dataclasses.dataclass(frozen=True)
class Case:
    """What a name such as allow/1M/uniform/single/1thread/clock says."""

    outcome: str
    keys: str
    spread: str
    calls: str
    threads: str
    clock: bool

    @classmethod
    def parse(cls, name):
        parts = name.split("/")
        return cls(*parts[:5], clock=parts[5:] == ["clock"])

    @property
    def name(self):
        parts = [self.outcome, self.keys, self.spread, self.calls, self.threads]
        return "/".join(parts + ["clock"] * self.clock)

    @property
    def plain(self):
        """One thread that is handed the time: nothing but the table and the arithmetic."""
        return self.threads == "1thread" and not self.clock

    def target(self, peer):
        if self.outcome not in OUTCOMES or self.spread != "uniform":
            return None
        if peer == "boost_fingerprint" and self.plain:
            return AGAINST_BOOST.get((self.keys, self.calls))
        # governor always reads a clock, so that is how it is compared.
        if peer == "governor" and self.name == "allow/1M/uniform/single/1thread/clock":
            return AGAINST_GOVERNOR
        return None

    def scaling_target(self):
        if self.clock or self.calls != "single" or self.outcome not in OUTCOMES:
            return None
        if self.keys == "1":
            return TWO_THREADS_ON_A_HOT_KEY if self.outcome == "deny" else None
        return TWO_THREADS if KEYS[self.keys] >= 1_000_000 and self.spread == "uniform" else None


class Results:
    """What bench_core said, in form of {what it was asked: its answer}."""

    def __init__(self, answers):
        self.runs = {}  # {store: {Case: [ns per check of every round]}}
        self.bytes_per_key = {}  # {store: [[keys, bytes per key], ...]}
        for question, answer in answers.items():
            if question.startswith("bytes "):
                self.bytes_per_key[question.split()[1]] = answer
                continue
            for name, values in answer.items():
                store, case = name.split("/", 1)
                self.runs.setdefault(store, {})[Case.parse(case)] = values

    def median(self, store, case):
        values = self.runs.get(store, {}).get(case)
        return None if values is None else median(values)

    def cases(self):
        return list(self.runs.get("weir", {}))


# --- Measuring ---


def parts(setup):
    program = setup.build / "bench/bench_core"
    library = setup.rust / "libgovernor_peer.so"
    governor = (str(library),)
    if not library.exists():
        governor = ()
        yield Part("governor", functools.partial(missing_governor, library))

    scale = "0.05" if setup.smoke else "1"
    rounds = str(setup.rounds(ROUNDS))
    # More keys run the same code for longer.
    counts = [count for count in KEYS.values() if not setup.smoke or count <= 1_000]
    last = "5000000" if setup.smoke else str(LAST_BYTES_KEYS)
    questions = [
        ("new", str(setup.rounds(NEW_KEY_ROUNDS)), scale, *governor),
        *(("checks", outcome, str(count), rounds, scale, *governor)
          for outcome in OUTCOMES for count in counts),
        *(("bytes", store, last) for store in ("weir", "boost_fingerprint", "boost_string")),
    ]
    for question in questions:
        name = " ".join(question[:1 if question[0] == "new" else 3])
        yield Part(name, functools.partial(answer, name, program, question))


def answer(name, program, question):
    return {name: ask(program, question)}


def missing_governor(library):
    raise RuntimeError(f"{library} is missing, so the other parts are measured without governor")


# --- Against another commit ---


def weir_parts():
    """The rows of Weir's own, see WeirPart."""
    new = [f"new/4M/{room}/{calls}/{threads}" for room in ("growing", "reserved")
           for calls in ("single", "batch32") for threads in ("1thread", "2threads")]
    yield checks_part("new keys", [*new, "new/4M/capped/single/1thread"], ("new",))
    for outcome in OUTCOMES:
        for keys, count in KEYS.items():
            cases = [Case(outcome, keys, spread, calls, threads, clock).name
                     for spread in (("hot",) if keys == "1" else ("uniform", "zipf"))
                     for clock in (False, True) for calls in ("single", "batch32")
                     for threads in ("1thread", "2threads")]
            yield checks_part(f"{outcome} {keys}", cases, ("checks", outcome, str(count)))
    yield WeirPart("bytes per key", {BYTES_ROW: "bytes/key"}, weir_bytes, least_rounds=3)


def checks_part(name, cases, question):
    # Filling the stores with 20 M keys takes many times as long as all that is measured.
    many = "20000000" in question
    rows = {f"core/{case}": "ns/check" for case in cases}
    return WeirPart(name, rows, functools.partial(weir_checks, question),
                    least_rounds=4 if many else 5)


def weir_checks(question, setup, rows):
    """Checks by Weir alone: the peers are not measured, and governor is left out."""
    scale = "0.05" if setup.smoke else "1"
    runs = run_google_benchmark(
        setup.build / "bench/bench_core", (*question, "1", scale), "weir/",
        None if rows is None else [row.removeprefix("core/") for row in rows])
    return {f"core/{name.removeprefix('weir/')}": median(values) for name, values in runs.items()}


def weir_bytes(setup, _rows):
    last = "5000000" if setup.smoke else str(LAST_BYTES_KEYS)
    steps = ask(setup.build / "bench/bench_core", ("bytes", "weir", last))
    return {BYTES_ROW: max(value for _, value in steps)}


# --- Figures ---


def figures(results):
    return [
        *check_figures(results),
        *scaling_figures(results),
        bytes_figure(results),
    ]


def check_figures(results):
    for case in results.cases():
        value = results.median("weir", case)
        references = {peer: results.median(peer, case) for peer in PEERS}
        for peer, reference in references.items():
            if reference is None and peer != REFERENCE:
                continue
            suffix = "" if peer == REFERENCE else f"/vs_{peer}"
            yield Figure(f"core/{case.name}{suffix}", value, "ns/check", reference,
                         case.target(peer))


def scaling_figures(results):
    """Weir with two threads beside Weir with one."""
    for one, two in scaling_cases(results):
        name = one.name.replace("/1thread", "")
        yield Figure(f"core/scaling/{name}", results.median("weir", two), "ns/check",
                     results.median("weir", one), one.scaling_target())


def scaling_cases(results):
    for one in results.cases():
        two = dataclasses.replace(one, threads="2threads")
        if one.threads == "1thread" and two in results.runs["weir"]:
            yield one, two


def bytes_figure(results):
    return Figure(BYTES_ROW, worst_bytes(results, "weir"), "bytes/key",
                  worst_bytes(results, REFERENCE), BYTES_PER_KEY, ceiling=True)


def worst_bytes(results, store):
    return max((value for _, value in results.bytes_per_key.get(store, ())), default=math.nan)


# --- Tables ---


def tables(results):
    yield from check_tables(results)
    yield scaling_table(results)
    yield bytes_table(results)
    yield noise_table(results)


def check_tables(results):
    titles = {"allow": "Allowed checks, ns", "deny": "Denied checks, ns",
              "new": "Checks of new keys, ns"}
    for outcome, title in titles.items():
        cases = [case for case in results.cases() if case.outcome == outcome]
        cases.sort(key=lambda case: (list(KEYS).index(case.keys) if case.keys in KEYS else 0,
                                     case.spread, case.clock, case.calls != "single",
                                     case.threads))
        peers = [peer for peer in PEERS
                 if any(case in results.runs.get(peer, {}) for case in cases)]
        columns = ["case", "weir", *(PEERS[peer] for peer in peers), "target"]
        yield Table(title, columns, [check_row(results, case, peers) for case in cases])


def check_row(results, case, peers):
    value = results.median("weir", case)
    row = [case.name, f"{value:.1f}"]
    verdicts = []
    for peer in peers:
        reference = results.median(peer, case)
        row.append("" if reference is None else f"{reference:.1f} ({reference / value:.2f}x)")
        target = case.target(peer)
        if target is not None and reference is not None:
            verdicts.append(said(target, reference / value >= target))
    return row + [", ".join(verdicts)]


def said(target, met):
    return f"{target:g}x {'met' if met else 'MISSED'}"


def scaling_table(results):
    rows = []
    for one, two in scaling_cases(results):
        figure = [results.median("weir", one), results.median("weir", two)]
        row = [one.name.replace("/1thread", ""), *(f"{1000 / value:.1f}" for value in figure)]
        ratio = figure[0] / figure[1]
        reference = [results.median(REFERENCE, case) for case in (one, two)]
        row.append(f"{ratio:.2f}x")
        row.append("" if None in reference else f"{reference[0] / reference[1]:.2f}x")
        target = one.scaling_target()
        rows.append(row + ["" if target is None else said(target, ratio >= target)])
    columns = ["case", "1 thread", "2 threads", "gain", "boost's gain", "target"]
    return Table("Two threads, million checks a second", columns, rows)


def bytes_table(results):
    columns = ["store", "best", "worst", "at keys", "target"]
    rows = []
    for store, steps in results.bytes_per_key.items():
        keys, worst = max(steps, key=lambda step: step[1])
        best = min(value for _, value in steps)
        target = ""
        if store == "weir":
            verdict = "met" if worst <= BYTES_PER_KEY else "MISSED"
            target = f"at most {BYTES_PER_KEY}: {verdict}"
        rows.append([PEERS.get(store, store), f"{best:.1f}", f"{worst:.1f}",
                     f"{keys // 1_000_000}M", target])
    return Table("Resident bytes per live key, 5 to 40 million keys, unreserved", columns, rows)


def noise_table(results):
    rows = [noise_row(PEERS.get(store, store), runs.values())
            for store, runs in results.runs.items()]
    return Table("Noise: spread of the middle half of the rounds", ["store", "typical", "worst"],
                 rows)
