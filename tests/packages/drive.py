"""Does one package's work, in a context of `extisolate run` or in a plain interpreter.

drive.py plain|turns|together|closed WORK.py [FOLDER]

Contexts that run `together` begin at the same moment; those that take `turns` never overlap.  All
stay until the last is done; then the first writes the process's maps to FOLDER/maps.  A context run
`closed` is alone: the program closes it before it starts the next.
"""

import fcntl
import os
import sys
import time

how, work = sys.argv[1:3]
del sys.path[0]


def do():
    with open(work, "rb") as f:
        code = compile(f.read(), work, "exec")
    exec(code, {"__name__": "__main__", "__file__": work})


def meet(folder, name, index, count):
    """Waits for the others, but goes on without one that never comes: it reports its own error."""
    open(os.path.join(folder, "%s.%d" % (name, index)), "w").close()
    late = time.monotonic() + 600
    while time.monotonic() < late:
        if all(os.path.exists(os.path.join(folder, "%s.%d" % (name, i))) for i in range(count)):
            return
        time.sleep(0.01)


def do_in_turn(folder):
    # Not lockf, whose locks belong to the process.
    with open(os.path.join(folder, "turn"), "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        do()


def write_maps(folder, name):
    with open("/proc/self/maps") as maps, open(os.path.join(folder, name), "w") as out:
        out.write(maps.read())


def main():
    if how == "plain":
        return do()
    import extisolate

    folder, index, count = sys.argv[3], extisolate.index, extisolate.count
    if how == "closed":
        do()
        return write_maps(folder, "maps.%d" % index)
    try:
        if how == "together":
            meet(folder, "ready", index, count)
            do()
        else:
            do_in_turn(folder)
    finally:
        meet(folder, "done", index, count)
        if index == 0:
            write_maps(folder, "maps")
        meet(folder, "end", index, count)


main()
