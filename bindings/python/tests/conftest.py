import gc

import pytest

import extisolate


@pytest.fixture(scope="module")
def interp():
    with extisolate.create() as made:
        yield made


@pytest.fixture
def fresh():
    with extisolate.create() as made:
        yield made


@pytest.fixture
def nothing_lingers():
    """Closed interpreters are unloaded at the end of the test, all of them."""
    import time

    from extisolate import _extisolate

    yield
    end = time.monotonic() + 20
    while _extisolate.lingering() and time.monotonic() < end:
        gc.collect()
        time.sleep(0.02)
    assert _extisolate.lingering() == 0
