"""Compares contexts with processes and with what else runs several CPythons; prints a table.

bench/run.sh starts it.  N copies import numpy and add numbers, first one after the other on each processor, then all
are kept alive together, measured, and count in Python for two seconds at once.  The subjects take turns.

python contexts.py [--json FILE] [--copies N ...]
"""

import argparse
from concurrent.futures import ThreadPoolExecutor
import contextlib
import json
import os
from pathlib import Path
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = Path(__file__).resolve().parent
JOB = str(HERE / "contexts_job.py")
PROGRAM, PYTHON, PLAIN = (os.environ[f"BENCH_{name}"] for name in ("PROGRAM", "PYTHON", "PLAIN"))
QUICK = "BENCH_QUICK" in os.environ
PROCESSORS = len(os.sched_getaffinity(0))
# Copies: rounds.
COPIES = {1: 3, 2: 3, 10: 1} if QUICK else {1: 3, 2: 5, 10: 3, 50: 1, 100: 3, 200: 1, 400: 1}
MB = 1 << 20

# What is printed of each subject: heading, unit.
FIGURES = {"cpu": ("processor time each", "ms"), "wall": ("wall each", "ms"), "pss": ("memory each", "MB"),
           "disk": ("disk each", "MB"), "turns": ("turns of all at once", "/s")}
# Figure, copies, what is divided by what, and the goal; or a subject's own figure.
GOALS = (
    ("cpu", 100, "contexts", "embeddings", "at most", 1.1),
    ("wall", 100, "contexts", "embeddings", "at most", 1.1),
    ("cpu", 100, "contexts, copies there", "embeddings", "at most", 0.9),
    ("turns", 2, "contexts", "embeddings", "at least", 0.97),
    ("pss", 100, "contexts", None, "at most", 17),
    ("pss", 200, "contexts", None, "at most", 17),
    ("disk", 100, "contexts", None, "at most", 8),
)


# ---- the subjects: each gives the command of N copies, or of one where each is a process ----


class Subject:
    """Copies that one command starts."""

    module = "numpy"

    def __init__(self, name, command, most=1000):
        self.name, self.command, self.most = name, command, most

    def environment(self, folder, alive):
        own = {"TMPDIR": str(folder), "BENCH_IMPORT": self.module, "OPENBLAS_NUM_THREADS": "1"}
        return dict(os.environ, **own, **({"BENCH_FOLDER": str(folder / "signs")} if alive else {}))

    def start(self, n, folder, alive):
        command = self.command(n, n if alive else min(n, PROCESSORS))
        return [subprocess.Popen(command, env=self.environment(folder, alive), **QUIET)]

    def run(self, n, folder):
        check(self, self.start(n, folder, False)[0])


class Processes(Subject):
    """Copies that are a process each, as many at once as there are processors."""

    def start(self, n, folder, alive):
        return [super(Processes, self).start(1, folder, alive)[0] for _ in range(n)]

    def run(self, n, folder):
        with ThreadPoolExecutor(PROCESSORS) as pool:
            list(pool.map(lambda _: super(Processes, self).run(1, folder), range(n)))


class WithoutNumpy(Subject):
    """Copies that numpy refuses to be imported in."""

    module = "_decimal"


QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
FORKS = f"""
import os, sys
def run():
    pid = os.fork()
    if not pid:
        exec(open({JOB!r}).read(), {{}})
        sys.stdout.flush()
        os._exit(0)
copies, at_once = map(int, sys.argv[1:])
for i in range(copies):
    if i >= at_once and os.wait()[1]:
        sys.exit(1)
    run()
while at_once:
    at_once -= 1
    if os.wait()[1]:
        sys.exit(1)
"""
INTERPRETERS = f"""
import sys
from concurrent.futures import ThreadPoolExecutor
from concurrent import interpreters
copies, at_once = map(int, sys.argv[1:])
def run(i):
    interpreter = interpreters.create()
    interpreter.exec(open({JOB!r}).read())
    interpreter.close()
with ThreadPoolExecutor(at_once) as pool:
    list(pool.map(run, range(copies)))
"""
THREADS = f"""
import sys
from concurrent.futures import ThreadPoolExecutor
copies, at_once = map(int, sys.argv[1:])
job = compile(open({JOB!r}).read(), {JOB!r}, "exec")
with ThreadPoolExecutor(at_once) as pool:
    list(pool.map(lambda _: exec(job, {{}}), range(copies)))
"""


def subjects(copies):
    run = [PROGRAM, "run", "--python", PYTHON, "--contexts"]
    found = [
        Subject("contexts", lambda n, _: [*run, str(n), JOB]),
        Subject("contexts, copies there", lambda n, _: [*run, str(n), "--dir", str(copies), JOB]),
        Processes("embeddings", lambda *_: [PLAIN, JOB]),
        Processes("processes, python3", lambda *_: [PYTHON, JOB]),
        Subject("processes, fork", lambda n, at_once: [PYTHON, "-c", FORKS, str(n), str(at_once)]),
        Subject("dlmopen", lambda n, at_once: [os.environ["BENCH_DLMOPEN"], os.environ["BENCH_API"], JOB,
                                               str(n), str(at_once)], most=10),
    ]
    for variable, name, script in (("BENCH_NEWER", "sub-interpreters", INTERPRETERS),
                                   ("BENCH_FREE_THREADED", "free threads", THREADS)):
        if python := os.environ.get(variable):
            found.append(WithoutNumpy(f"{name}, without numpy",
                                      lambda n, at_once, run=(python, "-c", script): [*run, str(n), str(at_once)]))
    return found


