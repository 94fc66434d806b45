#!/usr/bin/python3
"""Says what another program reads in a DLL, a line for each fact, sorted.

    read.py pefile|llvm|objdump FILE

Exits with 77 where that program is not here.
"""

import re
import shutil
import subprocess
import sys


def by_pefile(path):
    import pefile

    pe = pefile.PE(path, fast_load=True)
    yield "checksum %x" % pe.generate_checksum()
    pe.parse_data_directories()
    exports = getattr(pe, "DIRECTORY_ENTRY_EXPORT", None)
    if exports and exports.name:
        yield "id " + exports.name.decode()
    for e in exports.symbols if exports else []:
        name = e.name.decode() if e.name else "#%d" % e.ordinal
        section = None if e.forwarder else pe.get_section_by_rva(e.address)
        code = section is not None and section.Characteristics & 0x20000000
        yield "export %s%s" % (name, " code" if code else "")
    count = 0
    for kind in "IMPORT", "DELAY_IMPORT":
        for d in getattr(pe, "DIRECTORY_ENTRY_" + kind, []):
            count += 1
            yield "needed %s%s" % (d.dll.decode(), " late" if kind[0] == "D" else "")
            for i in d.imports:
                name = i.name.decode() if i.name else "#%d" % i.ordinal
                yield "import %d %s" % (count, name)
    tls = getattr(pe, "DIRECTORY_ENTRY_TLS", None)
    if tls:
        s = tls.struct
        size = s.EndAddressOfRawData - s.StartAddressOfRawData + s.SizeOfZeroFill
        yield "tls %d" % size
    for d in getattr(pe, "DIRECTORY_ENTRY_DEBUG", []):
        if d.struct.Type == 2 and d.entry:
            start = d.struct.PointerToRawData + 4
            b = pe.__data__[start : start + 20]
            guid = b[3::-1] + b[5:3:-1] + b[7:5:-1] + b[8:16]
            yield "build %s%x" % (guid.hex(), int.from_bytes(b[16:20], "little"))


def run(*tools_and_arguments):
    tools, arguments = tools_and_arguments[0], tools_and_arguments[1:]
    for tool in tools:
        if shutil.which(tool):
            return subprocess.run(
                [tool, *arguments], check=True, capture_output=True, text=True
            ).stdout
    sys.exit(77)


def by_llvm(path):
    out = run(
        ["llvm-readobj", "llvm-readobj"], "--coff-imports", "--coff-exports", path
    )
    count, kind, name = 0, None, None
    for line in out.splitlines():
        word, _, rest = line.strip().partition(" ")
        if line in ("Import {", "DelayImport {", "Export {"):
            kind = word
            count += kind != "Export"
        elif word == "Ordinal:":
            name = "#" + rest
        elif word == "Name:" and kind == "Export":
            name = rest or name
        elif word == "ForwardedTo:" or (word == "RVA:" and rest != "0x0"):
            yield "export " + name
        elif word == "Name:":
            yield "needed %s%s" % (rest, " late" if kind == "DelayImport" else "")
        elif word == "Symbol:":
            symbol, number = re.fullmatch(r"(.*?) ?\((\d+)\)", rest).groups()
            yield "import %d %s" % (count, symbol or "#" + number)


def by_objdump(path):
    out = run(
        ["x86_64-w64-mingw32-objdump", "i686-w64-mingw32-objdump"], "-p", path
    )
    for line in out.splitlines():
        found = re.search(r"DLL Name: (\S+)", line)
        if found:
            yield "needed " + found.group(1)
        found = re.match(r"Name \t+[0-9a-f]+ (\S+)", line)
        if found:
            yield "id " + found.group(1)


def main():
    how = {"pefile": by_pefile, "llvm": by_llvm, "objdump": by_objdump}[sys.argv[1]]
    try:
        print("\n".join(sorted(how(sys.argv[2]))))
    except ImportError:
        sys.exit(77)


main()
