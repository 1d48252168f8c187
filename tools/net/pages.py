"""HTTP connections: `pages.py serve ADDRESS` answers each; `pages.py get ADDRESS COUNT AT_ONCE BYTES` prints how many seconds COUNT
of them took, each for BYTES."""

import asyncio
import sys
import time

PORT = 8080


async def answer(reader, writer):
    size = int((await reader.readuntil(b"\r\n\r\n")).split()[1][1:])
    writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def serve(address):
    server = await asyncio.start_server(answer, address, PORT, backlog=256)
    await server.serve_forever()


async def get(address, count, at_once, size):
    turns, began = asyncio.Semaphore(at_once), time.monotonic()

    async def one():
        async with turns:
            reader, writer = await asyncio.open_connection(address, PORT)
            writer.write(b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n" % size)
            got = await reader.read()
            assert got.endswith(b"\r\n\r\n" + bytes(size)), f"{len(got)} bytes"
            writer.close()

    await asyncio.gather(*(one() for _ in range(count)))
    print(time.monotonic() - began)


if __name__ == "__main__":
    what, address, *numbers = sys.argv[1:]
    asyncio.run(serve(address) if what == "serve" else get(address, *map(int, numbers)))
