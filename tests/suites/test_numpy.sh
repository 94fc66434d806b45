#!/bin/bash
# numpy's own tests, in two contexts at once and in the interpreter itself.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/suites/lib.sh"

if ! has $system numpy pytest hypothesis; then
    echo "skip numpy: $system needs numpy, pytest and hypothesis" \
        "(packages python3-numpy, python3-pytest, python3-hypothesis)"
    exit 0
fi
v=$($system -c 'import numpy; print(numpy.__version__)')
at=$($system -c 'import os, numpy; print(os.path.dirname(numpy.__file__))')

# Free memory is the same for all contexts, and no test should use it up.
export NPY_AVAILABLE_MEM=1GB
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

suite() { # NAME FILE...
    local name=$1
    shift
    alike "$v-$name" $system pytest "$@" --deselect="$numba" --rootdir="$at" -m "$marks"
}
# LLVM ends the process if a second context sets its options.
numba=random/tests/test_extending.py::test_numba

marks='not slow'
# Half of the core files, with a quarter of the tests.
some='abc array_coercion array_interface casting_unittests conversion_utils cpu_features
defchararray einsum errstate function_base getlimits half hashtable indexing
item_selection longdouble memmap mem_policy nditer numerictypes overrides print
protocols records regression scalar_ctors scalarinherit shape_base ufunc
umath_complex unicode'
for part in fft linalg random; do
    suite $part "$at/$part"
done
if [ -n "$whole" ]; then
    suite core "$at/core"
else
    files=
    for name in $some; do
        files="$files $at/core/tests/test_$name.py"
    done
    # shellcheck disable=SC2086
    suite core $files
fi
