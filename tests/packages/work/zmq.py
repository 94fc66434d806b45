# debian: python3-zmq
# pypi: pyzmq
import zmq

context = zmq.Context()
server, client = context.socket(zmq.REP), context.socket(zmq.REQ)
port = server.bind_to_random_port("tcp://127.0.0.1")
client.connect("tcp://127.0.0.1:%d" % port)
for i in range(50):
    client.send_json({"n": i})
    server.send_json({"n": 2 * server.recv_json()["n"]})
    assert client.recv_json() == {"n": 2 * i}
client.close()
server.close()
context.term()
