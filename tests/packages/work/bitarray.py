# debian: python3-bitarray
import bitarray
import bitarray.util as util

bits = bitarray.bitarray("1011001") * 100
assert bits.count() == 400 and (bits & ~bits).any() is False
assert util.ba2int(bitarray.bitarray("10110", endian="big")) == 22
code = util.huffman_code({"a": 5, "b": 2, "c": 1})
packed = bitarray.bitarray()
packed.encode(code, "abacab")
assert "".join(packed.decode(code)) == "abacab"
