"""Runs packages' work in contexts of one process and checks what the contexts share.

harness.py "SET [LABEL]" PYTHON NAME...

Each work/NAME.py runs in a plain interpreter as the control, then in two contexts of which the
first is closed before the second begins, in two at once, and in four at once; on request also in
two that take turns and both stay open.  A run passes if every context ends well, the proof finds no
reference that leaves its context, and no library is mapped from its installed place except
  - those that this program itself needs,
  - the base set, libraries that their own flags make shared, and the libraries that these need.
Each file of a closed context that stays mapped must be reported with what holds it.  known.txt
lists the known failures; one that passes is a failure too.

EXTI_PACKAGES_MODES chooses among "closed two four turns", EXTI_PACKAGES_LIMIT is the time limit of
a run in seconds, EXTI_PACKAGES_JOBS the number of packages at a time.
"""

import concurrent.futures
import fnmatch
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("EXTI_BUILD", "build"))
PROGRAM = os.environ.get("EXTISOLATE", os.path.join(BUILD, "extisolate"))
LIMIT = int(os.environ.get("EXTI_PACKAGES_LIMIT", "1200"))
JOBS = int(os.environ.get("EXTI_PACKAGES_JOBS", "2"))
CYCLE = os.path.join(BUILD, "tests/cycle")
MODES = {
    "closed": ("closed", 2),
    "turns": ("turns", 2),
    "two": ("together", 2),
    "four": ("together", 4),
}
ONLY = os.environ.get("EXTI_PACKAGES_MODES", "closed two four").split()

printing = threading.Lock()


# ---- which libraries may be shared ---------------------------------------------------------------


def output(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **more)
    return done.stdout.decode(errors="replace")


@functools.lru_cache(None)
def base_set():
    globs = output(os.path.join(BUILD, "tests/packages_base")).split()
    if not globs:
        sys.exit("packages_base is not built")
    return globs


@functools.lru_cache(None)
def needs(path):
    """Real paths of all that the system's loader maps for the file.  What wheels bring along lies
    together, and is found by the search path of the first of them only."""
    folder = dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(path))
    listed = output("/lib64/ld-linux-x86-64.so.2", "--list", path, env=folder)
    return {os.path.realpath(p) for p in re.findall(r"(/\S+) \(0x", listed)}


@functools.lru_cache(None)
def shared_by_itself(path):
    """By its name, or by flags that a copy could not live with."""
    dynamic = output("readelf", "-dW", path)
    names = re.findall(r"\(SONAME\).*\[(.*)\]", dynamic) + [os.path.basename(path)]
    if any(fnmatch.fnmatchcase(n, g) for n in names for g in base_set()):
        return True
    return bool(re.search(r"\bNODELETE\b|\bSTATIC_TLS\b", dynamic))


def loaded(maps):
    """The libraries and programs in them whose header and data are mapped.  Copies map code and long
    data of their originals, but have headers of their own."""
    headers, data = set(), set()
    for line in maps.splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and fields[5].startswith("/"):
            if int(fields[2], 16) == 0:
                headers.add(fields[5])
            if "w" in fields[1]:
                data.add(fields[5])
    program = os.path.realpath(PROGRAM)
    return {f for f in headers & data if ".so" in os.path.basename(f) or f == program}


def originals(files, folder, program=PROGRAM):
    """Those that are loaded from where they are installed, and should not be."""
    program = os.path.realpath(program)
    ours = needs(program) | {program}
    away = {os.path.realpath(f) for f in files if not f.startswith(folder)} - ours
    away = {f for f in away if os.path.basename(f) != "ld-linux-x86-64.so.2"}
    shared = {f for f in away if shared_by_itself(f)}
    dragged = set().union(*map(needs, shared)) if shared else set()
    return sorted(away - shared - dragged)


# ---- one run -------------------------------------------------------------------------------------


def tail(text, lines=14):
    return "\n".join(text.strip().splitlines()[-lines:])


