#!/usr/bin/env python3
"""Asks for everything at once and notes when each answer came: the measuring half of shaping_test.py.

    shaping_client.py PROTOCOL PORT CONNECTIONS REQUESTS PID

Opens so many connections and sends REQUESTS checks on each, all ready to wait, while the service
(PID) is stopped: it sees all of them at once, however long this process took to send them. Prints
JSON: when the service was let go on, and for every answer its connection, when it came and how far
the key was from fresh.

The time is the kernel's: the one at which the last byte of the answer was put into the socket, on
loopback within the service's own call to send. So it does not matter when this process gets to look,
as long as it looks before the next answer on the same connection. Of answers that came together only
the last one has its own time; the others came before it and after the last look that found nothing.
"""

import glob
import json
import os
import select
import signal
import socket
import struct
import sys
import time

import http_wire
import resp_wire

SO_TIMESTAMPNS = 35
TICK_MS = 1
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


def stamp_of(ancillary):
    """When the kernel got what was received with this; None if it does not say."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
            seconds, nanoseconds = struct.unpack("qq", data)
            return seconds * 1_000_000_000 + nanoseconds
    return None


def connect(protocol, port):
    """A connection that the service has taken in and whose answers have times."""
    client = resp_wire.Client(port) if protocol == "resp" else http_wire.Client(port)
    client.socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    deadline, stamp = time.monotonic() + PATIENCE, None
    while stamp is None:  # The kernel begins with it a moment later.
        if time.monotonic() > deadline:
            raise AssertionError("answers have no times")
        client.socket.sendall(resp_wire.command("PING") if protocol == "resp"
                              else http_wire.request("GET", "/healthz"))
        data, ancillary, _, _ = client.socket.recvmsg(65536, 128)
        stamp = stamp_of(ancillary)
        client.reader.feed(data)
        if client.reader.take() is None:
            raise AssertionError(f"no whole answer: {data!r}")
    client.socket.setblocking(False)
    return client


def stop(pid):
    """Comes back when none of its threads runs any more."""
    os.kill(pid, signal.SIGSTOP)
    deadline = time.monotonic() + PATIENCE
    for path in glob.glob(f"/proc/{pid}/task/*/stat"):
        while True:
            with open(path, encoding="ascii") as file:
                if file.read().rpartition(")")[2].split()[0] == "T":
                    break
            if time.monotonic() > deadline:
                raise AssertionError("the service does not stop")
            time.sleep(0.001)


class Watch:
    """Takes answers from all connections."""

    def __init__(self, protocol, clients):
        self.protocol, self.clients = protocol, clients
        self.poll = select.epoll()
        self.by_number = {}
        for index, client in enumerate(clients):
            self.poll.register(client.socket.fileno(), select.EPOLLIN)
            self.by_number[client.socket.fileno()] = index
        self.empty = [time.time_ns()] * len(clients)  # When there was nothing for sure.
        self.answers = []

    def look(self):
        before = time.time_ns()
        ready = {self.by_number[number] for number, _ in self.poll.poll(TICK_MS / 1000)}
        for index in range(len(self.clients)):
            if index not in ready:
                self.empty[index] = before
        for index in ready:
            self._take(index)

    def _take(self, index):
        client = self.clients[index]
        before = time.time_ns()
        data, ancillary, _, _ = client.socket.recvmsg(1 << 20, 128)
        if not data:
            raise AssertionError(f"connection {index} was closed")
        client.reader.feed(data)
        decisions = []
        while (decision := decision_of(self.protocol, client.reader)) is not None:
            decisions.append(decision)
        came = stamp_of(ancillary)
        for place, decision in enumerate(decisions, 1):
            if (decision["allowed"], decision["delay_ms"], decision["reason"]) != (1, 0, "ok"):
                raise AssertionError(f"not let through: {decision}")
            self.answers.append({
                "connection": index, "came": came,
                "since": came if place == len(decisions) else min(self.empty[index], came),
                "reset_after_ms": decision["reset_after_ms"]})
        self.empty[index] = before


def main(protocol, port, connections, requests, pid):
    clients = [connect(protocol, port) for _ in range(connections)]
    data = request_of(protocol) * requests
    stop(pid)
    try:
        for client in clients:
            if client.socket.send(data) != len(data):
                raise AssertionError("the requests do not fit the socket")
        watch = Watch(protocol, clients)
        began = time.time_ns()
    finally:
        os.kill(pid, signal.SIGCONT)
    deadline = time.monotonic() + PATIENCE
    while len(watch.answers) < connections * requests and time.monotonic() < deadline:
        watch.look()
    json.dump({"began": began, "answers": watch.answers}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
