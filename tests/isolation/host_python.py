"""Runs two contexts of libpython inside python3, which is their host.

Prints "isolated" if both contexts and the host work at once, each with its own numpy.
EXTI_LIBRARY, EXTI_LIBPYTHON and EXTI_TMP say where things are.
"""

import ctypes
import json
import os
import shutil
import sys
import threading

import numpy

c_int, c_char_p, c_void_p, c_size_t = (
    ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t)


class Error(ctypes.Structure):
    _fields_ = [('code', c_int), ('os_error', c_int), ('offset', ctypes.c_uint64),
                ('file', ctypes.c_char * 512), ('message', ctypes.c_char * 512)]


class CtxOpts(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('dir', c_char_p), ('name', c_char_p),
                ('api_library', c_char_p), ('hooks', c_void_p), ('user', c_void_p),
                ('redirects', c_void_p), ('redirect_count', c_size_t),
                ('flags', ctypes.c_uint32)]


class Proof(ctypes.Structure):
    _fields_ = [('size', c_size_t), ('modules', c_size_t), ('references', c_size_t),
                ('leaks', c_size_t), ('captured', c_size_t)]


lib = ctypes.CDLL(os.environ['EXTI_LIBRARY'])
Report = ctypes.CFUNCTYPE(c_int, c_void_p, ctypes.POINTER(Error))
lib.exti_module_copy.restype = lib.exti_ctx_dir.restype = c_char_p
lib.exti_module_copy.argtypes = lib.exti_ctx_dir.argtypes = [c_void_p]


def call(function, *args):
    err = Error()
    rc = function(*args, ctypes.byref(err))
    if rc:
        sys.exit(f'{function.__name__}: {rc}: {err.file.decode()}: {err.message.decode()}')


def symbol(module, name, prototype):
    p = c_void_p()
    call(lib.exti_symbol, module, name.encode(), ctypes.byref(p))
    return prototype(p.value)


CODE = '''
import ctypes, json, decimal, os, sqlite3, ssl, sys
import numpy, numpy.linalg
a = numpy.arange(1000.0).reshape(10, 100)
api = ctypes.pythonapi
def meet(x):
    os.write(%d, b'.')
    assert os.read(%d, 1) == b'.'
    return x * 2
facts = dict(
    met=numpy.frompyfunc(meet, 1, 1)(numpy.arange(3)).tolist(), type=id(type),
    type_of_list=ctypes.c_void_p.from_address(id(list) + ctypes.sizeof(ctypes.c_void_p)).value,
    sum=float(a.sum()), inverse=float(numpy.linalg.inv(numpy.eye(5) * 4)[0, 0]),
    int=id(int), ndarray=id(numpy.ndarray), add=id(numpy.add),
    file=numpy.linalg._umath_linalg.__file__,
    pythonapi_list=ctypes.addressof(ctypes.c_char.in_dll(api, 'PyList_Type')), list=id(list),
    decimal=str(decimal.Decimal(1) / 8),
    sql=sqlite3.connect(':memory:').execute('select 6*7').fetchone()[0],
    files=[m.__file__ for m in list(sys.modules.values())
           if (getattr(m, '__file__', None) or '').endswith('.so')])
api.PyLong_FromLong.restype = ctypes.py_object
facts['via_api'] = api.PyLong_FromLong(42)
open(%r, 'w').write(json.dumps(facts))
'''


