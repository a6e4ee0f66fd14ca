#!/usr/bin/env python3
"""Runs the lists of this folder with a client's driver, against the real service.

    run.py PROGRAM python|node|rust [--only TEXT] [--list FILE]

The lists and the driver are described in README.md beside this file.
"""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "tests/e2e"), str(HERE)]

import certificates  # noqa: E402
import daemon  # noqa: E402
from impostors import Impostor  # noqa: E402
from matching import differences  # noqa: E402

LISTS = ("addresses", "limits", "pacing", "calls", "failures", "middleware")
# Far more than anything takes; what waits longer has failed.
PATIENCE = 30

DRIVERS = {
    "python": ["build/clients/weir-python/bin/python",
               "clients/python/tests/conformance_driver.py"],
    "node": ["node", "clients/node/test/conformance-driver.mjs"],
    "rust": ["build/rust-clients/debug/examples/conformance_driver"],
}


class Driver:
    """A client that does what it is told."""

    def __init__(self, command, root):
        environment = {name: value for name, value in os.environ.items() if name != "WEIR_SERVERS"}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, cwd=root, env=environment)
        self.answers = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.answers.put(line)
        self.answers.put(None)

    def ask(self, thing):
        self.process.stdin.write(json.dumps(thing) + "\n")
        self.process.stdin.flush()
        try:
            line = self.answers.get(timeout=PATIENCE)
        except queue.Empty:
            raise AssertionError(f"no answer to {thing}") from None
        if line is None:
            raise AssertionError(f"the driver has ended at {thing}")
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        try:
            code = self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("the driver did not end with its input") from None
        finally:
            self.reader.join()
            self.process.stdout.close()
        if code != 0:
            raise AssertionError(f"the driver ended with {code}")


