# debian: python3-pycurl
import http.server
import io
import threading

import pycurl


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"curled")

    def log_message(self, *words):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
thread = threading.Thread(target=server.serve_forever)
thread.start()
out, curl = io.BytesIO(), pycurl.Curl()
curl.setopt(pycurl.URL, "http://127.0.0.1:%d/" % server.server_port)
curl.setopt(pycurl.PROXY, "")
curl.setopt(pycurl.NOSIGNAL, 1)
curl.setopt(pycurl.WRITEFUNCTION, out.write)
curl.perform()
assert curl.getinfo(pycurl.RESPONSE_CODE) == 200 and out.getvalue() == b"curled"
curl.close()
server.shutdown()
thread.join()
server.server_close()
