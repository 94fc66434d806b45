#!/usr/bin/env python3
"""Runs commands with failing allocations: campaign.py SHIM PROGRAM LOADER FOLDER STEPS

FOLDER has libapi.so, libdep.so, libdeep.so, ext.so, ext2.so, tree/ and rules.json.  Of each
command's allocations about STEPS fail in turn, or all if that is 0: once by itself, once with all
that follow.  Each run must end in time with the whole answer, or with status 1 and words about
memory; must leave a directory of which no entry is lost and no library has become shared; and must
complete when it is run again.
"""
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys

shim, program, loader, folder = map(os.path.abspath, sys.argv[1:5])
steps = int(sys.argv[5])
os.chdir(folder)
TIME = 60  # seconds, after which a command is taken to loop
API = ["--libpython", "libapi.so"]
NEW = [*API, "--name", "same"]
RULES = ["--quirks", "rules.json"]
# Of a copy: the identity of its file.
CHANGING = ("copy_mtime_ns", "copy_inode", "copy_ctime_ns", "copy_device", "boot", "synced")

# name, command, does it begin with the directory that has been made before, what it does to it
COMMANDS = [
    ("inspect", ["inspect", *API, "--symbols", "ext.so", "libdep.so"], False, "reads"),
    ("inspect-json", ["inspect", *API, "--json", "--symbols", "--contexts", "9", "ext.so"], False,
     "reads"),
    ("inspect-folder", ["inspect", "tree"], False, "reads"),
    ("inspect-folder-json", ["inspect", "--json", "tree"], False, "reads"),
    ("quirks", ["quirks", *RULES], False, "reads"),
    ("quirks-json", ["quirks", "--json", *RULES], False, "reads"),
    ("quirks-file", ["quirks", *RULES, "ext.so"], False, "reads"),
    ("quirks-file-json", ["quirks", "--json", *RULES, "ext.so"], False, "reads"),
    ("list", ["list", "ctx"], True, "reads"),
    ("list-json", ["list", "--json", "ctx"], True, "reads"),
    ("verify", ["verify", "ctx"], True, "reads"),
    ("verify-json", ["verify", "--json", "ctx"], True, "reads"),
    ("verify-file", ["verify", "--json", "made/libapi.so.same", "--against", "libapi.so"], False,
     "reads"),
    ("copy", ["copy", *NEW, "ext.so", "ext2.so", "ctx"], False, "adds"),
    ("copy-json", ["copy", *NEW, "--json", *RULES, "ext.so", "ctx"], False, "adds"),
    ("copy-rename", ["copy", *NEW, "--rename", "ext.so", "ext2.so", "ctx"], False, "adds"),
    ("copy-more", ["copy", "ext.so", "ext2.so", "ctx"], True, "adds"),
    ("copy-again", ["copy", "--json", "ext2.so", "ctx"], True, "adds"),
    ("copy-tree", ["copy-tree", *NEW, "--jobs", "1", "tree", "ctx"], False, "adds"),
    ("copy-tree-json", ["copy-tree", *NEW, "--json", "tree", "ctx"], False, "adds"),
    ("copy-tree-two", ["copy-tree", *NEW, "--contexts", "2", "--jobs", "1", "--why", "tree", "ctx"],
     False, "adds"),
    ("clean", ["clean", "ctx"], True, "removes"),
    ("load", ["ctx", "libapi.so", "ext.so", "ext2.so"], False, "adds"),
    ("load-again", ["ctx", "libapi.so", "ext2.so", "ext.so"], True, "adds"),
]


class Failure(Exception):
    pass


def run(name, words, at=None, on=False):
    """(status, stdout, stderr, allocations, failed)"""
    tool = loader if name.startswith("load") else program
    env = dict(os.environ, LC_ALL="C", EXTI_RESULTS="", NO_COLOR="1")
    with open("count", "wb") as f:
        f.write(bytes(16))
    env.update(LD_PRELOAD=shim, FAIL_IN=os.path.basename(tool), FAIL_COUNT=os.path.abspath("count"),
               FAIL_AT=str(-1 if at is None else at))
    if on:
        env["FAIL_ON"] = "1"
    try:
        p = subprocess.run([tool, *words], env=env, stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=TIME)
    except subprocess.TimeoutExpired:
        raise Failure(f"no end within {TIME} s")
    with open("count", "rb") as f:
        total, failed = struct.unpack("=2q", f.read())
    return p.returncode, p.stdout.decode(), p.stderr.decode(), total, failed


