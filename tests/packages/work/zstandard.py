# debian: python3-zstandard
# pypi: zstandard
import zstandard

samples = [b"name=%d;colour=blue;size=%d" % (i, i * i) for i in range(2000)]
dictionary = zstandard.train_dictionary(2048, samples)
small = zstandard.ZstdCompressor(dict_data=dictionary).compress(samples[7])
assert zstandard.ZstdDecompressor(dict_data=dictionary).decompress(small) == samples[7]
data = b"".join(samples)
assert zstandard.ZstdDecompressor().decompress(zstandard.ZstdCompressor(level=9, threads=2).compress(data)) == data
