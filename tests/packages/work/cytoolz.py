# debian: python3-cytoolz
import cytoolz
from cytoolz.curried import map, pipe

assert pipe([1, 2, 3], map(lambda x: x * x), list) == [1, 4, 9]
assert cytoolz.groupby(len, ["a", "bb", "c"]) == {1: ["a", "c"], 2: ["bb"]}
assert list(cytoolz.sliding_window(2, range(4))) == [(0, 1), (1, 2), (2, 3)]
