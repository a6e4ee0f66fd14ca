"""What takes several processes: workers that share a limit, and a service that is killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from conftest import Service, Start

HERE = pathlib.Path(__file__).parent
# Far more than an idle machine needs; those that build and test at the same time are slower.
SLACK = 1.5


@contextlib.contextmanager
def workers(number: int, services: list[Service], deadline: str) -> Iterator[str]:
    """Real uvicorn. Gives the address."""
    process = subprocess.Popen(
        f"{sys.executable} -m uvicorn --workers {number} --no-proxy-headers --no-access-log "
        f"--port 0 --app-dir {HERE} shop:app".split(),
        env={
            **os.environ,
            "WEIR_SERVERS": ",".join(service.address for service in services),
            "SHOP_DEADLINE": deadline,
        },
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        started, address = 0, ""
        while started < number or not address:
            line = process.stderr.readline()
            assert line, "uvicorn did not start"
            if found := re.search(r"running on (http://\S+)", line):
                address = found[1]
            started += "Application startup complete" in line
        yield address
    finally:
        process.terminate()
        process.stderr.read()
        process.wait(timeout=30)
        process.stderr.close()


def test_an_option_that_cannot_be_stops_uvicorn_when_it_starts(tmp_path: pathlib.Path) -> None:
    (tmp_path / "mistaken.py").write_text(
        "from fastapi import FastAPI\n"
        "from weir_limiter import WeirMiddleware\n"
        "app = FastAPI()\n"
        "app.add_middleware(WeirMiddleware, on_failure='opne')\n"
    )
    ended = subprocess.run(
        f"{sys.executable} -m uvicorn --port 0 --app-dir {tmp_path} mistaken:app".split(),
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode != 0
    assert 'on_failure: "opne" is not allowed; write open, closed or static' in ended.stderr


@pytest.mark.parametrize("path", ["/", "/report"])
async def test_eight_workers_share_one_limit_exactly(start: Start, path: str) -> None:
    service = start("rules:\n  - { name: per-ip, match: { path: / }, key: ip, limit: 50/h }\n")
    with workers(8, [service], "20") as address:
        seen: Counter[int] = Counter()
        processes = set()

        async def call(client: httpx.AsyncClient) -> None:
            # A connection each, so that all workers can get some.
            response = await client.get(address + path, headers={"Connection": "close"})
            seen[response.status_code] += 1
            processes.add(response.headers["X-Process"])

        async with httpx.AsyncClient(timeout=60) as client:
            await asyncio.gather(*(call(client) for _ in range(200)))
            assert seen == {200: 50, 429: 150}
            # Who takes a connection is for the kernel to say; it was not one of them alone.
            while len(processes) == 1:
                await call(client)
    assert seen[200] == 50


async def test_a_service_that_is_killed_under_load_is_not_seen_by_anybody(start: Start) -> None:
    policy = "rules:\n  - { name: per-ip, key: ip, limit: 1000/h }\n"
    first, second = start(policy), start(policy)
    seen: Counter[int] = Counter()
    sources: Counter[str] = Counter()
    slowest = 0.0
    going_on = True

    with workers(1, [first, second], "0.5") as address:

        async def call_again_and_again(client: httpx.AsyncClient) -> None:
            nonlocal slowest
            while going_on:
                began = time.monotonic()
                response = await client.get(address)
                slowest = max(slowest, time.monotonic() - began)
                seen[response.status_code] += 1
                sources["told" if "ratelimit" in response.headers else "alone"] += 1

        async def until(number: int) -> None:
            while seen.total() < number:
                await asyncio.sleep(0.005)

        async with httpx.AsyncClient(timeout=60) as client, asyncio.TaskGroup() as callers:
            for _ in range(20):
                callers.create_task(call_again_and_again(client))
            await until(300)
            first.signal(signal.SIGKILL)
            await until(800)
            first.start()
            await until(1200)
            first.signal(signal.SIGSTOP)
            await until(1600)
            first.signal(signal.SIGCONT)
            going_on = False
    assert set(seen) <= {200, 429}
    assert seen[200] > 800
    # There was always one that could be asked.
    assert sources["alone"] == 0
    assert slowest < 0.5 + SLACK
