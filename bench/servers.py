"""Compares four servers in contexts with four processes that embed the same libpython; prints a table.

bench/run.sh starts it.  Both answer wrk, on a port each; what counts is the processor time of the servers alone.
"""

import contextlib
import os
from pathlib import Path
import re
import signal
import socket
import statistics
import subprocess
import time

from contexts import MB, PLAIN, PROGRAM, PYTHON, QUICK, cell, family, memory

JOB = str(Path(__file__).resolve().with_name("servers_job.py"))
COPIES = 4
ROUNDS, SECONDS = (1, 2) if QUICK else (7, 8)
GOALS = {"processor time": 1.05, "memory": 0.9}


def free_ports():
    """The first of as many ports as there are copies, which nobody listens at."""
    for first in range(20000, 60000, COPIES):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for port in range(first, first + COPIES):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise SystemExit("bench: no free ports")


def commands(name, server, port):
    if name == "contexts":
        return [[PROGRAM, "run", "--python", PYTHON, "--contexts", str(COPIES), JOB, server, str(port)]]
    return [[PLAIN, JOB, server, str(port + i)] for i in range(COPIES)]


def await_answers(port, processes):
    for i in range(COPIES):
        for _ in range(1200):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port + i), 1).close()
                break
            if any(p.poll() is not None for p in processes):
                raise SystemExit(f"bench: a server has ended: {processes[0].args}")
            time.sleep(0.05)


def load(port, seconds):
    """Count the requests that are answered."""
    runs = [
        subprocess.Popen(
            ["wrk", "-t1", "-c8", f"-d{seconds}s", f"http://127.0.0.1:{port + i}/"], stdout=subprocess.PIPE, text=True
        )
        for i in range(COPIES)
    ]
    said = [run.communicate()[0] for run in runs]
    for text in said:
        if "Non-2xx" in text or "Socket errors" in text:
            raise SystemExit(f"bench: a request failed:\n{text}")
    return sum(int(re.search(r"(\d+) requests in", text)[1]) for text in said)


def processor_time(pids):
    found = 0
    for pid in family(pids):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        found += int(fields[11]) + int(fields[12])
    return found / os.sysconf("SC_CLK_TCK")


def measure(name, server):
    port = free_ports()
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen(c, env=environment, **quiet) for c in commands(name, server, port)]
    pids = [p.pid for p in processes]
    try:
        await_answers(port, processes)
        load(port, 1)
        before = processor_time(pids)
        requests = load(port, SECONDS)
        return {"processor time": 1e6 * (processor_time(pids) - before) / requests, "memory": memory(pids) / MB}
    finally:
        for p in processes:
            p.send_signal(signal.SIGINT)
        for p in processes:
            p.wait(60)


def main():
    print("| four servers, | processor time for a request, us | memory, MB |")
    print("|---|---|---|")
    for server in ("uvicorn", "flask"):
        rounds = [{name: measure(name, server) for name in ("contexts", "embeddings")} for _ in range(ROUNDS)]
        for name in ("contexts", "embeddings"):
            print(f"| {server}, {name} |", " | ".join(cell([r[name][what] for r in rounds]) for what in GOALS), "|")
        ratios = {what: [r["contexts"][what] / r["embeddings"][what] for r in rounds] for what in GOALS}
        print(f"| **{server}, contexts / embeddings** |", " | ".join(
            f"{cell(ratios[what])}; goal at most {goal}: "
            f"{'reached' if statistics.median(ratios[what]) <= goal else 'not reached'}"
            for what, goal in GOALS.items()), "|")


if __name__ == "__main__":
    main()
