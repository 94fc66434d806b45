# pypi: rpds-py
import rpds

a = rpds.HashTrieMap({"x": 1})
b = a.insert("y", 2)
assert len(a) == 1 and dict(b.items()) == {"x": 1, "y": 2} and b.remove("x").get("x") is None
assert list(rpds.List([1, 2, 3]).rest) == [2, 3] and rpds.HashTrieSet([1, 1, 2]) == rpds.HashTrieSet([2, 1])
