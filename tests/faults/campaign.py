"""Lets each system call of the program fail, once and for good, and asserts what is left.

    campaign.py PROGRAM SHIM FOLDER all|some [COMMAND]

FOLDER has what make_faults_tree makes.  A fault may end the program with an error that says what failed, or
may not show at all.  In between there is nothing: no crash, no loop, no other library that is shared, no
original that is touched; and the same command without a fault completes what was begun."""

import errno
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from remains import files_below, manifest, originals

PROGRAM, SHIM, FOLDER, AMOUNT = sys.argv[1:5]
ONLY = sys.argv[5:]
os.chdir(FOLDER)
API = FOLDER + "/apidir/libpython3.11.so.1.0"
ONE = "tree/one.cpython-311-x86_64-linux-gnu.so"

# Those that a call may really meet, and that say nothing about the file.
ERRORS = {
    "open": ("EMFILE", "ENFILE", "EIO", "EINTR", "ENOMEM"),
    "read": ("EIO", "EINTR"),
    "write": ("EIO", "ENOSPC", "EDQUOT", "EINTR"),
    "stat": ("EIO", "ENOMEM"),
    "mmap": ("ENOMEM", "EAGAIN"),
    "mprotect": ("ENOMEM",),
    "rename": ("EIO", "ENOSPC"),
    "copy": ("EIO", "ENOSPC", "EXDEV", "EINTR"),
    "truncate": ("EIO", "EINTR"),
    "sync": ("EIO", "ENOSPC"),
    "seek": ("EIO",),
    "mkdir": ("EIO", "ENOSPC"),
    "unlink": ("EIO",),
    "rmdir": ("EIO",),
    "opendir": ("EMFILE", "EIO", "ENOMEM"),
    "readdir": ("EIO",),
    "realpath": ("EIO", "ENOMEM"),
    "lock": ("ENOLCK", "EINTR"),
    "random": ("EIO",),
    "close": ("EIO", "EINTR"),
    "memfd": ("EMFILE",),
    "thread": ("EAGAIN",),
    "spawn": ("EAGAIN", "ENOMEM"),
    "pipe": ("EMFILE",),
}


def run(args, call="open:0:0", log=None, limit=30):
    env = dict(os.environ, FAIL_CALL=call, FAIL_COUNT=FOLDER + "/count", LD_PRELOAD=SHIM)
    if log:
        env["FAIL_LOG"] = log
    try:
        return subprocess.run([PROGRAM] + args, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=limit)
    except subprocess.TimeoutExpired:
        return None


def entries(m):
    return {c["source"]: c for c in m["copies"]} if m else {}


def files_of(folder):
    return {os.path.basename(path) for path in files_below(folder)}


class Command:
    """One command line, the folder that it works on, and how to look at what it has done."""

    def __init__(self, name, args, context, before=None, changes=True):
        self.name, self.args, self.context, self.before, self.changes = name, args, context, before, changes

    def prepare(self):
        shutil.rmtree("ctx", ignore_errors=True)
        if self.before:
            shutil.copytree(self.before, "ctx", copy_function=shutil.copy2)

    def learn(self):
        """Without a fault: the result that all others are compared with."""
        self.prepare()
        done = run(self.args)
        assert done.returncode == 0, done.stderr
        self.out = done.stdout
        self.manifest = manifest(self.context)
        self.files = files_of("ctx")
        with open("count", encoding="ascii") as f:
            self.counts = {k: int(v) for k, v in (line.split() for line in f)}

    def differs(self, whole):
        """What is on disk against the reference; `whole`: all of it must be there."""
        now = manifest(self.context)
        if whole:
            # Without a module Python may import another, whose copy stays.
            if self.name == "run":
                wanted = entries(self.manifest)
                now["copies"] = [c for c in now["copies"] if c["source"] in wanted]
                for c in now["copies"]: # copies may have been made in another order
                    wanted.pop(c["source"])
                return "no entry for %s" % sorted(wanted) if wanted else self.differs(False)
            if now != self.manifest:
                return "another manifest"
            left = files_of("ctx") ^ self.files
            return "other files: %s" % sorted(left) if left else None
        for source, entry in entries(now).items():
            want = entries(self.manifest or manifest_of_before(self)).get(source)
            # `run` replaces copies that were made for programs, so only what they share counts there.
            # Without a module Python may import another, which no run without a fault has.
            if (want and entry["needs"] != want["needs"] if self.name == "run" else entry != want):
                return "another entry for %s" % source
        return None


def manifest_of_before(command):
    return manifest(command.context.replace("ctx", command.before, 1))


def says_why(error, stderr):
    text = stderr.decode(errors="replace")
    return (os.strerror(error) in text or (error == errno.ENOMEM and "memory" in text) or
            re.search(r": (cannot|is|has|none|was|needs|keeps|skipped)", text) is not None)


