import http.server
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = b"from %d" % self.server.server_port
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that has gone away is no news
            super().handle_error(request, client_address)


if __name__ == "__main__":
    print("begins")  # which stays in a buffer until the end
    try:
        Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
    finally:
        print("has ended")
