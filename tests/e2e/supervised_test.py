#!/usr/bin/env python3
"""The service under a supervisor such as systemd: it says when it is ready, reloads, stops and is
well, and serves on sockets that were opened for it, across restarts.

    supervised_test.py SOURCE PROGRAM [TEST...]
"""

import contextlib
import ctypes
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import daemon
import http_wire
import resp_wire

POLICY = """\
rules:
  - name: per-user
    match: { user: present }
    key: user
    limit: 1M/s
"""
HERE = pathlib.Path(__file__).parent


class Supervisor:
    """The socket that a supervisor is told by, and what it was told, with when."""

    def __init__(self, *, abstract=False, patience=None):
        self.folder = tempfile.TemporaryDirectory(prefix="weir-notify-")
        path = os.path.join(self.folder.name, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(daemon.PATIENCE)
        self.socket.bind("\0" + path if abstract else path)
        self.environment = {"NOTIFY_SOCKET": "@" + path if abstract else path}
        if patience is not None:
            self.environment["WATCHDOG_USEC"] = str(int(patience * 1_000_000))

    def next(self):
        """What is told next, by its names."""
        text = self.socket.recv(4096).decode()
        return dict(line.split("=", 1) for line in text.split("\n"))

    def next_of(self, name):
        """The same, whatever comes before it."""
        deadline = time.monotonic() + daemon.PATIENCE
        while time.monotonic() < deadline:
            told = self.next()
            if name in told:
                return told
        raise AssertionError(f"no {name}")

    def close(self):
        self.socket.close()
        self.folder.cleanup()


class Told(unittest.TestCase):
    def supervisor(self, **options):
        made = Supervisor(**options)
        self.addCleanup(made.close)
        return made

    def test_when_it_is_ready_reloads_and_stops(self):
        for abstract in (False, True):
            supervisor = self.supervisor(abstract=abstract)
            with daemon.Daemon(POLICY, environment=supervisor.environment) as service:
                told = supervisor.next()
                self.assertEqual(told["READY"], "1")
                self.assertEqual(told["STATUS"], "serving version 1 of the policy, 1 rule")
                # It is what it says.
                with http_wire.Client(service.http) as client:
                    self.assertEqual(client.get("/readyz").status, 200)
                service.policy_file.write_text(
                    service.policy_file.read_text(encoding="utf-8").replace("1M/s", "2M/s"),
                    encoding="utf-8")
                before = time.monotonic_ns() // 1000
                service.tell(signal.SIGHUP)
                told = supervisor.next()
                self.assertEqual(told["RELOADING"], "1")
                self.assertLessEqual(before, int(told["MONOTONIC_USEC"]))
                self.assertLessEqual(int(told["MONOTONIC_USEC"]), time.monotonic_ns() // 1000)
                told = supervisor.next()
                self.assertEqual(told["READY"], "1")
                self.assertEqual(told["STATUS"], "serving version 2 of the policy, 1 rule")
                service.tell(signal.SIGTERM)
                self.assertEqual(supervisor.next()["STOPPING"], "1")

    def test_that_it_goes_on_when_a_reload_fails(self):
        supervisor = self.supervisor()
        with daemon.Daemon(POLICY, environment=supervisor.environment) as service:
            supervisor.next_of("READY")
            service.policy_file.write_text("rules: nonsense\n", encoding="utf-8")
            service.tell(signal.SIGHUP)
            supervisor.next_of("RELOADING")
            self.assertEqual(supervisor.next_of("READY")["STATUS"],
                             "serving version 1 of the policy, 1 rule")

    def test_that_it_is_well_at_half_of_the_time(self):
        supervisor = self.supervisor(patience=0.4)
        with daemon.Daemon(POLICY, environment=supervisor.environment, threads=2):
            supervisor.next_of("READY")
            supervisor.next_of("WATCHDOG")
            began = time.monotonic()
            for _ in range(5):
                self.assertEqual(supervisor.next(), {"WATCHDOG": "1"})
            took = time.monotonic() - began
            self.assertGreater(took, 0.9)
            if not daemon.instrumented:
                self.assertLess(took, 2.5)

    def test_nothing_about_its_health_if_another_process_was_meant(self):
        supervisor = self.supervisor(patience=0.05)
        environment = {**supervisor.environment, "WATCHDOG_PID": "1"}
        with daemon.Daemon(POLICY, environment=environment) as service:
            supervisor.next_of("READY")
            service.tell(signal.SIGHUP)
            time.sleep(0.2)  # Several times as long as it would take.
            service.tell(signal.SIGTERM)
            told = [supervisor.next() for _ in range(3)]
            self.assertEqual([next(iter(one)) for one in told], ["RELOADING", "READY", "STOPPING"])

    def test_nothing_while_a_thread_hangs(self):
        """One thread is held as a debugger would hold it; the others go on, and so does the clock."""
        supervisor = self.supervisor(patience=0.2)
        with daemon.Daemon(POLICY, environment=supervisor.environment, threads=2) as service:
            supervisor.next_of("WATCHDOG")
            threads = self.threads_that_wait_for_events(service.pid)
            self.assertEqual(len(threads), 2)
            try:
                held = Held(threads[1])
            except PermissionError as error:
                print(f"SKIPPED supervised_test, a thread that hangs: {error}")
                self.skipTest("a thread of another process may not be held here")
            with held:
                service.wait_for("a thread hangs")
                # What was told before it hung, and then nothing.
                self.socket_is_silent(supervisor, 1.0)
            supervisor.next_of("WATCHDOG")
            service.wait_for("the thread that hung goes on")

    def socket_is_silent(self, supervisor, seconds):
        supervisor.socket.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                supervisor.next()
        supervisor.socket.settimeout(seconds)
        with self.assertRaises(TimeoutError):
            supervisor.next()
        supervisor.socket.settimeout(daemon.PATIENCE)

    def threads_that_wait_for_events(self, pid):
        """Those of the workers: nobody else waits in epoll."""
        deadline = time.monotonic() + daemon.PATIENCE
        while time.monotonic() < deadline:
            found = [int(task.name) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
                     if "ep_poll" in (task / "wchan").read_text(encoding="ascii")
                     or (task / "syscall").read_text(encoding="ascii").split()[0] in ("232", "281")]
            if len(found) == 2:
                return found
        raise AssertionError("no threads that wait for events")


class Held:
    """A thread of another process that does not run meanwhile."""

    SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17

    def __init__(self, thread):
        self.thread = thread
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.call(self.SEIZE)

    def call(self, request):
        if self.libc.ptrace(request, self.thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def __enter__(self):
        self.call(self.INTERRUPT)
        os.waitpid(self.thread, 0x40000000)  # __WALL
        return self

    def __exit__(self, *_):
        self.call(self.DETACH)


def listening(address=("127.0.0.1", 0)):
    opened = socket.socket(socket.AF_INET)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    opened.bind(address)
    opened.listen(128)
    return opened


def activation(sockets):
    """What to put before a command that is to have them."""
    words = [f"{name}={one.fileno()}" for name, one in sockets.items()]
    return [sys.executable, str(HERE / "activate.py"), *words, "--"]


def activated(sockets, policy=POLICY, **options):
    """The service with sockets by their names, which stay open here."""
    return daemon.Daemon(policy, before=activation(sockets),
                         pass_fds=[one.fileno() for one in sockets.values()], **options)


class Activation(unittest.TestCase):
    def keep(self, opened):
        self.addCleanup(opened.close)
        return opened

    def test_by_name(self):
        http, resp = self.keep(listening()), self.keep(listening())
        with activated({"http": http, "resp": resp}) as service:
            self.assertEqual(service.http, http.getsockname()[1])
            self.assertEqual(service.resp, resp.getsockname()[1])
            with http_wire.Client(service.http) as client:
                self.assertEqual(client.post("/v1/check", {"user": "ann"}).status, 200)
            with resp_wire.Client(service.resp) as client:
                self.assertEqual(client.call("PING"), "PONG")

    def test_by_address_beside_one_of_its_own(self):
        http = self.keep(listening())
        port = http.getsockname()[1]
        policy = f"listen: {{ http: 127.0.0.1:{port}, resp: 127.0.0.1:0 }}\n" + POLICY
        with activated({"weir.socket": http}, policy) as service:
            self.assertEqual(service.http, port)
            with resp_wire.Client(service.resp) as client:
                self.assertEqual(client.call("PING"), "PONG")

    def test_of_a_unix_socket_whose_path_stays(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="weir-activated-"))
        path = os.path.join(folder, "resp.sock")
        resp = self.keep(socket.socket(socket.AF_UNIX))
        resp.bind(path)
        resp.listen(16)
        policy = "listen: { resp: 127.0.0.1:0 }\n" + POLICY
        for _ in range(2):
            with activated({"resp": resp}, policy, threads=2) as service:
                self.assertEqual(service.addresses["resp"], "unix:" + path)
                with socket.socket(socket.AF_UNIX) as client:
                    client.connect(path)
                    client.sendall(b"PING\r\n")
                    self.assertEqual(client.recv(100), b"+PONG\r\n")
            self.assertTrue(os.path.exists(path))

    def test_spreads_connections_over_threads(self):
        http = self.keep(listening())
        with activated({"http": http}, threads=2) as service:
            with contextlib.ExitStack() as stack:
                clients = [stack.enter_context(http_wire.Client(service.http)) for _ in range(200)]
                for client in clients:
                    self.assertEqual(client.get("/healthz").body, b"ok")

    def test_fails_if_nobody_wants_a_socket(self):
        stranger = self.keep(listening())
        port = stranger.getsockname()[1]
        self.assertIn(f"the socket metrics 127.0.0.1:{port} was passed, but no listener has its name "
                      "or address", self.why_not({"metrics": stranger}))

    def test_fails_if_a_socket_does_not_listen(self):
        deaf = self.keep(socket.socket(socket.AF_INET))
        self.assertIn('"http": descriptor 3 is not a socket', self.why_not({"http": deaf}))

    def why_not(self, sockets):
        """What the service says that does not start with them."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as policy:
            policy.write("listen: { http: 127.0.0.1:0 }\n" + POLICY)
            policy.flush()
            done = subprocess.run(
                [*activation(sockets), str(daemon.program), "serve", "-c", policy.name],
                pass_fds=[one.fileno() for one in sockets.values()], capture_output=True, text=True,
                timeout=daemon.PATIENCE, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        return done.stderr


class Restart(unittest.TestCase):
    """One process ends while the next begins, and clients notice nothing: who connects meanwhile
    waits in the queue of a socket that stays open."""

    class Asker(threading.Thread):
        """Asks until it is told to stop, on a connection for each request or on one for as long as
        it lasts. A request that was not answered is lost, but for one on a connection that the
        service had closed before it was sent."""

        def __init__(self, port, *, keeps):
            super().__init__(daemon=True)
            self.port, self.keeps = port, keeps
            self.stopping, self.answered, self.lost = threading.Event(), 0, []

        def run(self):
            while not self.stopping.is_set():
                try:
                    with http_wire.Client(self.port) as client:
                        self.ask(client)
                except OSError as error:
                    self.lost.append(repr(error))

        def ask(self, client):
            headers = [] if self.keeps else [("Connection", "close")]
            request = http_wire.request("POST", "/v1/check", {"user": "u"}, headers=headers)
            while not self.stopping.is_set():
                client.send(request)
                response = client.receive()
                if response.status != 200:
                    self.lost.append(repr(response))
                self.answered += 1
                if response.header("Connection") == "close" or not self.keeps:
                    return

    def test_loses_no_request(self):
        http = listening()
        self.addCleanup(http.close)
        policy = "listen: { http: 127.0.0.1:0 }\n" + POLICY
        service = activated({"http": http}, policy, threads=2)
        askers = [self.Asker(service.http, keeps=number % 2 == 0) for number in range(8)]
        for asker in askers:
            asker.start()
        answered = []
        for _ in range(6):
            before = sum(asker.answered for asker in askers)
            deadline = time.monotonic() + daemon.PATIENCE
            while sum(asker.answered for asker in askers) < before + 200:
                self.assertLess(time.monotonic(), deadline)
            answered.append(before)
            self.assertEqual(service.terminate(), 0)
            service = activated({"http": http}, policy, threads=2)
        for asker in askers:
            asker.stopping.set()
        for asker in askers:
            asker.join(daemon.PATIENCE)
            self.assertFalse(asker.is_alive())
        self.assertEqual(service.terminate(), 0)
        self.assertEqual([asker.lost for asker in askers], [[]] * len(askers))

    def test_who_connects_between_two_is_served_by_the_second(self):
        http = listening()
        self.addCleanup(http.close)
        policy = "listen: { http: 127.0.0.1:0 }\n" + POLICY
        self.assertEqual(activated({"http": http}, policy).terminate(), 0)
        with http_wire.Client(http.getsockname()[1]) as client:
            client.send(http_wire.request("GET", "/healthz"))
            with activated({"http": http}, policy):
                self.assertEqual(client.receive().body, b"ok")


if __name__ == "__main__":
    daemon.main()
