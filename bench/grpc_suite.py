"""gRPC, forward-auth and TLS: what a call costs the service, beside grpc++ and beside its plain forms.

h2load and redis-benchmark are the load, on one core; the servers have the other. Contestants take
turns, so that every ratio is of two runs of the same half minute, and the median of such ratios
counts. What counts is the processor time that the server's threads took, by the number of calls
that were answered.
"""

import contextlib
import functools
import pathlib
import re
import time

import servers
from against import WeirPart
from measured import Part, median, noise_row, run_program
from report import Figure, Table

ROUNDS = 9
SMOKE_SHARE = 100  # A smoke run sends this part of the requests.
AGAINST_SHARE = 2
RLS_PATH = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
CHECK = (b'{"ip": "203.0.113.9", "user": "ann", "method": "GET", "path": "/api/orders",'
         b' "host": "shop.example"}')

# {group: (connections, requests under way on each, requests of a run, contestants)}; the first
# contestant is the reference.
GROUPS = {
    "rls/50x1": (50, 1, 150_000, ["grpc++ rls", "weir rls"]),
    "rls/4x100": (4, 100, 400_000, ["grpc++ rls", "weir rls"]),
    "http/50": (50, 1, 150_000, ["weir check", "weir auth", "weir https-check"]),
    "resp/50": (50, 1, 150_000, ["weir resp", "weir rediss"]),
    "resp/50x16": (50, 16, 800_000, ["weir resp", "weir rediss"]),
}
# The target: at most this many times the reference.
TARGETS = {
    ("rls/50x1", "weir rls"): 0.5,
    ("rls/4x100", "weir rls"): 0.25,
    ("http/50", "weir auth"): 1.1,
}
TITLES = {
    "grpc++ rls": "grpc++, answers OK at once",
    "weir rls": "Weir, `ShouldRateLimit`, one rule",
    "weir check": "Weir, `POST /v1/check`, three rules",
    "weir auth": "Weir, `GET /v1/auth/…`, three rules",
    "weir https-check": "Weir, `POST /v1/check`, TLS 1.3",
    "weir resp": "Weir, `CL.THROTTLE`",
    "weir rediss": "Weir, `CL.THROTTLE`, TLS 1.3",
}

POLICY = """
listen:
  grpc: {grpc}
  http: {http}
  resp: {resp}
trusted_proxies: [127.0.0.0/8]
identity: {{ user: {{ header: x-user-id }} }}
memory: {{ cap: 1GiB }}
limits: {{ per_address: 10k }}
rules:
  - name: per-address
    match: {{ domain: edge }}
    key: descriptor.remote_address
    limit: 1M/s burst 10M
  - name: per-ip
    match: {{ ip: present }}
    key: ip
    limit: 1G/h
    algorithm: sliding_window
  - name: per-user
    match: {{ user: present }}
    key: user
    limit: 1M/s burst 10M
  - name: per-user-and-path
    match: {{ user: present, path: /api/** }}
    key: [user, path]
    limit: 1M/s burst 10M
"""


# --- Servers ---


def certificate(folder):
    """A certificate for this run, and its key."""
    files = [pathlib.Path(folder) / name for name in ("certificate.pem", "key.pem")]
    run_program(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                 "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                 "/CN=localhost", "-out", files[0], "-keyout", files[1]])
    return files


def weir(name, program, core, folder, tls):
    ports = {"grpc": servers.free_port(), "http": servers.free_port(), "resp": servers.free_port()}
    listeners = {protocol: f"127.0.0.1:{port}" for protocol, port in ports.items()}
    if tls:
        cert, key = certificate(folder)
        for protocol in ("http", "resp"):
            listeners[protocol] = (f"{{ address: {listeners[protocol]}, "
                                   f"tls: {{ certificate: {cert}, key: {key} }} }}")
    policy = pathlib.Path(folder) / f"{name}.yaml"
    policy.write_text(POLICY.format(**listeners))
    return servers.Server(name, [program, "serve", "-c", policy, "--threads", "1"], ports, core,
                          folder)


def grpcpp(program, core, folder):
    ports = {"grpc": servers.free_port()}
    return servers.Server("grpc++", [program, ports["grpc"]], ports, core, folder)


SERVER_OF = {"grpc++ rls": "grpc++", "weir https-check": "weir-tls", "weir rediss": "weir-tls"}


# --- The load ---


def field(number, value):
    """A field of a protobuf message: text, or a message."""
    return bytes([number << 3 | 2, len(value)]) + value


def rls_call():
    """A RateLimitRequest with one descriptor, as it stands on the wire."""
    entry = field(1, b"remote_address") + field(2, b"203.0.113.9")
    message = field(1, b"edge") + field(2, field(1, entry))
    return b"\0" + len(message).to_bytes(4, "big") + message


def processor_time(process_id):
    """Nanoseconds that all threads of a process have run."""
    tasks = pathlib.Path(f"/proc/{process_id}/task")
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks.iterdir())


