"""HTTP/1 as bytes, written apart from the service, so that every byte it sends is looked at."""

import json
import socket


class ProtocolFault(AssertionError):
    """The bytes are no HTTP/1.1 response."""


class Response:
    def __init__(self, version, status, reason, headers, body):
        self.version, self.status, self.reason = version, status, reason
        self.headers = headers  # (name, value) as they came.
        self.body = body

    def header(self, name):
        """Its value, or None. Twice would be a fault in any of ours."""
        found = [value for its_name, value in self.headers if its_name.lower() == name.lower()]
        if len(found) > 1:
            raise ProtocolFault(f"{name} is there {len(found)} times")
        return found[0] if found else None

    @property
    def names(self):
        return {name.lower() for name, _ in self.headers}

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.body[:300]!r}>"


def request(method, target, body=None, *, headers=(), version="1.1", host="127.0.0.1"):
    """Bytes of a request. `body` may be bytes, or anything that JSON can say."""
    lines = [f"{method} {target} HTTP/{version}"]
    if host is not None:
        lines.append(f"Host: {host}")
    lines += [f"{name}: {value}" for name, value in headers]
    data = b""
    if body is not None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines.append(f"Content-Length: {len(data)}")
        if not any(name.lower() == "content-type" for name, _ in headers):
            lines.append("Content-Type: application/json")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


class Reader:
    """Takes responses from bytes as they come. Whether one has a body depends on its request."""

    def __init__(self):
        self.bytes = bytearray()

    def feed(self, data):
        self.bytes += data

    def take(self, *, head=False):
        """The next response, or None if there is no whole one. `head`: the request was HEAD."""
        end = self.bytes.find(b"\r\n\r\n")
        if end < 0:
            return None
        first, *lines = bytes(self.bytes[:end]).decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        status, _, reason = rest.partition(" ")
        if version not in ("HTTP/1.1", "HTTP/1.0") or len(status) != 3 or not status.isdigit():
            raise ProtocolFault(first)
        headers = []
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not name or name != name.strip() or "\r" in line or "\n" in line:
                raise ProtocolFault(line)
            headers.append((name, value.strip(" \t")))
        response = Response(version, int(status), reason, headers, b"")
        if response.header("Transfer-Encoding") is not None:
            raise ProtocolFault("Transfer-Encoding in a response")
        length = response.header("Content-Length")
        bodiless = response.status < 200 or response.status in (204, 304)
        if length is None and not bodiless:
            raise ProtocolFault(f"no Content-Length: {first}")
        size = 0 if head or bodiless else int(length)
        if len(self.bytes) < end + 4 + size:
            return None
        response.body = bytes(self.bytes[end + 4:end + 4 + size])
        del self.bytes[:end + 4 + size]
        return response


class Client:
    """One connection; calls wait for their responses."""

    def __init__(self, address, *, timeout=30, source="127.0.0.1"):
        """A port of 127.0.0.1, or the path of a unix socket."""
        if isinstance(address, int):
            self.socket = socket.create_connection(("127.0.0.1", address), timeout=timeout,
                                                   source_address=(source, 0))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout)
            self.socket.connect(address)
        self.reader = Reader()

    def send(self, data):
        self.socket.sendall(data)

    def receive(self, *, head=False):
        while (response := self.reader.take(head=head)) is None:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionResetError(f"closed after {bytes(self.reader.bytes)[:200]!r}")
            self.reader.feed(data)
        return response

    def call(self, method, target, body=None, **more):
        self.send(request(method, target, body, **more))
        return self.receive(head=method == "HEAD")

    def get(self, target, **more):
        return self.call("GET", target, **more)

    def post(self, target, body, **more):
        return self.call("POST", target, body, **more)

    def is_closed(self):
        """Waits for the other end to close, which must send nothing more before it does."""
        if self.reader.bytes:
            return False
        try:
            return self.socket.recv(65536) == b""
        except ConnectionResetError:
            return True

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def once(address, method, target, body=None, **more):
    """One request on a connection of its own."""
    with Client(address) as client:
        return client.call(method, target, body, **more)
