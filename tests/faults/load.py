#!/usr/bin/env python3
"""Steady load on the service, with a log of every answer. A process of its own, so that what it
measures is not what the test is doing meanwhile.

    with load.Load(daemon.resp, [Ask("by-static", "ann")], rate=5000) as running:
        ...                                   # break something
    running.answers                           # all of them, once it has ended

It sends on time whether or not answers come, as many at once as a millisecond brings; what was sent
on a connection that breaks is told as lost. All times are those of the machine's steady clock, so
that logs of several loads can be put together.
"""

import collections
import json
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

Ask = collections.namedtuple("Ask", "rule key cost", defaults=(1,))
Answer = collections.namedtuple(
    "Answer", "sent received ask allowed reason source failed lost retry_after_ms")
RECORD = struct.Struct("<ddHBBBBBI")
REASONS = ("", "ok", "limited", "never_fits", "banned", "allow_list", "deny_list", "no_rule",
           "store_failure", "overload")
SOURCES = ("", "memory", "store", "lease", "fallback", "open", "closed")

RESP_REPLY = re.compile(
    rb"\*\d+\r\n\$7\r\nallowed\r\n:([01])\r\n.*?\$14\r\nretry_after_ms\r\n(?::(\d+)|\$-1)\r\n"
    rb".*?\$6\r\nreason\r\n\$\d+\r\n(\w+)\r\n\$6\r\nsource\r\n\$\d+\r\n(\w+)\r\n|-([^\r]*)\r\n",
    re.DOTALL)
HTTP_HEAD = re.compile(rb"HTTP/1\.1 (\d+) .*?content-length: (\d+)(?=\r\n).*?\r\n\r\n",
                       re.DOTALL | re.IGNORECASE)
HTTP_BODY = re.compile(rb'"allowed":(true|false).*?"retry_after_ms":(\d+|null).*?"reason":"(\w+)",'
                       rb'"source":"(\w+)"', re.DOTALL)


class Resp:
    @staticmethod
    def request(ask):
        words = ["WEIR.CHECK", ask.rule, "user", ask.key]
        if ask.cost != 1:
            words += ["@cost", str(ask.cost)]
        return b"*%d\r\n" % len(words) + b"".join(
            b"$%d\r\n%s\r\n" % (len(word), word.encode()) for word in words)

    @staticmethod
    def replies(data, at):
        """(end, allowed, retry after, reason, source, failed) of every whole one."""
        while found := RESP_REPLY.match(data, at):
            at = found.end()
            if found[5] is not None:
                yield at, 0, 0, b"", b"", 1
            else:
                yield at, int(found[1]), int(found[2] or 0), found[3], found[4], 0


class Http:
    @staticmethod
    def request(ask):
        body = json.dumps({"user": ask.key, "cost": ask.cost, "rules": [ask.rule]})
        return (f"POST /v1/check HTTP/1.1\r\nHost: weir\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}").encode()

    @staticmethod
    def replies(data, at):
        while head := HTTP_HEAD.match(data, at):
            end = head.end() + int(head[2])
            if len(data) < end:
                return
            at = end
            body = HTTP_BODY.search(data, head.end(), end)
            if body is None:
                yield at, 0, 0, b"", b"", 1
            else:
                retry = 0 if body[2] == b"null" else int(body[2])
                yield at, int(body[1] == b"true"), retry, body[3], body[4], 0


class Channel:
    """One connection: what is under way on it, in order."""

    def __init__(self, port):
        self.port = port
        self.socket = None
        self.retry_at = 0.0
        self.drop()

    def drop(self):
        if self.socket is not None:
            self.socket.close()
        self.socket, self.unsent, self.received = None, bytearray(), bytearray()
        self.under_way = collections.deque()

    def connect(self, poll, now):
        if self.socket is not None or now < self.retry_at:
            return
        self.retry_at = now + 0.01
        try:
            self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=1)
        except OSError:
            return
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(self.socket, select.EPOLLIN)


