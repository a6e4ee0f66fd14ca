"""The real service for tests: WEIR_PROGRAM, or what the repository has built."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from weir_limiter import WeirClient, client, notices
from weir_limiter.settings import chosen

PROGRAM = pathlib.Path(
    os.environ.get("WEIR_PROGRAM")
    or pathlib.Path(__file__).resolve().parents[3] / "build/release/weir"
)


class Service:
    """`weir serve` on a unix socket of its own, which stays when it is killed and started again."""

    def __init__(self, policy: str) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="weir-py-")
        self.socket = pathlib.Path(self.folder.name) / "resp.sock"
        self.address = f"unix:{self.socket}"
        listen = f"listen: {{ http: 127.0.0.1:0, resp: {self.address} }}\n"
        self.file = pathlib.Path(self.folder.name) / "weir.yaml"
        self.file.write_text(listen + policy, encoding="utf-8")
        self.process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        process = subprocess.Popen(
            [str(PROGRAM), "serve", "-c", str(self.file)],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.process = process
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.strip() == "ready":
                return
        raise AssertionError("the service did not start:\n" + "".join(lines))

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        if number == signal.SIGKILL:
            self._wait()
        elif number == signal.SIGSTOP:
            # A signal is not there at once, and each thread stops by itself.
            threads = pathlib.Path(f"/proc/{self.process.pid}/task")
            while any(
                (thread / "stat").read_text().rpartition(")")[2].split()[0] != "T"
                for thread in threads.iterdir()
            ):
                time.sleep(0.001)

    def _wait(self) -> None:
        assert self.process is not None
        self.process.wait(timeout=30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process = None

    def end(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            self._wait()
        self.folder.cleanup()


Start = Callable[[str], Service]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts services, which end with the test."""
    with contextlib.ExitStack() as stack:

        def run(policy: str) -> Service:
            service = Service(policy)
            stack.callback(service.end)
            return service

        yield run


@pytest.fixture
def service(start: Start) -> Service:
    """One that limits each client to 3 an hour."""
    return start("manage: open\nrules:\n  - { name: per-ip, key: ip, limit: 3/h }\n")


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address where nobody is."""
    with tempfile.TemporaryDirectory(prefix="weir-py-") as folder:
        yield f"unix:{folder}/nobody.sock"


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    """No test finds what another has said or configured."""
    notices._told.clear()
    chosen.settings = chosen.override = None
    yield
    chosen.settings = chosen.override = None


@pytest.fixture(autouse=True)
async def _closed(start: Start, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """What a test leaves open would be a warning in another one."""
    made: set[WeirClient] = set()
    monkeypatch.setattr(client, "_clients", made)
    yield
    for each in made:
        await each.close()
