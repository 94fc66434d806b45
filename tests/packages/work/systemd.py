# debian: python3-systemd
import socket
import tempfile

from systemd import daemon, id128, journal

assert isinstance(daemon.booted(), (bool, int)) and daemon.listen_fds(False) == []
assert len(id128.randomize().hex) == 32 and id128.randomize() != id128.randomize()
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    s.listen()
    assert daemon.is_socket_inet(s.fileno(), socket.AF_INET, socket.SOCK_STREAM, True, 0)
    assert not daemon.is_fifo(s.fileno())
with tempfile.TemporaryDirectory() as folder:
    reader = journal.Reader(path=folder)
    assert reader.get_next() == {}
    reader.close()
