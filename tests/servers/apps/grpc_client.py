import sys

import grpc

port = sys.argv[1]
with grpc.insecure_channel("127.0.0.1:" + port) as channel:
    call = channel.unary_unary("/Test/Answer")
    for n in range(200):
        answer = call(b" %d" % n, timeout=20)
        assert answer == b"from %s %d" % (port.encode(), n), answer
