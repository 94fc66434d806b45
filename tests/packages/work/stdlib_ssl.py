# debian: libpython3-stdlib openssl
import os
import socket
import ssl
import subprocess
import tempfile
import threading

with tempfile.TemporaryDirectory() as folder:
    key, certificate = os.path.join(folder, "key"), os.path.join(folder, "certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-keyout", key, "-out", certificate],
        check=True, stderr=subprocess.DEVNULL,
    )
    here = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    here.load_cert_chain(certificate, key)
    there = ssl.create_default_context(cafile=certificate)

listener = socket.create_server(("127.0.0.1", 0))


def serve():
    connection, _ = listener.accept()
    with here.wrap_socket(connection, server_side=True) as s:
        s.sendall(s.recv(100).upper())


server = threading.Thread(target=serve)
server.start()
with socket.create_connection(listener.getsockname()) as plain:
    with there.wrap_socket(plain, server_hostname="localhost") as s:
        assert s.version() == "TLSv1.3", s.version()
        s.sendall(b"secret")
        assert s.recv(100) == b"SECRET"
server.join()
listener.close()
