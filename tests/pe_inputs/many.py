#!/usr/bin/python3
"""Writes a DLL of 8 MiB that imports from python3.dll as often as a file can, with all the names that its
size allows it, through one table.

    many.py FILE
"""

import struct
import sys

DESCRIPTORS = 4095
SIZE = 8 << 20
START = 0x1000  # of the section, in the file and in memory

section = bytearray(SIZE)
library = 20 * (DESCRIPTORS + 1)
symbol = library + 16
table = symbol + 16
count = SIZE // 4 // DESCRIPTORS - 2
addresses = table + 8 * (count + 1)

section[library : library + 11] = b"python3.dll"
section[symbol + 2 : symbol + 13] = b"PyLong_Type"
for i in range(DESCRIPTORS):
    struct.pack_into("<5I", section, 20 * i, START + table, 0, 0, START + library, START + addresses)
struct.pack_into("<%dQ" % count, section, table, *[START + symbol] * count)

header = bytearray(START)
header[:2] = b"MZ"
struct.pack_into("<I", header, 60, 64)
struct.pack_into("<4sHHIIIHH", header, 64, b"PE", 0x8664, 1, 0, 0, 0, 240, 0x2022)
struct.pack_into("<HBB5IQII", header, 88, 0x20B, 14, 0, 0, SIZE, 0, 0, START, 0x180000000, START, START)
struct.pack_into("<6H4IHH", header, 128, 6, 0, 0, 0, 6, 0, 0, SIZE + START, START, 0, 2, 0x160)
struct.pack_into("<4QII", header, 160, 0x100000, 0x1000, 0x100000, 0x1000, 0, 16)
struct.pack_into("<II", header, 208, START, library)
struct.pack_into("<8s6IHHI", header, 328, b".rdata", SIZE, START, SIZE, START, 0, 0, 0, 0, 0xC0000040)

with open(sys.argv[1], "wb") as f:
    f.write(header + section)
