"""What an attribute and a call cost by proxy, of an object that is somewhere else; prints one table.

bench/run.sh starts it, in the environment that bench/pools.py has.  Each figure is the best of many short rounds; what is
compared takes turns, in rounds as short and as many as those of bench/embed.c.
"""

import json
import multiprocessing.managers
import os
import subprocess
import time

CALLS = 200
TURNS = 2 if "BENCH_QUICK" in os.environ else 20
ROUNDS = 40  # of a turn
GOAL = 3  # of the GIL twice and the same at home


class Thing:
    number = 5

    def same(self, n):
        return n

    def get(self):  # a manager's proxies have methods alone
        return self.number


def seconds(function):
    for _ in range(CALLS // 2):  # what others have left the caches without
        function()
    start = time.perf_counter()
    for _ in range(CALLS):
        function()
    return (time.perf_counter() - start) / CALLS


def by_interpreter():
    import extisolate

    interp = extisolate.create()
    interp.exec("class Thing:\n    number = 5\ndef same(n): return n")
    thing, same = interp.proxy("Thing()"), interp.proxy("same")
    return lambda: thing.number, lambda: same(5), interp.close


class Manager(multiprocessing.managers.BaseManager):
    pass


Manager.register("Thing", Thing)


def by_manager():
    manager = Manager()
    manager.start()
    thing = manager.Thing()
    return thing.get, lambda: thing.same(5), manager.shutdown


def connected(port):
    import rpyc

    try:
        return rpyc.connect("127.0.0.1", port, config={"allow_public_attrs": True})
    except ConnectionRefusedError:
        return None


def by_rpyc():
    import rpyc
    from rpyc.utils.server import ThreadedServer

    parent, child = multiprocessing.Pipe()

    def serve():
        class Service(rpyc.Service):
            exposed_thing = Thing()

        server = ThreadedServer(Service, hostname="127.0.0.1", port=0, protocol_config={"allow_public_attrs": True})
        child.send(server.port)
        server.start()

    process = multiprocessing.get_context("fork").Process(target=serve, daemon=True)
    process.start()
    port = parent.recv()
    while not (connection := connected(port)):  # it has the port before it listens
        time.sleep(0.01)
    thing = connection.root.thing

    def end():
        connection.close()
        process.kill()

    same = thing.same
    return lambda: thing.number, lambda: same(5), end


def at_home():
    """The section `embed` of bench/bench.c, in seconds."""
    found = subprocess.run(
        [os.environ["BENCH"], "--json", "embed"],
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=dict(os.environ, BENCH_QUICK="1"),
    )
    rows = {row["what"]: row.get("value") for row in json.loads(found.stdout)}
    names = "the same with an attribute of an object", "the same with a call with one int"
    return [rows[name] / 1e6 for name in names]


OURS = "proxies of interpreters"
SUBJECTS = {
    OURS: by_interpreter,
    "proxies of multiprocessing.managers": by_manager,
    "proxies of rpyc, by a local socket": by_rpyc,
}


def empty():
    pass


def measure(subjects):
    """{subject: [attribute, call]}, without what an empty lambda costs"""
    best = {name: [1.0, 1.0] for name in subjects}
    home, loop = [1.0, 1.0], 1.0
    for i in range(TURNS * ROUNDS):
        loop = min(loop, seconds(empty))
        for name, (get, call, _) in subjects.items():
            if name == OURS or i % 8 == 0:  # the others take a hundred times as long
                best[name] = [min(old, seconds(f)) for old, f in zip(best[name], (get, call))]
        if i % ROUNDS == 0:
            home = [min(old, new) for old, new in zip(home, at_home())]
    return {name: [b - loop for b in values] for name, values in best.items()}, home


def main():
    subjects, missing = {}, {}
    for name, make in SUBJECTS.items():
        try:
            subjects[name] = make()
        except ImportError as e:
            missing[name] = f"no {e.name}"
    values, home = measure(subjects)
    for _, _, end in subjects.values():
        end()
    print("| | an attribute | a call with one int |\n|---|---|---|")
    for name in SUBJECTS:
        found = values.get(name)
        cells = [f"{v * 1e6:.3g} us" for v in found] if found else [missing[name]] * 2
        print(f"| {name} | {' | '.join(cells)} |")
    print(f"| the GIL twice, and the same at home | {' | '.join(f'{v * 1e6:.3g} us' for v in home)} |")
    ratios = [v / h for v, h in zip(values["proxies of interpreters"], home)]
    cells = [f"{r:.3g}; goal at most {GOAL}: {'reached' if r <= GOAL else 'not reached'}" for r in ratios]
    print(f"| **interpreters / at home** | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
