"""Real servers, as tests start them: on free loopback ports, in a folder of their own, stopped by
their process ids whatever becomes of the test.

    with redis_servers.Server() as server:                    # Debian's Redis
    with redis_servers.Server(version="valkey-8") as server:  # see setup.sh
    with redis_servers.Shards(3) as shards:
    with redis_servers.Cluster() as cluster:                  # three masters, three replicas
    with redis_servers.Sentinels() as sentinels:              # a master, a replica, three sentinels
"""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
import daemon
import resp_wire

PATIENCE = 30
DEBIAN = "redis-7.0"
VERSIONS = (DEBIAN, "redis-6.2", "valkey-8")
# Below the ports that the kernel hands out, and with room for cluster buses 10,000 above.
PORTS = range(12_000, 22_000)


class Missing(Exception):
    """A version that setup.sh could not get."""


def program(version, name="redis-server"):
    if version == DEBIAN:
        found = shutil.which(name)
        if found is None:
            raise Missing(name)
        return found
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    path = root / "build" / "servers" / version / name
    if not path.exists():
        raise Missing(version)
    return str(path)


def available_versions():
    found = []
    for version in VERSIONS:
        with contextlib.suppress(Missing):
            program(version)
            found.append(version)
    return found


_given_ports = set()


def free_port(host="127.0.0.1"):
    """A port that is free, and whose bus port is free as well. No port is returned twice: a server
    may listen on it at another address, where this does not look."""
    while True:
        port = random.choice(PORTS)
        if {port, port + 10_000} & _given_ports:
            continue
        with contextlib.suppress(OSError), socket.socket() as one, socket.socket() as other:
            one.bind((host, port))
            other.bind((host, port + 10_000))
            _given_ports.update({port, port + 10_000})
            return port


def wait_until(is_so, what, patience=PATIENCE):
    """Returns what it was that is so."""
    deadline = time.monotonic() + patience
    while True:
        with contextlib.suppress(OSError, resp_wire.ProtocolFault):
            if so := is_so():
                return so
        if time.monotonic() > deadline:
            raise AssertionError(f"not in time: {what}")
        time.sleep(0.02)


