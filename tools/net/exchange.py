"""exchange.py serve ADDRESS | call ADDRESS SECONDS CONNECTIONS: TCP (CUBIC) connections that send in bulk both ways.

The server ends when no connection is left. Both print how many bytes each of their ends got, and how long it got none at the
longest, s, as JSON."""

import json
import math
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
        """Whether it goes on."""
        try:
            if ready & selectors.EVENT_READ:
                got = len(self.connection.recv(4 * len(BLOCK)))
                if got == 0:
                    return False
                self.hear(now, got)
            if ready & selectors.EVENT_WRITE:
                self.connection.send(BLOCK)
        except BlockingIOError:
            pass
        except OSError:  # it stays silent
            return False
        return True

    def hear(self, now, got):
        self.got += got
        self.silence, self.heard = max(self.silence, now - self.heard), now


def tcp():
    made = socket.socket()
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    return made


def main(what, address, seconds=math.inf, connections=0):
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
    left, until = int(connections), now + float(seconds)
    while now < until and (left or not ends):
        for key, ready in selector.select(min(0.1, until - now)):
            now = time.monotonic()
            if not key.data:
                begin(listener.accept()[0])
                left += 1
            elif not key.data.move(now, ready):
                key.data.hear(now, 0)
                selector.unregister(key.fileobj)
                left -= 1
        now = time.monotonic()
    if what == "call":
        for end in ends:
            end.hear(until, 0)
    print(json.dumps([(end.got, end.silence) for end in ends]))


if __name__ == "__main__":
    main(*sys.argv[1:])
