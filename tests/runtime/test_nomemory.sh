#!/bin/bash
# Where the interpreter gets no memory while a program is started, the program ends with an error of
# Python's, and not worse than in the interpreter itself.  EXTI_ALL=1: at each of 100 allocations.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

# The interpreter itself may die of a signal here, which a sanitizer reports.
if [ -n "${EXTI_REPORTS:-}" ]; then
    echo "skip no_memory: the interpreter's own crashes are reports of the sanitizer"
    exit 0
fi
$system -c 'import _testcapi; _testcapi.set_nomemory' 2>/dev/null ||
    { echo "skip no_memory: $system has no _testcapi.set_nomemory"; exit 0; }

# From the event AT_EVENT on, the allocation number AT_N fails.
mkdir start
cat >start/sitecustomize.py <<'END'
import _testcapi, os, sys
begun = []
at, n, fail = os.environ["AT_EVENT"], int(os.environ["AT_N"]), _testcapi.set_nomemory
def hook(event, args, at=at, n=n, fail=fail):
    if event == at and not begun and (event != "import" or args[0] == "runpy"):
        begun.append(True)
        fail(n, n + 1)
sys.addaudithook(hook)
END
echo 'print("whole")' >mod.py
$system -m compileall -q mod.py && cp __pycache__/mod.*.pyc code.pyc
numbers='0 1 2 3 4 5 6 7 8 9 10 12 16 24 40'
[ -z "${EXTI_ALL:-}" ] || numbers=$(seq 0 99)

# A context has allocated a few times more or less than the interpreter before it comes to the same place.
interpreter_dies_nearby() { # ARGS...
    local n=$AT_N AT_N
    export AT_N
    for AT_N in $((n - 2)) $((n - 1)) $n $((n + 1)) $((n + 2)); do
        $system "$@" >want 2>want.err </dev/null
        [ $? -lt 128 ] || return 0
    done
    return 1
}

# What is printed is whole, or the program says why not; it may die only if the interpreter does.
sane() { # NAME EVENT ARGS...
    local name=$1 n rc hits=0
    export PYTHONPATH=$tmp/start AT_EVENT=$2 AT_N
    shift 2
    for AT_N in $numbers; do
        timeout 600 $run --python $system "$@" >out 2>err </dev/null
        rc=$?
        [ $rc = 0 ] && [ "$(cat out)" = whole ] && continue
        hits=$((hits + 1))
        [ $rc = 1 ] && grep -qE 'MemoryError|Error:|without an exception' err && continue
        [ $rc -gt 128 ] && interpreter_dies_nearby "$@" && continue
        not_ok "$name" "allocation $AT_N: status $rc" "$(tail -n 5 out err)"
        return
    done
    unset PYTHONPATH AT_EVENT AT_N
    [ $hits -gt 0 ] && ok "$name" || not_ok "$name" "no allocation failed"
}
sane no_memory_for_code cpython.run_command -c 'print("whole")'
sane no_memory_for_a_module import -m mod
sane no_memory_for_a_script cpython.run_file mod.py
sane no_memory_for_bytecode cpython.run_file code.pyc
