# debian: libpython3-stdlib
import multiprocessing.shared_memory
import subprocess
import sys

# Semaphores and shared memory of this process; workers are programs of their own.
shared = multiprocessing.shared_memory.SharedMemory(create=True, size=64)
try:
    code = """
import sys
from multiprocessing import resource_tracker, shared_memory
resource_tracker.register = lambda *a: None
s = shared_memory.SharedMemory(name=sys.argv[1])
s.buf[:5] = b"child"
s.close()
"""
    subprocess.run([sys.executable, "-c", code, shared.name], check=True)
    assert bytes(shared.buf[:5]) == b"child"
finally:
    shared.close()
    shared.unlink()

spawn = multiprocessing.get_context("spawn")
semaphore = spawn.Semaphore(2)
assert semaphore.acquire() and semaphore.acquire() and not semaphore.acquire(block=False)
semaphore.release()
