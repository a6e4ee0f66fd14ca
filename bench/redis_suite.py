"""Limits on a shared Redis: what a check costs the server, ours beside the way everybody does it.

bench_redis is the load, on one core; redis-server has the other. Contestants take turns on the
same server, so that every ratio is of two neighbouring runs, and the median of such ratios counts.
"""

import functools
import json
import socket

import servers
from against import WeirPart
from measured import Part, median, noise_row, run_program
from report import Figure, Table
from service_suite import Results as ServiceResults
from service_suite import said

CONNECTIONS = 50
IN_FLIGHT = 1024
KEYS = 100_000
ROUNDS = 9
SECONDS = 2.5
OPEN_ROUNDS = 5
OPEN_SECONDS = 6
OPEN_SHARE = 0.8  # Of our highest rate.
WARM_UP_SECONDS = 0.4
# Against another commit: shorter runs, and more of them.
AGAINST_SECONDS = 1.0
AGAINST_OPEN_SECONDS = 2.5
# To see that everything runs, even on a machine that is busy. Every machine keeps up with the rate.
SMOKE_SECONDS = 0.5
SMOKE_RATE = 2_000

# The target: at most this many times the reference, and for rates the least.
MOST_CPU = 0.4
LEAST_RATE = 2.5
MOST_ALONE = 1.0
MOST_THREE = 0.7
MOST_BYTES = 0.75
MOST_P50_US = 1_000
MOST_P99_US = 5_000

WEIR_KEYS = "weir1:*per-user:*"

# {question: {contestant: (form, how much at once, rules)}}; the first is the reference.
CLOSED = {
    "saturated": {"usual": ("usual", CONNECTIONS, 1), "weir": ("closed", IN_FLIGHT, 1)},
    "alone": {"usual": ("usual", 1, 1), "weir": ("closed", 1, 1)},
    "rules saturated": {"one": ("closed", IN_FLIGHT, 1), "three": ("closed", IN_FLIGHT, 3)},
    "rules alone": {"one": ("closed", 1, 1), "three": ("closed", 1, 3)},
}


class Connection:
    """Asks redis-server what bench_redis does not."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._file = self._socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()
        self._socket.close()

    def ask(self, *words):
        command = f"*{len(words)}\r\n"
        command += "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
        self._socket.sendall(command.encode())
        return self._read()

    def _read(self):
        line = self._file.readline().decode().rstrip("\r\n")
        kind, rest = line[0], line[1:]
        if kind == "-":
            raise RuntimeError(rest)
        if kind == "$":
            return self._file.read(int(rest) + 2)[:-2].decode() if rest != "-1" else None
        if kind == "*":
            return [self._read() for _ in range(int(rest))]
        return int(rest) if kind == ":" else rest

    def script_calls(self):
        """How many there have been, by digest or by text."""
        calls = 0
        for line in self.ask("INFO", "commandstats").splitlines():
            if line.startswith(("cmdstat_evalsha:", "cmdstat_eval:")):
                calls += int(line.split("calls=")[1].split(",")[0])
        return calls

    def bytes_per_key(self, pattern):
        """The median over some of the keys that look like this."""
        sizes, cursor = [], "0"
        while len(sizes) < 200:
            cursor, keys = self.ask("SCAN", cursor, "MATCH", pattern, "COUNT", "1000")
            sizes += [self.ask("MEMORY", "USAGE", key) for key in keys]
            if cursor == "0":
                break
        return median(sizes)


class Load:
    """bench_redis, on its own core."""

    def __init__(self, program, core, server, smoke):
        self._program = program
        self._core = core
        self._server = server
        self._smoke = smoke

    def run(self, form, how_much, rules, seconds=SECONDS):
        warm_up, seconds = ((0.1, SMOKE_SECONDS) if self._smoke
                            else (WARM_UP_SECONDS, seconds))
        words = [form, self._server.ports["resp"], self._server.process_id, KEYS, warm_up, seconds,
                 how_much]
        if form != "usual":
            words.append(rules)
        with Connection(self._server.ports["resp"]) as redis:
            calls = redis.script_calls()
            answer = json.loads(run_program(servers.pinned(self._core, [self._program, *words])))
            # Of the warm-up too, as near as makes no difference.
            share = answer["seconds"] / (answer["seconds"] + warm_up)
            answer["batch"] = answer["requests"] / share / (redis.script_calls() - calls)
        answer["rate"] = answer["requests"] / answer["seconds"]
        return answer


# --- Measuring ---


def parts(setup):
    server_core, load_core = servers.cores()
    with servers.workplace() as folder, servers.redis(server_core, folder) as redis:
        load = Load(setup.build / "bench/bench_redis", load_core, redis, setup.smoke)
        for question in CLOSED:
            yield Part(question, functools.partial(measure_closed, load, question,
                                                   setup.rounds(ROUNDS)))
            if question == "saturated":
                yield Part("memory", functools.partial(measure_memory, redis))
        yield Part("open loop", functools.partial(measure_open, load, setup))


def measure_closed(load, question, rounds):
    contestants = CLOSED[question]
    runs = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, (form, how_much, rules) in contestants.items():
            runs[name].append(load.run(form, how_much, rules))
    return {question: runs}


def measure_memory(redis):
    with Connection(redis.ports["resp"]) as connection:
        return {"memory": {"usual": [{"bytes": connection.bytes_per_key("ratelimit:*")}],
                           "weir": [{"bytes": connection.bytes_per_key(WEIR_KEYS)}]}}


def measure_open(load, setup):
    rate = SMOKE_RATE
    if not setup.smoke:
        rate = OPEN_SHARE * median(run["rate"] for run in setup.answer("saturated")["weir"])
    return {"open": {"weir": [load.run("open", rate, 1, OPEN_SECONDS)
                              for _ in range(setup.rounds(OPEN_ROUNDS))]}}


# --- Against another commit ---


def weir_parts():
    """The rows of Weir's own, see WeirPart: the store of each build, on a new redis-server."""
    yield WeirPart("saturated", {"redis/cpu/saturated": "ns/check",
                                 "redis/time_per_check/saturated": "ns/check",
                                 "redis/bytes_per_key": "bytes/key"}, weir_saturated)
    for question, row, in_flight, rules in (
            ("alone", "redis/cpu/one_in_flight", 1, 1),
            ("rules saturated", "redis/cpu/three_rules/saturated", IN_FLIGHT, 3),
            ("rules alone", "redis/cpu/three_rules/one_in_flight", 1, 3)):
        yield WeirPart(question, {row: "ns/check"},
                       functools.partial(weir_closed, row, in_flight, rules))
    yield WeirPart("open loop", dict.fromkeys(("redis/open_loop/p50", "redis/open_loop/p99"), "us"),
                   weir_open)


