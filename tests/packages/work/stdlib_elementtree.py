# debian: libpython3-stdlib
import pyexpat
import xml.etree.ElementTree as tree

root = tree.fromstring("<a><b n='1'>x</b><b n='2'>y</b></a>")
assert [b.text for b in root.iterfind("b[@n='2']")] == ["y"]
try:
    tree.fromstring("<a><b></a>")
except tree.ParseError as e:
    assert e.code == pyexpat.errors.codes[pyexpat.errors.XML_ERROR_TAG_MISMATCH]
else:
    raise AssertionError("a mismatched tag was accepted")
