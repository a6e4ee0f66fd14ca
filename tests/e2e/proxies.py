"""Real proxies before the service, each with the files of gateways/ as they stand there, but for
addresses and ports; and a backend behind them. Each is a context, on free loopback ports, and is
stopped by its process id.

    with proxies.Backend() as backend, proxies.Nginx(weir.http, backend) as proxy:
        http_wire.once(proxy.port, "GET", "/")
"""

import http.server
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import daemon
import http_wire

# What the files call a proxy before the gateway; here it is a client that plays one.
OUTER_IN_FILES, OUTER = "192.0.2.10", "127.0.0.9"

OPPOSITE = {"fail open": "fail closed", "behind a proxy": "in front",
            "with a token": "without a token"}


def gateway_file(name):
    return (daemon.source / "gateways" / name).read_text(encoding="utf-8")


def switched(text, mark):
    """The text with those lines switched on that end in a comment with this mark, and those off
    that have the opposite one."""
    marked = rf"^([ \t]*)(?:#|--) ?(.*?) *(?:#|--) {mark}$"
    text, on = re.subn(marked, r"\1\2", text, flags=re.MULTILINE)
    off = 0
    if mark in OPPOSITE:
        text, off = re.subn(rf"^.*# {OPPOSITE[mark]}\n", "", text, flags=re.MULTILINE)
    if on + off == 0:
        raise AssertionError(f"no line is marked {mark!r}")
    return text


def policy_file(name, marks=()):
    """A policy of gateways/, on free ports."""
    text = gateway_file(name)
    for mark in marks:
        text = switched(text, mark)
    return re.sub(r"127\.0\.0\.1:808\d", "127.0.0.1:0", text).replace(OUTER_IN_FILES, OUTER)


