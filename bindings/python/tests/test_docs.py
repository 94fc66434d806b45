import doctest
import importlib

import pytest

import extisolate


@pytest.mark.parametrize(
    "name",
    [
        *("_interpreters", "_pickling", "_pool", "_proxies", "_queues"),
        *("_dispatch", "_functions", "_run"),
    ],
)
def test_docstrings_are_true(name):
    module = importlib.import_module(f"extisolate.{name}")
    names = {n: getattr(extisolate, n) for n in extisolate.__all__}
    found = doctest.testmod(module, extraglobs=names)
    assert found.failed == 0


def test_what_is_public_has_a_docstring():
    for name in extisolate.__all__:
        assert getattr(extisolate, name).__doc__, name
