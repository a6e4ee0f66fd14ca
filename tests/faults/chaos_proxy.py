#!/usr/bin/env python3
"""A TCP proxy that spoils what passes through it, as it is told while it runs.

    with ChaosProxy(server.port) as proxy:      # proxy.port is where to connect
        proxy.set("delay", 0.05)                # every reply is late
        proxy.set("pass")                       # well again

It is a process of its own, so that it does not share an interpreter with whoever makes the load:
`chaos_proxy.py TARGET_HOST TARGET_PORT LISTEN_HOST` takes a mode per line, and answers each by the
number of connections that it has taken so far. The modes:

    pass                  as it comes
    delay SECONDS         replies are late
    random LOW HIGH       late by anything between; their order stays
    drop_replies          requests reach the server, replies are lost
    blackhole             nothing passes; connections are still taken
    refuse                connections are reset and none are taken
    reset_mid_reply       half a reply, then RST
    truncate              half a reply, then FIN
    half_close            FIN instead of a reply; requests go on
    split                 replies byte by byte
    garbage               random bytes instead of replies
    wrong_type            well-formed RESP that no reply of ours has
    flap SECONDS          between pass and refuse, for ever
"""

import contextlib
import heapq
import random
import select
import socket
import struct
import subprocess
import sys
import time

CHUNK = 1 << 18
WRONG = (b"+OK\r\n", b":42\r\n", b"$3\r\nabc\r\n", b"*0\r\n", b"*2\r\n*1\r\n:1\r\n$-1\r\n",
         b"*-1\r\n", b"_\r\n", b"%1\r\n+a\r\n+b\r\n", b"-ERR nonsense\r\n",
         b"*1\r\n*1\r\n*1\r\n:1\r\n")


class Side:
    """One end of a pair of connections, and what waits to be written to it."""

    def __init__(self, sock, is_client):
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket, self.is_client = sock, is_client
        self.other = None
        self.unsent = bytearray()
        self.free_at = 0.0  # Replies that are late keep their order.
        self.open = True
        self.deaf = False   # Has sent its last.