class Sender:
    def __init__(self, spec, log):
        self.protocol = Http if spec["protocol"] == "http" else Resp
        self.asks = [Ask(*one) for one in spec["asks"]]
        self.requests = [self.protocol.request(one) for one in self.asks]
        self.rate, self.most = spec["rate"], spec["most"]
        self.channels = [Channel(spec["port"]) for _ in range(spec["connections"])]
        self.poll, self.log = select.epoll(), log
        self.turn = self.next_ask = 0
        self.stopped = False

    def run(self):
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "stopped", True))
        self.connect_all()
        print("running", flush=True)
        due = time.monotonic()
        while not self.stopped:
            now = time.monotonic()
            count = min(int((now - due) * self.rate), self.rate // 4 + 1)
            if count > 0:
                due = max(due + count / self.rate, now - 0.25)
                self.send(count, now)
            self.receive(0.001)
        deadline = time.monotonic() + 2
        while any(one.under_way for one in self.channels) and time.monotonic() < deadline:
            self.receive(0.01)
        for one in self.channels:
            self.lose(one)

    def connect_all(self):
        now = time.monotonic()
        for one in self.channels:
            one.connect(self.poll, now)

    def send(self, count, now):
        self.connect_all()
        share = -(-count // len(self.channels))
        while count > 0:
            channel = self.channels[self.turn % len(self.channels)]
            self.turn += 1
            for _ in range(min(share, count)):
                if channel.socket is not None and len(channel.under_way) < self.most:
                    ask = self.next_ask % len(self.requests)
                    self.next_ask += 1
                    channel.unsent += self.requests[ask]
                    channel.under_way.append((now, ask))
            count -= share
            self.flush(channel)

    def flush(self, channel):
        if channel.socket is None or not channel.unsent:
            return
        try:
            del channel.unsent[:channel.socket.send(channel.unsent)]
        except BlockingIOError:
            pass
        except OSError:
            self.lose(channel)

    def receive(self, patience):
        by_number = {one.socket.fileno(): one for one in self.channels if one.socket is not None}
        for number, _ in self.poll.poll(patience):
            channel = by_number.get(number)
            if channel is None:
                continue
            try:
                data = channel.socket.recv(1 << 18)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data:
                self.lose(channel)
                continue
            channel.received += data
            self.take(channel)
        for channel in by_number.values():
            self.flush(channel)

    def take(self, channel):
        now, end = time.monotonic(), 0
        for end, allowed, retry, reason, source, failed in self.protocol.replies(
                bytes(channel.received), 0):
            sent, ask = channel.under_way.popleft()
            self.log.write(RECORD.pack(sent, now, ask, allowed, REASONS.index(reason.decode()),
                                       SOURCES.index(source.decode()), failed, 0,
                                       min(retry, 1 << 31)))
        del channel.received[:end]

    def lose(self, channel):
        for sent, ask in channel.under_way:
            self.log.write(RECORD.pack(sent, time.monotonic(), ask, 0, 0, 0, 0, 1, 0))
        channel.drop()


class Load:
    """The process, from outside."""

    def __init__(self, port, asks, *, rate, connections=4, most=2000, protocol="resp", before=()):
        self.asks = [Ask(*one) for one in asks]
        self.answers = []
        self.log = tempfile.NamedTemporaryFile(prefix="weir-load-")
        spec = {"port": port, "asks": self.asks, "rate": rate, "connections": connections,
                "most": most, "protocol": protocol, "log": self.log.name}
        self.process = subprocess.Popen([*before, sys.executable, __file__, json.dumps(spec)],
                                        text=True, stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def stop(self):
        """Returns the answers. Again, if it has stopped already."""
        if self.log.closed:
            return self.answers
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.process.stdout.close()
        with open(self.log.name, "rb") as file:
            data = file.read()
        whole = len(data) - len(data) % RECORD.size
        self.answers = [
            Answer(sent, received, self.asks[ask], bool(allowed), REASONS[reason], SOURCES[source],
                   bool(failed), bool(lost), retry)
            for sent, received, ask, allowed, reason, source, failed, lost, retry
            in RECORD.iter_unpack(data[:whole])]
        self.log.close()
        if code != 0:
            raise AssertionError(f"the load ended with {code}")
        return self.answers

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def main():
    spec = json.loads(sys.argv[1])
    with open(spec["log"], "wb") as log:
        Sender(spec, log).run()


if __name__ == "__main__":
    main()
