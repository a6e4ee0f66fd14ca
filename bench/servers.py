"""Servers for benchmarks: on loopback, on one core, and gone when the benchmark is."""

import contextlib
import os
import pathlib
import socket
import subprocess
import tempfile
import time


def cores():
    """Two cores of this machine: one for the server, one for the load."""
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < 2:
        raise RuntimeError("this benchmark needs two cores: one for the server, one for the load")
    return mine[0], mine[1]


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def pinned(core, command):
    """The command on one core; it is killed should this process die without tidying up."""
    return ["setpriv", "--pdeathsig", "KILL", "taskset", "-c", str(core), *map(str, command)]


def unpinned(command):
    """The words of the program itself."""
    return command[len(pinned(0, [])):] if command[0] == "setpriv" else command


class Server:
    """A process that listens on ports of 127.0.0.1. A context: it runs inside."""

    def __init__(self, name, command, ports, core, folder):
        self.name = name
        self.ports = ports  # {protocol: port}
        self._command = pinned(core, command)
        self._folder = pathlib.Path(folder)
        self._process = None

    @property
    def process_id(self):
        return self._process.pid

    def __enter__(self):
        self._log = self._folder / f"{self.name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder)
        try:
            for port in self.ports.values():
                self._await(port)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def _await(self, port):
        deadline = time.monotonic() + 60  # A busy machine is slow to start it.
        while True:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} does not listen on port {port}:\n"
                                   + self._log.read_text(errors="replace")[-2000:])
            with contextlib.suppress(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            time.sleep(0.02)

    def stop(self):
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def redis(core, folder):
    port = free_port()
    command = ["redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "",
               "--appendonly", "no", "--maxclients", "1000", "--dir", folder]
    return Server("redis", command, {"resp": port}, core, folder)


# The body is as long as Weir's.
NGINX = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 1000; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  default_type application/json;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ return 200 '{body}'; }}
  }}
}}
"""
NGINX_BODY = ('{"allowed":true,"rule":"per-user","limit":100000,"remaining":99999,"cost":1,'
              '"retry_after":0,"retry_after_ms":0,"reset_after":87,"reset_after_ms":86400,'
              '"reset_at":1717920660,"delay_ms":0,"reason":"ok","source":"memory"}')


def nginx(core, folder):
    port = free_port()
    config = pathlib.Path(folder) / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, port=port, body=NGINX_BODY))
    command = ["/usr/sbin/nginx", "-p", folder, "-e", "stderr", "-c", config]
    return Server("nginx", command, {"http": port}, core, folder)


# Three rules that apply to every request, each of another kind of key. Roomy, so that all are let
# through; and slow to be fresh again, so that every key stays. The bounds on clients are as by
# default, but for 10,000 more connections and the time that slow ones may take.
POLICY = """
listen: {{ http: 127.0.0.1:{http}, resp: 127.0.0.1:{resp} }}
trusted_proxies: [127.0.0.1]
identity: {{ user: {{ header: x-user-id }} }}
memory: {{ cap: 1GiB }}
limits: {{ connections: 12k, header_timeout: 10min }}
rules:
  - name: per-ip
    key: ip
    limit: 1M/h
    algorithm: sliding_window
  - name: per-user
    match: {{ user: present }}
    key: user
    limit: 1k/day burst 100k
  - name: per-user-and-path
    match: {{ user: present, path: /api/** }}
    key: [user, path]
    limit: 1k/day burst 50k
"""


def weir(program, core, folder):
    ports = {"http": free_port(), "resp": free_port()}
    policy = pathlib.Path(folder) / "weir.yaml"
    policy.write_text(POLICY.format(**ports))
    return Server("weir", [program, "serve", "-c", policy, "--threads", "1"], ports, core, folder)


def workplace():
    """A context: a folder for files of servers."""
    return tempfile.TemporaryDirectory(prefix="weir-bench-")