class Load:
    """h2load and redis-benchmark; they send one request of `share`."""

    def __init__(self, core, folder, share=1):
        self._core = core
        self._share = share
        self._rls = pathlib.Path(folder) / "call.bin"
        self._rls.write_bytes(rls_call())
        self._check = pathlib.Path(folder) / "check.json"
        self._check.write_bytes(CHECK)

    def run(self, contestant, server, connections, streams, requests):
        """Nanoseconds of the server's for a request, and requests a second."""
        requests //= self._share
        kind = contestant.split()[1]
        command = (self._redis_benchmark if kind.startswith("re") else self._h2load)(
            kind, server, connections, streams, requests)
        before = processor_time(server.process_id)
        began = time.monotonic()
        output = run_program(servers.pinned(self._core, command))
        seconds = time.monotonic() - began
        took = processor_time(server.process_id) - before
        if kind.startswith("re"):
            if "Error" in output:
                raise RuntimeError("requests failed:\n" + output)
        elif not re.search(rf"status codes: {requests} 2xx", output):
            raise RuntimeError("requests failed:\n" + output)
        return {"cpu_ns": took / requests, "rate": requests / seconds,
                "busy": took / 1e9 / seconds}

    def _h2load(self, kind, server, connections, streams, requests):
        command = ["h2load", "-n", requests, "-c", connections, "-m", streams]
        if kind == "rls":
            return [*command, "-d", self._rls, "-H", "content-type: application/grpc", "-H",
                    "te: trailers", f"http://127.0.0.1:{server.ports['grpc']}{RLS_PATH}"]
        command += ["--h1"]
        at = f"127.0.0.1:{server.ports['http']}"
        if kind == "auth":
            return [*command, "-H", "x-forwarded-method: GET", "-H", "x-forwarded-uri: /api/orders",
                    "-H", "x-forwarded-host: shop.example", "-H", "x-forwarded-for: 203.0.113.9",
                    "-H", "x-user-id: ann", f"http://{at}/v1/auth"]
        scheme = "https" if kind == "https-check" else "http"
        return [*command, "-d", self._check, "-H", "content-type: application/json",
                f"{scheme}://{at}/v1/check"]

    @staticmethod
    def _redis_benchmark(kind, server, connections, streams, requests):
        tls = ["--tls", "--insecure"] if kind == "rediss" else []
        return ["redis-benchmark", *tls, "-p", server.ports["resp"], "-c", connections, "-P",
                streams, "-n", requests, "-q", "CL.THROTTLE", "ann", "1000000", "1000000", "1"]


# --- Measuring ---


def parts(setup):
    server_core, load_core = servers.cores()
    with servers.workplace() as folder:
        load = Load(load_core, folder, SMOKE_SHARE if setup.smoke else 1)
        make = {
            "grpc++": lambda: grpcpp(setup.build / "bench/bench_grpc", server_core, folder),
            "weir": lambda: weir("weir", setup.build / "weir", server_core, folder, tls=False),
            "weir-tls": lambda: weir("weir-tls", setup.build / "weir", server_core, folder,
                                     tls=True),
        }
        for group in GROUPS:
            yield Part(group, functools.partial(measure_group, make, load, group,
                                                setup.rounds(ROUNDS)))


