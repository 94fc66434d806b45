# debian: libpython3-stdlib
import select
import socket
import threading

listener = socket.create_server(("127.0.0.1", 0))


def serve():
    connection, _ = listener.accept()
    with connection:
        connection.sendall(connection.recv(100)[::-1])


server = threading.Thread(target=serve)
server.start()
with socket.create_connection(listener.getsockname()) as client:
    client.sendall(b"abc")
    poll = select.epoll()
    poll.register(client, select.EPOLLIN)
    assert poll.poll()[0][0] == client.fileno()
    assert client.recv(100) == b"cba"
    poll.close()
server.join()
listener.close()
