"""Reads the parts of a PE file in which a copy may differ; shares no code with other readers."""

import struct

CERTIFICATES, DEBUG, LOAD_CONFIG, BOUND, DELAY = 4, 6, 10, 11, 13


def up(n, to):
    return -(-n // to) * to


class Section:
    def __init__(self, data, at):
        self.at = at
        name, self.size, self.rva, self.raw_size, self.raw = struct.unpack_from("<8s4I", data, at)
        self.name = name.rstrip(b"\0").decode()
        self.flags = struct.unpack_from("<I", data, at + 36)[0]


class Name:
    """A library's name: its place, and the field that leads to it."""

    def __init__(self, text, at, field, descriptor, delay=False):
        self.text, self.at, self.field, self.descriptor = text, at, field, descriptor
        self.delay = delay


class PE:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.data = f.read()
        self.nt = self.u32(60)
        if self.data[:2] != b"MZ" or self.data[self.nt:self.nt + 4] != b"PE\0\0":
            raise ValueError("not PE")
        self.machine, count = struct.unpack_from("<HH", self.data, self.nt + 4)
        self.symbols, self.symbol_count = struct.unpack_from("<II", self.data, self.nt + 12)
        self.opt = self.nt + 24
        self.plus = self.u16(self.opt) == 0x20B
        self.base = struct.unpack_from("<Q" if self.plus else "<I", self.data,
                                       self.opt + (24 if self.plus else 28))[0]
        self.alignment, self.file_alignment = struct.unpack_from("<II", self.data, self.opt + 32)
        self.image, self.headers, self.checksum = struct.unpack_from("<3I", self.data,
                                                                     self.opt + 56)
        self.dirs_at = self.opt + (112 if self.plus else 96)
        self.table = self.opt + self.u16(self.nt + 20)
        self.table_end = self.table + 40 * count
        self.sections = [Section(self.data, self.table + 40 * i) for i in range(count)]
        self.raw_end = max(s.raw + s.raw_size for s in self.sections)

    def u16(self, at):
        return struct.unpack_from("<H", self.data, at)[0]

    def u32(self, at):
        return struct.unpack_from("<I", self.data, at)[0]

    def directory(self, i):
        if i >= self.u32(self.dirs_at - 4):
            return 0, 0
        return struct.unpack_from("<II", self.data, self.dirs_at + 8 * i)

    def offset(self, rva):
        for s in self.sections:
            if s.rva <= rva < s.rva + s.raw_size:
                return rva - s.rva + s.raw
        return rva

    def string(self, at):
        return self.data[at:self.data.index(b"\0", at)].decode("latin-1")

    def imports(self):
        """Of import and delay import descriptors, in order."""
        names = []
        at = self.offset(self.directory(1)[0])
        while self.directory(1)[0] and self.u32(at + 12):
            where = self.offset(self.u32(at + 12))
            names.append(Name(self.string(where), where, at + 12, at))
            at += 20
        at = self.offset(self.directory(DELAY)[0])
        while self.directory(DELAY)[0] and self.u32(at + 4):
            rva = self.u32(at + 4) - (0 if self.u32(at) & 1 else self.base)
            where = self.offset(rva)
            names.append(Name(self.string(where), where, at + 4, at, True))
            at += 32
        return names

    def export_name(self):
        at = self.offset(self.directory(0)[0])
        if not self.directory(0)[0] or not self.u32(at + 12):
            return None
        return Name(self.string(self.offset(self.u32(at + 12))), self.offset(self.u32(at + 12)),
                    at + 12, at)

    def forwarders(self):
        """(file offset of the string, string) of each forwarded export."""
        rva, size = self.directory(0)
        if not rva:
            return []
        at = self.offset(rva)
        table, found = self.offset(self.u32(at + 28)), []
        for i in range(self.u32(at + 20)):
            target = self.u32(table + 4 * i)
            if rva <= target < rva + size:
                found.append((self.offset(target), self.string(self.offset(target))))
        return found

    def debug_offsets(self):
        """(file offset of an entry, its address, its file offset) of the debug directory."""
        rva, size = self.directory(DEBUG)
        at = self.offset(rva)
        return [(at + i, self.u32(at + i + 20), self.u32(at + i + 24))
                for i in range(0, size - 27, 28)] if rva else []

    def certificates(self):
        """(start, end) of the certificate table in the file."""
        at, size = self.directory(CERTIFICATES)
        return at, at + size

    def kept(self):
        """How much of the file a copy keeps: all except a certificate table at the end."""
        at, end = self.certificates()
        if not at or end < len(self.data):
            return len(self.data)
        return self.raw_end if 0 <= at - self.raw_end < 8 else at

    def needs(self):
        """Names of all libraries that imports and forwarders lead to, each once, ignoring case.
        The name in a forwarder has no dot, or is that of a program."""
        names = [n.text for n in self.imports()]
        names += [text.replace(".", ".dll\0", 1).split("\0")[0] for _, text in self.forwarders()
                  if text.count(".") == 1]
        seen, out = set(), []
        for name in names:
            if stem(name) not in seen:
                seen.add(stem(name))
                out.append(name)
        return out


def stem(name):
    name = name.lower()
    return name[:-4] if name.endswith(".dll") else name
