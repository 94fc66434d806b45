#!/usr/bin/python3
"""Looks at a DLL's shape, and makes odd ones.

    shape.py how BEFORE AFTER       by which means names found a place in AFTER
    shape.py full SRC DST           no section has bytes to spare
    shape.py crowded SRC DST        neither have the headers, nor is there an MS-DOS program
    shape.py named SRC DST OLD NEW  section OLD is called NEW
    shape.py writable SRC DST NAME  section NAME can be written
    shape.py sections FILE          how many there are
    shape.py room FILE              bytes between the section headers and the first section
"""

import struct
import sys

SECTION = struct.Struct("<8sIIIIIIHHI")
DOS_HEADER = 0x40
MEM_WRITE = 0x80000000  # IMAGE_SCN_MEM_WRITE


class Image:
    def __init__(self, path):
        with open(path, "rb") as f:
            self.b = bytearray(f.read())
        (self.nt,) = struct.unpack_from("<I", self.b, 0x3C)
        self.count, optional = struct.unpack_from("<H12xH", self.b, self.nt + 6)
        (self.headers,) = struct.unpack_from("<I", self.b, self.nt + 24 + 60)
        self.table = self.nt + 24 + optional
        self.end = self.table + self.count * SECTION.size
        self.sections = [
            SECTION.unpack_from(self.b, self.table + i * SECTION.size)
            for i in range(self.count)
        ]

    def write(self, path):
        with open(path, "wb") as f:
            f.write(self.b)


def how(before, after):
    a, b = Image(before), Image(after)
    if b.headers > a.headers:
        return "grown headers"
    if b.count > a.count:
        return "section" if a.nt == b.nt else "section over the MS-DOS program"
    for x, y in zip(a.sections, b.sections):
        if y[3] > x[3]:
            return "longer section " + x[0].rstrip(b"\0").decode()
        if y[1] > x[1]:
            return "spare bytes"
    return "in place"


def full(image):
    for i, (name, size, rva, raw, *rest) in enumerate(image.sections):
        SECTION.pack_into(
            image.b, image.table + i * SECTION.size, name, max(size, raw), rva, raw, *rest
        )


def crowded(image):
    moved = image.b[image.nt : image.end]
    fill = image.headers - DOS_HEADER - len(moved)
    image.b[DOS_HEADER : image.headers] = moved + b"\xcc" * fill
    struct.pack_into("<I", image.b, 0x3C, DOS_HEADER)


def named(image, old, new):
    for i, section in enumerate(image.sections):
        if section[0].rstrip(b"\0") == old.encode():
            struct.pack_into("8s", image.b, image.table + i * SECTION.size, new.encode())


def writable(image, wanted):
    for i, (name, *rest, flags) in enumerate(image.sections):
        if name.rstrip(b"\0") == wanted.encode():
            SECTION.pack_into(
                image.b, image.table + i * SECTION.size, name, *rest, flags | MEM_WRITE
            )


def main():
    what, *words = sys.argv[1:]
    if what == "how":
        print(how(*words))
    elif what == "sections":
        print(Image(words[0]).count)
    elif what == "room":
        image = Image(words[0])
        print(image.headers - image.end)
    else:
        image = Image(words[0])
        {"full": full, "crowded": crowded, "named": named, "writable": writable}[what](image, *words[2:])
        image.write(words[1])


main()
