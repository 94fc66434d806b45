# debian: libpython3-stdlib
import mmap
import struct
import tempfile

with tempfile.TemporaryFile() as f:
    f.truncate(3 * mmap.PAGESIZE)
    with mmap.mmap(f.fileno(), 0) as view:
        struct.pack_into("<Q", view, mmap.PAGESIZE + 8, 2**40 + 1)
        view.flush()
    f.seek(mmap.PAGESIZE + 8)
    assert struct.unpack("<Q", f.read(8)) == (2**40 + 1,)
