"""Makes up what a power loss leaves of a `copy`, at any point of it, and asserts that a rerun heals it.

    power.py PROGRAM SHIM FOLDER all|some

FOLDER has what make_faults_tree makes.  The model: names are changed on the disk in the order of the calls; the
data of a file that was not synced may be all there, missing, zeros, or half there; the identity of a file (inode,
times, size) may survive without its data.  What was not synced when the program ended can still be lost, name by
name; to sync a new file keeps its name, as on ext4, XFS and Btrfs.  After a power loss the system's boot id is another."""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from remains import contents, originals

PROGRAM, SHIM, FOLDER, AMOUNT = sys.argv[1:5]
os.chdir(FOLDER)
API = FOLDER + "/apidir/libpython3.11.so.1.0"
ONE = "tree/one.cpython-311-x86_64-linux-gnu.so"
TOP = FOLDER + "/power"
CONTEXT = TOP + "/ctx"


def command(sync):
    return ["copy"] + (["--sync"] if sync else []) + ["--name", "fixed", "--libpython", API, ONE, CONTEXT]


def run(args, **more):
    env = dict(os.environ, LD_PRELOAD=SHIM, **more)
    return subprocess.run([PROGRAM] + args, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)


def fresh_top():
    shutil.rmtree(TOP, ignore_errors=True)
    os.mkdir(TOP)


def record(args):
    """The calls, as lists of words."""
    fresh_top()
    shutil.rmtree("kept", ignore_errors=True)
    os.mkdir("kept")
    if os.path.exists("log"):
        os.remove("log")
    done = run(args, RECORD_LOG=FOLDER + "/log", RECORD_TOP=TOP, RECORD_KEEP=FOLDER + "/kept")
    assert done.returncode == 0, done.stderr
    with open("log", encoding="utf-8") as f:
        return [line.split() for line in f]


NAMES = ("mkdir", "create", "rename", "unlink", "rmdir")


def play(calls):
    """The folders and files, path to inode, and which inodes' data is not safe."""
    folders, files, unsafe = set(), {}, set()
    for what, *args in calls:
        if what == "mkdir":
            folders.add(args[0])
        elif what == "rmdir":
            folders.discard(args[0])
        elif what == "create":
            files[args[1]] = args[0]
            unsafe.add(args[0])
        elif what == "write":
            unsafe.add(args[0])
        elif what == "sync":
            unsafe.discard(args[0])
        elif what == "rename" and args[0] in files:
            files[args[1]] = files.pop(args[0])
        elif what == "unlink":
            files.pop(args[0], None)
    files = {path: inode for path, inode in files.items() if os.path.dirname(path) in folders}
    return folders, files, unsafe & set(files.values())


