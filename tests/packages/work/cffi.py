# debian: python3-cffi
# pypi: cffi
import cffi

ffi = cffi.FFI()
ffi.cdef("struct point { int x, y; }; double atof(const char *); void qsort(void *, size_t, size_t, int (*)(const void *, const void *));")
c = ffi.dlopen("libc.so.6")
assert c.atof(b"2.5") == 2.5


@ffi.callback("int(const void *, const void *)")
def compare(a, b):
    return ffi.cast("int *", a)[0] - ffi.cast("int *", b)[0]


numbers = ffi.new("int[]", [5, -1, 4])
c.qsort(numbers, 3, 4, compare)
assert list(numbers) == [-1, 4, 5]
point = ffi.new("struct point *", {"x": 3, "y": 4})
assert bytes(ffi.buffer(point))[:4] == b"\3\0\0\0"
