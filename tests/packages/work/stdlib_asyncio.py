# debian: libpython3-stdlib
import asyncio


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
    writer.close()
    server.close()
    await server.wait_closed()


asyncio.run(main())