def data_of(inode, how):
    with open("kept/" + inode, "rb") as f:
        data = f.read()
    if how == "empty":
        return b""
    if how == "zeros":
        return bytes(len(data))
    if how == "torn":
        return data[:len(data) // 2]
    return data[:len(data) // 2] + bytes(len(data) - len(data) // 2) if how == "holed" else data


def keep_identities(files):
    """Gives the recorded copies the identities that their files have here."""
    path = CONTEXT + "/manifest.json"
    try:
        with open(path, encoding="utf-8") as f:
            m = json.load(f)
    except (OSError, ValueError):
        return
    for e in [m["api"]] + m["copies"]:
        copy = CONTEXT + "/" + e["copy"]
        if files.get(copy) == str(e.get("copy_inode")):
            st = os.stat(copy)
            e.update(copy_mtime_ns=st.st_mtime_ns, copy_inode=st.st_ino, copy_device=st.st_dev,
                     copy_ctime_ns=st.st_ctime_ns)
    with open(path, "w", encoding="utf-8") as f:
        json.dump(m, f)


def lay_out(folders, files, states):
    fresh_top()
    for folder in sorted(folders):
        os.mkdir(folder)
    for path, inode in files.items():
        with open(path, "wb") as f:
            f.write(data_of(inode, states.get(inode, "whole")))
        os.chmod(path, os.stat("kept/" + inode).st_mode & 0o777)
    keep_identities(files)


HOWS = ("empty", "zeros", "torn", "holed")


def states_of(unsafe, single):
    """Which data is lost in which way."""
    yield {}
    for how in HOWS:
        if unsafe:
            yield {inode: how for inode in unsafe}
        for inode in sorted(unsafe) if single and len(unsafe) > 1 else ():
            yield {inode: how}


def losses(calls):
    """(why, calls that reached the disk): the loss comes after each of them; at the end also without each
    change of a name that no sync of its folder has followed."""
    for k in range(1, len(calls) + 1):
        if k == len(calls) or calls[k][0] in NAMES + ("sync", "syncdir"):
            yield "after call %d, %s" % (k, " ".join(calls[k - 1])), calls[:k]
    for k in loose(calls):
        yield "without call %d, %s" % (k, " ".join(calls[k])), calls[:k] + calls[k + 1:]
    if loose(calls):
        yield "without any loose call", [c for k, c in enumerate(calls) if k not in loose(calls)]


def loose(calls):
    found = []
    for k, call in enumerate(calls):
        if call[0] in NAMES:
            folder = ["syncdir", os.path.dirname(call[-1])]
            if folder not in calls[k:] and not (call[0] == "create" and ["sync", call[1]] in calls[k:]):
                found.append(k)
    return found


def healed(sync, want):
    done = run(command(sync), BOOT_ID=FOLDER + "/boot")
    if done.returncode != 0:
        return "a rerun fails: %s" % done.stderr.decode()
    now = contents(CONTEXT)
    if now != want:
        return "a rerun leaves something else in %s" % sorted(
            k for k in now.keys() | want.keys() if now.get(k) != want.get(k))
    checked = run(["verify", CONTEXT], BOOT_ID=FOLDER + "/boot")
    return None if checked.returncode == 0 else "verify finds: %s" % checked.stdout


def describe(files, states):
    names = {inode: os.path.basename(path) for path, inode in files.items()}
    return " ".join("%s:%s" % (names[i], how) for i, how in sorted(states.items())) or "all data there"


def copies_survive_heals(name, sync):
    calls = record(command(sync))
    want = contents(CONTEXT)
    tried = wrong = 0
    for why, reached in losses(calls):
        folders, files, unsafe = play(reached)
        for states in states_of(unsafe, AMOUNT == "all" or len(reached) == len(calls)):
            lay_out(folders, files, states)
            tried += 1
            found = healed(sync, want)
            if found:
                wrong += 1
                print("    %s, power lost %s (%s): %s" % (name, why, describe(files, states), found), flush=True)
    print("%s %s_heals_after_a_power_loss (%d states, %d wrong)" %
          ("ok" if tried > 20 and not wrong else "not ok", name, tried, wrong), flush=True)
    return calls, want


def nothing_reported_is_lost(calls, want):
    """The program has ended.  Whatever of the rest comes to the disk, all is there."""
    wrong = 0
    for why, reached in losses(calls):
        if len(reached) == len(calls) or why.startswith("without"):
            folders, files, unsafe = play(reached)
            for states in states_of(unsafe, True):
                lay_out(folders, files, states)
                now = contents(CONTEXT)
                lost = sorted(k for k in want if k != ".lock" and now.get(k) != want[k])
                if lost:
                    wrong += 1
                    print("    power lost %s (%s): lost %s" % (why, describe(files, states), lost), flush=True)
    print("%s with_sync_nothing_that_was_reported_is_lost" % ("not ok" if wrong else "ok"), flush=True)


def copy_tree_syncs_its_folders():
    calls = record(["copy-tree", "--sync", "--contexts", "2", "--libpython", API, "tree", CONTEXT])
    lost = [calls[k] for k in loose(calls) if calls[k][0] in ("mkdir", "rename")]
    made = [c for c in calls if c[0] == "mkdir"]
    print("%s copy_tree_with_sync_loses_no_folder %s" % ("ok" if len(made) == 3 and not lost else "not ok", lost or ""))


def the_same_boot_is_believed(calls, want):
    """What makes the other tests mean something: only the boot id tells that a copy may be torn."""
    folders, files, unsafe = play(calls)
    copies = {i: "zeros" for p, i in files.items() if i in unsafe and ".so" in p}
    lay_out(folders, files, copies)
    done = run(command(False))
    print("%s in_the_same_boot_nothing_is_taken_for_torn" %
          ("ok" if copies and done.returncode == 0 and contents(CONTEXT) != want else "not ok"), flush=True)


def main():
    before = originals()
    with open("boot", "w", encoding="ascii") as f:
        f.write("00000000-1111-2222-3333-444444444444\n")
    the_same_boot_is_believed(*copies_survive_heals("copy", False))
    nothing_reported_is_lost(*copies_survive_heals("copy-sync", True))
    copy_tree_syncs_its_folders()
    print("%s originals_stay_as_they_are" % ("ok" if originals() == before else "not ok"))


main()
