"""Objects of three interpreters at random, against a model that knows what can be reached.

python proxy_machine.py STEPS [SEED [FAULT]]: prints how many objects there were, or what is wrong.
FAULT: what is done wrongly on purpose, so that the machine can be seen to find it.
"""

import ctypes
import gc
import random
import sys

import extisolate

NODES = """
import extisolate, weakref
class Failure(Exception): pass
class Node:
    def __init__(self, number):
        self.number, self.refs = number, []
        if number % 3 == 0: self.shared = extisolate.share(self)
        weakref.finalize(self, ended.append, number).atexit = False
    def __del__(self):
        if revived is not None and self.number % 7 == 0: revived.append(self)
    def call(self, f, *args): return f(*args)
    def fail(self): raise Failure(self.number)
ended, revived = [], []
def take_ended():
    taken = tuple(ended)
    ended.clear()
    revived.clear()
    return taken
"""
HELD = 40
ROUNDS = 50  # a chain of living objects is not longer


class Place:
    """An interpreter, and how to reach what it has."""

    def __init__(self, interp):
        self.interp = interp
        self.open()

    def open(self):
        interp = self.interp or extisolate.create()
        interp.exec(NODES)
        self.made = None if self.interp else interp
        self.node, self.take_ended = interp.proxy("Node"), interp.proxy("take_ended")

    def close(self):
        self.node = self.take_ended = None
        self.made.close()
        self.open()


class Machine:
    def __init__(self, seed, fault=None):
        self.random, self.fault = random.Random(seed), fault
        self.places = [Place(extisolate.get_current()), Place(None), Place(None)]
        self.held = {}  # by number: the nodes themselves, or proxies of them
        self.refs = {}  # the model: numbers by number, of nodes that are not known to have ended
        self.place = {}
        self.last = 0

    # ---- the model ----

    def reachable(self):
        found, todo = set(), list(self.held)
        while todo:
            n = todo.pop()
            if n not in found:
                found.add(n)
                todo.extend(self.refs.get(n, ()))
        return found

    def note_ended(self):
        reachable = self.reachable()
        for place in self.places:
            for n in place.take_ended():
                if n in reachable and n in self.refs:
                    raise AssertionError(f"{n} has ended, which can be reached")
                self.refs.pop(n, None)

    # ---- steps ----

    def any(self):
        return self.random.choice(list(self.held)) if self.held else None

    def create(self):
        place = self.random.randrange(len(self.places))
        self.last += 1
        self.held[self.last] = self.places[place].node(self.last)
        self.refs[self.last], self.place[self.last] = [], place
        if self.fault == "uncounted" and place == 0:
            ctypes.pythonapi.Py_DecRef(ctypes.py_object(self.held[self.last]))

    def link(self):
        a, b = self.any(), self.any()
        if a:
            self.held[a].refs.append(self.held[b])
            self.refs[a].append(b)

    def unlink(self):
        a = self.any()
        if a and self.refs[a]:
            at = self.random.randrange(len(self.refs[a]))
            self.held[a].refs.pop(at)
            self.refs[a].pop(at)

    def follow(self):
        a = self.any()
        if a and self.refs[a]:
            at = self.random.randrange(len(self.refs[a]))
            n = self.refs[a][at]
            found = self.held[a].refs[at]
            if found.number != n or (n in self.held and found is not self.held[n]):
                raise AssertionError(f"{a} has {found!r} at {at}, not {n}")
            self.held[n] = found

    def drop(self):
        a = self.any()
        if a:
            del self.held[a]

    def call(self):
        a, b = self.any(), self.any()
        if a:
            back = self.held[a].call(self.held[b].call, lambda x: x, self.held[a])
            if back is not self.held[a]:
                raise AssertionError(f"{a} came back as {back!r}")

    def fail(self):
        a = self.any()
        if a:
            try:
                self.held[a].fail()
            except Exception as e:
                if e.args not in ((a,), (str(a),)):
                    raise

    def collect(self):
        if self.fault == "missed":
            return
        gc.collect()
        extisolate.collect()

    def check(self):
        """Collect until what cannot be reached has ended.

        Finalisers may have revived some, and a chain that changes interpreters often ends by and
        by, as each of them lets go of its part.
        """
        for _ in range(ROUNDS):
            self.collect()
            self.note_ended()
            left = set(self.refs) - self.reachable()
            if not left:
                return
        raise AssertionError(f"{len(left)} are left, such as {min(left)}")

    def close(self):
        """Its nodes end; who refers to one has a proxy of nothing."""
        at = self.random.randrange(1, len(self.places))
        gone = {n for n in self.refs if self.place[n] == at}
        self.held = {n: node for n, node in self.held.items() if n not in gone}
        for n in set(self.refs) - gone:
            if gone.intersection(self.refs[n]):
                self.forget(n, gone)
        for n in gone:
            del self.refs[n]
        self.places[at].close()

    def forget(self, n, gone):
        """Take out references to what will be gone; a node that cannot be reached any more keeps
        them.
        """
        self.refs[n] = [to for to in self.refs[n] if to not in gone]
        if n in self.held:
            refs = self.held[n].refs
            for at in range(len(refs) - 1, -1, -1):
                if refs[at].number in gone:
                    refs.pop(at)
        elif n in self.reachable():
            raise AssertionError(f"{n} was not held")

    def hold_all(self):
        """So that each that can be reached can be got at."""
        todo = list(self.held)
        while todo:
            n = todo.pop()
            for at, to in enumerate(self.refs[n]):
                if to not in self.held:
                    self.held[to] = self.held[n].refs[at]
                    todo.append(to)

    # ---- running ----

    STEPS = (
        *("create",) * 6,
        *("link",) * 8,
        *("follow",) * 4,
        *("unlink",) * 3,
        *("drop",) * 6,
        *("call",) * 3,
        "fail",
    )

    def run(self, steps):
        for i in range(steps):
            getattr(self, self.random.choice(self.STEPS))()
            while len(self.held) > HELD:
                self.drop()
            if i % 100 == 99:
                self.note_ended()
            if i % 500 == 499:
                self.check()
            if i % 5000 == 4999:
                self.hold_all()
                self.close()
        self.held.clear()
        self.check()


def main():
    steps, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    machine = Machine(seed, sys.argv[3] if len(sys.argv) > 3 else None)
    machine.run(steps)
    print(machine.last, "objects")


if __name__ == "__main__":
    main()
