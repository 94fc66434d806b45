"""Other packages' memory."""

import pytest
import work

import extisolate
from extisolate import _memory

TENSORS = {
    "contiguous": lambda t: t.zeros(4),
    "transposed": lambda t: t.arange(12).reshape(3, 4).t(),
    "with-gaps": lambda t: t.zeros(2, 3)[:, 1],
    "expanded": lambda t: t.zeros(3, 1).expand(3, 4),
    "requires-grad": lambda t: t.zeros(2, requires_grad=True),
    "bfloat16": lambda t: t.zeros(2, dtype=t.bfloat16),
    "bfloat16-with-gaps": lambda t: t.zeros(4, dtype=t.bfloat16)[::2],
    "half": lambda t: t.zeros(2, dtype=t.half),
    "bool": lambda t: t.zeros(2, dtype=t.bool),
    "complex": lambda t: t.zeros(2, dtype=t.complex64),
    "scalar": lambda t: t.tensor(3.0),
}


@pytest.fixture
def copying(interp):
    """Calls that share nothing, in an interpreter that has imported the packages."""
    return _with_policy(interp, _memory.COPY)


@pytest.fixture
def reading(interp):
    return _with_policy(interp, _memory.READONLY)


def _with_policy(interp, policy):
    def call(*args):
        interp._policy = policy
        try:
            return interp.call(*args)
        finally:
            interp._policy = 0

    return call


@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_of_torch_are_shared(interp, copying, kind):
    torch = pytest.importorskip("torch")
    given = TENSORS[kind](torch)
    returned = interp.call(work.identity, [given])[0]
    assert returned.dtype == given.dtype and returned.requires_grad == given.requires_grad
    assert torch.equal(returned, given) and returned.data_ptr() == given.data_ptr()
    with torch.no_grad():
        (returned[0] if returned.ndim else returned).fill_(1)
    assert torch.equal(returned, given)
    assert copying(work.identity, given).data_ptr() != given.data_ptr()


def test_tensors_are_copied_where_they_may_not_be_written_to(reading):
    torch = pytest.importorskip("torch")
    given = torch.zeros(3)
    returned = reading(work.identity, given)
    returned += 1  # torch knows no tensor that is read-only
    assert torch.equal(given, torch.zeros(3))


def test_parameters_of_torch_are_shared(interp):
    torch = pytest.importorskip("torch")
    given = torch.nn.Linear(3, 2)
    returned = interp.call(work.identity, given)
    assert returned.weight.data_ptr() == given.weight.data_ptr()
    assert type(returned.weight) is torch.nn.Parameter and returned.weight.requires_grad


def test_conjugated_tensors_arrive(interp):
    torch = pytest.importorskip("torch")
    given = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert torch.equal(interp.call(work.identity, given), given)


def test_arrays_with_dlpack_alone_are_shared(interp, copying, reading):
    numpy = pytest.importorskip("numpy")
    import dlpack_arrays

    numbers = numpy.arange(6.0).reshape(2, 3).T
    given = dlpack_arrays.from_dlpack(numbers)
    returned = interp.call(dlpack_arrays.negate, given)
    assert type(returned) is dlpack_arrays.Array
    assert numbers[1, 0] == -1 and numpy.shares_memory(returned.numpy(), numbers)
    for other in (copying, reading):
        with pytest.raises(extisolate.NotShareableError, match="cannot be pickled"):
            other(work.identity, given)
    with pytest.raises(extisolate.NotShareableError):
        interp.call(work.identity, dlpack_arrays.read_only(given))


def test_frames_of_pandas_are_shared(interp):
    pandas = pytest.importorskip("pandas")
    numpy = pytest.importorskip("numpy")
    given = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0], "c": ["x", "y", "z"]})
    returned = interp.call(work.identity, given)
    pandas.testing.assert_frame_equal(returned, given)
    assert numpy.shares_memory(returned["a"].to_numpy(), given["a"].to_numpy())


def table(pa):
    return pa.table({"a": list(range(1000)), "b": [f"text {i}" for i in range(1000)]})


ARROWS = {
    "table": table,
    "batch": lambda pa: table(pa).to_batches()[0],
    "array": lambda pa: pa.array([1.5, None, 3.0]),
    "slice": lambda pa: pa.array(range(100))[10:20],
    "chunked": lambda pa: pa.chunked_array([[1, 2], [3]]),
    "text": lambda pa: pa.array(["a", None, "b"]),
    "lists": lambda pa: pa.array([[1, 2], [], None]),
    "dictionary": lambda pa: pa.array(["a", "b", "a"]).dictionary_encode(),
}


def addresses(obj):
    """Where the values of an object of pyarrow lie."""
    if hasattr(obj, "columns"):
        return [a for column in obj.columns for a in addresses(column)]
    if hasattr(obj, "chunks"):
        return [a for chunk in obj.chunks for a in addresses(chunk)]
    return [b.address for b in obj.buffers() if b is not None and b.size]


@pytest.mark.parametrize("kind", ARROWS)
def test_what_pyarrow_has_is_shared(interp, copying, kind):
    pyarrow = pytest.importorskip("pyarrow")
    given = ARROWS[kind](pyarrow)
    for box in (lambda x: x, lambda x: [{"in": x}]):
        returned = interp.call(work.identity, box(given))
        returned = returned[0]["in"] if isinstance(returned, list) else returned
        assert type(returned) is type(given) and returned.equals(given)
        assert addresses(returned) == addresses(given) and addresses(given)
    assert set(addresses(copying(work.identity, given))).isdisjoint(addresses(given))


def test_trees_of_lxml_are_parsed_in_each(interp):
    pytest.importorskip("lxml")
    assert interp.call(parse, "<a><b>text</b></a>") == "text"


def parse(text):
    from lxml import etree

    return etree.fromstring(text).findtext("b")
