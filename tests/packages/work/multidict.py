# debian: python3-multidict
# pypi: multidict
import multidict
from multidict import _multidict

d = multidict.CIMultiDict([("A", 1), ("a", 2)])
d.add("b", 3)
assert d.getall("A") == [1, 2] and "B" in d and _multidict.CIMultiDict
view = multidict.CIMultiDictProxy(d)
d.popall("a")
assert "a" not in view and view["B"] == 3