class Case:
    """One case, with all that it has started."""

    def __init__(self, case, driver):
        self.case = case
        self.driver = driver
        self.stack = contextlib.ExitStack()
        self.services = {}  # By name: a Daemon, or None if it was killed.
        self.addresses = {}  # By name, as clients are told them.
        self.ports = {}  # Of applications.

    def run(self):
        """What was not as expected, a line each."""
        with self.stack:
            if "policy" in self.case:
                self._start("service", {})
            for number, step in enumerate(self.case["steps"]):
                lines = self._step(step)
                if lines:
                    return [f"step {number + 1}, {json.dumps(step['do'])}:", *lines]
        return []

    def _step(self, step):
        thing = self._with_addresses(step["do"])
        times = step.get("times", 1)
        for _ in range(times):
            answer = self._do(thing)
            lines = differences(step.get("expect", {}), answer)
            if lines:
                return [*lines, f"the answer was {json.dumps(answer)}"]
            for member, name in step.get("keep", {}).items():
                self.addresses[name] = answer["decision"][member]
        return []

    def _do(self, thing):
        if "op" in thing:
            return self._tell(thing)
        if "service" in thing:
            return self._steer(thing)
        if "impostor" in thing:
            server = self.stack.enter_context(Impostor(thing["impostor"]))
            self.addresses[thing["name"]] = server.address
            return {}
        if "http" in thing:
            return self._call(thing["http"])
        if "http_together" in thing:
            return self._call_together(thing["http_together"])
        if "flood" in thing:
            calls = [thing["flood"]["call"]] * thing["flood"]["number"]
            return self._tell({"op": "together", "calls": calls})
        return self._until(thing)

    def _tell(self, thing):
        answer = self.driver.ask(thing)
        if thing["op"] == "serve" and "port" in answer:
            self.ports[thing["app"]] = answer["port"]
        if thing["op"] in ("open", "serve") and "error" not in answer:
            end, member = {"open": ("close", "client"), "serve": ("stop", "app")}[thing["op"]]
            self.stack.callback(self.driver.ask, {"op": end, member: thing[member]})
        return answer

    def _with_addresses(self, thing):
        """$NAME is the address of what was started under that name, or a value that was kept."""
        text = json.dumps(thing)
        for name, address in {**self.addresses, "nobody": self._nobody()}.items():
            text = text.replace(f'"${name}"', json.dumps(address))
        return json.loads(text)

    @staticmethod
    def _nobody():
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            return f"127.0.0.1:{sock.getsockname()[1]}"

    # --- The service ---

    def _steer(self, thing):
        name = thing.get("name", "service")
        running = self.services.get(name)
        verb = thing["service"]
        if verb == "start":
            self._start(name, thing)
        elif verb == "kill":
            running.tell(signal.SIGKILL)
            running.process.wait(timeout=PATIENCE)
        elif verb == "alone":
            self._wait_until_alone(running)
        elif verb == "stop":
            running.tell(signal.SIGSTOP)
            # All of its threads have stopped when its parent is told.
            os.waitid(os.P_PID, running.pid, os.WSTOPPED)
        elif verb == "continue":
            running.tell(signal.SIGCONT)
        else:
            raise ValueError(f"no such verb: {verb}")
        return {}

    def _start(self, name, thing):
        """A service that was killed comes back at the same address."""
        policy = self.case["policy"] + thing.get("more", "")
        over = thing.get("over", self.case.get("over", "tcp"))
        address = self.addresses.get(name, "127.0.0.1:0").removeprefix("tls://")
        settings = {"address": "unix:{folder}/resp.sock" if over == "unix" else address}
        if over == "tls":
            folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="weir-"))
            authority = certificates.Authority(folder)
            pair = authority.issue("service")
            self.addresses["ca"] = str(authority.file)
            settings["tls"] = {"certificate": str(pair.certificate), "key": str(pair.key)}
        if "token" in thing:
            settings["token"] = "env:TOKEN"
        # JSON is YAML.
        listen = f"listen: {{ http: \"127.0.0.1:0\", resp: {json.dumps(settings)} }}\n"
        running = daemon.Daemon(listen + policy, environment={"TOKEN": thing.get("token", "")})
        self.services[name] = running
        self.stack.callback(self._end, running)
        found = running.addresses["resp"]
        if over == "tls":
            found = f"tls://localhost:{found.rpartition(':')[2]}"
        self.addresses[name] = found

    @staticmethod
    def _wait_until_alone(running):
        """Until nobody is connected to it over RESP."""
        for _ in range(PATIENCE * 20):
            connection = http.client.HTTPConnection("127.0.0.1", running.http, timeout=PATIENCE)
            with contextlib.closing(connection):
                connection.request("GET", "/metrics")
                if b'weir_connections{listener="resp"} 0\n' in connection.getresponse().read():
                    return
            time.sleep(0.05)
        raise AssertionError("somebody is still connected")

    @staticmethod
    def _end(running):
        with contextlib.suppress(ProcessLookupError):
            running.tell(signal.SIGCONT)
        running.terminate()

    # --- HTTP ---

    def _call(self, call):
        source = call.get("source")
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.ports[call["app"]], timeout=PATIENCE,
            source_address=(source, 0) if source else None)
        with contextlib.closing(connection):
            connection.putrequest(call.get("method", "GET"), call.get("path", "/"))
            for name, value in call.get("headers", []):
                connection.putheader(name, value)
            connection.endheaders()
            response = connection.getresponse()
            body = response.read().decode()
            answer = {"status": response.status, "body": body,
                      "headers": {name.lower(): value for name, value in response.getheaders()}}
        with contextlib.suppress(ValueError):
            answer["json"] = json.loads(body)
        return answer

    def _call_together(self, calls):
        answers = [None] * calls["number"]

        def call(number):
            answers[number] = self._call(calls["call"])

        threads = [threading.Thread(target=call, args=(number,)) for number in range(len(answers))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"answers": answers}

    def _until(self, thing):
        """The first answer that is as wanted: for what happens in the background."""
        deadline = threading.Event()
        timer = threading.Timer(PATIENCE, deadline.set)
        timer.start()
        try:
            while True:
                answer = self._do(thing["until"])
                if not differences(thing["is"], answer) or deadline.is_set():
                    return answer
                deadline.wait(0.02)
        finally:
            timer.cancel()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("client", choices=sorted(DRIVERS))
    parser.add_argument("--only", default="", help="cases with this in their names")
    parser.add_argument("--list", choices=LISTS, help="one list")
    parser.add_argument("--root", default=str(ROOT), help="the tree that the client is in")
    told = parser.parse_args()
    daemon.program = pathlib.Path(told.program).resolve()
    driver = Driver(DRIVERS[told.client], told.root)
    passed = failed = 0
    for name in [told.list] if told.list else LISTS:
        for case in json.loads((HERE / f"{name}.json").read_text(encoding="utf-8")):
            if told.only not in case["name"]:
                continue
            try:
                lines = Case(case, driver).run()
            except Exception as error:  # pylint: disable=broad-except
                lines = [f"{type(error).__name__}: {error}"]
            passed, failed = passed + (not lines), failed + bool(lines)
            if lines:
                print(f"FAILED {name}: {case['name']}", *lines, sep="\n  ", flush=True)
    driver.end()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