class Certificates:
    """An authority, a server's certificate for 127.0.0.1 and localhost, one that has expired, and a
    client's."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self._run("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj",
                  "/CN=weir test authority", "-keyout", "ca.key", "-out", "ca.pem")
        self._sign("server", days=30)
        self._sign("expired", days=-1)
        self._sign("client", days=30)

    def path(self, name):
        return str(self.folder / name)

    def _run(self, *words):
        subprocess.run(["openssl", *words], cwd=self.folder, check=True, capture_output=True)

    def _sign(self, name, *, days):
        (self.folder / f"{name}.ext").write_text(
            "subjectAltName=IP:127.0.0.1,DNS:localhost\n", encoding="ascii")
        self._run("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout",
                  f"{name}.key", "-out", f"{name}.csr")
        self._run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                  "-CAcreateserial", "-days", str(days), "-extfile", f"{name}.ext", "-out",
                  f"{name}.pem")


class Server:
    """One server. `settings`: lines of its configuration by name; `users`: lines of `user ...`;
    `tls`: Certificates; `before`: words to put before its command. It runs as soon as it can,
    whatever else the machine has to do, so that only faults that were meant are seen."""

    def __init__(self, *, version=DEBIAN, host="127.0.0.1", port=None, password=None, users=(),
                 tls=None, certificate="server", unix=False, settings=None, before=(),
                 environment=None, sentinel=False):
        self.version, self.host, self.password = version, host, password
        self.tls, self.environment = tls, environment
        self.before = (*before, *daemon.at_once())
        self.folder = tempfile.TemporaryDirectory(prefix="weir-redis-")
        self.port = port or (free_port() if host == "127.0.0.1" else 6379)
        self.unix = f"{self.folder.name}/redis.sock" if unix else None
        self.sentinel = sentinel
        self.process = None
        self.file = pathlib.Path(self.folder.name) / "redis.conf"
        self.settings = self._settings(certificate, dict(settings or {}))
        self.users = list(users)
        self.start()

    def _settings(self, certificate, extra):
        settings = {"bind": self.host, "protected-mode": "no", "daemonize": "no", "save": '""',
                    "dir": self.folder.name, "port": self.port}
        if self.sentinel:
            del settings["save"]
        if self.tls:
            settings |= {"port": 0, "tls-port": self.port, "tls-auth-clients": "optional",
                         "tls-ca-cert-file": self.tls.path("ca.pem"),
                         "tls-cert-file": self.tls.path(f"{certificate}.pem"),
                         "tls-key-file": self.tls.path(f"{certificate}.key")}
        if self.unix:
            settings["unixsocket"] = self.unix
        if self.password:
            settings |= {"requirepass": self.password, "masterauth": self.password}
        if not self.sentinel and self.version != "redis-6.2":
            settings["enable-debug-command"] = "yes"
        return settings | extra

    def start(self):
        """Again after stop() or kill(): empty, unless it keeps its data on disk."""
        lines = []
        for name, value in self.settings.items():
            for one in value if isinstance(value, list) else [value]:
                lines.append(f"{name} {one}")
        lines += [f"user {user}" for user in self.users]
        if not (self.sentinel and self.file.exists()):  # Sentinels keep what they know in it.
            self.file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [*self.before, program(self.version), str(self.file)]
        if self.sentinel:
            command.append("--sentinel")
        with open(f"{self.folder.name}/log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log,
                                            env={**os.environ, **(self.environment or {})})
        try:
            wait_until(self._is_up, f"{command} is up")
        except BaseException:
            self.stop()
            print(pathlib.Path(f"{self.folder.name}/log").read_text(encoding="utf-8"),
                  file=sys.stderr)
            raise

    def _is_up(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.version} ended with {self.process.returncode}")
        with self.connect() as client:
            reply = str(client.call("PING"))
            return reply == "PONG" or reply.startswith(("LOADING", "NOAUTH", "NOPERM"))

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    @property
    def url(self):
        scheme = "rediss" if self.tls else "redis"
        secret = f":{self.password}@" if self.password else ""
        return f"{scheme}://{secret}{self.address}"

    def connect(self):
        """A connection of ours, past the password."""
        client = Connection(self)
        if self.password:
            client.call("AUTH", self.password)
        return client

    def call(self, *words):
        with self.connect() as client:
            reply = client.call(*words)
        if isinstance(reply, resp_wire.ErrorReply):
            raise AssertionError(f"{words}: {reply}")
        return reply

    def info(self, section, name):
        for line in self.call("INFO", section).splitlines():
            if line.startswith(f"{name}:"):
                return line.partition(":")[2].strip()
        raise AssertionError(f"no {name} in INFO {section}")

    def tell(self, number):
        os.kill(self.process.pid, number)

    def pause(self):
        self.tell(signal.SIGSTOP)

    def resume(self):
        self.tell(signal.SIGCONT)

    def kill(self):
        """As a power cut would."""
        self.process.kill()
        self.process.wait()

    def is_alive(self):
        return self.process.poll() is None

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.folder.cleanup()


class Connection(resp_wire.Client):
    """To one of our servers, with TLS if it wants that."""

    def __init__(self, server):  # pylint: disable=super-init-not-called
        raw = socket.create_connection((server.host, server.port), timeout=10)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if server.tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            raw = context.wrap_socket(raw)
        self.socket = raw
        self.reader = resp_wire.Reader()


class Group(contextlib.ExitStack):
    """Servers that live and end together."""

    def __init__(self):
        super().__init__()
        self.servers = []

    def add(self, **options):
        server = self.enter_context(Server(**options))
        self.servers.append(server)
        return server


class Shards(Group):
    """Servers that know nothing of each other."""

    def __init__(self, count=3, **options):
        super().__init__()
        try:
            for _ in range(count):
                self.add(**options)
        except BaseException:
            self.close()
            raise

    @property
    def urls(self):
        return [server.url for server in self.servers]


class Cluster(Group):
    """Redis Cluster: `masters`, each with as many replicas; quick to notice that one is gone."""

    def __init__(self, masters=3, replicas=1, *, node_timeout_ms=1000, settings=None, **options):
        super().__init__()
        settings = {"cluster-enabled": "yes", "cluster-node-timeout": node_timeout_ms,
                    "cluster-require-full-coverage": "no", "repl-diskless-sync-delay": 0,
                    **(settings or {})}
        try:
            for _ in range(masters * (1 + replicas)):
                self.add(settings=settings, **options)
            self._create(replicas)
        except BaseException:
            self.close()
            raise

    def _create(self, replicas):
        first = self.servers[0]
        command = [program(first.version, "redis-cli"), "--cluster", "create",
                   *[server.address for server in self.servers], "--cluster-replicas",
                   str(replicas), "--cluster-yes"]
        made = subprocess.run(command, text=True, capture_output=True, check=False, timeout=60)
        if made.returncode != 0:
            raise AssertionError(made.stdout + made.stderr)
        wait_until(lambda: all(self.is_ok(server) for server in self.servers), "the cluster is up")
        wait_until(lambda: len(self.masters()) * (1 + replicas) == len(self.servers) and
                   all(server.info("replication", "master_link_status") == "up"
                       for server in self.replicas()), "the replicas are up")

    @property
    def url(self):
        return "redis+cluster://" + ",".join(server.address for server in self.servers)

    @staticmethod
    def is_ok(server):
        return "cluster_state:ok" in server.call("CLUSTER", "INFO")

    def alive(self):
        return [server for server in self.servers if server.is_alive()]

    def _of_role(self, role):
        return [server for server in self.alive() if server.call("ROLE")[0] == role]

    def masters(self):
        return self._of_role("master")

    def replicas(self):
        return self._of_role("slave")

    def by_port(self, port):
        return next(server for server in self.servers if server.port == int(port))

    def master_of_key(self, key):
        """Who serves it, as the nodes that are alive say."""
        slot = self.alive()[0].call("CLUSTER", "KEYSLOT", key)
        for node in self.alive():
            for low, high, master, *_ in node.call("CLUSTER", "SLOTS"):
                if low <= slot <= high and self.by_port(master[1]).is_alive():
                    return self.by_port(master[1])
        raise AssertionError(f"nobody serves slot {slot}")

    def replica_of(self, master):
        return next(server for server in self.replicas()
                    if int(server.call("ROLE")[2]) == master.port)

    def node_id(self, server):
        return server.call("CLUSTER", "MYID")


class Sentinels(Group):
    """A master with replicas, and sentinels that are quick to notice that it is gone."""

    NAME = "weir-master"

    def __init__(self, replicas=1, sentinels=3, *, down_after_ms=500, **options):
        super().__init__()
        try:
            self.master = self.add(**options)
            settings = {"replicaof": f"127.0.0.1 {self.master.port}",
                        "repl-diskless-sync-delay": 0}
            self.replicas = [self.add(settings=settings, **options) for _ in range(replicas)]
            watch = [f"monitor {self.NAME} 127.0.0.1 {self.master.port} {sentinels // 2 + 1}",
                     f"down-after-milliseconds {self.NAME} {down_after_ms}",
                     f"failover-timeout {self.NAME} 3000"]
            self.sentinels = [self.add(sentinel=True, settings={"sentinel": watch})
                              for _ in range(sentinels)]
            wait_until(self._know_each_other, "the sentinels know each other")
        except BaseException:
            self.close()
            raise

    def _know_each_other(self):
        for sentinel in self.sentinels:
            told = resp_wire.named(sentinel.call("SENTINEL", "MASTER", self.NAME))
            if (int(told["num-other-sentinels"]) != len(self.sentinels) - 1 or
                    int(told["num-slaves"]) != len(self.replicas) or told["flags"] != "master"):
                return False
        return True

    @property
    def url(self):
        addresses = ",".join(sentinel.address for sentinel in self.sentinels)
        return f"redis+sentinel://{addresses}/{self.NAME}"

    def present_master(self):
        """As the first sentinel says."""
        _, port = self.sentinels[0].call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.NAME)
        return next(server for server in self.servers if server.port == int(port))
