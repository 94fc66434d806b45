# debian: python3-uvloop
# pypi: uvloop
import asyncio

import uvloop


async def echo(reader, writer):
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()


async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"hello\n")
    assert await reader.readline() == b"HELLO\n"
    assert await asyncio.get_running_loop().run_in_executor(None, sum, [1, 2]) == 3
    writer.close()
    server.close()
    await server.wait_closed()


loop = uvloop.new_event_loop()
loop.run_until_complete(main())
loop.run_until_complete(loop.shutdown_default_executor())
loop.close()
