"""Policies: what a request costs under many rules, and what it costs to load them.

bench_policy measures; here its runs become figures: medians over the rounds, and ratios of
medians. Matching and the bare check that it is compared with are of the same run.
"""

import functools

from against import WeirPart, run_google_benchmark
from measured import Part, ask, median, noise_row
from report import Figure, Table

ROUNDS = 9
LOADING_ROUNDS = 5
OVERRIDES = 1_000_000
SMOKE_OVERRIDES = 10_000
# Rows of the table: {what bench_policy is asked: how it is called}.
OVERRIDE_FILES = {
    ("csv", 1_000): "CSV, 1,000 different limits",
    ("jsonl", 1_000): "JSON lines, 1,000 different limits",
    ("csv", OVERRIDES): "CSV, every limit another",
}

# What was asked for. Times of the reference are the most it may take.
MOST_TIMES_THREE_RULES = 3
MOST_TIMES_A_CHECK = 8
MOST_SECONDS_FOR_RULES = 1
MOST_SECONDS_FOR_OVERRIDES = 3
MOST_BYTES_PER_OVERRIDE = 48

MATCHING = {
    "match/3_of_3": "3 of 3 rules",
    "match/3_of_1000": "3 of 1,000",
    "match/3_of_1000/same_rules": "3 of 1,000, always the same three",
    "match/3_of_10000": "3 of 10,000",
    "match/1_of_1": "1 of 1",
    "match/1_of_1/hashed": "1 of 1, the user kept as a keyed hash (HMAC-SHA-256)",
    "store/1M": "one bare check in the memory store, 1 M keys",
    "identify": "who is asking, of an HTTP request with ten headers",
}
ENGINE = {
    "engine/1_of_1": "1 of 1 rule",
    "engine/3_of_3": "3 of 3",
    "engine/3_of_1000": "3 of 1,000",
}
LOADING = {
    "parse/10000": "10,000 rules, from YAML to a policy",
    "yaml/10000": "of that, reading the YAML",
    "parse/1000": "1,000 rules, from YAML to a policy",
    "yaml/1000": "of that, reading the YAML",
    "apply/1000": "an engine takes up 1,000 rules, every limit another",
}


class Results:
    """What bench_policy said, in form of {what it was asked: its answer}."""

    def __init__(self, answers):
        self.runs = {}  # {name: [ns of every round]}
        self.overrides = {}  # {(format, limits): {"seconds": [...], "resident", "table"}}
        for question, answer in answers.items():
            if question.startswith("overrides "):
                _, form, limits = question.split()
                self.overrides[form, int(limits)] = answer
            else:
                self.runs |= answer

    def median(self, name):
        return median(self.runs.get(name, ()))

    def times(self, name, reference):
        return self.median(name) / self.median(reference)


# --- Measuring ---


def parts(setup):
    program = setup.build / "bench/bench_policy"
    for name in ("matching", "engine", "loading"):
        yield Part(name, functools.partial(
            answer, name, program, question(name, setup.rounds(ROUNDS), setup.smoke)))
    for form, limits in OVERRIDE_FILES:
        name = f"overrides {form} {limits}"
        yield Part(name, functools.partial(
            answer, name, program,
            overrides_question(form, limits, setup.rounds(LOADING_ROUNDS), setup.smoke,
                               setup.build / "bench")))


def answer(name, program, words):
    return {name: ask(program, words)}


def question(name, rounds, smoke):
    if name == "loading":
        return (name, str(min(rounds, LOADING_ROUNDS)))
    return (name, str(rounds), "0.01" if smoke else "1")


def overrides_question(form, limits, rounds, smoke, folder):
    rows = rows_of(smoke)
    return ("overrides", form, str(min(limits, rows)), str(rows), str(rounds), str(folder))


def rows_of(smoke):
    return SMOKE_OVERRIDES if smoke else OVERRIDES


# --- Against another commit ---


def weir_parts():
    """All rows, see WeirPart: there are no peers."""
    engine = [name + clock for name in ENGINE for clock in ("", "/clock")]
    for name, benchmarks, unit in (("matching", MATCHING, "ns/request"),
                                   ("engine", engine, "ns/request"), ("loading", LOADING, "s")):
        yield WeirPart(name, {f"policy/{benchmark}": unit for benchmark in benchmarks},
                       functools.partial(weir_runs, name))
    for form, limits in OVERRIDE_FILES:
        name = overrides_row(form, limits)
        rows = {name: "s", f"{name}/resident": "bytes/override", f"{name}/table": "bytes/override"}
        yield WeirPart(f"overrides {form} {limits}", rows,
                       functools.partial(weir_overrides, form, limits))


def weir_runs(name, setup, rows):
    runs = run_google_benchmark(
        setup.build / "bench/bench_policy", question(name, 1, setup.smoke), "",
        None if rows is None else [row.removeprefix("policy/") for row in rows])
    by = 1e9 if name == "loading" else 1
    return {f"policy/{benchmark}": median(values) / by for benchmark, values in runs.items()}


