"""The running service, as every end-to-end test starts it: `weir serve` on free loopback ports.

    with daemon.Daemon("rules:\n  - name: per-ip\n ...") as running:
        socket.create_connection(("127.0.0.1", running.http))

Nothing here sleeps and hopes: what is waited for is a line that the service writes. It is stopped by
its process id whatever becomes of the test, and must then end with 0: what a sanitizer finds at the
end of a process fails the test, too.
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

# Far more than anything takes; what waits longer has failed.
PATIENCE = 30

source = pathlib.Path()
program = pathlib.Path()
# Sanitizers make everything slower; what is measured in time or memory means nothing under them.
instrumented = False


def at_once(priority=1):
    """What to put before a command so that it runs as soon as it can, whatever else the machine has
    to do; nothing if that is not allowed. For what is measured in milliseconds."""
    words = ["chrt", "--rr", str(priority)]
    try:
        ran = subprocess.run([*words, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return words if ran.returncode == 0 else []


def main():
    """Runs the tests of the file that was called: FILE SOURCE PROGRAM [TEST...]."""
    global source, program, instrumented
    if len(sys.argv) < 3:
        print(f"usage: {sys.argv[0]} SOURCE PROGRAM [TEST...]", file=sys.stderr)
        sys.exit(2)
    source, program = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    with open(program, "rb") as file:
        text = file.read()
        instrumented = b"__asan_init" in text or b"__tsan_init" in text
    unittest.main(module="__main__", argv=[sys.argv[0], *sys.argv[3:]])


class Daemon:
    """A service under a policy. One that names no listeners gets http and resp; {folder} stands for
    a folder of its own."""

    def __init__(self, policy, *, threads=None, environment=None, before=(), pass_fds=(),
                 files=None):
        """`before`: words to put before its command; `pass_fds`: open files that it inherits; `files`:
        what to put beside the policy."""
        self.folder = tempfile.TemporaryDirectory(prefix="weir-e2e-")
        self.policy_file = pathlib.Path(self.folder.name) / "weir.yaml"
        if "listen:" not in policy:
            policy = "listen: { http: 127.0.0.1:0, resp: 127.0.0.1:0 }\n" + policy
        policy = policy.replace("{folder}", self.folder.name)
        self.policy_file.write_text(policy, encoding="utf-8")
        for name, text in (files or {}).items():
            self.policy_file.with_name(name).write_text(text, encoding="utf-8")
        command = [*before, str(program), "serve", "-c", str(self.policy_file)]
        if threads is not None:
            command += ["--threads", str(threads)]
        self.process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, cwd=self.folder.name,
                                        pass_fds=pass_fds,
                                        env={**os.environ, **(environment or {})})
        self.log = []
        self.changed = threading.Condition()
        self.ended = False
        self.told_to_stop = False
        self.readers = [threading.Thread(target=self._read, args=(stream,), daemon=True)
                        for stream in (self.process.stdout, self.process.stderr)]
        for reader in self.readers:
            reader.start()
        try:
            self.wait_for("ready")
            self.addresses = self._addresses()
        except BaseException:
            self.terminate()
            raise

    @property
    def pid(self):
        return self.process.pid

    @property
    def http(self):
        return self._port("http")

    @property
    def resp(self):
        return self._port("resp")

    @property
    def grpc(self):
        return self._port("grpc")

    def _port(self, protocol):
        return int(self.addresses[protocol].rpartition(":")[2])

    def _read(self, stream):
        for line in stream:
            with self.changed:
                self.log.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def wait_for(self, words, *, after=0):
        """The first line with these words, of those from `after` on."""
        deadline = time.monotonic() + PATIENCE
        with self.changed:
            while True:
                for line in self.log[after:]:
                    if words in line:
                        return line
                left = deadline - time.monotonic()
                if self.ended or left <= 0:
                    raise AssertionError(f"no line with {words!r}:\n" + "\n".join(self.log))
                self.changed.wait(left)

    def _addresses(self):
        """By protocol. They are told before `ready` is, through another pipe."""
        found = {}
        policy = self.policy_file.read_text(encoding="utf-8")
        for protocol in ("http", "resp", "grpc"):
            if f"{protocol}:" in policy.partition("listen:")[2].partition("rules:")[0]:
                line = self.wait_for(f"listening protocol={protocol} address=")
                found[protocol] = line.rpartition("address=")[2]
        return found

    def tell(self, number):
        os.kill(self.process.pid, number)
        self.told_to_stop = self.told_to_stop or number in (signal.SIGTERM, signal.SIGINT)

    def is_alive(self):
        return self.process.poll() is None

    def memory(self):
        """Bytes that are resident."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    def terminate(self):
        """Asks it to end, if nobody has, and waits. Returns what it ended with."""
        if self.process.poll() is None and not self.told_to_stop:
            self.tell(signal.SIGTERM)
        try:
            return self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("it did not end:\n" + "\n".join(self.log)) from None
        finally:
            for reader in self.readers:
                reader.join()
            self.process.stdout.close()
            self.process.stderr.close()
            self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        code = self.terminate()
        if kind is not None:
            # What the service had to say about a test that failed.
            print("\n".join(self.log), file=sys.stderr)
        elif code != 0:
            raise AssertionError(f"it ended with {code}:\n" + "\n".join(self.log))
