"""Middleware: the time that a limiter adds to a request, beside the framework without one and with
what people use there.

The application and what keeps its counts have one core, so that what either spends is in the
figure; the load has the other. Once more one at a time what keeps the counts is on the load's core,
so that it has to be woken there. Contestants take turns, and what is added is the difference to the
bare framework of the same round; the median of such differences counts.
"""

import contextlib
import functools
import os
import pathlib
import re

import servers
from against import WeirPart
from measured import Part, median, noise_row, run_program
from report import Figure, Table

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDS = 5
SECONDS = 2
SHORT_SECONDS = 1  # In smoke runs and against another commit; wrk has no less.

# {framework: contestants}; the first has no limiter, the last is the peer.
FRAMEWORKS = {
    "fastapi": ["none", "weir", "slowapi"],
    "express": ["none", "weir", "express-rate-limit"],
    "axum": ["none", "weir", "tower-governor"],
}
# {load: (requests under way, whether the counts are kept on the application's core)}
LOADS = {"one_at_a_time": (1, True), "one_at_a_time_other_core": (1, False), "sixteen": (16, True)}
LOAD_TITLES = {"one_at_a_time": "one at a time",
               "one_at_a_time_other_core": "store on another core",
               "sixteen": "16 at a time"}
# How much longer than with the peer a request may take, in microseconds: tower-governor counts in
# the process, and asking a service cannot be as fast.
MOST_ABOVE_PEER = {"fastapi": 0, "express": 0, "axum": 60}

TITLES = {"none": "no limiter", "weir": "Weir, on a unix socket", "slowapi": "slowapi, on Redis",
          "express-rate-limit": "express-rate-limit, on Redis",
          "tower-governor": "tower-governor, in memory"}
FRAMEWORK_TITLES = {"fastapi": "FastAPI", "express": "Express", "axum": "axum"}

POLICY = """
listen: {{ http: 127.0.0.1:{http}, resp: "unix:{socket}" }}
rules:
  - {{ name: per-ip, key: ip, limit: 1G/h burst 1G }}
"""


# --- Servers ---


def weir(build, core, folder):
    socket = pathlib.Path(folder) / "weir.sock"
    ports = {"http": servers.free_port()}
    policy = pathlib.Path(folder) / "weir.yaml"
    policy.write_text(POLICY.format(socket=socket, **ports))
    command = [build / "weir", "serve", "-c", policy, "--threads", "1"]
    return servers.Server("weir", command, ports, core, folder), socket


def redis(core, folder):
    socket = pathlib.Path(folder) / "redis.sock"
    ports = {"resp": servers.free_port()}
    command = ["redis-server", "--bind", "127.0.0.1", "--port", ports["resp"], "--unixsocket",
               socket, "--save", "", "--appendonly", "no", "--dir", folder]
    return servers.Server("redis", command, ports, core, folder), socket


PROGRAMS = {
    "fastapi": [ROOT / "build/clients/bench-fastapi/bin/python",
                ROOT / "bench/clients/fastapi/app.py"],
    "express": ["node", ROOT / "bench/clients/express/app.js"],
    "axum": [ROOT / "build/rust-clients/release/weir-bench-axum"],
}


def application(framework, limiter, sockets, core, folder):
    ports = {"http": servers.free_port()}
    words = [] if limiter == "none" else [sockets.get(limiter, sockets["redis"])]
    command = [*PROGRAMS[framework], ports["http"], limiter, *words]
    return servers.Server(f"{framework}-{limiter}", command, ports, core, folder)


def move(server, core):
    """All threads of a server to another core."""
    for task in pathlib.Path(f"/proc/{server.process_id}/task").iterdir():
        os.sched_setaffinity(int(task.name), {core})


# --- Measuring ---


def microseconds(port, core, connections, seconds):
    """Per request: the time from one to the next where there is one connection, else that of the
    core, which is what limits it."""
    command = ["wrk", "-t", 1, "-c", connections, "-d", f"{seconds}s", f"http://127.0.0.1:{port}/"]
    output = run_program(servers.pinned(core, command))
    if "Non-2xx" in output or "Socket errors" in output:
        raise RuntimeError(f"requests failed:\n{output}")
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", output)[1])
    return 1e6 / rate


def parts(setup):
    app_core, load_core = servers.cores()
    with servers.workplace() as folder, contextlib.ExitStack() as stack:
        stores, sockets = [], {}
        for name, (server, socket) in {"weir": weir(setup.build, app_core, folder),
                                       "redis": redis(app_core, folder)}.items():
            stores.append(stack.enter_context(server))
            sockets[name] = str(socket)
        for framework, limiters in FRAMEWORKS.items():
            make = {limiter: functools.partial(application, framework, limiter, sockets, app_core,
                                               folder) for limiter in limiters}
            yield Part(framework, functools.partial(
                measure_framework, framework, make, stores, (app_core, load_core), setup))


