"""RESP as bytes, both protocols, written apart from the service so that it can check it."""

import socket


class ProtocolFault(AssertionError):
    """The bytes are no RESP."""


class ErrorReply(str):
    """-ERR ..."""


def command(*words):
    """As Redis clients send it."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        data = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


class Reader:
    """Takes replies from bytes as they come."""

    def __init__(self):
        self.bytes = bytearray()
        self.at = 0

    def feed(self, data):
        if self.at > 65536:
            del self.bytes[:self.at]
            self.at = 0
        self.bytes += data

    @property
    def left(self):
        """How many bytes belong to no whole reply."""
        return len(self.bytes) - self.at

    def take(self):
        """(reply,) or None if there is no whole one."""
        start = self.at
        try:
            return (self._value(),)
        except IndexError:
            self.at = start
            return None

    def take_all(self):
        replies = []
        while (reply := self.take()) is not None:
            replies.append(reply[0])
        return replies

    def _line(self):
        end = self.bytes.find(b"\r\n", self.at)
        if end < 0:
            raise IndexError
        line = bytes(self.bytes[self.at:end])
        self.at = end + 2
        return line

    def _bulk(self, size):
        if size > 1 << 26:
            raise ProtocolFault(f"a text of {size} bytes")
        end = self.at + size
        if len(self.bytes) < end + 2:
            raise IndexError
        if self.bytes[end:end + 2] != b"\r\n":
            raise ProtocolFault(bytes(self.bytes[self.at:end + 2]))
        data = bytes(self.bytes[self.at:end])
        self.at = end + 2
        return data.decode()

    def _value(self):
        line = self._line()
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return ErrorReply(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._bulk(int(rest))
        if kind in (b"*", b"~"):
            return None if rest == b"-1" else [self._value() for _ in range(int(rest))]
        if kind == b"%":
            return {self._value(): self._value() for _ in range(int(rest))}
        if kind == b"#" and rest in (b"t", b"f"):
            return rest == b"t"
        if kind == b"_" and not rest:
            return None
        if kind == b",":
            return float(rest)
        if kind == b"=":
            return self._bulk(int(rest))[4:]
        raise ProtocolFault(line[:80])


class Client:
    """One connection; calls wait for their replies."""

    def __init__(self, port, *, timeout=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = Reader()

    def send(self, *words):
        self.socket.sendall(command(*words))

    def receive(self):
        while (reply := self.reader.take()) is None:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionResetError("closed")
            self.reader.feed(data)
        return reply[0]

    def call(self, *words):
        self.send(*words)
        return self.receive()

    def pipeline(self, commands):
        self.socket.sendall(b"".join(command(*words) for words in commands))
        return [self.receive() for _ in commands]

    def is_closed(self):
        """Waits for the other end to close, throwing away what still comes."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass
        return True

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def named(reply):
    """A decision as a dict, whether it came as a map or as a flat list."""
    if isinstance(reply, dict):
        return reply
    if not isinstance(reply, list) or len(reply) % 2 != 0:
        raise AssertionError(f"no decision: {reply!r}")
    return dict(zip(reply[::2], reply[1::2]))
