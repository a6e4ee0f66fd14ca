"""The service: what a request costs it beside redis-server and nginx, and how long answers take.

bench_service is the load, on one core; the servers have the other. Contestants take turns, so
that every ratio is of two runs of the same half minute, and the median of such ratios counts.
"""

import contextlib
import functools
import json
import subprocess

import servers
from against import WeirPart
from measured import Part, median, noise_row, run_program
from report import Figure, Table

CONNECTIONS = 50
KEYS = 100_000
CROWD = 10_000
ROUNDS = 9
CROWD_ROUNDS = 5
SECONDS = 2.5
OPEN_SECONDS = 6
WARM_UP_SECONDS = 0.4
# Against another commit: shorter runs, and more of them.
AGAINST_SECONDS = 1.0
AGAINST_OPEN_SECONDS = 2.5
AGAINST_WARM_UP_SECONDS = 0.3
# To see that everything runs, even on a machine that is busy. Every machine keeps up with the rate.
SMOKE_SECONDS = 0.5
SMOKE_RATE = 2_000
SMOKE_CROWD = 200

# The target: at most this many times the reference.
MOST_UNPIPELINED = 1.05
MOST_DEEP = 0.6
MOST_RULES_DEEP = 1.0
MOST_HTTP = 1.0
MOST_P99 = 1.5
MOST_CROWDED = 1.05
MOST_AUTH = 1.1

# Closed loop. {group: (depth, [(server, what it is asked)])}; the first is the reference.
CLOSED = {
    "resp/1": (1, [("redis", "incr"), ("weir", "throttle"), ("weir", "check")]),
    "resp/16": (16, [("redis", "incr"), ("weir", "throttle"), ("weir", "check")]),
    "resp/64": (64, [("redis", "incr"), ("weir", "throttle"), ("weir", "check")]),
    "http/1": (1, [("nginx", "http-get"), ("nginx", "http-check"), ("weir", "http-check")]),
    "http/16": (16, [("nginx", "http-get"), ("nginx", "http-check"), ("weir", "http-check")]),
    "auth/1": (1, [("weir", "http-check"), ("weir", "http-auth")]),
}
CLOSED_TARGETS = {
    ("resp/1", "weir throttle"): MOST_UNPIPELINED,
    ("resp/64", "weir throttle"): MOST_DEEP,
    ("resp/64", "weir check"): MOST_RULES_DEEP,
    ("http/1", "weir http-check"): MOST_HTTP,
    ("auth/1", "weir http-auth"): MOST_AUTH,
}
# Open loop.
OPEN = [("redis", "incr"), ("weir", "throttle"), ("weir", "check")]
QUANTILES = ("p50", "p99", "p999")
OPEN_TARGETS = {"weir throttle": MOST_P99, "weir check": MOST_P99}
CROWDS = {"idle": "idle", "slow": "sending a byte a second"}
CROWDED = ["throttle", "http-check"]

TITLES = {
    "redis incr": "redis-server, `INCR`",
    "weir throttle": "Weir, `CL.THROTTLE`",
    "weir check": "Weir, `WEIR.CHECK`, three rules",
    "nginx http-get": "nginx, `return 200` to a `GET`",
    "nginx http-check": "nginx, `return 200` to the same `POST`",
    "weir http-check": "Weir, `POST /v1/check`, three rules",
    "weir http-auth": "Weir, forward-auth, three rules",
}
# Of figures.
NAMES = {"throttle": "throttle", "check": "check_3_rules", "http-check": "http_check_3_rules",
         "http-auth": "forward_auth_3_rules"}


