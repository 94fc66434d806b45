# pypi: websockets
import asyncio

import websockets
import websockets.speedups

assert websockets.speedups.apply_mask(b"abcd", b"\1\0\1\0") == b"`bbd"


async def echo(socket, *_):
    async for message in socket:
        await socket.send(message[::-1])


async def main():
    async with websockets.serve(echo, "127.0.0.1", 0) as server:
        port = list(server.sockets)[0].getsockname()[1]
        async with websockets.connect("ws://127.0.0.1:%d" % port) as client:
            await client.send("abc" * 1000)
            assert await client.recv() == "cba" * 1000


asyncio.run(main())
