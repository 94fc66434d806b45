#!/usr/bin/python3
"""Compares PE copies with their originals, as LLVM's reader and the bytes themselves tell.

    compare.py SECTION [TIERS] <JOBS

JOBS are as for pe_rewrite: original, copy, the copy's own name and the libraries renamed.  SECTION
is the name of a section that is added for names.  TIERS gets a line for each pair: where its names
went, and the copy.  A difference is printed as `COPY<tab>KIND<tab>DETAIL`, where KIND is one of

    names       a library's name, a forwarder or the file's own name that is not as asked
    offsets     a file offset that does not follow what it leads to
    bound       bound imports are left
    signature   a certificate table is left
    checksum    there was a checksum and is none
    lines       LLVM prints another line
    bytes       a byte that has nothing to do with the names

The exit status is 1 if there is a difference."""

import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pe  # noqa: E402

READOBJ = ["llvm-readobj"] + """--file-headers --sections
    --coff-imports --coff-exports --coff-basereloc --coff-debug-directory --coff-tls-directory
    --coff-load-config""".split()
FORCE_INTEGRITY, DISCARDABLE = 0x80, 0x02000000
failures = 0


BATCH = 40  # pairs; LLVM takes longer to start than to read a file


def readobj(paths):
    """LLVM's output for each file, and whether LLVM could read the file."""
    done = subprocess.run(READOBJ + paths, capture_output=True, check=False)
    texts = ("\n" + done.stdout.decode("latin-1")).split("\nFile: ")[1:]
    if done.returncode and len(paths) > 1 or len(texts) != len(paths):
        return [x for path in paths for x in readobj([path])] if len(paths) > 1 else [(False, "")]
    return [(done.returncode == 0, text) for text in texts]


def blocks(text):
    """Splits by the outermost braces."""
    return re.split(r"\n(?=[A-Za-z])", text.strip("\n"))[1:]


