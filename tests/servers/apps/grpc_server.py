"""A service without generated code."""

import concurrent.futures
import signal
import sys
import threading

import grpc


def main():
    port = sys.argv[1]
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: b"from " + port.encode() + request)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Test", {"Answer": handler}),))
    server.add_insecure_port("127.0.0.1:" + port)
    server.start()
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *a: asked.set())
    print("serving", flush=True)
    try:
        asked.wait()
        print("was asked to stop")
    finally:
        server.stop(1).wait()
        print("has stopped")


if __name__ == "__main__":
    main()
