# debian: python3-psutil
# pypi: psutil
import os
import subprocess
import sys

import psutil

me = psutil.Process()
assert me.pid == os.getpid() and me.memory_info().rss > 1 << 20 and me.num_threads() >= 1
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
assert child.pid in [p.pid for p in me.children()]
child.communicate(b"\n")
assert psutil.virtual_memory().total > 1 << 25 and psutil.cpu_count() >= 1
assert any(a.address == "127.0.0.1" for a in psutil.net_if_addrs()["lo"])
