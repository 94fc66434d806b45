#!/usr/bin/python3
"""Prints jobs that rewrite PE files with new names for all libraries that they need.

    jobs.py HOW DIR <FILES

Prints a job for each file, with the copy in DIR.  HOW is

    same       other names of the same length
    api        a longer name for python311.dll or python3.dll, or else for the first library
    long       longer names for all libraries and for the file itself
    freed      the same, for a file whose headers are full except for the MS-DOS program
    grown      the same, for a file with as many sections as its headers have room for
    last       the same, for a file whose headers are full of unknown bytes
    bound      as api, for a file that is bound to the first library that it imports
    overlay    the same, for a file with unknown bytes behind its sections

The last five make such files first, beside the copy.  As HOW, `forwarding` prints the files with
forwarded exports instead."""

import os
import struct
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import pe  # noqa: E402

MOST = 96
LARGEST = 1 << 18  # size of the files to make


def same(name):
    first = "x" if name[0] not in "xX" else "y"
    return first + name[1:]


def longer(name, more):
    dot = name.lower().rfind(".dll")
    dot = dot if dot > 0 else len(name)
    return name[:dot].replace(".", "-") + "-" + more + (name[dot:] or ".dll")


def up_to_dos_program(f):
    """The headers, with the NT headers in the place of the MS-DOS program."""
    data = bytearray(f.data)
    n = f.table_end - f.nt
    data[64:64 + n] = f.data[f.nt:f.table_end]
    data[64 + n:f.table_end] = bytes(f.table_end - 64 - n)
    struct.pack_into("<I", data, 60, 64)
    return data, f.nt - 64


def freed(f):
    data = bytearray(f.data)
    data[f.table_end:f.headers] = b"\xcc" * (f.headers - f.table_end)
    return data if f.nt >= 64 + 40 else None


def last(f):
    data, gain = up_to_dos_program(f)
    end = f.table_end - gain
    data[end:f.headers] = b"\xcc" * (f.headers - end)
    return data


def grown(f):
    data, gain = up_to_dos_program(f)
    end, s = f.table_end - gain, f.sections[-1]
    rva, count = pe.up(s.rva + (s.size or s.raw_size), f.alignment), len(f.sections)
    while f.headers - end >= 40 and count < MOST:
        struct.pack_into("<8s4I12xI", data, end, b".empty", 64, rva, 0, 0, 0xC0000080)
        end, rva, count = end + 40, rva + f.alignment, count + 1
    struct.pack_into("<H", data, 70, count)
    struct.pack_into("<I", data, f.opt - gain + 56, rva)
    fits = f.headers + f.file_alignment <= f.sections[0].rva
    return data if count < MOST and fits else None


def bound(f):
    """Binds as an NT linker does: the table lies in the headers, and the import is marked."""
    name = f.imports()[0] if f.imports() and not f.imports()[0].delay else None
    text = name and name.text.encode() + b"\0"
    table, at = f.table_end, f.table_end + 16
    if not name or at + len(text) > f.headers or not f.u32(name.descriptor):
        return None
    data = bytearray(f.data)
    data[table:table + 16] = struct.pack("<IHH8x", 0x12345678, 16, 0)
    data[at:at + len(text)] = text
    struct.pack_into("<II", data, name.descriptor + 4, 0xFFFFFFFF, 0xFFFFFFFF)
    struct.pack_into("<II", data, f.dirs_at + 8 * pe.BOUND, table, 16 + len(text))
    return data


def overlay(f):
    if f.directory(pe.CERTIFICATES)[0]:
        return None
    return bytearray(f.data) + b"PK\5\6" + bytes(18) + b"others' data " * 80


def names(f, how):
    needs = f.needs()
    if how in ("api", "bound"):
        api = [n for n in needs if pe.stem(n) in ("python3", "python311")] or needs[:1]
        return {n: longer(n, "%032x" % 0x1A2B) for n in api}, ""
    own = f.export_name().text if f.export_name() else ""
    if how == "same":
        return {n: same(n) for n in needs}, own and same(own)
    return ({n: longer(n, "%03d" % i + "x" * 160) for i, n in enumerate(needs)},
            own and longer(own, "y" * 80))


def main():
    how, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    for i, path in enumerate(sys.stdin):
        path = path.rstrip("\n")
        f = pe.PE(path)
        if how == "forwarding":
            if f.forwarders():
                print(path)
            continue
        make = {"freed": freed, "grown": grown, "last": last, "bound": bound,
                "overlay": overlay}.get(how)
        if make:
            data = len(f.data) <= LARGEST and not f.directory(pe.BOUND)[0] and make(f)
            if not data:
                continue
            path = "%s/%d.source" % (folder, i)
            with open(path, "wb") as out:
                out.write(data)
        new, own = names(f, how)
        if new or own:
            print("%s\t%s/%d\t%s\t%s" % (path, folder, i, own,
                                        "|".join("%s=%s" % n for n in new.items())))


main()