def replaced(text, pairs):
    """The text with each of these in the place of what it has there."""
    for old, new in pairs.items():
        if old not in text:
            raise AssertionError(f"there is no {old!r} in it")
        text = text.replace(old, str(new))
    return text


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Backend:
    """Answers 200 and notes what it is asked; /status/NNN is answered so."""

    def __init__(self):
        self.requests = []  # (method, path, headers)
        backend = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self):
                backend.requests.append((self.command, self.path, self.headers))
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status = 200
                if self.path.startswith("/status/"):
                    status = int(self.path.rpartition("/")[2])
                self.send_response(status)
                self.send_header("Content-Length", "7")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(b"backend")

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):
                """A proxy that ends breaks off what it keeps open."""

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Relay:
    """Passes bytes on to a port of the service, and counts who connects."""

    def __init__(self, port):
        self.target = port
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.open = []
        self.threads = [threading.Thread(target=self._accept, daemon=True)]

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            far = socket.create_connection(("127.0.0.1", self.target))
            for one in (near, far):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.open += [near, far]
            for source, sink in ((near, far), (far, near)):
                thread = threading.Thread(target=self._pass_on, args=(source, sink), daemon=True)
                self.threads.append(thread)
                thread.start()

    @staticmethod
    def _pass_on(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def __enter__(self):
        self.threads[0].start()
        return self

    def __exit__(self, *_):
        # Waking up whoever accepts, and whoever reads.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for one in self.open:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        for thread in self.threads:
            thread.join()
        for one in self.open:
            one.close()


class Proxy:
    """A process that listens on `port`. Its class says what it is called and how it is configured:
    `weir` is a port of the service, or whatever address this proxy understands; `marks` are lines
    of its files to switch on; `more` are further texts to replace, old to new."""

    name = ""

    def __init__(self, weir, backend, *, marks=(), more=None):
        self.weir = f"127.0.0.1:{weir}" if isinstance(weir, int) else weir
        self.backend = f"127.0.0.1:{backend.port}"
        self.marks, self.more = tuple(marks), dict(more or {})
        self.port, self.other_port = free_port(), free_port()
        self.folder = tempfile.TemporaryDirectory(prefix=f"weir-{self.name}-")
        self.path = pathlib.Path(self.folder.name)
        self.log_file = self.path / "log"
        command = [str(word) for word in self.configure()]
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=self.path, stdout=log,
                                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                            env={**os.environ, **self.environment()})

    def configure(self):
        """Writes its files and returns its command."""
        raise NotImplementedError

    def environment(self):
        return {}

    def files(self, names, pairs):
        """The texts of these files of its folder in gateways/, by name. Each of `pairs` is in one
        of them at least."""
        texts = {name: gateway_file(f"{self.name}/{name}") for name in names}
        # Ends of files keep what is in one from reaching into the next.
        everything = "\0".join(texts.values())
        for mark in self.marks:
            everything = switched(everything, mark)
        everything = replaced(everything, {**self.more, **pairs})
        everything = everything.replace(OUTER_IN_FILES, OUTER)
        return dict(zip(texts, everything.split("\0")))

    def write(self, texts, folder="."):
        (self.path / folder).mkdir(exist_ok=True)
        for name, text in texts.items():
            (self.path / folder / name).write_text(text, encoding="utf-8")

    def log(self):
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def _await_listening(self):
        deadline = time.monotonic() + daemon.PATIENCE
        while True:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("it does not listen:\n" + self.log())
            try:
                if self.is_ready():
                    return
            except ConnectionRefusedError:
                pass
            time.sleep(0.01)

    def is_ready(self):
        socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        return True

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(timeout=daemon.PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()

    def __enter__(self):
        try:
            self._await_listening()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print(self.log()[-4000:])
        self.stop()


class Nginx(Proxy):
    name = "nginx"
    site = "shop.conf"

    def configure(self):
        names = [self.site, "upstream.conf", "server.conf", "location.conf", "users"]
        self.write(self.files(names, {
            "server 127.0.0.1:8080": f"server {self.weir}",
            "127.0.0.1:8079": f"127.0.0.1:{self.other_port}",
            "listen 8000;": f"listen 127.0.0.1:{self.port};",
            "127.0.0.1:3000": self.backend}), "weir")
        return self.command()

    def command(self):
        folders = "".join(f"{kind}_temp_path {self.path}/{kind};\n"
                          for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (self.path / "nginx.conf").write_text(
            f"daemon off;\nmaster_process off;\npid {self.path}/pid;\nerror_log stderr;\n"
            f"events {{}}\nhttp {{\naccess_log off;\n{folders}include weir/{self.site};\n}}\n",
            encoding="utf-8")
        return [shutil.which("nginx") or "/usr/sbin/nginx", "-p", self.path, "-e", "stderr",
                "-c", self.path / "nginx.conf"]


class Nginx429(Nginx):
    """Denied by 429."""

    site = "shop-429.conf"

    def configure(self):
        self.write(self.files([self.site], {
            "server 127.0.0.1:8080": f"server {self.weir}",
            "listen 8000;": f"listen 127.0.0.1:{self.port};",
            "127.0.0.1:3000": self.backend}), "weir")
        return self.command()


class Caddy(Proxy):
    name = "caddy"

    def configure(self):
        texts = self.files(["Caddyfile"], {
            "127.0.0.1:8080": self.weir, ":8079": f":{self.other_port}",
            ":8000 {": f":{self.port} {{\n\tbind 127.0.0.1", "127.0.0.1:3000": self.backend})
        # Neither an interface to steer it nor certificates.
        texts["Caddyfile"] = "{\n\tadmin off\n\tauto_https off\n}\n" + texts["Caddyfile"]
        self.write(texts)
        return ["caddy", "run", "--config", self.path / "Caddyfile", "--adapter", "caddyfile"]

    def environment(self):
        """It keeps its files in its home."""
        return {name: str(self.path) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}


class HaProxy(Proxy):
    name = "haproxy"

    def configure(self):
        self.write(self.files(["haproxy.cfg", "weir.lua"], {
            "127.0.0.1:8080": self.weir, "bind :8000": f"bind 127.0.0.1:{self.port}",
            "abns@weir": f"abns@weir-{self.port}",
            "/etc/haproxy/weir.lua": self.path / "weir.lua",
            "127.0.0.1:3000": self.backend}))
        return [shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f",
                self.path / "haproxy.cfg"]


def envoy_program():
    """None where it could not be had."""
    made = daemon.source / "build" / "clients" / "envoy" / "envoy"
    return made if made.exists() else None


class Envoy(Proxy):
    name = "envoy"
    file, service_port = "ext_authz.yaml", 8080

    def configure(self):
        self.write(self.files([self.file], {
            "address: 0.0.0.0, port_value: 8000": f"address: 127.0.0.1, port_value: {self.port}",
            f"port_value: {self.service_port}": f"port_value: {self.weir.rpartition(':')[2]}",
            "port_value: 3000": f"port_value: {self.backend.rpartition(':')[2]}"}))
        return [envoy_program(), "-c", self.path / self.file, "--concurrency", "1",
                "--disable-hot-restart", "--log-level", "warn"]


class EnvoyRateLimit(Envoy):
    file, service_port = "ratelimit.yaml", 8081


def traefik_program():
    """None where it could not be had."""
    made = daemon.source / "build" / "clients" / "traefik" / "traefik"
    return made if made.exists() else shutil.which("traefik")


class Traefik(Proxy):
    name = "traefik"
    statics, dynamics = "traefik.yml", "weir.yml"

    def configure(self):
        self.write(self.files([self.statics, self.dynamics], self.addresses()))
        return [traefik_program(), f"--configfile={self.path / self.statics}"]

    def addresses(self):
        return {'":8000"': f'"127.0.0.1:{self.port}"',
                f"/etc/traefik/{self.dynamics}": self.path / self.dynamics,
                "127.0.0.1:8080": self.weir, "127.0.0.1:3000": self.backend}

    def is_ready(self):
        """It listens before it knows what for."""
        return http_wire.once(self.port, "GET", "/account/").status != 404


class TraefikFailOpen(Traefik):
    statics, dynamics = "traefik-fail-open.yml", "weir-fail-open.yml"

    def addresses(self):
        return {**super().addresses(), "port: 8080": f"port: {self.weir.rpartition(':')[2]}",
                "127.0.0.1:8079": f"127.0.0.1:{self.other_port}"}