def entries(dir):
    """{source: entry} of each manifest below the directory, without what differs by run."""
    found = {}
    for at, _, files in os.walk(dir):
        if "manifest.json" not in files:
            continue
        with open(os.path.join(at, "manifest.json")) as f:
            m = json.load(f)
        for e in [m["api"], *m["copies"]]:
            e = {k: v for k, v in e.items() if k not in CHANGING}
            with open(os.path.join(at, e["copy"]), "rb") as f:
                e["bytes"] = f.read()
            # A copy is hashed when it is used again by another process.
            if e.pop("copy_sha256", None) not in (None, hashlib.sha256(e["bytes"]).hexdigest()):
                raise Failure(f"the hash of {e['copy']} is wrong")
            found[os.path.relpath(at, dir), e["source"]] = e
    return found


def begin(name, made):
    shutil.rmtree("ctx", ignore_errors=True)
    if made:
        shutil.copytree("loaded" if name.startswith("load") else "made", "ctx")


def compare(what, have, want, may_lack=False):
    for key in want.keys() | have.keys():
        if key not in want:
            raise Failure(f"{what}: {key} is in the manifest")
        if key not in have:
            if may_lack:
                continue
            raise Failure(f"{what}: {key} is lost")
        if have[key] != want[key]:
            differ = [k for k in want[key] if have[key].get(k) != want[key][k]]
            raise Failure(f"{what}: {key} differs in {differ}")


def one(command, reference, at, on):
    name, words, made, does = command
    status, said, errors, _, failed = run(name, words, at, on)
    if status not in (0, 1):
        raise Failure(f"status {status}: {errors[-300:]}")
    if status == 0 and said != reference["said"]:
        raise Failure(f"status 0, but it said:\n{said}")
    # glibc leaves folders out of a search path that it has no memory for.
    words_for_it = "memory"
    if name.startswith("load"):
        words_for_it += "|lib.*: cannot open shared object file"
    if status == 1 and not re.search(words_for_it, errors + said, re.I):
        raise Failure(f"status 1, and no word about memory: {errors[-300:]}{said[-300:]}")
    if does == "reads":
        return failed
    if does == "adds" or status == 0:
        have = entries("ctx")
        compare("afterwards", have, reference["entries"], may_lack=status != 0)
        for key in reference["before"]:
            if does == "adds" and key not in have:
                raise Failure(f"{key} is lost")
    if status != 0 and (does == "adds" or os.path.exists("ctx/manifest.json")):
        again = run(name, words)
        if again[0] != 0:
            raise Failure(f"a second run fails: {again[2][-300:]}")
    if does == "removes":
        left = os.listdir("ctx") if os.path.exists("ctx") else []
        if [n for n in left if n != ".lock"]:
            raise Failure(f"{left} are left")
    else:
        compare("after a second run", entries("ctx"), reference["entries"])
        stray = leftovers("ctx", reference["files"])
        if stray:
            raise Failure(f"files are left behind: {stray}")
    return failed


def leftovers(dir, expected):
    return sorted(set(names(dir)) - set(expected))


def names(dir):
    return [os.path.relpath(os.path.join(at, n), dir)
            for at, _, files in os.walk(dir) for n in files]


def campaign(command):
    name, words, made, does = command
    begin(name, made)
    before = entries("ctx").keys()
    status, said, errors, total, _ = run(name, words)
    if status != 0:
        print(f"not ok {name}: {errors}")
        return 0
    reference = {"said": said, "entries": entries("ctx"), "files": names("ctx"), "before": before}
    step = 1 if steps == 0 else max(1, total // steps)
    count = bad = 0
    for on in (False, True):
        for at in range(0, total, step):
            if does != "reads":
                begin(name, made)
            try:
                count += one(command, reference, at, on) > 0
            except Failure as e:
                bad += 1
                if bad <= 5:
                    more = " and all after it" if on else ""
                    print(f"    {name}: allocation {at}{more}: {e}")
    print(f"{'not ok' if bad else 'ok'} {name}")
    print(f"    {total} allocations, {count} made to fail, {bad} faults", flush=True)
    return count


def main():
    # Copies for programs run their constructors, those for contexts have them withheld.
    for made, words in (("made", [program, "copy", *NEW, "ext2.so", "ctx"]),
                        ("loaded", [loader, "ctx", "libapi.so", "ext2.so"])):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        os.rename("ctx", made)
    only = os.environ.get("EXTI_TEST")
    count = sum(campaign(c) for c in COMMANDS if not only or only == c[0])
    print(f"{count} allocations failed")


main()
