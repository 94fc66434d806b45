# debian: python3-frozenlist
# pypi: frozenlist
from frozenlist import FrozenList, _frozenlist

items = FrozenList([1, 2])
items.append(3)
items.freeze()
try:
    items.append(4)
except RuntimeError:
    pass
else:
    raise AssertionError("a frozen list grew")
assert list(items) == [1, 2, 3] and isinstance(items, _frozenlist.FrozenList) and hash(items)
