"""Servers that are not what a client hopes for: each takes connections on a port of 127.0.0.1 and
answers commands in its own way.

    with Impostor("garbage") as server:
        server.address
"""

import re
import select
import socket
import threading

COMMAND = re.compile(rb"\*\d+\r\n\$\d+\r\n([A-Za-z.]+)\r\n")

ALLOWED = ("*34\r\n$7\r\nallowed\r\n:1\r\n$4\r\nrule\r\n$3\r\nany\r\n$5\r\nlimit\r\n:9\r\n"
           "$9\r\nremaining\r\n:8\r\n$4\r\ncost\r\n:1\r\n$11\r\nretry_after\r\n:0\r\n"
           "$14\r\nretry_after_ms\r\n:0\r\n$11\r\nreset_after\r\n:1\r\n$14\r\nreset_after_ms\r\n:900"
           "\r\n$8\r\nreset_at\r\n:1717920660\r\n$8\r\ndelay_ms\r\n:0\r\n$6\r\nreason\r\n$2\r\nok\r\n"
           "$6\r\nsource\r\n$6\r\nmemory\r\n$6\r\nstatus\r\n:200\r\n$7\r\nheaders\r\n$0\r\n\r\n"
           "$4\r\nbody\r\n$0\r\n\r\n$6\r\nfuture\r\n$9\r\nso it may\r\n").encode()

# What is said to each command, as bytes that are sent at once.
REPLIES = {
    "garbage": b"HTTP/1.1 400 Bad Request\r\nServer: nobody\r\n\r\n<html>\x00\xff</html>\r\n",
    "another_version": b"-ERR unknown command 'WEIR.CHECK', with args beginning with:\r\n",
    "without_option": b"-ERR \"@http\": no such option; there is @cost @wait_ms\r\n",
    "half": b"*26\r\n$7\r\nallow",
    "huge_array": b"*2000000000\r\n",
    "huge_text": b"$999999999999\r\n",
    "negative": b"*-7\r\n",
    "deep": b"*1\r\n" * 100_000,
    "endless_line": b"+" + b"x" * 1_000_000,
    "without_allowed": b"*2\r\n$4\r\nrule\r\n$1\r\nx\r\n",
    "odd": b"*3\r\n$7\r\nallowed\r\n:1\r\n$4\r\nrule\r\n",
    "number": b":1\r\n",
    "null": b"*-1\r\n",
    "busy": b"-BUSY too much to do\r\n",
    "noauth": b"-NOAUTH Authentication required.\r\n",
    "loading": b"-LOADING Redis is loading the dataset in memory\r\n",
    "newer": ALLOWED,
    "twice": ALLOWED + ALLOWED,
}


class Impostor:
    def __init__(self, kind):
        if kind not in (*REPLIES, "silent", "closing", "dribbling", "late"):
            raise ValueError(f"no such impostor: {kind}")
        self.kind = kind
        self.commands = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.ended, self.end = socket.socketpair()
        self.threads = [threading.Thread(target=self._accept)]

    def __enter__(self):
        self.threads[0].start()
        return self

    def __exit__(self, *_):
        self.end.close()  # Which wakes everybody who waits.
        for thread in self.threads:
            thread.join()
        self.listener.close()
        self.ended.close()

    def _comes(self, sock, seconds=None):
        """Whether there is something to read before the end."""
        ready, _, _ = select.select([sock, self.ended], [], [], seconds)
        return self.ended not in ready and bool(ready)

    def _accept(self):
        while self._comes(self.listener):
            client, _ = self.listener.accept()
            thread = threading.Thread(target=self._serve, args=(client,))
            self.threads.append(thread)
            thread.start()

    def _serve(self, client):
        with client:
            try:
                while self._comes(client):
                    data = client.recv(65536)
                    if not data:
                        return
                    for command in COMMAND.findall(data):
                        self.commands += 1
                        if not self._answer(client, command.upper()):
                            return
            except OSError:
                return

    def _answer(self, client, command):
        """False if the connection ends."""
        if self.kind == "closing":
            return False
        if self.kind == "silent":
            return True
        if self.kind == "dribbling":
            for byte in ALLOWED:
                client.sendall(bytes([byte]))
            return True
        if self.kind == "late":
            if not self._pause(2):
                return False
            client.sendall(ALLOWED)
            return True
        if command == b"PING" and self.kind in ("newer", "busy"):
            client.sendall(b"+PONG\r\n")
            return True
        client.sendall(REPLIES[self.kind])
        return True

    def _pause(self, seconds):
        ready, _, _ = select.select([self.ended], [], [], seconds)
        return not ready
