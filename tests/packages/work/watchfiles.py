# pypi: watchfiles
import os
import tempfile
import threading

import watchfiles

with tempfile.TemporaryDirectory() as folder:
    done = threading.Event()

    def touch():
        n = 0
        while not done.wait(0.05):
            n += 1
            with open(os.path.join(folder, "f"), "w") as f:
                f.write(str(n))

    thread = threading.Thread(target=touch)
    thread.start()
    for changes in watchfiles.watch(folder, debounce=50, step=20, raise_interrupt=False):
        assert {os.path.basename(path) for _, path in changes} == {"f"}
        break
    done.set()
    thread.join()
