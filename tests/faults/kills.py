"""Kills the program at its system calls, and asserts that a rerun completes what was begun.

    kills.py PROGRAM MANY SHIM FOLDER all|some

FOLDER has what make_faults_tree makes; MANY calls exti_copy_many.  A write is killed halfway.  `all`: at
every call; else at those that change files or folders, and at some of the others."""

import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from remains import contents, originals

PROGRAM, MANY, SHIM, FOLDER, AMOUNT = sys.argv[1:6]
os.chdir(FOLDER)
API = FOLDER + "/apidir/libpython3.11.so.1.0"
ONE = FOLDER + "/tree/one.cpython-311-x86_64-linux-gnu.so"
NAMED = ["--name", "fixed", "--libpython", API]
SOME = 12


def run(args, **fault):
    env = dict(os.environ, **fault)
    if fault:
        env.update(LD_PRELOAD=SHIM, FAIL_PROGRAM=os.path.basename(args[0]), FAIL_COUNT=FOLDER + "/count")
    return subprocess.run(args, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


def count(args, kinds):
    shutil.rmtree("ctx", ignore_errors=True)
    done = run(args, FAIL_CALL=kinds + ":0:0:die")
    assert done.returncode == 0, done.stderr
    with open("count", encoding="ascii") as f:
        return int(f.read().split()[1])


def numbers(args):
    """(kinds, n) of each call at which to die."""
    total = count(args, "any")
    if AMOUNT == "all":
        return [("any", n) for n in range(1, total + 1)]
    few = sorted({total * k // SOME for k in range(1, SOME + 1)})
    return [("change", n) for n in range(1, count(args, "change") + 1)] + [("any", n) for n in few]


def healed(args, want):
    """What is wrong after a rerun, or None."""
    done = run(args)
    if done.returncode != 0:
        return "a rerun fails: %s" % done.stderr
    now = contents("ctx")
    if now != want:
        return "a rerun leaves something else in %s" % sorted(
            k for k in now.keys() | want.keys() if now.get(k) != want.get(k))
    checked = run([PROGRAM, "verify", "ctx"])
    return None if checked.returncode == 0 else "verify finds: %s" % checked.stdout


def storm(name, args):
    shutil.rmtree("ctx", ignore_errors=True)
    assert run(args).returncode == 0
    want = contents("ctx")
    calls = numbers(args)
    kills = wrong = cut = begun = 0
    for kinds, n in calls:
        shutil.rmtree("ctx", ignore_errors=True)
        died = run(args, FAIL_CALL="%s:%d:0:die" % (kinds, n)).returncode == -signal.SIGKILL
        left = contents("ctx")
        kills += died
        cut += died and left != want
        begun += any(os.path.basename(path).startswith(".exti-") for path in left)
        # With several threads the last calls of one run may not be in the next.
        found = healed(args, want)
        if found:
            wrong += 1
            print("    %s, killed at %s:%d: %s" % (name, kinds, n, found), flush=True)
    enough = kills >= len(calls) * 3 // 4 and cut >= kills // 2 and begun
    print("%s %s_killed_at_any_call_is_completed_by_a_rerun (%d kills, %d cut short, %d temporary files, %d wrong)" %
          ("ok" if enough and not wrong else "not ok", name, kills, cut, begun, wrong), flush=True)


def main():
    before = originals()
    storm("copy", [PROGRAM, "copy"] + NAMED + [ONE, "ctx"])
    storm("copy-sync", [PROGRAM, "copy", "--sync"] + NAMED + [ONE, "ctx"])
    storm("copy-tree", [PROGRAM, "copy-tree", "--jobs", "1", "--contexts", "2"] + NAMED + ["tree", "ctx"])
    storm("copy-tree-by-threads", [PROGRAM, "copy-tree", "--jobs", "4", "--contexts", "2"] + NAMED + ["tree", "ctx"])
    storm("copy-many", [MANY, "4", "ctx", API] + [FOLDER + "/tree/" + n for n in sorted(os.listdir("tree")) if ".so" in n])
    print("%s originals_stay_as_they_are" % ("ok" if originals() == before else "not ok"))


main()