# ---- measuring ----


class Failed(Exception):
    """A subject cannot do it: the last line of what it said."""


def check(subject, process):
    said = process.communicate(timeout=600)[1].decode(errors="replace").strip()
    if process.returncode:
        raise Failed(said.split("\n")[-1] or f"{subject.name}: status {process.returncode}")


def family(pids):
    """These processes and all that they have started."""
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            parents[int(entry)] = int(Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()[1])
    found = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def memory(pids):
    total = 0
    for pid in family(pids):
        with contextlib.suppress(OSError):  # one that has just ended
            total += int(re.search(r"^Pss: +(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)[1])
    return total * 1024


def disk(folder):
    return sum(512 * p.lstat().st_blocks for p in folder.rglob("*") if "signs" not in p.parts and not p.is_dir())


def wait_for(signs, pattern, n, processes):
    end = time.monotonic() + 600
    while (found := len(list(signs.glob(pattern)))) < n:
        if any(p.poll() for p in processes):
            raise Failed
        if time.monotonic() > end:
            raise Failed(f"{found} of {n} came")
        time.sleep(0.05)


def measure_ends(subject, n, folder):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subject.run(n, folder)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {"cpu": 1e3 * cpu / n, "wall": 1e3 * wall / n}


def measure_alive(subject, n, folder):
    signs = folder / "signs"
    signs.mkdir()
    processes = subject.start(n, folder, True)
    try:
        wait_for(signs, "ready-*", n, processes)
        found = {"pss": memory(p.pid for p in processes) / n / MB, "disk": disk(folder) / n / MB}
        (signs / "go").touch()
        wait_for(signs, "done-*", n, processes)
        found["turns"] = sum(int(p.read_text()) for p in signs.glob("done-*")) / 2
        (signs / "end").touch()
    except Failed:
        for p in processes:
            p.send_signal(signal.SIGKILL)
        raise
    finally:
        for p in processes:
            check(subject, p)
    return found


def measure_all(root, copies):
    """{copies: {subject: {figure: values}, or why there are none}}"""
    everyone = subjects(root / "copies")
    values = {n: {} for n in copies}
    for n in copies:
        rounds = COPIES.get(n, 1)
        print(f"measuring: {n} at once", file=sys.stderr)
        for round_ in range(rounds):
            for subject in everyone:
                if n > subject.most or isinstance(values[n].get(subject.name), str):
                    continue
                with tempfile.TemporaryDirectory(dir=root) as name:
                    folder = Path(name)
                    try:
                        if subject.name.endswith("there") and round_ == 0:
                            subject.run(n, folder)
                        found = measure_ends(subject, n, folder) | measure_alive(subject, n, folder)
                    except Failed as why:
                        values[n][subject.name] = str(why)
                        continue
                for figure, value in found.items():
                    values[n].setdefault(subject.name, {}).setdefault(figure, []).append(value)
        shutil.rmtree(root / "copies", ignore_errors=True)
    return dict(sorted(values.items()))


# ---- the table ----


def number(value):
    return f"{value:,.{max(0, 3 - len(str(int(value))))}f}"


def cell(values):
    middle = number(statistics.median(values))
    low, high = number(min(values)), number(max(values))
    return middle if low == high else f"{middle} ({low} to {high})"


def goal_lines(values):
    for figure, n, name, over, sense, limit in GOALS:
        of = values.get(n, {})
        if any(not isinstance(of.get(s), dict) for s in (name, over or name)):
            continue
        found = of[name][figure]
        if over:
            found = [a / b for a, b in zip(found, of[over][figure], strict=True)]
        ratio = statistics.median(found)
        reached = ratio <= limit if sense == "at most" else ratio >= limit
        heading, unit = FIGURES[figure]
        what = f"{name} / {over} {cell(found)}" if over else f"{name} {cell(found)} {unit}"
        yield f"- {n} copies, {heading}: {what}; goal {sense} {limit}: {'reached' if reached else 'not reached'}"


def table(values):
    yield f"| copies | | {' | '.join(f'{heading}, {unit}' for heading, unit in FIGURES.values())} |"
    yield f"|{'---|' * (len(FIGURES) + 2)}"
    for n, of in values.items():
        for name, figures in of.items():
            if isinstance(figures, str):
                yield f"| {n} | {name} | {figures} |{' |' * (len(FIGURES) - 1)}"
            else:
                yield f"| {n} | {name} | {' | '.join(cell(figures[f]) for f in FIGURES)} |"
    yield ""
    yield from goal_lines(values)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path)
    parser.add_argument("--copies", type=int, nargs="+", default=list(COPIES))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as root:
        values = measure_all(Path(root), options.copies)
    if options.json:
        options.json.write_text(json.dumps(values, indent=1))
    print("\n".join(table(values)))


if __name__ == "__main__":
    main()
