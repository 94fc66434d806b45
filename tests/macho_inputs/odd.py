#!/usr/bin/env python3
"""Makes Mach-O files that neither ld64.lld nor llvm-lipo writes.

odd.py fat64 FAT OUT        the same slices with a table of 64-bit offsets
odd.py pointers6 THIN OUT   the same chained fixups, relative to the header
                            (DYLD_CHAINED_PTR_64_OFFSET) instead of address 0
                            (DYLD_CHAINED_PTR_64): in a library the same numbers
"""
import struct
import sys


def fat64(data):
    magic, count = struct.unpack_from(">II", data)
    assert magic == 0xCAFEBABE
    end = 8 + 20 * count
    assert not any(data[end : 8 + 32 * count]), "no room for the longer table"
    table = struct.pack(">II", 0xCAFEBABF, count)
    for i in range(count):
        cpu, sub, offset, size, align = struct.unpack_from(">5I", data, 8 + 20 * i)
        table += struct.pack(">IIQQII", cpu, sub, offset, size, align, 0)
    return table + data[len(table) :]


def pointers6(data):
    data = bytearray(data)
    assert struct.unpack_from("<I", data)[0] == 0xFEEDFACF
    at, count = 32, struct.unpack_from("<I", data, 16)[0]
    for _ in range(count):
        command, size = struct.unpack_from("<II", data, at)
        if command == 0x80000034:
            payload = struct.unpack_from("<I", data, at + 8)[0]
        at += size
    starts = payload + struct.unpack_from("<I", data, payload + 4)[0]
    for i in range(struct.unpack_from("<I", data, starts)[0]):
        offset = struct.unpack_from("<I", data, starts + 4 + 4 * i)[0]
        if offset:
            assert struct.unpack_from("<H", data, starts + offset + 6)[0] == 2
            struct.pack_into("<H", data, starts + offset + 6, 6)
    return bytes(data)


kind, source, to = sys.argv[1:]
with open(source, "rb") as f:
    made = {"fat64": fat64, "pointers6": pointers6}[kind](f.read())
with open(to, "wb") as f:
    f.write(made)
