#!/usr/bin/env python3
"""Asks for everything at once and notes when each answer came: the measuring half of shaping_test.py.

    shaping_client.py PROTOCOL PORT CONNECTIONS REQUESTS PID

Opens so many connections, sends REQUESTS checks on each in one piece, all ready to wait, and prints
JSON: how long sending took; for every answer its connection, the moment it came and what it said, and
what the machine did meanwhile to this process and to that of the service (PID).

The moment is the kernel's: the one at which the last byte of the answer was put into the socket, on
loopback within the service's own call to send. So it does not matter when this process gets to look,
as long as it looks before the next answer on the same connection.
"""

import glob
import json
import select
import socket
import struct
import sys
import time

import http_wire
import resp_wire

SO_TIMESTAMPNS = 35
TICK_MS = 2
PATIENCE = 30


def request_of(protocol):
    if protocol == "resp":
        return resp_wire.command("WEIR.CHECK", "shaped", "user", "ann", "@wait_ms", 60_000)
    return http_wire.request("POST", "/v1/check", {"user": "ann", "wait_ms": 60_000})


def decision_of(protocol, reader):
    """Of the next answer; None if there is no whole one."""
    if protocol == "resp":
        reply = reader.take()
        return None if reply is None else resp_wire.named(reply[0])
    response = reader.take()
    return None if response is None else response.json()


def waited_to_run(pid):
    """How long the threads of a process were ready and did not run, in ns; none can be told on
    kernels that do not count it."""
    total = 0
    try:
        for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
            with open(path, encoding="ascii") as file:
                total += int(file.read().split()[1])
    except OSError:
        pass
    return total


def stamp_of(ancillary):
    """When the kernel got what was received with this."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("qq", data)
            return seconds * 1_000_000_000 + nanoseconds
    return time.time_ns()


def main(protocol, port, connections, requests, pid):
    sockets, readers = [], []
    for _ in range(connections):
        one = socket.create_connection(("127.0.0.1", port))
        one.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        one.setblocking(False)
        sockets.append(one)
        readers.append(resp_wire.Reader() if protocol == "resp" else http_wire.Reader())
    by_number = {one.fileno(): index for index, one in enumerate(sockets)}
    data = request_of(protocol) * requests
    began = time.time_ns()
    for one in sockets:
        if one.send(data) != len(data):
            raise AssertionError("a request did not fit the socket")
    sending = time.time_ns() - began

    poll = select.epoll()
    for one in sockets:
        poll.register(one.fileno(), select.EPOLLIN)
    answers, longest_pause = [], 0
    looked, deadline = time.monotonic_ns(), time.monotonic() + PATIENCE
    waited = waited_to_run(pid)
    while len(answers) < connections * requests and time.monotonic() < deadline:
        ready = poll.poll(TICK_MS / 1000)
        now = time.monotonic_ns()
        # Longer than a tick: this process, or the whole machine, stood still.
        longest_pause = max(longest_pause, now - looked - TICK_MS * 1_000_000)
        looked = now
        for number, _ in ready:
            index = by_number[number]
            received, ancillary, _, _ = sockets[index].recvmsg(65536, 128)
            came = stamp_of(ancillary)
            if not received:
                raise AssertionError(f"connection {index} was closed")
            readers[index].feed(received)
            now_waited = waited_to_run(pid)
            while (decision := decision_of(protocol, readers[index])) is not None:
                answers.append({"connection": index, "came": came - began, "decision": decision,
                                "pause": longest_pause, "waited": now_waited - waited})
                longest_pause = 0
                waited = now_waited
    json.dump({"sending": sending, "answers": answers}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
