# debian: libpython3-stdlib
import curses
import curses.panel
import os
import pty
import subprocess
import sys

curses.setupterm("xterm", os.open(os.devnull, os.O_WRONLY))
assert curses.tigetnum("colors") == 8 and curses.tigetstr("clear")
assert curses.tparm(curses.tigetstr("cup"), 4, 9) == b"\x1b[5;10H"
assert curses.panel.version

# A screen of its own, in a child, where standard input and output can be a terminal.
child = """
import curses
def main(screen):
    screen.addstr(2, 4, "isolated")
    screen.refresh()
    assert screen.instr(2, 4, 8) == b"isolated"
    window = curses.newwin(3, 10, 1, 1)
    assert window.getmaxyx() == (3, 10)
curses.wrapper(main)
"""
master, slave = pty.openpty()
done = subprocess.Popen(
    [sys.executable, "-c", child], stdin=slave, stdout=slave, stderr=slave,
    env=dict(os.environ, TERM="xterm"),
)
os.close(slave)
seen = b""
while True:
    try:
        part = os.read(master, 4096)
    except OSError:
        break
    if not part:
        break
    seen += part
assert done.wait() == 0 and b"isolated" in seen, seen
os.close(master)