def measure_group(make, load, group, rounds):
    connections, streams, requests, contestants = GROUPS[group]
    runs = {contestant: [] for contestant in contestants}
    with contextlib.ExitStack() as stack:
        names = [SERVER_OF.get(contestant, "weir") for contestant in contestants]
        running = {name: stack.enter_context(make[name]()) for name in dict.fromkeys(names)}
        for _ in range(rounds):
            for contestant, name in zip(contestants, names):
                runs[contestant].append(load.run(contestant, running[name], connections, streams,
                                                 requests))
    return {group: runs}


# --- Against another commit ---


def weir_parts():
    """The rows of Weir's own, see WeirPart: the references that are Weir's are rows, too."""
    for group, (_, _, _, contestants) in GROUPS.items():
        rows = {row_of(group, contestant): contestant for contestant in contestants
                if contestant.startswith("weir ")}
        yield WeirPart(group, dict.fromkeys(rows, "ns/request"),
                       functools.partial(weir_group, group, rows))


def weir_group(group, contestants, setup, rows):
    connections, streams, requests, _ = GROUPS[group]
    server_core, load_core = servers.cores()
    load = Load(load_core, setup.folder, SMOKE_SHARE if setup.smoke else AGAINST_SHARE)
    values = {}
    for row, contestant in contestants.items():
        if rows is not None and row not in rows:
            continue
        name = SERVER_OF.get(contestant, "weir")
        with weir(name, setup.build / "weir", server_core, setup.folder,
                  tls=name == "weir-tls") as server:
            run = load.run(contestant, server, connections, streams, requests)
        values[row] = run["cpu_ns"]
    return values


# --- Results ---


class Results:
    """What was measured, in form of {group: {contestant: [{field: value} of every round]}}."""

    def __init__(self, answers):
        self.answers = answers

    def values(self, group, contestant, field):
        """Of every round; none if the part failed."""
        return [run[field] for run in self.answers.get(group, {}).get(contestant, ())]

    def median(self, group, contestant, field):
        return median(self.values(group, contestant, field))

    def times(self, group, contestant, reference):
        """How many times the reference of the same round: the median."""
        pairs = zip(self.values(group, contestant, "cpu_ns"),
                    self.values(group, reference, "cpu_ns"))
        return median(value / of for value, of in pairs)


# --- Figures and tables ---


def row_of(group, contestant):
    return f"grpc/{group}/{contestant.split()[1]}"


def figures(results):
    for group, (_, _, _, contestants) in GROUPS.items():
        for contestant in contestants[1:]:
            most = TARGETS.get((group, contestant))
            yield Figure(row_of(group, contestant),
                         results.median(group, contestant, "cpu_ns"), "ns/request",
                         results.median(group, contestants[0], "cpu_ns"),
                         None if most is None else 1 / most,
                         paired_ratio=1 / results.times(group, contestant, contestants[0]))


def said(times, most):
    if most is None:
        return ""
    return f"at most {most:g}x: {'met' if times <= most else 'MISSED'}"


def tables(results):
    rows = []
    for group, (connections, streams, _, contestants) in GROUPS.items():
        for contestant in contestants:
            times = results.times(group, contestant, contestants[0])
            rows.append([TITLES[contestant], f"{connections} x {streams}",
                         f"{results.median(group, contestant, 'cpu_ns'):.0f}",
                         f"{results.median(group, contestant, 'rate') / 1000:.0f}",
                         f"{results.median(group, contestant, 'busy'):.0%}",
                         "" if contestant == contestants[0] else f"{times:.2f}x",
                         said(times, TARGETS.get((group, contestant)))])
    columns = ["server CPU per request", "connections", "ns", "1,000/s", "busy", "to the first",
               "target"]
    yield Table("What a request costs the server", columns, rows)
    runs = [results.values(group, contestant, "cpu_ns")
            for group, answer in results.answers.items() for contestant in answer]
    yield Table("Noise: spread of the middle half of the rounds", ["what", "typical", "worst"],
                [noise_row("CPU per request", runs)])