def judge(command, done, error):
    """What is wrong after a fault, or None."""
    if done is None:
        return "does not end"
    if done.returncode not in (0, 1) and not (command.name == "run" and 0 < done.returncode < 128):
        return "ended with %d" % done.returncode
    if command.name == "run" and done.returncode != 0: # Python's own words
        return command.differs(False) if done.stderr else "does not say why"
    if done.returncode == 1:
        if not says_why(error, done.stderr + done.stdout):
            return "does not say why"
        return command.differs(False) if command.changes else command.differs(True)
    # `clean` says at last whether the folder is still there, if only because that cannot be looked up.
    if command.name == "run": # a module that could not be imported may be optional
        return command.differs(False) if done.stdout == command.out else "another output"
    if done.stdout != command.out and not (command.name == "clean" and done.stdout.startswith(b"ctx: copies removed")):
        return "another output"
    return command.differs(True)


def judge_remains():
    """What `clean` could not remove at the end is in nobody's way."""
    done = run(["copy", "--libpython", API, ONE, "ctx"])
    return None if done.returncode == 0 else "the folder cannot be used again: %s" % done.stderr


def judge_rerun(command):
    if command.name == "clean" and not files_of("ctx") - {".lock"}:
        return judge_remains()
    done = run(command.args)
    if done is None or done.returncode != 0:
        return "a rerun fails: %s" % (done and done.stderr)
    if command.differs(True):
        return "a rerun leaves " + command.differs(True)
    if command.name in ("clean", "list", "verify"):
        return None
    checked = run(["verify", "ctx"])
    return None if checked.returncode == 0 else "verify finds: %s" % checked.stdout


def one_fault(command, kind, name, n, mode):
    error = getattr(errno, name)
    call = "%s:%d:%d%s" % (kind, n, error, mode)
    command.prepare()
    if os.path.exists("log"):
        os.remove("log")
    done = run(command.args, call, FOLDER + "/log")
    if not os.path.exists("log"):
        return False
    wrong = judge(command, done, error) or judge_rerun(command)
    if wrong:
        with open("log", encoding="utf-8") as f:
            print("    %s %s %s: %s (failed: %s): %s" % (command.name, call, name, wrong, f.readline().strip(),
                                                         done.stderr + done.stdout if done else ""), flush=True)
        raise ValueError
    return True


def numbers(command, count):
    if command.name == "run": # each takes a second
        some = 20 if AMOUNT == "all" else 2
        return sorted({count * k // some for k in range(1, some + 1)} - {0})
    if AMOUNT == "all" and count > 500:
        return sorted({count * k // 100 for k in range(1, 101)})
    if AMOUNT == "all" or count <= 3:
        return range(1, count + 1)
    return sorted({1, 2, count // 2, count})


def modes(command, name):
    # A signal comes once.
    return ("",) if name == "EINTR" or (AMOUNT != "all" and command.name == "run") else ("", ":on")


def campaign(command):
    hits = wrong = 0
    command.learn()
    for kind, count in command.counts.items():
        names = ERRORS[kind] if AMOUNT == "all" and command.name != "run" else ERRORS[kind][:1]
        for name in names:
            for n in numbers(command, count):
                for mode in modes(command, name):
                    try:
                        hits += one_fault(command, kind, name, n, mode)
                    except ValueError:
                        wrong += 1
    print("%s %s_survives_faults (%d calls failed, %d wrong)" %
          ("not ok" if wrong or not hits else "ok", command.name, hits, wrong), flush=True)


ONE_OF_PYTHON = importlib.util.find_spec("_ctypes").origin


def shared_libpython():
    """That of the Python that runs this, if it has one."""
    v = sysconfig.get_config_var
    path = os.path.join(v("LIBDIR") or "", v("INSTSONAME") or "")
    return path if ".so" in path and ONE_OF_PYTHON and os.path.exists(path) else None


def main():
    before = originals()
    copy = ["copy", "--name", "fixed", "--libpython", API, ONE, "ctx"]
    tree = ["copy-tree", "--jobs", "1", "--name", "fixed", "--libpython", API, "tree", "ctx"]
    for made, args in ("made", copy), ("made-tree", tree):
        assert run(args).returncode == 0
        os.rename("ctx", made)
    commands = [
        Command("copy", copy, "ctx"),
        Command("copy-again", copy, "ctx", "made"),
        Command("copy-tree", tree, "ctx/0"),
        Command("list", ["list", "ctx"], "ctx", "made", False),
        Command("verify", ["verify", "ctx"], "ctx", "made", False),
        Command("clean", ["clean", "ctx"], "ctx", "made"),
    ]
    # The start of a Python is thousands of calls: of these only some, with one error.
    library = shared_libpython()
    if library:
        shutil.rmtree("ctx", ignore_errors=True)
        os.mkdir("ctx")
        made = run(["copy", "--name", "fixed", "--libpython", library, ONE_OF_PYTHON, "ctx/0"])
        assert made.returncode == 0, made.stderr
        os.rename("ctx", "made-run")
        code = "import _lzma, _ctypes; print(_lzma.FORMAT_XZ, _ctypes.__name__)"
        commands.append(Command("run", ["run", "--python", sys.executable, "--dir", "ctx", "-c", code], "ctx/0",
                                "made-run"))
    for command in commands:
        if not ONLY or command.name in ONLY:
            campaign(command)
    print("%s originals_stay_as_they_are" % ("ok" if originals() == before else "not ok"))


main()
