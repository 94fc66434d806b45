# debian: libpython3-stdlib
import ctypes

libc = ctypes.CDLL("libc.so.6")
libc.strlen.restype, libc.strlen.argtypes = ctypes.c_size_t, [ctypes.c_char_p]
assert libc.strlen(b"isolated") == 8

compare_type = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int)
)
numbers = (ctypes.c_int * 8)(5, 3, 9, -2, 7, 0, 3, 1)
libc.qsort(numbers, len(numbers), 4, compare_type(lambda a, b: a[0] - b[0]))
assert list(numbers) == [-2, 0, 1, 3, 3, 5, 7, 9]

address = ctypes.addressof(ctypes.py_object.in_dll(ctypes.pythonapi, "PyExc_ValueError"))
assert ctypes.cast(address, ctypes.POINTER(ctypes.py_object))[0] is ValueError
ctypes.pythonapi.PyList_Size.argtypes = [ctypes.py_object]
assert ctypes.pythonapi.PyList_Size([1, 2, 3]) == 3
