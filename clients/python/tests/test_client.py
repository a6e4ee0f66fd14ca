from __future__ import annotations

import asyncio
import gc
import logging
import os
import pathlib
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from conftest import Service, Start
from weir_limiter import Decision, OptionError, WeirClient, WeirError
from weir_limiter.connection import MOST_IN_FLIGHT

CONCURRENT = "rules:\n  - { name: exports, key: user, limit: 1 concurrent }\n"
MANY = "rules:\n  - { name: many, key: user, limit: 10k/week }\n"
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], object]


@asynccontextmanager
async def serving(folder: str, handle: Handler) -> AsyncIterator[str]:
    """A server that is not what it should be."""
    path = f"{folder}/impostor.sock"
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await handle(reader, writer)  # type: ignore[misc]

    server = await asyncio.start_unix_server(serve, path)
    try:
        yield f"unix:{path}"
    finally:
        server.close()
        for writer in writers:
            writer.close()


async def test_a_check_is_answered_and_a_denial_says_when_to_come_back(service: Service) -> None:
    async with WeirClient([service.address], deadline=5.0) as client:
        answers = [await client.check(ip="203.0.113.9") for _ in range(4)]
        assert [answer.allowed for answer in answers] == [True, True, True, False]
        assert [answer.remaining for answer in answers] == [2, 1, 0, 0]
        retry_after = answers[3].retry_after
        assert retry_after is not None
        assert 1100 < retry_after <= 1200
        assert (await client.check({"ip": "203.0.113.10"})).allowed


async def test_questions_of_one_turn_leave_in_one_write(tmp_path: os.PathLike[str]) -> None:
    reads: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 20):
            reads.append(data)
            writer.write(b"-ERR no\r\n" * data.count(b"WEIR.CHECK"))

    async with serving(str(tmp_path), handle) as address, WeirClient([address]) as client:
        await client.check(user="first")
        await asyncio.gather(*(client.check(user=str(n)) for n in range(100)))
    assert len(reads) == 2
    assert reads[1].count(b"WEIR.CHECK") == 100


async def test_one_who_has_gone_gives_back_the_place_it_was_given(start: Start) -> None:
    service = start(CONCURRENT)
    async with WeirClient([service.address], deadline=5.0) as client:
        await client.check(user="bob")
        gone = asyncio.ensure_future(client.check(user="ann"))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        # The answer to this comes behind that of the one who has gone.
        await client.check(user="cid")
        assert (await client.check(user="ann")).allowed


async def test_a_place_is_given_back_without_waiting(start: Start) -> None:
    async with WeirClient([start(CONCURRENT).address], deadline=5.0) as client:
        held = await client.check(user="ann")
        assert not (await client.check(user="ann")).allowed
        client.release_soon(held)
        assert (await client.check(user="ann")).allowed


async def test_verbs_that_are_done_once_raise_what_the_service_says(service: Service) -> None:
    async with WeirClient([service.address], deadline=5.0) as client:
        held = await client.reserve({"ip": "203.0.113.9"}, cost=2, ttl=60)
        assert (await client.commit(held, cost=1)).remaining == 2
        with pytest.raises(WeirError) as error:
            await client.cancel(held)
        assert error.value.code == "not_found"
        with pytest.raises(WeirError) as error:
            await client.refund({"ip": "203.0.113.9"}, rule="no-such")
        assert error.value.code == "invalid_argument"
        assert (await client.reset({"ip": "203.0.113.9"}, rule="per-ip")).remaining == 3


