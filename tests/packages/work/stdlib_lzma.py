# debian: libpython3-stdlib
import lzma

data = b"".join(b"%d " % (i * i) for i in range(20000))
for form in lzma.FORMAT_XZ, lzma.FORMAT_ALONE:
    packed = lzma.compress(data, format=form, preset=6)
    assert len(packed) < len(data) // 2 and lzma.decompress(packed) == data
