# debian: python3-murmurhash
from murmurhash import mrmr

assert mrmr.hash("") == mrmr.hash("") and mrmr.hash("a") != mrmr.hash("b")
assert len({mrmr.hash("word %d" % i) for i in range(1000)}) == 1000
