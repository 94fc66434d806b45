# debian: python3-blosc
import blosc

data = bytes(range(256)) * 4000
for name in blosc.compressor_list():
    assert blosc.decompress(blosc.compress(data, 8, cname=name)) == data
blosc.set_nthreads(2)
assert blosc.decompress(blosc.compress(data, 4, shuffle=blosc.BITSHUFFLE)) == data
