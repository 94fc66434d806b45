# debian: python3-grpcio
# pypi: grpcio
from concurrent import futures

import grpc


class Handler(grpc.GenericRpcHandler):
    def service(self, call):
        return grpc.unary_unary_rpc_method_handler(lambda request, _: request.upper())


server = grpc.server(futures.ThreadPoolExecutor(2))
server.add_generic_rpc_handlers((Handler(),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel("127.0.0.1:%d" % port) as channel:
    assert channel.unary_unary("/s/m")(b"hello", wait_for_ready=True) == b"HELLO"
server.stop(None).wait()
