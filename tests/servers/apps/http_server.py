import http.server
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = b"from %d" % self.server.server_port
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


if __name__ == "__main__":
    print("begins")  # which stays in a buffer until the end
    try:
        http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
    finally:
        print("has ended")