class Load:
    """bench_service, on its own core."""

    def __init__(self, program, core, times, crowd=CROWD):
        self._program = program
        self._core = core
        self._warm_up, self._seconds, self._open_seconds = times
        self._crowd = crowd

    def _command(self, *words):
        return servers.pinned(self._core, [self._program, *words])

    def _run(self, server, form, kind, keys, seconds, how):
        port = server.ports["http" if kind.startswith("http") else "resp"]
        return json.loads(run_program(self._command(
            form, kind, port, server.process_id, CONNECTIONS, keys, self._warm_up, seconds, how)))

    def closed(self, server, kind, depth):
        return self._run(server, "closed", kind, KEYS, self._seconds, depth)

    def open(self, server, kind, rate, new_keys):
        return self._run(server, "open", kind, "new" if new_keys else KEYS, self._open_seconds,
                         rate)

    @contextlib.contextmanager
    def crowd(self, server, kind):
        """Many connections that want nothing, or very little, while others are served."""
        holder = subprocess.Popen(
            self._command("hold", kind, self._crowd, server.ports["resp"], server.ports["http"]),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            if holder.stdout.readline() != "ready\n":
                raise RuntimeError(f"{self._crowd} connections cannot be opened")
            yield
            answer, _ = holder.communicate(timeout=30)
            if json.loads(answer)["open"] != self._crowd:
                raise RuntimeError(
                    f"connections were closed; {self._crowd} were opened: {answer}")
        finally:
            if holder.poll() is None:
                holder.kill()
            holder.communicate()


SMOKE_TIMES = (0.1, SMOKE_SECONDS, SMOKE_SECONDS)


# --- Measuring ---


def parts(setup):
    server_core, load_core = servers.cores()
    program = setup.build / "bench/bench_service"
    if setup.smoke:
        load = Load(program, load_core, SMOKE_TIMES, SMOKE_CROWD)
    else:
        load = Load(program, load_core, (WARM_UP_SECONDS, SECONDS, OPEN_SECONDS))
    rounds = setup.rounds(ROUNDS)
    with servers.workplace() as folder:
        make = {
            "redis": lambda: servers.redis(server_core, folder),
            "nginx": lambda: servers.nginx(server_core, folder),
            "weir": lambda: servers.weir(setup.build / "weir", server_core, folder),
        }
        for group in CLOSED:
            yield Part(f"closed loop, {group}",
                       functools.partial(measure_closed, make, load, group, rounds))
        for state in ("steady", "growing"):
            yield Part(f"open loop, {state}",
                       functools.partial(measure_open, make, load, setup, state, rounds))
        for crowd in CROWDS:
            yield Part(f"crowd, {crowd}", functools.partial(measure_crowd, make, load, crowd,
                                                            setup.rounds(CROWD_ROUNDS)))


def half_of_highest(runs):
    return median(run["requests"] / run["seconds"] for run in runs) / 2


def measure_closed(make, load, group, rounds):
    depth, contestants = CLOSED[group]
    runs = {f"{server} {kind}": [] for server, kind in contestants}
    with contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(make[name]())
                   for name in dict.fromkeys(server for server, _ in contestants)}
        for _ in range(rounds):
            for server, kind in contestants:
                runs[f"{server} {kind}"].append(load.closed(running[server], kind, depth))
    return {f"closed {group}": runs}


def measure_open(make, load, setup, state, rounds):
    """When growing, every run has a server of its own, whose table begins empty."""
    growing = state == "growing"
    rate = SMOKE_RATE
    if not setup.smoke:
        rate = half_of_highest(setup.answer("closed resp/1")["weir throttle"])
    runs = {f"{server} {kind}": [] for server, kind in OPEN}
    with contextlib.ExitStack() as stack:
        running = {}
        if not growing:
            running = {name: stack.enter_context(make[name]()) for name in ("redis", "weir")}
        for _ in range(rounds):
            for name, kind in OPEN:
                with make[name]() if growing else contextlib.nullcontext(running[name]) as server:
                    runs[f"{name} {kind}"].append(load.open(server, kind, rate, growing))
    return {f"open {state}": runs}


def measure_crowd(make, load, crowd, rounds):
    runs = {f"{kind} {state}": [] for kind in CROWDED for state in ("alone", "crowded")}
    with make["weir"]() as weir:
        for _ in range(rounds):
            for kind in CROWDED:
                runs[f"{kind} alone"].append(load.closed(weir, kind, 1))
            with load.crowd(weir, crowd):
                for kind in CROWDED:
                    runs[f"{kind} crowded"].append(load.closed(weir, kind, 1))
    return {f"crowd {crowd}": runs}


# --- Against another commit ---


