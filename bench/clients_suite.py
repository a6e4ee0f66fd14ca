"""Middleware: the time that a limiter adds to a request, beside the framework without one and with
what people use there.

The application and what keeps its counts have one core, so that what either spends is in the
figure; the load has the other. Once more one at a time what keeps the counts is on the load's core,
so that it has to be woken there. Contestants take turns, and what is added is the difference to the
bare framework of the same round; the median of such differences counts.
"""

import contextlib
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import servers
from measured import noise_row
from report import Figure, Table

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROUNDS = 5
SECONDS = 2

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
    done = subprocess.run(servers.pinned(core, command), stdout=subprocess.PIPE, check=True,
                          text=True)
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise RuntimeError(f"requests failed:\n{done.stdout}")
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)[1])
    return 1e6 / rate


def measure(build, _rust, quick):
    """Yields {question: answer}, as plain data, one after the other; all of them make Results."""
    rounds, seconds = (2, 1) if quick else (ROUNDS, SECONDS)
    app_core, load_core = servers.cores()
    with servers.workplace() as folder, contextlib.ExitStack() as stack:
        stores, sockets = [], {}
        for name, (server, socket) in {"weir": weir(build, app_core, folder),
                                       "redis": redis(app_core, folder)}.items():
            stores.append(stack.enter_context(server))
            sockets[name] = str(socket)
        for framework, limiters in FRAMEWORKS.items():
            began = time.monotonic()
            runs = {load: {limiter: [] for limiter in limiters} for load in LOADS}
            with contextlib.ExitStack() as apps:
                running = {limiter: apps.enter_context(
                    application(framework, limiter, sockets, app_core, folder))
                           for limiter in limiters}
                for app in running.values():  # Warm, and compiled where that happens meanwhile.
                    microseconds(app.ports["http"], load_core, 16, seconds)
                for _ in range(rounds):
                    for load, (connections, is_shared) in LOADS.items():
                        for store in stores:
                            move(store, app_core if is_shared else load_core)
                        for limiter, app in running.items():
                            runs[load][limiter].append(microseconds(
                                app.ports["http"], load_core, connections, seconds))
            print(f"{framework}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            yield {framework: runs}


class Results:
    """What was measured, in form of {framework: {load: {limiter: [microseconds of a round]}}}."""

    def __init__(self, answers):
        self.answers = answers

    def median(self, framework, load, limiter):
        return statistics.median(self.answers[framework][load][limiter])

    def added(self, framework, load, limiter):
        """Above the bare framework, of every round."""
        runs = self.answers[framework][load]
        return [with_it - without for with_it, without in zip(runs[limiter], runs["none"])]

    def median_added(self, framework, load, limiter):
        return statistics.median(self.added(framework, load, limiter))

    def above_peer(self, framework, load):
        """How much longer than with the peer a request takes with us."""
        peer = FRAMEWORKS[framework][-1]
        runs = self.answers[framework][load]
        return statistics.median(ours - theirs for ours, theirs in zip(runs["weir"], runs[peer]))


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
    runs = [results.answers[framework][load][limiter] for framework, limiters in FRAMEWORKS.items()
            for load in LOADS for limiter in limiters]
    yield Table("Noise: spread of the middle half of the rounds", ["what", "typical", "worst"],
                [noise_row("time per request", runs)])
