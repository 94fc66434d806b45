# debian: libpython3-stdlib
import binascii
import gzip
import zlib

data = b"isolation " * 5000
packer = zlib.compressobj(9, zlib.DEFLATED, -15)
packed = packer.compress(data) + packer.flush()
assert zlib.decompressobj(-15).decompress(packed) == data
assert gzip.decompress(gzip.compress(data)) == data
assert zlib.crc32(b"123456789") == binascii.crc32(b"123456789") == 0xCBF43926