class Pair:
    def __init__(self, job, section):
        self.source, self.copy, self.id, names = (job + ["", ""])[:4]
        self.map = {pe.stem(k): v for k, v in (n.split("=") for n in names.split("|") if n)}
        self.old, self.new, self.section = pe.PE(self.source), pe.PE(self.copy), section
        a, b = self.old, self.new
        self.grown = b.headers - a.headers
        self.added = len(b.sections) - len(a.sections)
        self.slid = a.nt - b.nt
        self.changed = a.data != b.data

    def say(self, kind, detail):
        global failures
        failures += 1
        print("%s\t%s\t%s" % (self.copy, kind, detail))

    def check(self, old, new):
        self.names()
        if not self.changed:
            return
        self.places()
        self.lines(old, new)
        self.bytes()

    # ---- names ---------------------------------------------------------------------------------

    def named(self, name):
        return self.map.get(pe.stem(name), name)

    def forwarded(self, text):
        library, _, symbol = text.rpartition(".")
        to = self.map.get(pe.stem(library))
        return text if to is None else "%s.%s" % (re.sub("(?i)[.]dll$", "", to), symbol)

    def names(self):
        want = [self.named(n.text) for n in self.old.imports()]
        have = [n.text for n in self.new.imports()]
        if want != have:
            self.say("names", "imports from %s, not %s" % (have, want))
        want = sorted(self.forwarded(text) for _, text in self.old.forwarders())
        have = sorted(text for _, text in self.new.forwarders())
        if want != have:
            wrong = sorted(set(have) - set(want))
            self.say("names", "%d forwarders lead elsewhere: %s" % (len(wrong), wrong[:2]))
        if self.id and self.old.export_name() and self.new.export_name().text != self.id:
            self.say("names", "its own is %s, not %s" % (self.new.export_name().text, self.id))

    # ---- what file offsets and directories lead to -----------------------------------------------

    def places(self):
        a, b = self.old, self.new
        for (_, _, was), (at, rva, raw) in zip(a.debug_offsets(), b.debug_offsets()):
            if raw and raw != (was + self.grown if was >= a.headers else was):
                self.say("offsets", "debug entry at 0x%x: data at 0x%x of the file, not 0x%x"
                         % (at, raw, b.offset(rva)))
        if b.symbols != (a.symbols and a.symbols + self.grown):
            self.say("offsets", "symbols at 0x%x, not 0x%x" % (b.symbols, a.symbols + self.grown))
        for s, t in zip(a.sections, b.sections):
            # A section without bytes in the file may give any offset.
            if s.raw_size and t.raw != s.raw + self.grown:
                self.say("offsets", "section %s at 0x%x of the file, was at 0x%x, and the headers "
                         "have 0x%x bytes more" % (t.name, t.raw, s.raw, self.grown))
        if b.directory(pe.BOUND)[0]:
            self.say("bound", "directory at 0x%x" % b.directory(pe.BOUND)[0])
        if b.directory(pe.CERTIFICATES)[0]:
            self.say("signature", "certificate table at 0x%x" % b.directory(pe.CERTIFICATES)[0])
        if (a.checksum == 0) != (b.checksum == 0):
            self.say("checksum", "0x%x, was 0x%x" % (b.checksum, a.checksum))

    def tier(self):
        """Where names lie if they are not in the place of the old ones."""
        a, b = self.old, self.new
        if not self.changed:
            return "unchanged"
        if self.grown:
            return "grown headers"
        if self.slid:
            return "freed headers"
        if self.added:
            return "section"
        if a.sections[-1].raw_size != b.sections[-1].raw_size:
            return "last section"
        if any(s.size != t.size for s, t in zip(a.sections, b.sections)):
            return "slack"
        return "in place"

    # ---- what LLVM prints ------------------------------------------------------------------------

    def lines(self, old, new):
        if old[0] and not new[0]:
            self.say("lines", "LLVM cannot read all of it")
        old, new = blocks(old[1]), blocks(new[1])
        kinds = [[x.split(" ")[0] for x in side] for side in (old, new)]
        if kinds[0] != kinds[1]:
            self.say("lines", "%d blocks, were %d" % (len(new), len(old)))
            return
        for x, y in zip(old, new):
            if x != y:
                self.block(x.splitlines(), y.splitlines())

    def block(self, old, new):
        kind = old[0].split(" ")[0]
        if kind == "Sections":
            new = self.without_added(new)
            self.section_number = -1
        cleared = "    IMAGE_DLL_CHARACTERISTICS_FORCE_INTEGRITY (0x80)"
        dropped = "      IMAGE_SCN_MEM_DISCARDABLE (0x2000000)"
        if cleared in old and cleared not in new:
            old.remove(cleared)
        if len(old) == len(new) + 1 and dropped in old[-10:]:
            del old[len(old) - 1 - old[::-1].index(dropped)]
        if len(old) != len(new):
            self.say("lines", "%s: %d, were %d" % (kind, len(new), len(old)))
            return
        for x, y in zip(old, new):
            if kind == "Sections" and x.startswith("    Number: "):
                self.section_number += 1
            if x == y:
                continue
            key, _, was = x.strip().partition(": ")
            now = y.strip().partition(": ")[2]
            if y.strip().partition(": ")[0] != key and not key.startswith("Characteristics"):
                self.say("lines", "%s: '%s', was '%s'" % (kind, y.strip(), x.strip()))
            elif not self.line(kind, key, was, now, y.strip()):
                self.say("lines", "%s %s: %s, was %s" % (kind, key, now or y.strip(), was))

    def without_added(self, lines):
        if not self.added:
            return lines
        starts = [i for i, line in enumerate(lines) if line == "  Section {"]
        last = self.new.sections[-1]
        if self.added != 1 or last.name != self.section or last.flags != 0x40000040:
            self.say("lines", "section %s with 0x%x" % (last.name, last.flags))
        return lines[:starts[-1]] + lines[-1:]

    def line(self, kind, key, was, now, whole):
        """Whether a line may differ, and in this way."""
        handler = {"ImageFileHeader": self.file_header, "ImageOptionalHeader": self.optional_header,
                   "DOSHeader": self.dos_header, "Sections": self.section_line,
                   "Import": self.import_line, "DelayImport": self.import_line,
                   "Export": self.export_line, "DebugDirectory": self.debug_line,
                   "LoadConfig": self.load_config_line}.get(kind)
        return handler is not None and handler(key, was, now, whole)

    def file_header(self, key, was, now, _):
        if key == "SectionCount":
            return int(now) == int(was) + self.added
        return key == "PointerToSymbolTable" and self.grown  # judged by `places`

    def optional_header(self, key, was, now, whole):
        a, b = self.old, self.new
        end = b.sections[-1].rva + (b.sections[-1].size or b.sections[-1].raw_size)
        return {
            "SizeOfInitializedData": lambda: int(now) in self.data_sizes(int(was)),
            "SizeOfImage": lambda: int(now) == pe.up(end, b.alignment),
            "SizeOfHeaders": lambda: self.grown > 0 and int(now) <= b.sections[0].rva and
            int(now) % b.file_alignment == 0,
            "CheckSum": lambda: True,  # others judge it
            "CertificateTableRVA": lambda: now == "0x0",
            "CertificateTableSize": lambda: now == "0x0",
            "BoundImportRVA": lambda: now == "0x0",
            "BoundImportSize": lambda: now == "0x0",
            "ExportTableRVA": lambda: self.renames_forwarders(),
            "ExportTableSize": lambda: self.renames_forwarders(),
        }.get(key, lambda: whole == "Characteristics [ (0x%x)" % (
            a.u16(a.opt + 70) & ~FORCE_INTEGRITY))()

    def data_sizes(self, was):
        """Larger by the added bytes; or the sum over all sections with data, as by linkers."""
        a, b = self.old, self.new
        more = sum(s.raw_size for s in b.sections) - sum(s.raw_size for s in a.sections)
        return was + more, sum(max(s.raw_size, pe.up(s.size, b.file_alignment))
                               for s in b.sections if s.flags & 0x40)

    def renames_forwarders(self):
        return any(self.forwarded(text) != text for _, text in self.old.forwarders())

    def dos_header(self, key, _, now, __):
        return key == "AddressOfNewExeHeader" and int(now) == 64

    def section_line(self, key, was, now, whole):
        a, b = (f.sections[self.section_number] for f in (self.old, self.new))
        last = self.section_number == len(self.old.sections) - 1
        extended = last and not self.added and b.raw_size > a.raw_size
        if key == "VirtualSize":
            return a.size < b.size <= (b.raw_size if extended else a.raw_size)
        if key == "RawDataSize":
            return extended and int(now) == pe.up(b.size, self.new.file_alignment)
        if key == "PointerToRawData":
            return True  # judged by `places`
        return extended and "0x%X" % (a.flags & ~DISCARDABLE) in whole

    def import_line(self, key, was, now, _):
        return key == "Name" and now == self.named(was)

    def export_line(self, key, was, now, _):
        return key == "ForwardedTo" and now == self.forwarded(was)

    def debug_line(self, key, _, __, ___):
        return key == "PointerToRawData"  # judged by `places`

    def load_config_line(self, key, _, now, __):
        return key == "DependentLoadFlags" and now == "0x0"

    # ---- bytes ---------------------------------------------------------------------------------

    def allowed(self):
        """Ranges of the original, behind its headers, where the bytes of the copy may differ."""
        a, out = self.old, []
        for n in a.imports():
            if self.named(n.text) == n.text:
                continue
            out.append((n.at, len(n.text)))
            out.append((n.field, 4))
        for n in a.imports():
            at = n.descriptor + (28 if n.delay else 4)
            if a.u32(at):
                out.append((at, 4 if n.delay else 8))
        own = a.export_name()
        if own and self.id:
            out += [(own.at, len(own.text)), (own.field, 4)]
        out += [(at, len(text)) for at, text in a.forwarders() if self.forwarded(text) != text]
        for s, t in zip(a.sections, self.new.sections):
            if t.size > s.size:
                out.append((s.raw + s.size, min(t.size, s.raw_size) - s.size))
                if any(a.data[s.raw + s.size:s.raw + min(t.size, s.raw_size)]):
                    self.say("bytes", "%s: what was behind it is overwritten" % s.name)
        if self.grown:
            out += [(at + 24, 4) for at, _, _ in a.debug_offsets()]
        flags = 78 if a.plus else 54
        rva, size = a.directory(pe.LOAD_CONFIG)
        if rva and size > flags + 2:
            out.append((a.offset(rva) + flags, 2))
        return sorted(out)

    def header_bytes(self):
        a, b, fields = self.old, self.new, [(6, 2), (12, 4)]
        o = a.opt - a.nt
        fields += [(o + 8, 4), (o + 56, 12), (o + 70, 2)]
        fields += [(a.dirs_at - a.nt + 8 * i, 8) for i in (0, pe.CERTIFICATES, pe.BOUND)]
        for s in a.sections:
            fields += [(s.at - a.nt + i, 4) for i in (8, 16, 20, 36)]
        x = bytearray(a.data[a.nt:a.table_end])
        y = bytearray(b.data[b.nt:b.nt + a.table_end - a.nt])
        for at, n in fields:
            x[at:at + n] = y[at:at + n] = bytes(n)
        if x != y:
            self.say("bytes", "in the headers")
        if a.data[:60] != b.data[:60] or not self.slid and a.data[64:a.nt] != b.data[64:b.nt]:
            self.say("bytes", "in the MS-DOS program")
        self.behind_table()

    def behind_table(self):
        """The bound imports go, a section header may be added, and all else stays."""
        a, b = self.old, self.new
        x = bytearray(a.data[a.table_end:a.headers])
        bound, size = a.directory(pe.BOUND)
        if bound:
            x[bound - a.table_end:bound - a.table_end + size] = bytes(size)
        y = bytearray(b.data[b.table_end:b.headers])
        room = a.table_end + 40 * self.added - self.slid
        if len(y) - len(x) != self.grown + self.slid - 40 * self.added or room != b.table_end:
            self.say("bytes", "headers end at 0x%x" % b.headers)
        x = bytes(max(0, self.slid + self.grown)) + x if self.slid or self.grown else x
        if x[len(x) - len(y):] != y or any(x[:len(x) - len(y)]):
            self.say("bytes", "behind the section table")

    def bytes(self):
        a, b = self.old, self.new
        self.header_bytes()
        kept, at = a.kept(), a.headers
        for start, size in self.allowed() + [(kept, 0)]:
            if at < start and a.data[at:start] != b.data[at + self.grown:start + self.grown]:
                self.say("bytes", "between 0x%x and 0x%x" % (at, start))
            at = max(at, start + size)
        last, more = b.sections[-1], b.data[kept + self.grown:]
        if self.added:
            more = b.data[kept + self.grown:last.raw] + b.data[last.raw + last.size:]
        elif last.raw_size > a.sections[-1].raw_size:
            more = b.data[last.raw + last.size:]
        if any(more):
            self.say("bytes", "at the end")
        end = kept + self.grown
        if self.added or last.raw_size > a.sections[-1].raw_size:
            end = max(last.raw + last.raw_size, end)
        if len(b.data) != end:
            self.say("bytes", "%d, not %d" % (len(b.data), end))


def compare(jobs, section, tiers):
    global failures
    said = readobj([path for job in jobs for path in job[:2]])
    for i, job in enumerate(jobs):
        try:
            p = Pair(job, section)
            p.check(said[2 * i], said[2 * i + 1])
            tiers.write("%s\t%s\n" % (p.tier(), p.copy))
        except Exception as e:
            failures += 1
            print("%s\tlines\t%s: %s" % (job[1], type(e).__name__, e))


def main():
    section = sys.argv[1]
    jobs = [line.rstrip("\n").split("\t") for line in sys.stdin]
    with open(sys.argv[2] if len(sys.argv) > 2 else os.devnull, "w") as tiers:
        for i in range(0, len(jobs), BATCH):
            compare(jobs[i:i + BATCH], section, tiers)
    sys.exit(failures > 0)


main()