def on_new_redis(setup, measure):
    """What `measure` returns, which is given a load and a server that knows all keys."""
    server_core, load_core = servers.cores()
    with servers.redis(server_core, setup.folder) as redis:
        load = Load(setup.build / "bench/bench_redis", load_core, redis, setup.smoke)
        load.run("closed", IN_FLIGHT, 3, AGAINST_SECONDS)
        return measure(load, redis)


def weir_saturated(setup, _rows):
    def measure(load, redis):
        run = load.run("closed", IN_FLIGHT, 1, AGAINST_SECONDS)
        with Connection(redis.ports["resp"]) as connection:
            return {"redis/cpu/saturated": run["cpu_ns"],
                    "redis/time_per_check/saturated": 1e9 / run["rate"],
                    "redis/bytes_per_key": connection.bytes_per_key(WEIR_KEYS)}

    return on_new_redis(setup, measure)


def weir_closed(row, in_flight, rules, setup, _rows):
    return on_new_redis(setup, lambda load, _: {
        row: load.run("closed", in_flight, rules, AGAINST_SECONDS)["cpu_ns"]})


def weir_open(setup, _rows):
    """At a rate that both builds get: a share of the highest of the build that is asked first."""
    def measure(load, _):
        rate = SMOKE_RATE if setup.smoke else setup.once("redis rate", lambda: OPEN_SHARE * load.run(
            "closed", IN_FLIGHT, 1, AGAINST_SECONDS)["rate"])
        run = load.run("open", rate, 1, AGAINST_OPEN_SECONDS)
        return {f"redis/open_loop/{field}": run[field] for field in ("p50", "p99")}

    return on_new_redis(setup, measure)


# --- Results ---


class Results(ServiceResults):
    """As those of the service."""


# --- Figures ---


def figures(results):
    yield paired(results, "cpu/saturated", "saturated", "weir", "usual", MOST_CPU)
    rate = results.times("saturated", "weir", "usual", "rate")
    # Lower values are better, so it is the time from one check to the next.
    yield Figure("redis/time_per_check/saturated", 1e9 / results.median("saturated", "weir", "rate"),
                 "ns/check", 1e9 / results.median("saturated", "usual", "rate"), LEAST_RATE,
                 paired_ratio=rate)
    yield paired(results, "cpu/one_in_flight", "alone", "weir", "usual", MOST_ALONE)
    for state in ("saturated", "alone"):
        name = "one_in_flight" if state == "alone" else state
        yield paired(results, f"cpu/three_rules/{name}", f"rules {state}", "three", "one",
                     MOST_THREE, many=3)
    ours, theirs = (results.median("memory", name, "bytes") for name in ("weir", "usual"))
    yield Figure("redis/bytes_per_key", ours, "bytes/key", theirs, 1 / MOST_BYTES)
    for field, most in (("p50", MOST_P50_US), ("p99", MOST_P99_US)):
        yield Figure(f"redis/open_loop/{field}", results.median("open", "weir", field), "us",
                     target=most, ceiling=True)


