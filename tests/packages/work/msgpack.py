# debian: python3-msgpack
# pypi: msgpack
import msgpack
from msgpack import _cmsgpack

data = {"a": [1, -2, 2**40, 1.5, None, b"\0"], "b": {"c": "d" * 1000}}
assert msgpack.unpackb(msgpack.packb(data)) == data and msgpack.Packer is _cmsgpack.Packer
unpacker = msgpack.Unpacker()
for i in range(10):
    unpacker.feed(msgpack.packb([i, {"sq": i * i}]))
assert [m[1]["sq"] for m in unpacker] == [i * i for i in range(10)]
