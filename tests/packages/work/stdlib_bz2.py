# debian: libpython3-stdlib
import bz2

data = bytes(range(256)) * 400
packed = bz2.compress(data)
assert len(packed) < len(data) // 10 and bz2.decompress(packed) == data
try:
    bz2.decompress(packed[:40] + b"\0\0\0\0" + packed[44:])
except (OSError, ValueError):
    pass
else:
    raise AssertionError("damaged data was accepted")
