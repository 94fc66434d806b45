"""Lets 16 processes and 16 threads use the same directories while sources are replaced.

    races.py PROGRAM THREADS FOLDER SECONDS

FOLDER has what make_faults_tree makes; THREADS is threads.c.  Two directories: the sources of `still` stay and
nobody cleans it, so there nothing may fail, and nothing that was recorded may be lost; those of `moving` are
replaced, by rename and in place, and it is cleaned, so there calls may fail, in the ways that are documented."""

import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time

PROGRAM, THREADS, FOLDER = sys.argv[1:4]
SECONDS = float(sys.argv[4])
os.chdir(FOLDER)
API = "apidir/libpython3.11.so.1.0"
PROCESSES = THREADS_OF_ONE = 16
CHANGING = ("libinner.so.1", "one.cpython-311-x86_64-linux-gnu.so")
EXTRA = 24 # extensions of their own that `still` has
LIMIT = 120 # seconds for one command: it hangs

# What may become of a call while others replace its sources, or remove its directory.
PASSING = re.compile(
    r"changed while|keeps changing|cleaned meanwhile|given a new API library|open it again|"
    r"is not a context directory|cannot (open|look up|read|make|load)|No such file|none is found|"
    r"the file is damaged or not a shared library|not a shared library|"
    r"already (loaded|open)|has been damaged meanwhile|has made this copy again|which another process has made again|"
    r"its source has changed since|findings?$|^copy(-tree)?: (\S+ -> \S+|(contexts|copied|up to date|isolated|shared|missing|skipped|refused) .*)$|was made without|needs a copy of|--why lists|"
    r"is loaded|does not exist|must not be empty|is empty|truncated|past the end|outside the file|"
    r"libinner.*needs # bytes, # left")

class Failure(Exception):
    pass


faults, said, counts = [], {}, {}
guard = threading.Lock()


def note(table, key):
    with guard:
        table[key] = table.get(key, 0) + 1


def command(args, world, limit=LIMIT):
    """Runs it; (status, output)."""
    try:
        done = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=limit, cwd=world)
    except subprocess.TimeoutExpired as e:
        raise Failure("%s hangs" % args) from e
    text = done.stdout.decode(errors="replace")
    if done.returncode not in (0, 1) or "Sanitizer" in text:
        raise Failure("%s ended with %d: %s" % (args, done.returncode, text))
    return done.returncode, text


def entries(folder):
    with open(folder + "/manifest.json", encoding="utf-8") as f:
        return {os.path.basename(c["source"]) for c in json.load(f)["copies"]}


def sources(world, folder):
    return sorted(glob.glob("%s/%s/*.so" % (world, folder)))


# ---- still ------------------------------------------------------------------------------------------


def use_still(world):
    what = random.choice(("copy", "copy", "copy", "list", "verify", "load", "copy-tree"))
    if what == "copy":
        files = random.sample(sources(world, "tree"), 2)
        status, text = command([PROGRAM, "copy", "--for", "contexts", "--libpython", API] + files + ["still"], world)
        missing = {os.path.basename(f) for f in files} - entries(world + "/still")
        if missing and not status:
            raise Failure("copied, but not in the manifest: %s" % missing)
    elif what == "load":
        status, text = command([THREADS, "1", "0", "still", API, "4", "4"] + random.sample(sources(world, "tree"), 1), world)
        status = status or any(l and not l.startswith("loaded") for l in text.split("\n"))
    elif what == "copy-tree":
        status, text = command([PROGRAM, "copy-tree", "--libpython", API, "tree", "still-tree"], world)
    else:
        status, text = command([PROGRAM, what, "still"], world)
    if status:
        raise Failure("%s in a directory at rest: %s" % (what, text))
    note(counts, "still " + what)


# ---- moving -----------------------------------------------------------------------------------------


def judge_passing(what, text):
    for line in text.split("\n"):
        if not line.strip() or line.startswith(("loaded", " ", "extisolate: try")):
            continue
        note(said, "%s: %s" % (what, re.sub(r"/tmp/\S*/|0x[0-9a-f]+|\d+", "#", line)))


def use_moving(world):
    what = random.choice(("copy", "copy", "list", "verify", "load", "copy-tree", "clean"))
    files = random.sample(sources(world, "moved"), 2)
    if what == "copy":
        status, text = command([PROGRAM, "copy", "--libpython", API] + files + ["moving"], world)
    elif what == "load":
        status, text = command([THREADS, "1", "0", "moving", API, "4", "5"] + files, world)
        status = 1 if status == 0 and len(text.split("\n")) > 2 else status
        if "WRONG" in text:
            raise Failure("load: %s" % text)
    elif what == "copy-tree":
        status, text = command([PROGRAM, "copy-tree", "--libpython", API, "moved", "moving-tree"], world)
    else:
        status, text = command([PROGRAM, what, random.choice(("moving", "moving-tree"))], world)
    if status:
        judge_passing(what, text)
    note(counts, "moving " + what + (" failed" if status else ""))