def weir_parts():
    """The rows of Weir's own, see WeirPart. Both builds get the load of the new one's program."""
    for group, (depth, contestants) in CLOSED.items():
        rows = {closed_row(kind, depth): kind for server, kind in contestants
                if server == "weir" and (group != "auth/1" or kind == "http-auth")}
        yield WeirPart(f"closed loop, {group}", dict.fromkeys(rows, "ns/request"),
                       functools.partial(weir_closed, rows, depth))
    for state in ("steady", "growing"):
        for _, kind in OPEN[1:]:
            rows = {open_row(kind, state, quantile): quantile for quantile in QUANTILES}
            yield WeirPart(f"open loop, {NAMES[kind]}, {state}", dict.fromkeys(rows, "us"),
                           functools.partial(weir_open, rows, kind, state))
    for crowd in CROWDS:
        rows = {crowd_row(crowd, kind): kind for kind in CROWDED}
        yield WeirPart(f"crowd, {crowd}", dict.fromkeys(rows, "ns/request"),
                       functools.partial(weir_crowd, rows, crowd))


@contextlib.contextmanager
def weir_and_load(setup):
    """A new service of the build, and the load for it."""
    server_core, load_core = servers.cores()
    program = setup.load / "bench/bench_service"
    if setup.smoke:
        load = Load(program, load_core, SMOKE_TIMES, SMOKE_CROWD)
    else:
        load = Load(program, load_core,
                    (AGAINST_WARM_UP_SECONDS, AGAINST_SECONDS, AGAINST_OPEN_SECONDS))
    with servers.weir(setup.build / "weir", server_core, setup.folder) as weir:
        yield weir, load


def weir_closed(kinds, depth, setup, rows):
    with weir_and_load(setup) as (weir, load):
        return {row: load.closed(weir, kind, depth)["cpu_ns"] for row, kind in kinds.items()
                if rows is None or row in rows}


def weir_open(quantiles, kind, state, setup, _rows):
    """At a rate that both builds get: half of the highest of the build that is asked first."""
    def half_of_rate():
        with weir_and_load(setup) as (weir, load):
            return half_of_highest([load.closed(weir, "throttle", 1)])

    rate = SMOKE_RATE if setup.smoke else setup.once("service rate", half_of_rate)
    with weir_and_load(setup) as (weir, load):
        run = load.open(weir, kind, rate, state == "growing")
    return {row: run[quantile] for row, quantile in quantiles.items()}


def weir_crowd(kinds, crowd, setup, rows):
    with weir_and_load(setup) as (weir, load), load.crowd(weir, crowd):
        return {row: load.closed(weir, kind, 1)["cpu_ns"] for row, kind in kinds.items()
                if rows is None or row in rows}


# --- Results ---


class Results:
    """What was measured, in form of {question: {contestant: [{field: value} of every round]}}."""

    def __init__(self, answers):
        self.answers = answers

    def values(self, question, contestant, field):
        """Of every round; none if the part failed."""
        return [run[field] for run in self.answers.get(question, {}).get(contestant, ())]

    def median(self, question, contestant, field):
        return median(self.values(question, contestant, field))

    def rate(self, question, contestant):
        return median(run["requests"] / run["seconds"]
                      for run in self.answers.get(question, {}).get(contestant, ()))

    def times(self, question, contestant, reference, field):
        """How many times the reference of the same round: the median."""
        pairs = zip(self.values(question, contestant, field),
                    self.values(question, reference, field))
        return median(value / of for value, of in pairs)


def reference_of(contestants):
    server, kind = contestants[0]
    return f"{server} {kind}"


# --- Figures ---


def figures(results):
    return [*closed_figures(results), *open_figures(results), *crowd_figures(results)]


def closed_row(kind, depth):
    return f"service/{NAMES[kind]}/depth_{depth}"


def open_row(kind, state, quantile):
    return f"service/open_loop/{NAMES[kind]}/{state}/{quantile}"


def crowd_row(crowd, kind):
    return f"service/crowd/{crowd}/{NAMES[kind]}"


def paired(results, name, question, contestant, reference, field, most):
    unit = {"cpu_ns": "ns/request"}.get(field, "us")
    return Figure(name, results.median(question, contestant, field), unit,
                  results.median(question, reference, field),
                  None if most is None else 1 / most,
                  paired_ratio=1 / results.times(question, contestant, reference, field))


