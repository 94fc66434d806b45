#!/bin/bash
# Under valgrind stock libraries, which are built without a sanitizer, access only their own memory
# in each context.  EXTISOLATE names the script that runs the program under valgrind.
. "$(dirname "$0")/lib.sh"

cat >"$tmp/work.py" <<'END'
import ctypes, decimal, hashlib, json, sqlite3, ssl, threading
assert decimal.Decimal('0.1') * 3 == decimal.Decimal('0.3')
assert sqlite3.connect(':memory:').execute('select 6 * 7').fetchone() == (42,)
assert len(hashlib.sha256(b'x').digest()) == 32 and ssl.create_default_context()
thread = threading.Thread(target=lambda: json.loads('[1]'))
thread.start()
thread.join()
ctypes.pythonapi.Py_IncRef(ctypes.py_object(thread))
print('ok')
END
cat >"$tmp/arrays.py" <<'END'
import numpy
from lxml import etree
a = numpy.arange(2500.0).reshape(50, 50)
assert (a @ a.T).trace() == (a * a).sum()
assert etree.fromstring('<a><b c="1"/></a>').xpath('//b/@c') == ['1']
print('ok')
END
# The control: a read of freed memory in a context.
cat >"$tmp/freed.py" <<'END'
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
block = libc.malloc(ctypes.c_size_t(100))
libc.free(ctypes.c_void_p(block))
ctypes.string_at(block, 8)
print('ok')
END

# Reads no file that is then loaded itself: valgrind 3.19 may abort at that, as the Makefile says.
run="$run --closure=none"
for exe in $(pythons); do
    v=$(version "$exe")
    check "$v-standard_library" 0 $run --python "$exe" --contexts 2 "$tmp/work.py"
    if has "$exe" numpy lxml.etree; then
        check "$v-numpy_and_lxml" 0 $run --python "$exe" --contexts 2 "$tmp/arrays.py"
    else
        echo "skip $v-numpy_and_lxml: this interpreter lacks one of them"
    fi
    check "$v-freed_memory_is_noticed" 99 $run --python "$exe" --contexts 2 "$tmp/freed.py"
done