class Proxy:
    def __init__(self, target, listen_host):
        self.target, self.listen_host = target, listen_host
        self.poll = select.epoll()
        self.sides = {}
        self.late = []  # (due, number, side, bytes)
        self.count = self.accepted = 0
        self.mode, self.values = "pass", []
        self.flap_at, self.flap_on = 0.0, True
        self.listener = None
        self.port = 0
        self._listen()

    def _listen(self):
        if self.listener is not None:
            return
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((self.listen_host, self.port))
        self.listener.listen(512)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.poll.register(self.listener, select.EPOLLIN)

    def _refuse(self):
        if self.listener is not None:
            self.poll.unregister(self.listener)
            self.listener.close()
            self.listener = None
        for side in [one for one in self.sides.values() if one.is_client]:
            self._end(side, reset=True)

    def set(self, mode, values):
        before, self.mode, self.values = self.mode, mode, values
        # Before any bytes that come after them: a reply must not overtake another one.
        self._send_late()
        if mode == "refuse":
            self._refuse()
        else:
            self._listen()
        if mode == "flap":
            self.flap_on, self.flap_at = True, time.monotonic() + values[0]
        if mode == "pass" and before in ("drop_replies", "blackhole"):
            # A stream with a hole in it is no use to anybody.
            for side in [one for one in self.sides.values() if one.is_client]:
                self._end(side, reset=True)

    def _end(self, side, *, reset=False):
        for one in (side, side.other):
            if one is None or not one.open:
                continue
            one.open = False
            del self.sides[one.socket.fileno()]
            self.poll.unregister(one.socket)
            if reset:
                one.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.socket.close()

    def _accept(self):
        try:
            client, _ = self.listener.accept()
        except OSError:
            return
        self.accepted += 1
        try:
            server = socket.create_connection(self.target, timeout=1)
        except OSError:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
            return
        one, two = Side(client, True), Side(server, False)
        one.other, two.other = two, one
        for side in (one, two):
            self.sides[side.socket.fileno()] = side
            self.poll.register(side.socket, select.EPOLLIN)

    def _read(self, side):
        try:
            data = side.socket.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self._end(side, reset=True)
            return
        if not data:
            self._finish(side)
        elif side.is_client:
            if self.mode != "blackhole":
                self._send(side.other, data)
        else:
            self._reply(side.other, data)

    def _finish(self, side):
        """It will send no more: say so to the other, once all has been passed on."""
        side.deaf = True
        if side.other.deaf or self.mode != "half_close":
            self._end(side)
        else:
            self.poll.modify(side.socket, 0)

    def _reply(self, client, data):
        mode, values = self.mode, self.values
        if mode in ("drop_replies", "blackhole"):
            return
        if mode in ("delay", "random"):
            wait = values[0] if mode == "delay" else random.uniform(*values)
            client.free_at = max(client.free_at, time.monotonic() + wait)
            self.count += 1
            heapq.heappush(self.late, (client.free_at, self.count, client, data))
        elif mode in ("reset_mid_reply", "truncate"):
            with contextlib.suppress(OSError):
                client.socket.send(data[:len(data) // 2])
            self._end(client, reset=mode == "reset_mid_reply")
        elif mode == "half_close":
            with contextlib.suppress(OSError):
                client.socket.shutdown(socket.SHUT_WR)
        elif mode == "split":
            for at in range(len(data)):
                if not client.open:
                    return
                self._send(client, data[at:at + 1])
        elif mode == "garbage":
            self._send(client, random.randbytes(len(data)))
        elif mode == "wrong_type":
            self._send(client, random.choice(WRONG))
        else:
            self._send(client, data)

    def _send(self, side, data):
        if not side.open:
            return
        side.unsent += data
        self._flush(side)

    def _flush(self, side):
        try:
            sent = side.socket.send(side.unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._end(side, reset=True)
            return
        del side.unsent[:sent]
        wants = select.EPOLLIN | (select.EPOLLOUT if side.unsent else 0)
        self.poll.modify(side.socket, wants)

    def _send_late(self):
        """Sends what was delayed and is due; all of it if replies are not delayed any more."""
        now = time.monotonic()
        while self.late and (self.late[0][0] <= now or self.mode not in ("delay", "random")):
            _, _, side, data = heapq.heappop(self.late)
            self._send(side, data)

    def _tick(self):
        """What is due, and how long until something else is."""
        self._send_late()
        now = time.monotonic()
        if self.mode == "flap" and now >= self.flap_at:
            self.flap_on, self.flap_at = not self.flap_on, now + self.values[0]
            if self.flap_on:
                self._listen()
            else:
                self._refuse()
        dues = [one for one in (self.late and self.late[0][0], self.mode == "flap" and self.flap_at)
                if one]
        return max(0.0, min(dues) - now) if dues else 1.0

    def run(self, commands):
        self.poll.register(commands, select.EPOLLIN)
        print(self.port, flush=True)
        while True:
            for number, events in self.poll.poll(self._tick()):
                if number == commands.fileno():
                    line = commands.readline()
                    if not line:
                        return
                    mode, *values = line.split()
                    if mode != "count":
                        self.set(mode, [float(value) for value in values])
                    print(self.accepted, flush=True)
                elif self.listener is not None and number == self.listener.fileno():
                    self._accept()
                elif (side := self.sides.get(number)) is not None:
                    if events & select.EPOLLOUT:
                        self._flush(side)
                    if side.open and events & ~select.EPOLLOUT:
                        self._read(side)


class ChaosProxy:
    """The process, from outside."""

    def __init__(self, target, *, target_host="127.0.0.1", listen_host="127.0.0.1", before=()):
        self.process = subprocess.Popen(
            [*before, sys.executable, __file__, target_host, str(target), listen_host], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def set(self, mode, *values):
        """Returns how many connections were taken until now."""
        return self._say(" ".join([mode, *map(str, values)]))

    def accepted(self):
        return self._say("count")

    def _say(self, line):
        print(line, file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    @property
    def url(self):
        return f"redis://{self.address}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


if __name__ == "__main__":
    Proxy((sys.argv[1], int(sys.argv[2])), sys.argv[3]).run(sys.stdin)
