"""Small HTTP connections: `pages.py serve ADDRESS` answers each, `pages.py get ADDRESS COUNT AT_ONCE` prints how many seconds all took."""

import asyncio
import sys
import time

PORT, BODY = 8080, bytes(30_000)


async def answer(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def serve(address):
    server = await asyncio.start_server(answer, address, PORT, backlog=256)
    await server.serve_forever()


async def get(address, count, at_once):
    turns, began = asyncio.Semaphore(at_once), time.monotonic()

    async def one():
        async with turns:
            reader, writer = await asyncio.open_connection(address, PORT)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            got = await reader.read()
            assert got.endswith(BODY), f"{len(got)} bytes"
            writer.close()

    await asyncio.gather(*(one() for _ in range(count)))
    print(time.monotonic() - began)


if __name__ == "__main__":
    what, address, *numbers = sys.argv[1:]
    asyncio.run(serve(address) if what == "serve" else get(address, *map(int, numbers)))
