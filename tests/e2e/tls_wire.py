"""TLS around the clients of the other tests, and a client whose every byte can be held back."""

import socket
import ssl

import http_wire
import resp_wire


def wrap(client, context):
    """Speaks TLS on the connection of a client from now on."""
    try:
        client.socket = context.wrap_socket(client.socket, server_hostname="localhost")
    except BaseException:
        client.close()
        raise
    return client


def http(address, context):
    return wrap(http_wire.Client(address), context)


def resp(port, context):
    return wrap(resp_wire.Client(port), context)


def serial(port, context):
    """Of the certificate that is shown to those who connect now."""
    with http(port, context) as client:
        return client.socket.getpeercert()["serialNumber"]


class ByHand:
    """TLS between two pieces of memory: what goes over the wire is the test's to send."""

    def __init__(self, port, context, *, timeout=30):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self.came, self.goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.came, self.goes, server_hostname="localhost")

    def first_words(self):
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return self.goes.read()

    def _push(self):
        if data := self.goes.read():
            self.socket.sendall(data)

    def _pull(self):
        data = self.socket.recv(65536)
        if data:
            self.came.write(data)
        else:
            self.came.write_eof()

    def _until_done(self, step):
        while True:
            try:
                done = step()
                self._push()
                return done
            except ssl.SSLWantReadError:
                self._push()
                self._pull()

    def handshake(self):
        self._until_done(self.tls.do_handshake)
        return self

    def send(self, data):
        self.tls.write(data)
        self._push()

    def read(self):
        """What comes next; b"" if it is a farewell. An end without one is an SSLEOFError."""
        return self._until_done(lambda: self.tls.read(65536))

    def read_wire(self):
        """Bytes as they come; b"" when the other end has closed."""
        try:
            return self.socket.recv(65536)
        except ConnectionResetError:
            return b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