class Context:
    def __init__(self, number):
        self.out = os.path.join(os.environ['EXTI_TMP'], f'facts{number}')
        self.ctx, self.api = c_void_p(), c_void_p()
        opts = CtxOpts(size=ctypes.sizeof(CtxOpts),
                       api_library=os.environ['EXTI_LIBPYTHON'].encode())
        call(lib.exti_ctx_open, ctypes.byref(self.ctx), ctypes.byref(opts))
        call(lib.exti_api, self.ctx, ctypes.byref(self.api))
        self.facts = None
        self.heard, said = os.pipe()
        hears, self.told = os.pipe()
        self.code = CODE % (said, hears, self.out)
        self.ends = said, hears

    def run(self):
        try:
            self.work()
        finally:
            # Otherwise the host would wait for a context that failed.
            for fd in self.ends:
                os.close(fd)

    def work(self):
        set_name = symbol(self.api, 'Py_SetProgramName', ctypes.CFUNCTYPE(None, ctypes.c_wchar_p))
        start = symbol(self.api, 'Py_InitializeEx', ctypes.CFUNCTYPE(None, c_int))
        run = symbol(self.api, 'PyRun_SimpleString', ctypes.CFUNCTYPE(c_int, c_char_p))
        finish = symbol(self.api, 'Py_FinalizeEx', ctypes.CFUNCTYPE(c_int))
        set_name('/usr/bin/python3')
        start(0)
        if run(self.code.encode()):
            return
        self.prove()
        if finish() == 0:
            with open(self.out) as f:
                self.facts = json.load(f)

    def prove(self):
        def report(_user, finding):
            err = finding.contents
            print('leak:', err.file.decode(), err.message.decode(), file=sys.stderr)
            return 0

        proof = Proof(size=ctypes.sizeof(Proof))
        call(lib.exti_ctx_prove, self.ctx, Report(report), None, ctypes.byref(proof))
        self.proof = proof


def meet(contexts, x):
    """Runs in a loop of the host's numpy, while each context waits in a loop of its own numpy."""
    for context in contexts:
        assert os.read(context.heard, 1) == b'.', 'a context failed'
    for context in contexts:
        os.write(context.told, b'.')
    return x * 2


def control():
    """Shows that the checks below can fail: an unedited copy of libpython uses the host's types."""
    copy = shutil.copy(os.environ['EXTI_LIBPYTHON'],
                       os.path.join(os.environ['EXTI_TMP'], 'copy.so'))
    list_type = ctypes.addressof(ctypes.c_char.in_dll(ctypes.CDLL(copy), 'PyList_Type'))
    assert list_type != id(list)
    size = ctypes.sizeof(c_void_p)
    assert c_void_p.from_address(list_type + size).value == id(type), 'nothing to isolate from'


def main():
    contexts = [Context(0), Context(1)]
    threads = [threading.Thread(target=context.run, daemon=True) for context in contexts]
    for thread in threads:
        thread.start()
    met = numpy.frompyfunc(lambda x: meet(contexts, x), 1, 1)(numpy.arange(3)).tolist()
    while any(thread.is_alive() for thread in threads):
        assert numpy.arange(1000.0).sum() == 499500.0
        threads[0].join(0.01)
        threads[1].join(0.01)
    host = dict(int=id(int), type=id(type), ndarray=id(numpy.ndarray), add=id(numpy.add),
                list=id(list))
    for context in contexts:
        facts = context.facts
        assert facts, 'a context failed'
        assert facts['sum'] == 499500.0 and facts['inverse'] == 0.25, facts
        assert facts['decimal'] == '0.125' and facts['sql'] == 42 and facts['via_api'] == 42, facts
        assert facts['pythonapi_list'] == facts['list'], facts
        assert facts['type_of_list'] == facts['type'], facts
        assert facts['met'] == met == [0, 2, 4], (facts, met)
        assert context.proof.leaks == 0, context.proof.leaks
        # Besides numpy's; what else is in files, and not in libpython, depends on the release.
        for name in '_ctypes', '_decimal', '_sqlite3':
            assert any(f'/{name}.' in file for file in facts['files']), facts['files']
        # They, and libpython.
        assert context.proof.modules > len(set(facts['files'])), (context.proof.modules, facts)
        print('proof:', context.proof.modules, 'modules', context.proof.references, 'references')
        for key in host:
            assert facts[key] != host[key], key
        # numpy looks for its data beside the file that its module names, which must be the
        # original.
        assert facts['file'] == numpy.linalg._umath_linalg.__file__, facts['file']
    for key in host:
        assert contexts[0].facts[key] != contexts[1].facts[key], key
    for context in contexts:
        call(lib.exti_ctx_close, context.ctx)
    assert numpy.linalg.inv(numpy.eye(3) * 2)[0, 0] == 0.5
    control()
    print('isolated')


main()
