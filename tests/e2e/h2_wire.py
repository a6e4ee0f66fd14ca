"""HTTP/2 as frames, for what no client of good will sends. Header blocks are written plainly, without
tables; those of answers are read by hpack.

    with h2_wire.Connection(port) as one:
        one.send(h2_wire.call(1, path, message))
        one.answer(1).grpc_status

What is read of an answer is checked: frames in their order, and nothing behind the end.
"""

import contextlib
import socket
import struct

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
(DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE,
 CONTINUATION) = range(10)
END_STREAM, ACK, END_HEADERS = 0x1, 0x1, 0x4
HEADER_TABLE_SIZE, MAX_STREAMS, INITIAL_WINDOW, MAX_FRAME, MAX_HEADERS = 1, 3, 4, 5, 6
ENHANCE_YOUR_CALM, REFUSED_STREAM, CANCEL, PROTOCOL_ERROR = 0xb, 0x7, 0x8, 0x1
MOST_FRAME = 16384

RLS = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
CHECK = "/weir.v1.Limiter/Check"


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">HBBBI", len(payload) >> 8, len(payload) & 0xff, kind, flags,
                       stream) + payload


def settings(values=()):
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", *pair) for pair in values))


def integer(number, bits):
    """As HPACK has it: the first byte's low bits, and what does not fit behind them."""
    most = (1 << bits) - 1
    if number < most:
        return bytes([number])
    number -= most
    data = bytearray([most])
    while number >= 128:
        data.append(number % 128 + 128)
        number //= 128
    data.append(number)
    return bytes(data)


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return integer(len(value), 7) + value


def block(fields):
    """Literal fields, in no table."""
    return b"".join(b"\0" + text(name) + text(value) for name, value in fields)


def fields(path, more=(), *, method="POST", kind="application/grpc"):
    made = [(":method", method), (":scheme", "http"), (":path", path), (":authority", "weir")]
    if kind is not None:
        made.append(("content-type", kind))
    return [*made, ("te", "trailers"), *more]


def head(stream, its_fields, *, end=False):
    """HEADERS, and CONTINUATION frames if there is too much for one."""
    data = block(its_fields)
    pieces = [data[at:at + MOST_FRAME] for at in range(0, len(data), MOST_FRAME)]
    frames = []
    for number, piece in enumerate(pieces):
        flags = END_HEADERS if number + 1 == len(pieces) else 0
        if number == 0 and end:
            flags |= END_STREAM
        frames.append(frame(CONTINUATION if number else HEADERS, flags, stream, piece))
    return b"".join(frames)


def message(data, *, compressed=0, size=None):
    return struct.pack(">BI", compressed, len(data) if size is None else size) + data


def call(stream, path, data, more=()):
    """A whole unary call."""
    return head(stream, fields(path, more)) + frame(DATA, END_STREAM, stream, message(data))


# As a client begins that will take whatever is answered.
BEGIN = PREFACE + settings() + frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 2**31 - 1 - 65535))


class Answer:
    def __init__(self):
        self.headers = {}
        self.trailers = {}
        self.body = b""
        self.reset = None  # The code, if it was.
        self.ended = False

    @property
    def status(self):
        return self.headers.get(":status")

    @property
    def grpc_status(self):
        found = self.trailers.get("grpc-status", self.headers.get("grpc-status"))
        return None if found is None else int(found)

    @property
    def grpc_message(self):
        return self.trailers.get("grpc-message", self.headers.get("grpc-message", ""))


class Connection:
    """One that has sent the preface, unless it is told not to."""

    def __init__(self, port, *, begin=BEGIN, address="127.0.0.1", timeout=30,
                 acknowledges=True):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout,
                                               source_address=(address, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = b""
        self.decoder = hpack.Decoder()
        self.answers = {}
        self.goaways = []  # (last stream, code)
        self.settings = {}
        self.pings = []
        self.is_closed = False
        self.acknowledges = acknowledges
        self.send(begin)

    def send(self, data):
        """False if the other end has closed."""
        try:
            self.socket.sendall(data)
            return True
        except ConnectionError:
            return False

    def frames(self):
        """The frames that come next, until the other end closes."""
        while not self.is_closed:
            while len(self.input) >= 9:
                high, low, kind, flags, stream = struct.unpack(">HBBBI", self.input[:9])
                size = high << 8 | low
                if len(self.input) < 9 + size:
                    break
                payload, self.input = self.input[9:9 + size], self.input[9 + size:]
                yield kind, flags, stream, payload
            data = b""
            with contextlib.suppress(ConnectionError):
                data = self.socket.recv(65536)
            self.is_closed = not data
            self.input += data

    def note(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            self.settings.update(struct.iter_unpack(">HI", payload))
            if self.acknowledges:
                self.send(frame(SETTINGS, ACK))
        elif kind == GOAWAY:
            self.goaways.append(struct.unpack(">II", payload[:8]))
        elif kind == PING:
            self.pings.append((flags, payload))
        if kind not in (HEADERS, DATA, RST_STREAM):
            return
        answer = self.answers.setdefault(stream, Answer())
        if kind == RST_STREAM:
            answer.reset = struct.unpack(">I", payload)[0]
            return
        assert not answer.ended and answer.reset is None, f"{kind} behind the end of {stream}"
        answer.ended = bool(flags & END_STREAM)
        if kind == DATA:
            assert answer.headers and not answer.trailers
            answer.body += payload
            return
        assert flags & END_HEADERS
        found = self.decoder.decode(payload)
        assert len({name for name, _ in found}) == len(found), found
        if answer.headers:
            assert answer.ended
            answer.trailers = dict(found)
        else:
            answer.headers = dict(found)

    def answer(self, stream):
        """Waits until it is over, or the connection is."""
        known = self.answers.get(stream)
        if known and (known.ended or known.reset is not None):
            return known
        for one in self.frames():
            self.note(*one)
            known = self.answers.get(stream)
            if known and (known.ended or known.reset is not None):
                return known
        return self.answers.get(stream, Answer())

    def drain(self):
        """Everything until the other end closes."""
        for one in self.frames():
            self.note(*one)
        return self

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
