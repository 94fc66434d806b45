# debian: python3-httptools
# pypi: httptools
import httptools


class Request:
    def __init__(self):
        self.headers, self.body = {}, b""

    def on_url(self, url):
        self.url = httptools.parse_url(url)

    def on_header(self, name, value):
        self.headers[name] = value

    def on_body(self, part):
        self.body += part


request = Request()
parser = httptools.HttpRequestParser(request)
for part in b"POST /a/b?c=d HTTP/1.1\r\nHost: x\r\n", b"Content-Length: 4\r\n\r\nbo", b"dy":
    parser.feed_data(part)
assert request.url.query == b"c=d" and request.headers[b"Host"] == b"x" and request.body == b"body"
try:
    httptools.HttpRequestParser(Request()).feed_data(b"\0\0\r\n\r\n")
except httptools.HttpParserError:
    pass
else:
    raise AssertionError("a bad request was accepted")
