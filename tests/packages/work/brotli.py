# debian: python3-brotli
# pypi: brotli
import brotli

data = b"isolated " * 2000
packed = brotli.compress(data, quality=5)
assert len(packed) < 200 and brotli.decompress(packed) == data
c = brotli.Compressor()
assert brotli.Decompressor().process(c.process(data) + c.finish()) == data
try:
    brotli.decompress(packed[:-3])
except brotli.error:
    pass
else:
    raise AssertionError("damaged data was accepted")
