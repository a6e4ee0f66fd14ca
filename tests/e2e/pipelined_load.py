"""RESP at full load: many connections, each kept filled with requests, from one thread.

    load = Load(port, connections=20, depth=500)
    load.run(lambda: load.answered > 10_000)   # asks on and on
    load.fill()                                # every connection has `depth` requests under way
    load.finish()                              # asks nothing any more and takes what comes

One thread, so that it is known what was sent before something else was done. Requests are numbered
on each connection and the answers tell the numbers, so none can be missing or out of order.
"""

import select
import time

import resp_wire

PATIENCE = 30


class Pipeline:
    """One connection. Every other request charges a limit."""

    def __init__(self, port, name, depth):
        self.client = resp_wire.Client(port)
        self.client.socket.setblocking(False)
        self.name, self.depth = name, depth
        self.unsent = b""
        self.asked = 0     # Whole requests of which every byte was handed to the kernel,
        self.written = 0   # and those that were begun.
        self.answered = 0
        self.ended = False
        self.reset = False  # Whether it ended by a reset.
        self.faults = []

    def request(self, number):
        if number % 2 == 0:
            return resp_wire.command("PING", str(number))
        return resp_wire.command("CL.THROTTLE", f"{self.name}-{number}", 9, 10, 3600)

    def expected(self, number):
        return str(number) if number % 2 == 0 else [0, 10, 9, -1, 360]

    def send(self):
        """As much as is missing, as far as the kernel takes it."""
        if not self.unsent:
            requests = [self.request(number)
                        for number in range(self.written, self.answered + self.depth)]
            self.written += len(requests)
            self.unsent = b"".join(requests)
        try:
            self.unsent = self.unsent[self.client.socket.send(self.unsent):]
        except BlockingIOError:
            return
        except ConnectionError:
            return  # What came before is still to be received.
        if not self.unsent:
            self.asked = self.written

    def receive(self):
        try:
            data = self.client.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except ConnectionError:
            self.ended, self.reset = True, True
            return
        if not data:
            self.ended = True
            return
        self.client.reader.feed(data)
        while (reply := self.client.reader.take()) is not None:
            if reply[0] != self.expected(self.answered):
                self.faults.append(f"{self.name}: answer {self.answered} is {reply[0]!r}")
            self.answered += 1

    @property
    def left(self):
        """Bytes that are no whole answer."""
        return self.client.reader.left


class Load:
    def __init__(self, port, *, connections, depth):
        self.pipelines = [Pipeline(port, f"c{index}", depth) for index in range(connections)]
        self.by_number = {one.client.socket.fileno(): one for one in self.pipelines}
        self.longest_pause = 0.0  # For how long nothing was sent, in seconds.
        self.poll = select.epoll()
        for number in self.by_number:
            self.poll.register(number, select.EPOLLIN)

    @property
    def answered(self):
        return sum(one.answered for one in self.pipelines)

    @property
    def ended(self):
        return not self.by_number

    @property
    def faults(self):
        return [fault for one in self.pipelines for fault in one.faults]

    def run(self, is_over):
        """Asks until `is_over()` or until all connections have ended."""
        deadline, sent = time.monotonic() + PATIENCE, time.monotonic()
        while not is_over() and not self.ended:
            for one in self.by_number.values():
                one.send()
            self.longest_pause = max(self.longest_pause, time.monotonic() - sent)
            sent = time.monotonic()
            if sent > deadline:
                raise AssertionError("it does not end")
            self._receive()

    def fill(self):
        """Sends on every connection until it has as many under way as it may."""
        deadline = time.monotonic() + PATIENCE
        for one in self.by_number.values():
            while one.unsent or one.asked < one.answered + one.depth:
                if time.monotonic() > deadline:
                    raise AssertionError("what is sent is not read")
                select.select([], [one.client.socket], [], 1)
                one.send()

    def finish(self):
        """Until all connections have ended."""
        deadline = time.monotonic() + PATIENCE
        while not self.ended:
            if time.monotonic() > deadline:
                raise AssertionError(f"{len(self.by_number)} connections do not end")
            self._receive()

    def close(self):
        self.poll.close()
        for one in self.pipelines:
            one.client.close()

    def _receive(self):
        for number, _ in self.poll.poll(0.01):
            one = self.by_number[number]
            one.receive()
            if one.ended:
                self.poll.unregister(number)
                del self.by_number[number]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
