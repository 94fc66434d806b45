"""What calls, arrays and searches cost in interpreters, threads and processes; prints one table.

bench/run.sh starts it, in an environment with the package, numpy, joblib and scikit-learn.  The pools are in a
process each and take turns, so that each round compares what ran within the same few seconds; a figure is the
median of its rounds, and a ratio that of the rounds' ratios.  Of what takes less than the noise the best of many short
rounds counts.
"""

import json
import os
from pathlib import Path
import shutil
import statistics
import subprocess
import sys

HERE = Path(__file__).resolve().parent
QUICK = "BENCH_QUICK" in os.environ

# Measurement: heading, rounds.
MEASUREMENTS = {
    "empty": ("an empty call", 41),
    "arrays": ("100 MB array in and out", 15),
    "start": ("4 start, with numpy", 3),
    "map": ("1,000 tasks, 2 workers", 7),
    "search": ("GridSearchCV, 2 workers", 7),
}

# What a C program measures, by its row in the section `embed` of bench/bench.c.
EMBED = {
    "GIL twice, and the call at home": "releasing and taking an idle GIL twice, and the call inside",
    "a job for another thread": "extipy_submit and extipy_job_wait, with the result",
    "a bare hand-over to a thread": "a hand-over between two threads, and back",
}

# Those of which the best counts.
LEAST = ("Interpreter.call", "Interpreter.call, the program's own", *EMBED)

PROCESSES = ("processes, fork", "processes, spawn", "processes, forkserver", "loky")
# Run by a program that is linked to the libpython that interpreters run.
LINKED = "processes, fork, of libpython"
# Measurement, what is divided by what, of several subjects the fastest one, and the goal.
GOALS = (
    ("empty", ("interpreters",), ("threads",), "at most", 1),
    ("empty", ("Interpreter.call",), ("GIL twice, and the call at home",), "at most", 3),
    ("empty", ("Interpreter.call, the program's own",), ("GIL twice, and the call at home",), "at most", 3),
    ("empty", ("a job for another thread",), ("a bare hand-over to a thread",), "at most", 1.2),
    ("arrays", ("interpreters",), ("threads",), "at most", 1.1),
    ("arrays", PROCESSES, ("interpreters",), "at least", 50),
    ("map", PROCESSES, ("interpreters",), "at least", 0.97),
    ("map", (LINKED,), ("interpreters",), "at least", 0.97),
    ("search", ("loky",), ("interpreters",), "at least", 1),
)


class Process:
    """Measures one subject when it is asked to."""

    def __init__(self, name, python):
        self.name, self.python = name, python
        self.process = subprocess.Popen(
            [python, str(HERE / "pool_subjects.py"), name],
            executable=os.environ["BENCH_PLAIN"] if name == LINKED else None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self.environment(),
        )

    def environment(self):
        """With numpy of the newer CPython's, which has no packages by itself."""
        path = os.environ.get("BENCH_NEWER_PACKAGES")
        return dict(os.environ, PYTHONPATH=path) if path and self.name == "sub-interpreters" else None

    def measure(self, what):
        print(what, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"bench: {self.name} ended with status {self.process.wait()}")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Embed:
    """A C program that measures several subjects at once, and keeps the best of many rounds of its own."""

    def __init__(self):
        self.environment = dict(os.environ, BENCH_QUICK="1")

    def measure(self):
        found = subprocess.run(
            [os.environ["BENCH"], "--json", "embed"],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self.environment,
        )
        rows = {row["what"]: row.get("value") for row in json.loads(found.stdout)}
        return {name: rows[what] / 1e6 for name, what in EMBED.items()}


def pythons():
    """The interpreter of each subject, and why there is none."""
    import pool_subjects

    found = dict.fromkeys(pool_subjects.SUBJECTS, sys.executable)
    newer = os.environ.get("BENCH_NEWER")
    found["sub-interpreters"] = newer or None
    found["free threads"] = os.environ.get("BENCH_FREE_THREADED") or next(
        filter(None, map(shutil.which, ("python3.15t", "python3.14t", "python3.13t"))), None
    )
    return found


def measure(processes):
    """{measurement: {subject: {round: a value or a text}}}"""
    embed = Embed()
    values = {what: {} for what in MEASUREMENTS}
    for what, (_, rounds) in MEASUREMENTS.items():
        print(f"measuring: {what}", file=sys.stderr)
        for process in processes:  # what is done once: imports, threads, copies of files
            process.measure(what)
        for i in range(3 if QUICK else rounds):
            found = {p.name: p.measure(what) for p in processes}
            if what == "empty" and i % 4 == 0:
                found.update(embed.measure())
            for name, value in found.items():
                values[what].setdefault(name, {})[i] = value
    return values


def number(value, digits=3):
    """With so many digits that count."""
    return f"{value:,.{max(0, digits - len(str(int(value))))}f}"


def figure(name, rounds):
    found = ["-"] if rounds is None else list(rounds.values())
    if isinstance(found[0], str):
        return found[0]
    value = min(found) if name in LEAST else statistics.median(found)
    return f"{number(value * 1e6)} us" if value < 1e-3 else f"{number(value * 1e3)} ms"


def fastest(values, names):
    known = [values[n] for n in names if n in values and not isinstance(values[n][0], str)]
    return min(known, key=lambda rounds: statistics.median(rounds.values()))


def goal_rows(values):
    found = {}
    for what, over, under, sense, limit in GOALS:
        above, below = fastest(values[what], over), fastest(values[what], under)
        if over[0] in LEAST:
            ratio = min(above.values()) / min(below.values())
        else:
            ratio = statistics.median(above[i] / below[i] for i in above)
        reached = ratio <= limit if sense == "at most" else ratio >= limit
        names = ["the best process pool" if n == PROCESSES else n[0] for n in (over, under)]
        cells = found.setdefault(f"{names[0]} / {names[1]}", dict.fromkeys(MEASUREMENTS, ""))
        cells[what] = f"{number(ratio)}; goal {sense} {limit}: {'reached' if reached else 'not reached'}"
    for name, cells in found.items():
        yield (f"**{name}**", *cells.values())


def rows(values, found):
    for name, python in found.items():
        if python is None:
            yield (name, *["not to be had"] * len(MEASUREMENTS))
        else:
            yield (name, *(figure(name, of.get(name)) for of in values.values()))
    for name in EMBED:
        yield (name, *(figure(name, of.get(name)) for of in values.values()))
    yield from goal_rows(values)


def main():
    found = pythons()
    processes = [Process(name, python) for name, python in found.items() if python]
    try:
        values = measure(processes)
    finally:
        for process in processes:
            process.end()
    print(f"| | {' | '.join(heading for heading, _ in MEASUREMENTS.values())} |")
    print(f"|{'---|' * (len(MEASUREMENTS) + 1)}")
    for row in rows(values, found):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
