"""That interpreters are isolated, and that it is seen where one is not."""

import ctypes

import pytest
import work

import extisolate


def test_an_interpreter_is_proven(interp):
    interp.exec("import ctypes, decimal")
    proof = interp.prove()
    assert proof.leaks == []
    assert proof.captured == []
    assert proof.modules > 2
    assert proof.references > 1000


def test_an_interpreter_with_numpy_is_proven(interp):
    pytest.importorskip("numpy")
    before = interp.prove()
    interp.exec("import numpy.linalg")
    after = interp.prove()
    assert after.leaks == []
    assert after.modules > before.modules and after.references > before.references


def test_an_interpreter_proves_itself(interp):
    assert interp.call(work.prove_current) == ([], True)


def test_a_reference_to_the_main_interpreter_is_found(interp):
    ours = ctypes.cast(ctypes.pythonapi.PyErr_SetString, ctypes.c_void_p).value
    own = interp.call(work.point_slot, "PyErr_SetString", ours)
    (leak,) = interp.prove().leaks
    assert "_ctypes" in leak and "Err_SetString" in leak
    assert interp.call(work.point_slot, "PyErr_SetString", own) == ours
    assert interp.prove().leaks == []


def test_the_main_interpreter_has_no_proof():
    with pytest.raises(extisolate.InterpreterError, match="main"):
        extisolate.get_main().prove()