def closed_figures(results):
    for group, (depth, contestants) in CLOSED.items():
        reference = reference_of(contestants)
        for server, kind in contestants:
            if server != "weir" or f"{server} {kind}" == reference:
                continue
            most = CLOSED_TARGETS.get((group, f"weir {kind}"))
            yield paired(results, closed_row(kind, depth), f"closed {group}", f"weir {kind}",
                         reference, "cpu_ns", most)


def open_figures(results):
    reference = reference_of(OPEN)
    for state in ("steady", "growing"):
        for _, kind in OPEN[1:]:
            for field in QUANTILES:
                most = OPEN_TARGETS.get(f"weir {kind}") if field == "p99" else None
                yield paired(results, open_row(kind, state, field), f"open {state}",
                             f"weir {kind}", reference, field, most)


def crowd_figures(results):
    for crowd in CROWDS:
        for kind in CROWDED:
            yield paired(results, crowd_row(crowd, kind), f"crowd {crowd}",
                         f"{kind} crowded", f"{kind} alone", "cpu_ns", MOST_CROWDED)


# --- Tables ---


def tables(results):
    yield closed_table(results)
    yield open_table(results)
    yield crowd_table(results)
    yield noise_table(results)


def said(times, most):
    if most is None:
        return ""
    return f"at most {most:g}x: {'met' if times <= most else 'MISSED'}"


def closed_table(results):
    rows = []
    for group, (depth, contestants) in CLOSED.items():
        question, reference = f"closed {group}", reference_of(contestants)
        for server, kind in contestants:
            name = f"{server} {kind}"
            times = results.times(question, name, reference, "cpu_ns")
            rows.append([TITLES[name], str(depth),
                         f"{results.median(question, name, 'cpu_ns'):.0f}",
                         f"{results.rate(question, name) / 1000:.0f}",
                         f"{results.median(question, name, 'busy'):.0%}",
                         "" if name == reference else f"{times:.2f}x",
                         said(times, CLOSED_TARGETS.get((group, name)))])
    columns = ["server CPU per request", "depth", "ns", "1,000/s", "busy", "to the first", "target"]
    return Table(f"What a request costs the server, {CONNECTIONS} connections", columns, rows)


def open_table(results):
    rows = []
    reference = reference_of(OPEN)
    for state, title in (("steady", f"{KEYS:,} keys"), ("growing", "every key new")):
        question = f"open {state}"
        for server, kind in OPEN:
            name = f"{server} {kind}"
            times = results.times(question, name, reference, "p99")
            rows.append([f"{TITLES[name]}, {title}",
                         f"{results.rate(question, name) / 1000:.0f}",
                         *(f"{results.median(question, name, field):.0f}"
                           for field in ("p50", "p99", "p999", "max", "late_p99")),
                         "" if name == reference else f"{times:.2f}x",
                         said(times, OPEN_TARGETS.get(name))])
    columns = ["from due to answered", "1,000/s", "p50 us", "p99 us", "p99.9 us", "max us",
               "sent late, p99 us", "p99 to the first", "target"]
    return Table("How long answers take at half of the highest rate", columns, rows)


def crowd_table(results):
    rows = []
    for crowd, title in CROWDS.items():
        for kind in CROWDED:
            question = f"crowd {crowd}"
            times = results.times(question, f"{kind} crowded", f"{kind} alone", "cpu_ns")
            rows.append([f"{TITLES['weir ' + kind]}, {CROWD:,} others {title}",
                         f"{results.median(question, f'{kind} alone', 'cpu_ns'):.0f}",
                         f"{results.median(question, f'{kind} crowded', 'cpu_ns'):.0f}",
                         f"{times:.3f}x", said(times, MOST_CROWDED)])
    columns = ["server CPU per request", "alone, ns", "with the others, ns", "ratio", "target"]
    return Table("What other connections cost those that ask", columns, rows)


def noise_table(results):
    def runs(prefix, field):
        return [results.values(question, name, field)
                for question, answer in results.answers.items() if question.startswith(prefix)
                for name in answer]

    rows = [noise_row("CPU per request", runs("closed", "cpu_ns")),
            noise_row("p50", runs("open", "p50")),
            noise_row("p99", runs("open", "p99")),
            noise_row("CPU per request, crowds", runs("crowd", "cpu_ns"))]
    return Table("Noise: spread of the middle half of the rounds", ["what", "typical", "worst"],
                 rows)