def replace_source(world, versions):
    """One of them, by its other version."""
    name = random.choice(CHANGING)
    new = "%s/%s" % (random.choice(versions), name)
    path = "%s/moved/%s" % (world, name)
    if random.random() < 0.5:
        shutil.copy(new, path + ".new")
        os.rename(path + ".new", path)
    else:
        with open(new, "rb") as f, open(path, "r+b") as to:
            data = f.read()
            to.truncate(len(data) // 2)
            to.write(data)
    note(counts, "replaced")
    time.sleep(random.random() / 5)


# ---- the storm --------------------------------------------------------------------------------------


def repeat(end, what, *args):
    while time.time() < end and not faults:
        try:
            what(*args)
        except Failure as e:
            faults.append(str(e))


def threads_of_one(end, world, folder, *files):
    """One process with many threads, which may have the directory open only once at a time."""
    left = max(1, int(end - time.time()))
    status, text = command([THREADS, str(THREADS_OF_ONE), str(left), folder, API] + list(files), world,
                           left + LIMIT)
    if status:
        raise Failure("threads in %s: %s" % (folder, text))
    lines = [l for l in text.split("\n") if l and not l.startswith("loaded") and not l.startswith("EXTI_E_BUSY ")]
    if folder == "still" and lines:
        raise Failure("threads in a directory at rest: %s" % lines[:3])
    judge_passing("threads", "\n".join(lines))
    note(counts, "threads in %s, %s" % (folder, text.strip().rsplit("\n", 1)[-1]))


def settle(world):
    """What all this has left, now that nothing moves."""
    for folder, tree in ("still", "tree"), ("moving", "moved"):
        files = sources(world, tree)
        status, text = command([PROGRAM, "copy", "--for", "contexts", "--libpython", API] + files + [folder], world)
        if status:
            raise Failure("at last, copy: %s" % text)
        status, text = command([PROGRAM, "verify", folder], world)
        if status:
            raise Failure("at last, verify finds: %s" % text)
        if {os.path.basename(f) for f in files} - entries("%s/%s" % (world, folder)):
            raise Failure("at last, entries are lost in %s" % folder)
        left = [n for n in os.listdir("%s/%s" % (world, folder)) if n.startswith(".exti-")]
        if left:
            raise Failure("temporary files stay in %s: %s" % (folder, left))


def make_world():
    """tree stays; moved is replaced, by what is in versions."""
    for k in range(EXTRA):
        shutil.copy("tree/one.cpython-311-x86_64-linux-gnu.so", "tree/extra%d.so" % k)
    shutil.copytree("tree", "moved")
    os.mkdir("versions")
    for name in os.listdir("moved"):
        if os.path.isfile("moved/" + name):
            shutil.copy("moved/" + name, "versions/" + name)


def main():
    make_world()
    end = time.time() + SECONDS
    first = sources(FOLDER, "tree")
    command([PROGRAM, "copy", "--for", "contexts", "--libpython", API, first[0], "still"], FOLDER)
    workers = [threading.Thread(target=repeat, args=(end, use_still if k % 2 else use_moving, FOLDER))
               for k in range(PROCESSES)]
    workers += [threading.Thread(target=repeat, args=(end, replace_source, FOLDER, ("versions", "other")))]
    for folder, tree, most in ("still", "tree", "4"), ("moving", "moved", "5"):
        workers += [threading.Thread(target=repeat, args=(end, threads_of_one, end, FOLDER, folder, "4", most) +
                                     tuple(sources(FOLDER, tree)[:6]))]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    try:
        settle(FOLDER)
    except Failure as e:
        faults.append(str(e))
    strange = [s for s in said if not PASSING.search(s)]
    for line in sorted(said):
        print("    said %dx: %s" % (said[line], line))
    print("    " + ", ".join("%s: %d" % (k, counts[k]) for k in sorted(counts)))
    for line in faults:
        print("    " + line)
    print("%s nothing_crashes_hangs_or_loses_entries" % ("not ok" if faults else "ok"))
    print("%s errors_are_those_that_are_documented" % ("not ok" if strange else "ok"))
    for line in strange:
        print("    strange: " + line)
    wanted = ("still copy", "still load", "still verify", "moving clean", "replaced")
    print("%s each_kind_of_command_was_run" % ("ok" if all(counts.get(k) for k in wanted) else "not ok"))


main()
