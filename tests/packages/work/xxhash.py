# debian: python3-xxhash
# pypi: xxhash
import xxhash

assert xxhash.xxh32(b"").hexdigest() == "02cc5d05" and xxhash.xxh64(b"").hexdigest() == "ef46db3751d8e999"
h = xxhash.xxh3_128()
for i in range(100):
    h.update(b"%d," % i)
assert h.digest() == xxhash.xxh3_128(b"".join(b"%d," % i for i in range(100))).digest()
