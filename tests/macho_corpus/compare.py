#!/usr/bin/python3
"""Compares Mach-O copies with their originals, as LLVM's tools read both.

    compare.py CHECK LIBRARY MOVED <PAIRS

CHECK is the test's macho_check.  LIBRARY is the API library that copies bind to.  MOVED is `moved`
if everything behind the header must have moved, or `any` if the room behind the commands may have
sufficed.  A line of PAIRS has the original, the copy and names, separated by tabs; the copy must
bind to the API library by one of the names, which are separated by |.  A copy of the API library
has no names.  Fixups and exports must be equal, except for

    what moved                 by one number of pages for the whole slice
    flat, main program         bound to the API library if that exports the symbol
    weak                       bound to the file itself if it exports the symbol
    @loader_path/..., @rpath   the same file by another name, or its copy in the same context

Prints a line for each difference, and one with counts; exits with 1 if there is a difference."""

import collections
import os
import re
import struct
import subprocess
import sys

OBJDUMP = "llvm-objdump"
ARCHES = {0x01000007: "x86_64", 0x0100000C: "arm64"}
counts = collections.Counter()
failures = 0


class Slice:
    """The load commands of one architecture, read without either side's code."""

    def __init__(self, data, arch):
        self.data, self.arch = data, arch
        self.segments, self.sections, self.dylibs = [], [], []
        self.commands = set()
        at = 32
        for _ in range(struct.unpack_from("<I", data, 16)[0]):
            cmd, size = struct.unpack_from("<II", data, at)
            self.commands.add(cmd)
            if cmd == 0x19:
                self.add_segment(at)
            elif cmd in (0xC, 0x80000018, 0x8000001F, 0x80000023):
                name = data[at + struct.unpack_from("<I", data, at + 8)[0]:at + size]
                self.dylibs.append(name.split(b"\0")[0].decode())
            at += size
        self.linkedit = next(s for s in self.segments if s[0] == "__LINKEDIT")
        self.base = next(s for s in self.segments if s[0] == "__TEXT")[1]
        self.body = min(s[3] for s in self.sections if s[3] and s[2])

    def add_segment(self, at):
        name, vmaddr, vmsize, offset, size = struct.unpack_from("<16sQQQQ", self.data, at + 8)
        self.segments.append((name.rstrip(b"\0").decode(), vmaddr, vmsize, offset, size))
        for i in range(struct.unpack_from("<I", self.data, at + 64)[0]):
            s = struct.unpack_from("<16s16sQQIIIII", self.data, at + 72 + 80 * i)
            zero = s[8] & 0xFF in (1, 12, 18)
            self.sections.append((s[0].rstrip(b"\0").decode(), s[2], 0 if zero else s[3], s[4]))

    def section_at(self, offset):
        return next((s for s in self.sections if s[3] <= offset < s[3] + s[2]), None)

    def offset(self, address):
        s = next(s for s in self.segments if s[1] <= address < s[1] + s[4])
        return address - s[1] + s[3]


def slices(path):
    data = open(path, "rb").read()
    magic = struct.unpack_from(">I", data)[0]
    if magic == 0xCAFEBABE:
        entries = [struct.unpack_from(">5I", data, 8 + 20 * i)
                   for i in range(struct.unpack_from(">I", data, 4)[0])]
        parts = [(cpu, data[at:at + size]) for cpu, _, at, size, _ in entries]
    else:
        parts = [(struct.unpack_from("<I", data, 4)[0], data)]
    return {ARCHES[cpu]: Slice(part, ARCHES[cpu]) for cpu, part in parts if cpu in ARCHES}


