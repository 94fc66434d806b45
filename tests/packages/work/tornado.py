# debian: python3-tornado
# pypi: tornado
import asyncio

import tornado.httpclient
import tornado.httpserver
import tornado.netutil
import tornado.speedups
import tornado.web

assert tornado.speedups.websocket_mask(b"abcd", b"abcdefgh") == b"\0\0\0\0\4\4\4\14"


class Handler(tornado.web.RequestHandler):
    def get(self, word):
        self.write(word.upper())


async def main():
    sockets = tornado.netutil.bind_sockets(0, "127.0.0.1")
    server = tornado.httpserver.HTTPServer(tornado.web.Application([(r"/(\w+)", Handler)]))
    server.add_sockets(sockets)
    client = tornado.httpclient.AsyncHTTPClient()
    answer = await client.fetch("http://127.0.0.1:%d/word" % sockets[0].getsockname()[1])
    assert answer.body == b"WORD"
    client.close()
    server.stop()


asyncio.run(main())
