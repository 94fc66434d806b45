# debian: python3-lz4
# pypi: lz4
import lz4.block
import lz4.frame

data = b"isolated " * 2000
assert lz4.frame.decompress(lz4.frame.compress(data)) == data
assert lz4.block.decompress(lz4.block.compress(data, mode="high_compression")) == data
try:
    lz4.frame.decompress(lz4.frame.compress(data)[:-9])
except RuntimeError:
    pass
else:
    raise AssertionError("damaged data was accepted")