def lines(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        raise ValueError("%s: %s" % (" ".join(command[:4]), done.stderr.strip()))
    return done.stdout.splitlines()


def read(path, arch):
    """LLVM's output, by table."""
    tables, rows = {}, None
    titles = {"Bind table:": "bind", "Lazy bind table:": "bind", "Weak bind table:": "weak",
              "Rebase table:": "rebase", "Exports trie:": "export", "dyld information:": "chain",
              "Contents of __unwind_info section:": "unwind"}
    for name in titles.values():
        tables[name] = []
    for line in lines(OBJDUMP, "--macho", "--arch", arch, "--bind", "--lazy-bind", "--weak-bind",
                      "--rebase", "--exports-trie", "--dyld-info", "--unwind-info", path):
        if line in titles:
            rows = tables[titles[line]]
        elif line and not line.startswith(("segment ", path)) and rows is not None:
            rows.append(line)
    return tables


# ---- fixups --------------------------------------------------------------------------------------


def bindings(t):
    """(address, addend, symbol, flags) and the library's short name for each reference by name."""
    out = []
    for line in t["bind"]:
        w = line.split()
        lazy = not w[3] == "pointer"
        address, addend, rest = (w[2], 0, w[3:]) if lazy else (w[2], int(w[4]), w[5:])
        out.append(((int(address, 16), addend) + tuple(rest[1:]), rest[0]))
    for line in t["chain"]:
        w = line.split()
        if w[4] == "bind":
            out.append(((int(w[2], 16), int(w[5], 16)) + tuple(w[7:]), w[6]))
    return out


def rebases(t, moved):
    out = [int(line.split()[2], 16) - moved for line in t["rebase"]]
    for line in t["chain"]:
        w = line.split()
        if w[4] == "rebase":
            out.append((int(w[2], 16) - moved, int(w[-1], 16) - moved))
    return sorted(out, key=str)


def weak(t, moved):
    rows = [line.split() for line in t["weak"]]
    return sorted((int(w[2], 16) - moved if w[2] != "strong" else 0,) + tuple(w[3:])
                  for w in rows)


def exports(t, moved):
    out = {}
    for line in t["export"]:
        address, name = re.match(r"(\[re-export\]|0x\w+) +(.*)", line).groups()
        if address.startswith("0x") and "[absolute]" not in name:
            address = int(address, 16) - moved
        out[name.split()[0]] = (address, name)
    return out


class Pair:
    def __init__(self, old, new, paths, names):
        self.old, self.new, self.paths = old, new, paths
        self.told = os.path.basename(paths[0])
        self.moved = new.body - old.body
        self.api = next((d for d in new.dylibs if d in names), names[0])

    def say(self, what, detail):
        global failures
        failures += 1
        if failures < 40:
            print("%s %s: %s: %s" % (self.told, self.old.arch, what, detail))

    def same(self, what, old, new):
        if old != new:
            a, b = set(map(str, old)), set(map(str, new))
            self.say(what, "%d, now %d: only before %s, only now %s"
                     % (len(old), len(new), sorted(a - b)[:3], sorted(b - a)[:3]))
        counts[what] += len(new)

    def is_copy(self, a, b):
        """Whether b names a file beside the copy, with the name that a's copy would have."""
        name, base = b[len("@loader_path/"):], os.path.basename(a)
        return (b.startswith("@loader_path/")
                and re.sub(r"\.[0-9a-z]{8}-[0-9a-z]{8}(?=\.|$)", "", name, count=1) == base
                and name != base
                and os.path.exists(os.path.join(os.path.dirname(self.paths[1]), name)))

    def libraries(self, folder):
        """The copy's dependencies are the original's, in order, and the API library, which a
        library that does not use it may lack."""
        api, old, new = self.api, self.old.dylibs, self.new.dylibs
        added = api == new[-1] and "ython" not in old[-1]
        if len(new) - len(old) != added or not (api in new + [""] or ".dylib" in self.told):
            self.say("dependencies", "%s, now %s" % (old, new))
        for a, b in zip(old, new):
            there = os.path.realpath(a.replace("@loader_path", folder, 1))
            if a == b or b == api and "ython" in a:
                continue
            if self.is_copy(a, b):
                counts["references to copies of what they led to"] += 1
                continue
            if not (a.startswith("@") and b.startswith("/") and os.path.exists(b)
                    and (a.startswith("@rpath/") or os.path.realpath(b) == there)
                    and os.path.basename(a) == os.path.basename(b)):
                self.say("dependency", "%s, now %s" % (a, b))
        return dict(zip(old, new))

    def targets(self, check, exported, own, renamed):
        """Which library each symbol binds to, by its whole name."""
        def of(path):
            rows = (line.split(" ", 2) for line in lines(check, "--bindings", path))
            return {(symbol, to) for arch, symbol, to in rows if arch == self.old.arch}
        old, new = of(self.paths[0]), of(self.paths[1])
        want = set()
        for symbol, to in old:
            if to in ("flat", "main") and symbol in exported and self.api:
                to = self.api
                counts["bound to the API library"] += 1
            elif to == "weak" and symbol in own:
                to = "self"
            want.add((symbol, renamed.get(to, to)))
        # A file with opcodes has a rebase instead of a binding to itself.
        if "chain" not in self.kind:
            want = {w for w in want if w[1] != "self"} | {w for w in new & want if w[1] == "self"}
        self.same("targets", sorted(want), sorted(new))

    def fixups(self, t, u, own):
        moved = self.moved
        old, new = bindings(t), [((b[0][0] - moved,) + b[0][1:], b[1]) for b in bindings(u)]
        self.same("binds", sorted(b[0] for b in old), sorted(b[0] for b in new))
        self.same("rebases", rebases(t, 0), rebases(u, moved))
        self.same("weak binds", [w for w in weak(t, 0) if w[3] not in own], weak(u, moved))
        a, b = exports(t, 0), exports(u, moved)
        self.same("exports", sorted(a.items()), sorted(b.items()))

    def unwinding(self, t, u):
        """Functions, their LSDA and personalities have moved; offsets in the section have not."""
        def add(m):
            return "%s0x%08x" % (m[1], int(m[2], 16) + self.moved)

        part, old = "", []
        for line in t["unwind"]:
            if re.match("  [A-Z]", line):
                part = line.split()[0]
            what = r"(function offset=|LSDA offset=|^    personality\[\d+\]: )0x(\w+)"
            if part != "LSDA":
                what = what.replace("LSDA offset=|", "")
            old.append(re.sub(what, add, line))
        self.same("unwind lines", old, u["unwind"])

    # ---- the bytes between the load commands and __LINKEDIT --------------------------------------

    def contents(self, t):
        """Equal except for pointers, which moved with their targets."""
        old, new = self.old, self.new
        a, b = old.data[old.body:old.linkedit[3]], new.data[new.body:new.linkedit[3]]
        counts["bytes"] += len(b)
        if a == b:
            return
        if not self.moved or len(a) != len(b):
            self.say("contents", "%d bytes, now %d, of other contents" % (len(a), len(b)))
            return
        slots = {old.offset(int(line.split()[2], 16)) for line in t["rebase"]}
        chained = {old.offset(int(w[2], 16)): w[4] for w in map(str.split, t["chain"])}
        for page in range(0, len(a), 4096):
            if a[page:page + 4096] != b[page:page + 4096]:
                self.words(old.body + page, a[page:page + 4096], b[page:page + 4096], slots,
                           chained)

    def words(self, at, a, b, slots, chained):
        skip = -at % 4
        for i in range(skip, len(a), 4):
            if a[i:i + 4] == b[i:i + 4]:
                continue
            where, section = at + i, self.old.section_at(at + i)
            slot = next((s for s in (where, where - 4) if s in slots or s in chained), None)
            if slot in slots:
                x = struct.unpack_from("<Q", self.old.data, slot)[0]
                y = struct.unpack_from("<Q", self.new.data, slot + self.moved)[0]
                good = y - x == self.moved
            else:
                # LLVM printed the targets of chained fixups, and the unwinding: compared.
                good = chained.get(slot) == "rebase" or section and section[0] in (
                    "__unwind_info", "__init_offsets")
            if not good:
                self.say("contents", "0x%x in %s differs" % (where, section))
                return


def compare(check, exported, moves, original, copy, names):
    global failures
    old, new = slices(original), slices(copy)
    if old.keys() != new.keys():
        failures += 1
        print("%s: has %s, now %s" % (original, list(old), list(new)))
        return
    for arch in old:
        p = Pair(old[arch], new[arch], (original, copy), names.split("|"))
        counts["slices"] += 1
        counts["moved"] += p.moved > 0
        if p.moved < moves or p.moved % 0x4000:
            p.say("moved", "by 0x%x" % p.moved)
        t, u = read(original, arch), read(copy, arch)
        p.kind = {k for k in t if t[k]}
        own = {name for name, e in exports(t, 0).items() if e[0] != "[re-export]"}
        renamed = p.libraries(os.path.dirname(original))
        p.targets(check, exported[arch], own, renamed)
        p.fixups(t, u, own)
        p.unwinding(t, u)
        p.contents(t)


def main():
    check, library, moves = sys.argv[1:]
    exported = {arch: set() for arch in ARCHES.values()}
    for line in lines(check, "--exports", library):
        arch, symbol = line.split()
        exported[arch].add(symbol)
    for line in sys.stdin:
        original, copy, names = line.rstrip("\n").split("\t")
        try:
            compare(check, exported, moves == "moved", original, copy, names)
        except (ValueError, OSError) as e:
            global failures
            failures += 1
            print("%s: %s" % (original, e))
    print(", ".join("%d %s" % (n, what) for what, n in counts.items()))
    sys.exit(failures > 0)


main()
