"""What each copy of bench/contexts.py does: imports, and, with a folder, says so, waits for a sign and counts."""

import importlib
import os
import threading
import time

SECONDS = 2


def count(seconds):
    end, turns = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        sum(i * i % 7 for i in range(1000))
        turns += 1
    return turns


def main():
    module = importlib.import_module(os.environ["BENCH_IMPORT"])
    if module.__name__ == "numpy":
        module.arange(1000.0).sum()
    folder = os.environ.get("BENCH_FOLDER")
    if not folder:
        return
    name = f"{os.getpid()}-{threading.get_native_id()}"
    open(f"{folder}/ready-{name}", "w").close()
    while not os.path.exists(f"{folder}/go"):
        time.sleep(0.1)
    turns = count(SECONDS)
    with open(f"{folder}/new-{name}", "w") as f:
        f.write(str(turns))
    os.rename(f"{folder}/new-{name}", f"{folder}/done-{name}")
    while not os.path.exists(f"{folder}/end"):
        time.sleep(0.1)


main()
