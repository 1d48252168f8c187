"""exchange.py serve ADDRESS SECONDS | call ADDRESS SECONDS CONNECTIONS: TCP (CUBIC) connections that send in bulk both ways.

Prints, at the end, how many bytes each end of these got, and how long it got none at the longest, s, as JSON."""

import json
import selectors
import socket
import sys
import time

PORT = 9000
BLOCK = bytes(64 << 10)


class End:
    """Of a connection: what it got."""

    def __init__(self, connection, now):
        connection.setblocking(False)
        self.connection, self.got, self.heard, self.silence = connection, 0, now, 0.0

    def move(self, now, ready):
        if ready & selectors.EVENT_READ and (got := len(self.connection.recv(4 * len(BLOCK)))):
            self.hear(now, got)
        if ready & selectors.EVENT_WRITE:
            self.connection.send(BLOCK)

    def hear(self, now, got):
        self.got += got
        self.silence, self.heard = max(self.silence, now - self.heard), now


def tcp():
    made = socket.socket()
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    return made


def main(what, address, seconds, connections=0):
    selector, ends, now = selectors.DefaultSelector(), [], time.monotonic()

    def begin(connection):
        ends.append(End(connection, now))
        selector.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, ends[-1])

    if what == "serve":
        listener = tcp()
        listener.bind((address, PORT))
        listener.listen(1024)
        selector.register(listener, selectors.EVENT_READ, None)
    for _ in range(int(connections)):
        made = tcp()
        made.setblocking(False)
        made.connect_ex((address, PORT))
        begin(made)
    until = now + float(seconds)
    while now < until:
        for key, ready in selector.select(0.1):
            now = time.monotonic()
            if not key.data:
                begin(listener.accept()[0])
                continue
            try:
                key.data.move(now, ready)
            except ConnectionError:  # it stays silent
                selector.unregister(key.fileobj)
        now = time.monotonic()
    for end in ends:
        end.hear(now, 0)
    print(json.dumps([(end.got, end.silence) for end in ends]))


if __name__ == "__main__":
    main(*sys.argv[1:])
