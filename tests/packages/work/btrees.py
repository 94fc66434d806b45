# debian: python3-btrees
from BTrees import IOBTree, OOBTree

tree = IOBTree.IOBTree()
assert type(tree).__module__ == "BTrees.IOBTree" and IOBTree.IOBTree is not IOBTree.IOBTreePy
for i in range(2000):
    tree[i * 7 % 2000] = str(i)
assert len(tree) == 2000 and list(tree.keys(5, 8)) == [5, 6, 7, 8] and tree.maxKey() == 1999
a, b = OOBTree.OOSet("abc"), OOBTree.OOSet("bcd")
assert list(OOBTree.intersection(a, b)) == ["b", "c"] and list(OOBTree.union(a, b)) == list("abcd")
