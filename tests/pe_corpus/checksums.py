#!/usr/bin/python3
"""Has pefile check that copies have a right checksum if their originals have one, and no signature.

    checksums.py <JOBS

Exits with 77 if pefile is not installed."""

import sys

try:
    import pefile
except ImportError:
    sys.exit(77)

CERTIFICATES = 4
right, none, signed, wrong = 0, 0, 0, 0
for line in sys.stdin:
    source, copy = (pefile.PE(path, fast_load=True) for path in line.split("\t")[:2])
    signed += source.OPTIONAL_HEADER.DATA_DIRECTORY[CERTIFICATES].VirtualAddress != 0
    if copy.OPTIONAL_HEADER.DATA_DIRECTORY[CERTIFICATES].VirtualAddress:
        print("%s: signed" % line.split("\t")[0])
        wrong += 1
    if (source.OPTIONAL_HEADER.CheckSum == 0) != (copy.OPTIONAL_HEADER.CheckSum == 0):
        print("%s: had a checksum, or has none" % line.split("\t")[0])
        wrong += 1
    elif not copy.OPTIONAL_HEADER.CheckSum:
        none += 1
    elif copy.verify_checksum():
        right += 1
    else:
        print("%s: checksum" % line.split("\t")[0])
        wrong += 1
    source.close()
    copy.close()
print("%d right, %d never had one, %d were signed" % (right, none, signed))
sys.exit(wrong > 0)