def weir_overrides(form, limits, setup, _rows):
    name = overrides_row(form, limits)
    got = ask(setup.build / "bench/bench_policy",
              overrides_question(form, limits, 1, setup.smoke, setup.folder))
    return {name: median(got["seconds"]),
            **{f"{name}/{kind}": got[kind] / rows_of(setup.smoke)
               for kind in ("resident", "table")}}


# --- Figures ---


def figures(results):
    return [*deciding_figures(results), *loading_figures(results), *override_figures(results)]


def deciding_figures(results):
    for name in [*MATCHING, *(n + c for n in ENGINE for c in ("", "/clock"))]:
        reference = results.median("match/3_of_3") if name.startswith("match/3_of_1") else None
        # At most so many times as long is at least that share as fast.
        target = 1 / MOST_TIMES_THREE_RULES if name == "match/3_of_1000" else None
        yield Figure(f"policy/{name}", results.median(name), "ns/request", reference, target)
    yield Figure("policy/match/3_of_1000/vs_store", results.median("match/3_of_1000"),
                 "ns/request", results.median("store/1M"), 1 / MOST_TIMES_A_CHECK)


def loading_figures(results):
    for name in LOADING:
        target = MOST_SECONDS_FOR_RULES if name == "parse/10000" else None
        yield Figure(f"policy/{name}", results.median(name) / 1e9, "s", target=target, ceiling=True)


def overrides_row(form, limits):
    return f"policy/overrides/1M/{form}" + ("/distinct" if limits == OVERRIDES else "")


def override_figures(results):
    for (form, limits), answer in results.overrides.items():
        name = overrides_row(form, limits)
        seconds, size = (None, None)
        if limits != OVERRIDES:
            seconds, size = (MOST_SECONDS_FOR_OVERRIDES, MOST_BYTES_PER_OVERRIDE)
        yield Figure(name, median(answer["seconds"]), "s", target=seconds, ceiling=True)
        yield Figure(f"{name}/resident", answer["resident"] / OVERRIDES, "bytes/override",
                     target=size, ceiling=True)
        yield Figure(f"{name}/table", answer["table"] / OVERRIDES, "bytes/override", target=size,
                     ceiling=True)


# --- Tables ---


def tables(results):
    yield matching_table(results)
    yield engine_table(results)
    yield loading_table(results)
    yield overrides_table(results)
    yield noise_table(results)


def said(value, most, unit=""):
    return f"at most {most:g}{unit}: {'met' if value <= most else 'MISSED'}"


def matching_table(results):
    rows = []
    for name, title in MATCHING.items():
        by_rules = results.times(name, "match/3_of_3")
        by_check = results.times(name, "store/1M")
        targets = []
        if name == "match/3_of_1000":
            targets = [said(by_rules, MOST_TIMES_THREE_RULES, "x"),
                       said(by_check, MOST_TIMES_A_CHECK, "x a check")]
        rows.append([title, f"{results.median(name):.0f}",
                     f"{by_rules:.2f}x" if name.startswith("match/3") else "",
                     f"{by_check:.2f}x", ", ".join(targets)])
    columns = ["which rules a request meets", "ns", "to 3 of 3", "to a bare check", "target"]
    return Table("Matching and key building", columns, rows)


def engine_table(results):
    rows = [[title, f"{results.median(name):.0f}", f"{results.median(name + '/clock'):.0f}"]
            for name, title in ENGINE.items()]
    columns = ["which rules a request meets", "ns", "ns, reading the clock"]
    return Table("A whole check by an engine, 1 M users", columns, rows)


def loading_table(results):
    rows = []
    for name, title in LOADING.items():
        seconds = results.median(name) / 1e9
        target = said(seconds, MOST_SECONDS_FOR_RULES, " s") if name == "parse/10000" else ""
        rows.append([title, f"{seconds * 1000:.1f}", target])
    return Table("Loading", ["what", "ms", "target"], rows)


def overrides_table(results):
    rows = []
    for (form, limits), answer in results.overrides.items():
        seconds = median(answer["seconds"])
        resident, table = (answer[kind] / OVERRIDES for kind in ("resident", "table"))
        target = ""
        if limits != OVERRIDES:
            target = ", ".join([said(seconds, MOST_SECONDS_FOR_OVERRIDES, " s"),
                                said(resident, MOST_BYTES_PER_OVERRIDE, " bytes")])
        rows.append([OVERRIDE_FILES[form, limits], f"{seconds:.2f}", f"{resident:.1f}",
                     f"{table:.1f}", target])
    columns = ["file", "s", "resident bytes each", "of that, the table", "target"]
    return Table("A million overrides", columns, rows)


def noise_table(results):
    kinds = {"match": "matching", "store": "bare check", "engine": "engine", "parse": "loading"}
    rows = [noise_row(title, [runs for name, runs in results.runs.items()
                              if name.startswith(kind + "/")]) for kind, title in kinds.items()]
    rows.append(noise_row("overrides", [a["seconds"] for a in results.overrides.values()]))
    return Table("Noise: spread of the middle half of the rounds", ["what", "typical", "worst"],
                 rows)
