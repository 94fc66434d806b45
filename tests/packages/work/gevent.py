# debian: python3-gevent
# pypi: gevent
import gevent
import gevent.event
import gevent.queue
import gevent.server
import gevent.socket

queue, got = gevent.queue.Queue(), []


def consume():
    for item in queue:
        got.append(item)


consumer = gevent.spawn(consume)
for i in range(20):
    queue.put(i)
    gevent.sleep(0)
queue.put(StopIteration)
consumer.join()
assert got == list(range(20))

server = gevent.server.StreamServer(("127.0.0.1", 0), lambda s, _: s.sendall(s.recv(50)[::-1]))
server.start()
client = gevent.socket.create_connection(("127.0.0.1", server.server_port))
client.sendall(b"abc")
assert client.recv(50) == b"cba"
client.close()
server.stop()
