# debian: python3-aiohttp
# pypi: aiohttp
import asyncio

import aiohttp
from aiohttp import web
from aiohttp.http_parser import HttpRequestParser

assert "_http_parser" in HttpRequestParser.__module__


async def answer(request):
    return web.json_response({"got": await request.text(), "path": request.path})


async def main():
    application = web.Application()
    application.router.add_post("/{tail:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    async with aiohttp.ClientSession() as session:
        async with session.post("http://127.0.0.1:%d/p" % port, data="x" * 3000) as response:
            assert await response.json() == {"got": "x" * 3000, "path": "/p"}
    await runner.cleanup()


asyncio.run(main())