def run(command, folder, out):
    """Its status, or None after LIMIT."""
    environment = dict(os.environ, TMPDIR=folder, HOME=folder, MPLBACKEND="Agg", TERM="xterm")
    environment.update(QT_QPA_PLATFORM="offscreen", SDL_VIDEODRIVER="dummy", LC_ALL="C.UTF-8")
    environment.update(XDG_RUNTIME_DIR=folder, PYTHONDONTWRITEBYTECODE="1")
    with open(out, "wb") as o, open(out + ".err", "wb") as e:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=o, stderr=e, cwd=folder, env=environment,
            start_new_session=True,
        )
        try:
            return child.wait(LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            child.wait()
            return None


def said(out):
    with open(out, errors="replace") as o, open(out + ".err", errors="replace") as e:
        return o.read(), e.read()


def ended(status):
    if status is None:
        return "was still running after %d s" % LIMIT
    return "ended with status %d" % status if status >= 0 else "died of signal %d" % -status


def proof_faults(text, count):
    at = text.rfind("\n[") + 1
    try:
        proofs = json.loads(text[at:])
    except ValueError:
        return ["there is no proof on its output: " + tail(text, 3)]
    faults = []
    if len(proofs) != count:
        faults.append("%d contexts are proven, not %d" % (len(proofs), count))
    for p in proofs:
        if not p["proven"]:
            faults.append("context %d is not proven: %s" % (p["index"], p.get("error")))
        elif p["proof"]["leaks"]:
            faults.append("context %d leaks: %s" % (p["index"], tail(p.get("findings", ""), 6)))
        elif p["proof"]["modules"] < 1 or p["proof"]["references"] < 1:
            faults.append("the proof of context %d looked at nothing" % p["index"])
    return faults


def closing_faults(text, errors, count):
    """What is wrong, and the names of the files that stay mapped, as was told."""
    faults, kept = [], set()
    proofs = re.findall(r"^proof \d+ modules (\d+) references (\d+) leaks (\d+)$", text, re.M)
    cycles = re.findall(r"^cycle \d+ status (\d+) left (\d+) ", text, re.M)
    if len(proofs) != count or len(cycles) != count:
        faults.append("%d contexts are proven and %d closed, not %d" %
                      (len(proofs), len(cycles), count))
    for modules, references, leaks in proofs:
        if int(leaks) or not int(modules) or not int(references):
            faults.append("the proof: %s modules, %s references, %s leaks" %
                          (modules, references, leaks))
    if any(int(status) for status, _ in cycles):
        faults.append("a context's work failed")
    told = re.findall(r"^held: (.*?): (.*)$", errors, re.M)
    if any(int(left) for _, left in cycles):
        kept = {os.path.basename(path) + ": " + why for path, why in told}
        if not told:
            faults.append("what stays mapped of a closed context is not told: %s" % cycles)
    if faults:
        faults.append(tail(errors))
    return faults, kept


def closed_faults(name, python, folder):
    """One context after the other, each closed before the next."""
    sync, out = os.path.join(folder, "closed"), os.path.join(folder, "closed.out")
    os.mkdir(sync)
    work = os.path.join(HERE, "work", name + ".py")
    status = run(
        [CYCLE, "--script", "2", python, os.path.join(HERE, "drive.py"), "closed", work, sync],
        folder, out)
    text, errors = said(out)
    faults, kept = closing_faults(text, errors, 2)
    if status != 0:
        return [ended(status)] + faults, kept
    copies = os.path.join(folder, "extisolate-")
    for i in range(2):
        try:
            with open(os.path.join(sync, "maps.%d" % i)) as f:
                files = loaded(f.read())
        except OSError as e:
            faults.append("no maps: %s" % e)
            continue
        if not any(f.startswith(copies) for f in files):
            faults.append("context %d maps no copy" % i)
        faults += ["shared: " + f for f in originals(files, copies, CYCLE)]
    return faults, kept


def faults_of(name, mode, python, copies, folder):
    how, count = MODES[mode]
    sync = os.path.join(folder, mode)
    os.mkdir(sync)
    out = os.path.join(folder, mode + ".out")
    work = os.path.join(HERE, "work", name + ".py")
    status = run(
        [PROGRAM, "run", "--contexts", str(count), "--python", python, "--dir", copies, "--prove",
         "--json", os.path.join(HERE, "drive.py"), how, work, sync], folder, out)
    text, errors = said(out)
    if status != 0:
        leaks = [f for f in proof_faults(text, count) if "leaks" in f] if status == 1 else []
        return [ended(status), tail(errors)] + leaks
    faults = proof_faults(text, count)
    try:
        with open(os.path.join(sync, "maps")) as f:
            files = loaded(f.read())
    except OSError as e:
        return faults + ["no maps: %s" % e]
    for i in range(count):
        if not any(f.startswith("%s/%d/" % (copies, i)) for f in files):
            faults.append("context %d maps no copy" % i)
    faults += ["shared: " + f for f in originals(files, copies)]
    return faults


# ---- one package ---------------------------------------------------------------------------------


def known_failures(which):
    """{(name, mode): (cause, sometimes)}"""
    known = {}
    with open(os.path.join(HERE, "known.txt")) as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                of, name, modes, cause = line.split(None, 3)
                for mode in MODES if modes.rstrip("?") == "all" else modes.rstrip("?").split(","):
                    if of == which:
                        known[name, mode] = cause.strip(), modes.endswith("?")
    return known


def verdict(label, faults, known, kept=()):
    cause, sometimes = known or (None, False)
    if not faults and known and not sometimes:
        return ["not ok %s: passes now; take it out of known.txt (%s)" % (label, cause)]
    if not faults and kept:
        return ["ok %s (%d reasons to stay mapped: %s)" % (label, len(kept), min(kept)[:200])]
    if not faults:
        return ["ok " + label]
    detail = ["    " + line for fault in faults for line in fault.splitlines()]
    if known:
        return ["skip %s: cannot: %s" % (label, cause)] + detail
    return ["not ok " + label] + detail


def package(name, label, python, known):
    # The real path, as shown in the maps.
    folder = os.path.realpath(tempfile.mkdtemp(prefix="packages-"))
    lines = []
    try:
        out = os.path.join(folder, "plain.out")
        work = os.path.join(HERE, "work", name + ".py")
        status = run([python, os.path.join(HERE, "drive.py"), "plain", work], folder, out)
        if status != 0:
            return ["not ok %s/plain: the control %s" % (label, ended(status)), tail(said(out)[1])]
        for mode in ONLY:
            kept = ()
            if mode == "closed":
                faults, kept = closed_faults(name, python, folder)
            else:
                faults = faults_of(name, mode, python, os.path.join(folder, "copies"), folder)
            lines += verdict("%s/%s" % (label, mode), faults, known.get((name, mode)), kept)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return lines


def main():
    (which, *label), python, names = sys.argv[1].split(), sys.argv[2], sys.argv[3:]
    known = known_failures(which)
    base_set()

    def one(name):
        lines = package(name, "/".join(label + [name]), python, known)
        with printing:
            print("\n".join(lines), flush=True)

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(one, names))


main()