async def test_no_more_than_a_bound_are_under_way_and_the_rest_is_decided_at_once(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    service = start(MANY)
    async with WeirClient([service.address], deadline=20.0) as client:
        await client.check(user="first")
        service.signal(signal.SIGSTOP)
        asked = [asyncio.ensure_future(client.check(user="a")) for _ in range(MOST_IN_FLIGHT + 50)]
        done, pending = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        while len(done) < 50:
            done, pending = await asyncio.wait(asked, timeout=0.01)
        assert len(done) == 50
        assert {task.result().source for task in done} == {"open"}
        service.signal(signal.SIGCONT)
        answers = await asyncio.gather(*pending)
        assert {answer.source for answer in answers} == {"memory"}
    assert len([r for r in caplog.records if r.levelno == logging.WARNING]) == 2


async def test_a_process_that_was_held_up_does_not_take_that_for_a_time_out(start: Start) -> None:
    async with WeirClient([start(MANY).address], deadline=0.1, on_failure="closed") as client:
        await client.check(user="a")
        for turns in (1, 2, 3):
            # Before the question has left, and after.
            asked = asyncio.ensure_future(client.check(user="a"))
            for _ in range(turns):
                await asyncio.sleep(0)
            time.sleep(0.15)  # noqa: ASYNC251
            assert (await asked).source == "memory"


async def test_errors_of_the_service_are_told_once_for_each_text(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async with WeirClient([service.address], deadline=5.0) as client:
        for _ in range(5):
            assert (await client.check(rule="nope")).source == "open"
            assert (await client.check(ip="no address")).source == "open"
        assert (await client.check(ip="203.0.113.9")).source == "memory"
    assert len(caplog.records) == 2


async def test_a_service_that_is_killed_and_comes_back_is_asked_again(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    service = start(MANY)
    async with WeirClient([service.address], deadline=5.0) as client:
        assert (await client.check(user="a")).source == "memory"
        service.signal(signal.SIGKILL)
        for _ in range(20):
            assert (await client.check(user="a")).source == "open"
        service.start()
        while (await client.check(user="a")).source == "open":
            await asyncio.sleep(0.01)
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 2
    assert "No service answers" in texts[0]
    assert "answers again" in texts[1]


async def test_a_connection_that_is_closed_while_nobody_uses_it_is_made_anew(
    tmp_path: os.PathLike[str], caplog: pytest.LogCaptureFixture
) -> None:
    connections = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await reader.read(1 << 16)
        writer.write(b"*2\r\n$7\r\nallowed\r\n:0\r\n")
        writer.close()

    async with serving(str(tmp_path), handle) as address, WeirClient([address]) as client:
        for number in range(1, 4):
            assert not (await client.check(user="a")).allowed
            while client._pool()._servers[0]._connection is not None:
                await asyncio.sleep(0.001)
            assert connections == number
    assert not caplog.records


async def test_moving_to_another_service_is_told_once_and_so_is_the_way_back(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = start(MANY), start(MANY)
    async with WeirClient(
        [first.address, second.address], deadline=5.0, on_failure="closed"
    ) as client:
        assert (await client.check(user="a")).server == 0
        first.signal(signal.SIGKILL)
        answers = await asyncio.gather(*(client.check(user="a") for _ in range(100)))
        assert {(answer.allowed, answer.server) for answer in answers} == {(True, 1)}
        first.start()
        while (await client.check(user="a")).server == 1:
            await asyncio.sleep(0.01)
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 2
    assert "in its place" in texts[0]
    assert "Back at" in texts[1]


async def test_what_was_reserved_at_a_service_is_settled_there(start: Start) -> None:
    first, second = start(MANY), start(MANY)
    async with WeirClient([first.address, second.address], deadline=5.0) as client:
        first.signal(signal.SIGKILL)
        held = await client.reserve({"user": "a"}, cost=5)
        assert held.server == 1
        first.start()
        while (await client.peek({"user": "a"})).server == 1:
            await asyncio.sleep(0.01)
        assert (await client.commit(held)).server == 1


async def test_a_host_that_does_not_take_connections_costs_no_more_than_the_deadline(
    start: Start,
) -> None:
    with socket.socket() as full:
        # A backlog of nothing, filled: further connections hang.
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(address)
        servers = [f"127.0.0.1:{address[1]}", start(MANY).address]
        async with WeirClient(servers, deadline=0.4, on_failure="closed") as client:
            began = time.monotonic()
            assert (await client.check(user="a")).server == 1
            assert time.monotonic() - began < 0.4
        for filler in fillers:
            filler.close()


async def test_values_that_no_service_understands_are_left_out_or_passed_whole(
    service: Service,
) -> None:
    async with WeirClient([service.address], deadline=5.0) as client:
        assert (await client.check(ip=None, user="")).source == "memory"
        assert (await client.check(user=b"\xff\x00\r\n", path="\ud800")).source == "memory"


def test_each_event_loop_has_a_connection_of_its_own(start: Start) -> None:
    client = WeirClient([start(MANY).address], deadline=5.0)
    answers: list[Decision] = []

    async def ask() -> None:
        for _ in range(50):
            answers.append(await client.check(user="a"))  # noqa: PERF401
        await client.close()

    threads = [threading.Thread(target=asyncio.run, args=(ask(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(ask())
    assert {answer.source for answer in answers} == {"memory"}
    assert min(answer.remaining for answer in answers) == 10**4 - 250


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_loop_that_ends_without_a_close_leaves_the_next_one_well(start: Start) -> None:
    client = WeirClient([start(MANY).address], deadline=5.0)

    async def ask() -> str:
        return (await client.check(user="a")).source

    assert [asyncio.run(ask()) for _ in range(3)] == ["memory"] * 3
    assert len(client._pools) == 1
    client._pools.clear()
    client._recent = None
    gc.collect()


def test_a_forked_child_has_connections_of_its_own(start: Start) -> None:
    client = WeirClient([start(MANY).address], deadline=5.0, on_failure="closed")

    async def ask(user: str) -> bool:
        answers = await asyncio.gather(*(client.check(user=user) for _ in range(100)))
        return sorted(10**4 - a.remaining for a in answers) == list(range(1, 101))

    async def parent() -> None:
        assert await ask("before")
        children = []
        for number in range(3):
            child = os.fork()
            if child == 0:
                asyncio.events._set_running_loop(None)
                well = asyncio.new_event_loop().run_until_complete(ask(f"child{number}"))
                os._exit(0 if well else 1)
            children.append(child)
        assert await ask("parent")
        loop = asyncio.get_running_loop()
        for child in children:
            _, status = await loop.run_in_executor(None, os.waitpid, child, 0)
            assert status == 0
        assert await ask("after")
        await client.close()

    asyncio.run(parent())


async def test_closing_ends_all_that_is_under_way(start: Start, nobody: str) -> None:
    service = start(MANY)
    client = WeirClient([nobody, service.address], deadline=5.0)
    await client.check(user="a")
    service.signal(signal.SIGSTOP)
    asked = asyncio.ensure_future(client.check(user="a"))
    await asyncio.sleep(0.01)
    await client.close()
    assert (await asked).source == "open"
    await asyncio.sleep(0)
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    service.signal(signal.SIGCONT)
    assert (await client.check(user="a")).source == "memory"
    await client.close()


async def test_static_needs_a_limit_that_it_can_count(nobody: str) -> None:
    client = WeirClient([nobody], on_failure="static")
    with pytest.raises(OptionError) as error:
        await client.check(user="a")
    assert error.value.option == "static_limit"
    with pytest.raises(OptionError) as error:
        await client.limit("k", "5 concurrent")
    assert error.value.option == "on_failure"
    assert (await client.limit("k", "1/h")).allowed
    assert not (await client.limit("k", "1/h")).allowed
    await client.close()


def test_the_environment_says_where_services_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_SERVERS", "unix:/a.sock, [::1]:7, tls://weir.example:8")
    found = WeirClient().options
    assert [address.text for address in found.addresses] == [
        "unix:/a.sock",
        "[::1]:7",
        "tls://weir.example:8",
    ]
    monkeypatch.setenv("WEIR_SERVERS", "")
    assert WeirClient().options.addresses[0].text == "127.0.0.1:6380"
    monkeypatch.setenv("WEIR_SERVERS", "weir.example")
    with pytest.raises(OptionError, match=r"servers.*weir\.example"):
        WeirClient()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("servers", "nowhere"),
        ("servers", ["a:1", "a:1"]),
        ("servers", 6380),
        ("token", ""),
        ("deadline", "fast"),
        ("deadline", 0),
        ("deadline", float("nan")),
        ("on_failure", "ajar"),
        ("share", 0),
        ("share", 1.5),
        ("static_limit", "5 concurrent"),
        ("tls", {"certificate": "x", "keys": "y"}),
        ("tls", {"ca": "/nonexistent"}),
        ("tls", {"key": "/nonexistent"}),
    ],
)
def test_options_that_cannot_be_are_errors_that_name_them(option: str, value: object) -> None:
    with pytest.raises(OptionError) as error:
        WeirClient(**{option: value})  # type: ignore[arg-type]
    assert error.value.option == option


async def test_a_place_is_given_back_by_one_who_goes_in_the_moment_of_the_answer(
    start: Start,
) -> None:
    async with WeirClient([start("rules: []\n").address], deadline=5.0) as client:
        await client.limit("warm", "5/h")
        connection: Any = client._pool()._servers[0]._connection
        answer = connection._answer

        def answer_then_go(reply: object) -> None:
            answer(reply)
            asking.cancel()

        asking = asyncio.create_task(client.limit("places", "1 concurrent"))
        connection._answer = answer_then_go
        with pytest.raises(asyncio.CancelledError):
            await asking
        connection._answer = answer
        assert (await client.limit("places", "1 concurrent")).allowed


async def test_a_place_is_given_back_over_a_new_connection_if_the_old_one_was_closed_idle(
    start: Start,
) -> None:
    service = start("limits: { idle_timeout: 1s }\nrules: []\n")
    async with WeirClient([service.address], deadline=5.0) as client:
        held = await client.limit("places", "1 concurrent lease 1h")
        server = client._pool()._servers[0]
        while server._connection is not None:
            await asyncio.sleep(0.01)
        client.release_soon(held)
        assert (await client.limit("places", "1 concurrent lease 1h")).allowed


async def test_a_service_that_ends_the_connection_with_its_first_answer_is_looked_for_again(
    tmp_path: pathlib.Path, start: Start
) -> None:
    path = tmp_path / "resp.sock"
    ways = [b"", b"+PONG\r\n+PONG\r\n"]

    async def impostor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(ways.pop(0) if ways else b"")
        writer.close()

    server = await asyncio.start_unix_server(impostor, path)
    async with WeirClient([f"unix:{path}"]) as client:
        while ways:
            assert (await client.limit("key", "5/h")).source == "open"
            await asyncio.sleep(0.05)
        server.close()
        path.unlink(missing_ok=True)
        path.symlink_to(start("rules: []\n").socket)
        async with asyncio.timeout(10):
            while (await client.limit("key", "5/h")).source == "open":
                await asyncio.sleep(0.05)


async def test_a_flood_is_counted_and_not_let_through(start: Start) -> None:
    async with WeirClient([start("rules: []\n").address], deadline=10.0) as client:
        decisions = await asyncio.gather(*(client.limit("key", "10/h") for _ in range(5000)))
    assert sum(decision.allowed for decision in decisions) == 10


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        (b"$4\r\nname\r\n", b"$4\r\n\xff\xff\xff\xff\r\n"),
        (b"limit\r\n:", b"limit\r\n:" + b"1" * 5000),
    ],
)
async def test_nonsense_that_looks_like_a_decision_is_one_warning_too(
    said: bytes,
    instead: bytes,
    start: Start,
    tmp_path: pathlib.Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    service = start("rules:\n  - { name: name, key: ip, limit: 5/h }\n")

    async def garble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_service, to_service = await asyncio.open_unix_connection(str(service.socket))
        to_service.write(await reader.read(65536))
        writer.write((await from_service.read(65536)).replace(said, instead))
        await reader.read()
        to_service.close()
        writer.close()

    server = await asyncio.start_unix_server(garble, tmp_path / "resp.sock")
    async with WeirClient([f"unix:{tmp_path}/resp.sock"], deadline=5.0) as client:
        assert (await client.check(ip="203.0.113.9")).source == "open"
    server.close()
    assert [record.name for record in caplog.records] == ["weir_limiter"]


async def test_what_is_under_way_when_a_client_is_closed_opens_no_other_connection(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = start(MANY), start(MANY)
    client = WeirClient([first.address, second.address], deadline=5.0)
    await client.check(user="a")
    servers = client._pool()._servers
    first.signal(signal.SIGSTOP)
    asked = asyncio.create_task(client.check(user="a"))
    await asyncio.sleep(0)
    await client.close()
    assert (await asked).source == "open"
    assert [server._connection for server in servers] == [None, None]
    assert not caplog.records


def test_a_lock_that_a_thread_of_the_parent_held_does_not_stop_a_child(nobody: str) -> None:
    client = WeirClient([nobody], on_failure="static", static_limit="5/h")
    assert client._buckets is not None
    with client._buckets._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if client._buckets._lock.acquire(timeout=1) else 1)
    assert os.waitpid(child, 0)[1] == 0
