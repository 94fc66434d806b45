"""Other packages' memory."""

import pytest
import work


def test_tensors_of_torch_are_shared(interp):
    torch = pytest.importorskip("torch")
    for given in (torch.zeros(4), torch.arange(12).reshape(3, 4).t(), torch.zeros(2, 3)[:, 1]):
        returned = interp.call(work.identity, [given])[0]
        assert torch.equal(returned, given)
        returned += 5
        assert torch.equal(returned, given)
    for given in (torch.zeros(2, requires_grad=True), torch.zeros(2, dtype=torch.bfloat16)):
        returned = interp.call(work.identity, given)
        assert returned.dtype == given.dtype and returned.requires_grad == given.requires_grad
        assert torch.equal(returned, given)


def test_frames_of_pandas_are_shared(interp):
    pandas = pytest.importorskip("pandas")
    numpy = pytest.importorskip("numpy")
    given = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0], "c": ["x", "y", "z"]})
    returned = interp.call(work.identity, given)
    pandas.testing.assert_frame_equal(returned, given)
    assert numpy.shares_memory(returned["a"].to_numpy(), given["a"].to_numpy())


def test_tables_of_pyarrow_are_shared(interp):
    pyarrow = pytest.importorskip("pyarrow")
    given = pyarrow.table({"a": list(range(1000))})
    returned = interp.call(work.identity, given)
    assert returned.equals(given)
    addresses = [t.column(0).chunk(0).buffers()[1].address for t in (given, returned)]
    assert addresses[0] == addresses[1]


def test_trees_of_lxml_are_parsed_in_each(interp):
    pytest.importorskip("lxml")
    assert interp.call(parse, "<a><b>text</b></a>") == "text"


def parse(text):
    from lxml import etree

    return etree.fromstring(text).findtext("b")