def paired(results, name, question, contestant, reference, most, many=1):
    return Figure(f"redis/{name}", results.median(question, contestant, "cpu_ns"), "ns/check",
                  many * results.median(question, reference, "cpu_ns"), 1 / most,
                  paired_ratio=many / results.times(question, contestant, reference, "cpu_ns"))


# --- Tables ---


def tables(results):
    yield closed_table(results)
    yield three_table(results)
    yield open_table(results)
    yield memory_table(results)
    yield noise_table(results)


def closed_row(results, question, name, title):
    return [title, f"{results.median(question, name, 'cpu_ns'):.0f}",
            f"{results.median(question, name, 'rate') / 1000:.0f}",
            f"{results.median(question, name, 'busy'):.0%}",
            f"{results.median(question, name, 'batch'):.1f}"]


def closed_table(results):
    rows = []
    for question, usual, ours, most in (
            ("saturated", f"the usual script, {CONNECTIONS} connections",
             f"Weir, {IN_FLIGHT} requests under way", MOST_CPU),
            ("alone", "the usual script, one request under way", "Weir, one request under way",
             MOST_ALONE)):
        times = results.times(question, "weir", "usual", "cpu_ns")
        rate = results.times(question, "weir", "usual", "rate")
        wanted = said(times, most)
        if question == "saturated":
            wanted += f"; rate at least {LEAST_RATE:g}x: "
            wanted += "met" if rate >= LEAST_RATE else "MISSED"
        rows.append([*closed_row(results, question, "usual", usual), "", "", ""])
        rows.append([*closed_row(results, question, "weir", ours), f"{times:.2f}x", f"{rate:.2f}x",
                     wanted])
    columns = ["server CPU per check", "ns", "1,000/s", "busy", "checks a call", "CPU to theirs",
               "rate to theirs", "target"]
    return Table("What a check costs Redis", columns, rows)


def three_table(results):
    rows = []
    for state, title in (("saturated", f"{IN_FLIGHT} requests under way"),
                         ("alone", "one request under way")):
        question = f"rules {state}"
        times = results.times(question, "three", "one", "cpu_ns") / 3
        rows.append([title, f"{3 * results.median(question, 'one', 'cpu_ns'):.0f}",
                     f"{results.median(question, 'three', 'cpu_ns'):.0f}", f"{times:.2f}x",
                     said(times, MOST_THREE)])
    columns = ["server CPU", "three requests of one rule, ns", "one of three, ns", "ratio",
               "target"]
    return Table("What three rules cost Redis", columns, rows)


def open_table(results):
    fields = ("p50", "p99", "p999", "late_p99")
    met = (results.median("open", "weir", "p50") < MOST_P50_US
           and results.median("open", "weir", "p99") < MOST_P99_US)
    rows = [["Weir", f"{results.median('open', 'weir', 'rate') / 1000:.0f}",
             *(f"{results.median('open', 'weir', field):.0f}" for field in fields),
             f"{results.median('open', 'weir', 'batch'):.1f}",
             f"p50 below 1 ms, p99 below 5 ms: {'met' if met else 'MISSED'}"]]
    columns = ["from due to decided", "1,000/s", "p50 us", "p99 us", "p99.9 us", "sent late, p99 us",
               "checks a call", "target"]
    return Table(f"How long checks take at {OPEN_SHARE:.0%} of our highest rate", columns, rows)


def memory_table(results):
    ours, theirs = (results.median("memory", name, "bytes") for name in ("weir", "usual"))
    rows = [["the usual script", f"{theirs:.0f}", "", ""],
            ["Weir", f"{ours:.0f}", f"{ours / theirs:.2f}x", said(ours / theirs, MOST_BYTES)]]
    columns = ["a token bucket", "bytes", "to theirs", "target"]
    return Table("MEMORY USAGE of a key of 40 bytes", columns, rows)


def noise_table(results):
    runs = [results.values(question, name, "cpu_ns")
            for question, contestants in CLOSED.items() for name in contestants]
    rows = [noise_row("CPU per check", runs),
            noise_row("p99", [results.values("open", "weir", "p99")])]
    return Table("Noise: spread of the middle half of the rounds", ["what", "typical", "worst"],
                 rows)
