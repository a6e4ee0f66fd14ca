"""Real proxies before the service, each configured as docs/gateways.md says, and a backend behind
them. Each is a context, on free loopback ports, and is stopped by its process id.

    with proxies.Backend() as backend, proxies.nginx(weir, backend) as proxy:
        http_wire.once(proxy.port, "GET", "/")
"""

import http.server
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import daemon

# What they ask about, and what a client says who would like to be asked about something else.
POLICY = """\
trusted_proxies: [127.0.0.1]
identity:
  user: { header: x-user-id }
  tier: { header: x-tier, default: free }
deny: [ { user: mallory }, { path: /secret/** } ]
rules:
  - { name: per-ip, key: ip, limit: 1000/h }
  - { name: per-user, match: { user: present }, key: user, limit: 2/h }
  - { name: login, match: { path: /login, method: POST }, key: ip, limit: 2/h, message: Too often }
  - { name: shop, match: { host: shop.example }, key: ip, limit: 500/h }
"""
FORGED = {"X-Forwarded-Uri": "/cheap", "X-Forwarded-Method": "GET", "X-Original-URI": "/cheap",
          "X-Original-URL": "http://cheap.example/cheap", "X-Original-Method": "GET",
          "X-Forwarded-For": "198.51.100.77", "X-Forwarded-Host": "cheap.example",
          "X-User-Id": "forged", "X-Weir-Token": "forged", "Forwarded": "for=198.51.100.78"}

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def documented(language, page="gateways.md"):
    """The blocks of this language in the document."""
    page = (daemon.source / "docs" / page).read_text(encoding="utf-8")
    return [code for name, code in BLOCK.findall(page) if name == language]


def envoy_program():
    """None where it could not be had."""
    made = daemon.source / "build" / "clients" / "envoy" / "envoy"
    return made if made.exists() else None


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


class Proxy:
    """A process that listens on a port. `configure` gets its folder and returns its command."""

    def __init__(self, name, configure):
        self.port = free_port()
        self.folder = tempfile.TemporaryDirectory(prefix=f"weir-{name}-")
        self.path = pathlib.Path(self.folder.name)
        self.log_file = self.path / "log"
        command = [str(word) for word in configure(self)]
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=self.path, stdout=log,
                                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def log(self):
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    def _await_listening(self):
        deadline = time.monotonic() + daemon.PATIENCE
        while True:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("it does not listen:\n" + self.log())
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.01)

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


def replaced(text, **words):
    """The text with each of these put in the place of what the document has there."""
    for old, new in words.values():
        assert old in text, f"the document does not have {old!r}"
        text = text.replace(old, str(new))
    return text


def nginx(weir, backend, *, recipe=0, fail_open=False, more=()):
    """`weir` is an address as nginx writes it. `more`: (old, new) texts of the recipe."""
    *recipes, error_page, gone = documented("nginx")
    text = recipes[recipe]
    if fail_open:
        text = text.replace("        internal;\n", f"        internal;\n{error_page}", 1)
        text = text.rstrip().removesuffix("}") + gone + "}\n"

    def configure(proxy):
        server = replaced(text, weir=("server 127.0.0.1:8080;", f"server {weir};"),
                          port=("listen 80;", f"listen 127.0.0.1:{proxy.port};"),
                          backend=("127.0.0.1:3000", f"127.0.0.1:{backend.port}"),
                          **{f"more{i}": pair for i, pair in enumerate(more)})
        folders = "".join(f"{kind}_temp_path {proxy.path}/{kind};\n"
                          for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (proxy.path / "nginx.conf").write_text(
            f"daemon off;\nmaster_process off;\npid {proxy.path}/pid;\nerror_log stderr;\n"
            f"events {{}}\nhttp {{\naccess_log off;\n{folders}{server}}}\n", encoding="utf-8")
        return [shutil.which("nginx") or "/usr/sbin/nginx", "-p", proxy.path, "-e", "stderr",
                "-c", proxy.path / "nginx.conf"]

    return Proxy("nginx", configure)


def caddy(weir, backend, *, more=()):
    """`weir` is an address as Caddy writes it."""
    (text,) = documented("caddyfile")

    def configure(proxy):
        config = replaced(text, port=(":80 {", f":{proxy.port} {{\n\tbind 127.0.0.1"),
                          weir=("127.0.0.1:8080", weir),
                          backend=("127.0.0.1:3000", f"127.0.0.1:{backend.port}"),
                          **{f"more{i}": pair for i, pair in enumerate(more)})
        (proxy.path / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https off\n}\n" + config,
                                              encoding="utf-8")
        # It keeps its files in its home.
        return ["env", f"HOME={proxy.path}", f"XDG_DATA_HOME={proxy.path}",
                f"XDG_CONFIG_HOME={proxy.path}", "caddy", "run", "--config",
                proxy.path / "Caddyfile", "--adapter", "caddyfile"]

    return Proxy("caddy", configure)


def haproxy(weir, backend, *, more=()):
    """`weir` is a port. `more`: (old, new) texts of the script."""
    (lua,), (text,) = documented("lua"), documented("haproxy")

    def configure(proxy):
        script = proxy.path / "weir.lua"
        script.write_text(replaced(lua, weir=("127.0.0.1:8080", f"127.0.0.1:{weir}"),
                                   **{f"more{i}": pair for i, pair in enumerate(more)}),
                          encoding="utf-8")
        config = replaced(text, port=("bind :80", f"bind 127.0.0.1:{proxy.port}"),
                          lua=("/etc/haproxy/weir.lua", script),
                          backend=("127.0.0.1:3000", f"127.0.0.1:{backend.port}"))
        (proxy.path / "haproxy.cfg").write_text(config, encoding="utf-8")
        return [shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f",
                proxy.path / "haproxy.cfg"]

    return Proxy("haproxy", configure)


ENVOY = """\
static_resources:
  listeners:
  - address: { socket_address: { address: 127.0.0.1, port_value: PORT } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: shop
          use_remote_address: true
          route_config:
            virtual_hosts:
            - name: shop
              domains: ["*"]
              routes: [{ match: { prefix: / }, route: { cluster: shop } }]
          http_filters:
FILTER
          - name: envoy.filters.http.router
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
  clusters:
  - name: weir
    load_assignment:
      cluster_name: weir
      endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: WEIR } } } }] }]
  - name: shop
    load_assignment:
      cluster_name: shop
      endpoints: [{ lb_endpoints: [{ endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: SHOP } } } }] }]
"""


def envoy(weir, backend, *, more=()):
    """`weir` is a port."""
    (text,) = [block for block in documented("yml") if "ext_authz" in block]

    def configure(proxy):
        for old, new in more:
            assert old in text, old
        lines = text
        for old, new in more:
            lines = lines.replace(old, new)
        indented = "".join(f"          {line}\n" for line in lines.splitlines())
        config = ENVOY.replace("FILTER\n", indented).replace("PORT", str(proxy.port))
        config = config.replace("WEIR", str(weir)).replace("SHOP", str(backend.port))
        (proxy.path / "envoy.yaml").write_text(config, encoding="utf-8")
        return [envoy_program(), "-c", proxy.path / "envoy.yaml", "--concurrency", "1",
                "--disable-hot-restart", "--log-level", "warn"]

    return Proxy("envoy", configure)