def measure_framework(framework, make, stores, cores, setup):
    app_core, load_core = cores
    seconds = SHORT_SECONDS if setup.smoke else SECONDS
    runs = {load: {limiter: [] for limiter in make} for load in LOADS}
    with contextlib.ExitStack() as apps:
        running = {limiter: apps.enter_context(start()) for limiter, start in make.items()}
        for app in running.values() if not setup.smoke else ():
            # Warm, and compiled where that happens meanwhile.
            microseconds(app.ports["http"], load_core, 16, seconds)
        for _ in range(setup.rounds(ROUNDS)):
            for load, (connections, is_shared) in LOADS.items():
                for store in stores:
                    move(store, app_core if is_shared else load_core)
                for limiter, app in running.items():
                    runs[load][limiter].append(microseconds(app.ports["http"], load_core,
                                                            connections, seconds))
    return {framework: runs}


# --- Against another commit ---


def weir_parts():
    """A request with Weir's middleware, see WeirPart. Only the service is of either build: the
    middleware is always the working tree's."""
    for framework in FRAMEWORKS:
        rows = {f"clients/{framework}/{load}/weir": load for load in LOADS}
        yield WeirPart(framework, dict.fromkeys(rows, "us/request"),
                       functools.partial(weir_framework, framework, rows))


def weir_framework(framework, loads, setup, rows):
    app_core, load_core = servers.cores()
    service, socket = weir(setup.build, app_core, setup.folder)
    values = {}
    with service, application(framework, "weir", {"weir": str(socket), "redis": ""}, app_core,
                              setup.folder) as app:
        microseconds(app.ports["http"], load_core, 16, SHORT_SECONDS)
        for row, load in loads.items():
            if rows is not None and row not in rows:
                continue
            connections, is_shared = LOADS[load]
            move(service, app_core if is_shared else load_core)
            values[row] = microseconds(app.ports["http"], load_core, connections, SHORT_SECONDS)
    return values


# --- Results ---


class Results:
    """What was measured, in form of {framework: {load: {limiter: [microseconds of a round]}}}."""

    def __init__(self, answers):
        self.answers = answers

    def values(self, framework, load, limiter):
        """Of every round; none if the part failed."""
        return self.answers.get(framework, {}).get(load, {}).get(limiter, [])

    def median(self, framework, load, limiter):
        return median(self.values(framework, load, limiter))

    def added(self, framework, load, limiter):
        """Above the bare framework, of every round."""
        pairs = zip(self.values(framework, load, limiter), self.values(framework, load, "none"))
        return [with_it - without for with_it, without in pairs]

    def median_added(self, framework, load, limiter):
        return median(self.added(framework, load, limiter))

    def above_peer(self, framework, load):
        """How much longer than with the peer a request takes with us."""
        peer = FRAMEWORKS[framework][-1]
        pairs = zip(self.values(framework, load, "weir"), self.values(framework, load, peer))
        return median(ours - theirs for ours, theirs in pairs)


# --- Figures and tables ---


def figures(results):
    for framework, limiters in FRAMEWORKS.items():
        for load in LOADS:
            yield Figure(f"clients/{framework}/{load}/added",
                         results.median_added(framework, load, "weir"), "us/request",
                         results.median_added(framework, load, limiters[-1]))
            yield Figure(f"clients/{framework}/{load}/above_peer",
                         results.above_peer(framework, load), "us/request",
                         target=MOST_ABOVE_PEER[framework], ceiling=True)


def said(results, framework, load):
    above, most = results.above_peer(framework, load), MOST_ABOVE_PEER[framework]
    return f"at most {most}: {'met' if above <= most else 'MISSED'}"


def tables(results):
    columns = ["", "", "us", "added", "above the peer", "target"]
    for framework, limiters in FRAMEWORKS.items():
        rows = []
        for load in LOADS:
            for limiter in limiters:
                row = [LOAD_TITLES[load], TITLES[limiter],
                       f"{results.median(framework, load, limiter):.0f}"]
                if limiter != "none":
                    row.append(f"{results.median_added(framework, load, limiter):.0f}")
                if limiter == "weir":
                    row += [f"{results.above_peer(framework, load):+.0f}",
                            said(results, framework, load)]
                rows.append(row + [""] * (len(columns) - len(row)))
        yield Table(f"{FRAMEWORK_TITLES[framework]}: time per request", columns, rows)
    runs = [results.values(framework, load, limiter) for framework, limiters in FRAMEWORKS.items()
            for load in LOADS for limiter in limiters]
    yield Table("Noise: spread of the middle half of the rounds", ["what", "typical", "worst"],
                [noise_row("time per request", runs)])
