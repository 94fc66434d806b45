#!/bin/bash
# Closed contexts leave nothing behind, however many there were.  A context that cannot be unloaded
# stays mapped, and the report says why.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/cycles.bash"
cd "$tmp" || exit 1
arrays='import numpy
a = numpy.arange(2500.0).reshape(50, 50)
assert (a @ a.T).trace() == (a * a).sum()'

for exe in $(pythons); do
    v=$(version "$exe")
    cycles "$v-nothing_is_left" 256 10 30 "$exe" "$stdlib"
done
if has $system numpy; then
    cycles nothing_is_left_of_numpy 256 20 60 $system "$arrays"
    # OpenBLAS starts the threads when it is loaded.
    OPENBLAS_NUM_THREADS=2 cycles nothing_is_left_of_a_pool_of_threads 256 4 8 $system "$arrays"
    PYTHONMALLOC=malloc cycles nothing_is_left_of_memory_from_malloc 256 10 20 $system "$arrays"
    PYTHONDEVMODE=1 cycles nothing_is_left_of_memory_with_debug_hooks 256 10 20 $system "$arrays"
    # The control: CPython itself frees much less.
    if [ -n "$sanitized" ]; then
        echo "skip control_without_a_heap_it_grows: the sanitizer's memory grows too"
    else
        "$cycle" --no-heap 10 $system "$arrays" >out 2>err
        grown=$(awk '$2 == 4 { rss = $8 } $2 == 9 { print int(($8 - rss) / 5) }' out)
        [ "${grown:-0}" -gt 1000 ] &&
            ok "control_without_a_heap_it_grows ($grown KB in each cycle)" ||
            not_ok control_without_a_heap_it_grows "$(cat out err)"
    fi
else
    echo "skip nothing_is_left_of_numpy: $system has no numpy"
fi
if has $system lxml.etree; then
    cycles nothing_is_left_of_lxml 256 10 30 $system 'from lxml import etree
assert etree.fromstring("<a><b c=\"1\"/></a>").xpath("//b/@c") == ["1"]'
else
    echo "skip nothing_is_left_of_lxml: $system has no lxml"
fi

# libhdf5's finalisers read the values of its thread-specific keys.
if has $system h5py; then
    cycles nothing_is_left_of_h5py 256 4 8 $system 'import h5py
assert h5py.get_config()'
else
    echo "skip nothing_is_left_of_h5py: $system has no h5py"
fi

# ---- contexts that cannot be unloaded ------------------------------------------

# held NAME LEFT TEXT EXE CODE: the program and two contexts with CODE end with status 0.  Each
# context leaves LEFT (a pattern) files mapped, and TEXT, unless empty, is reported for each
# context.
held() {
    local name=$1 left=$2 text=$3 rc n
    shift 3
    timeout 1200 "$cycle" 2 "$@" >out 2>err </dev/null
    rc=$?
    n=$(grep -cE "^cycle [01] status 0 left ($left) " out)
    if [ $rc = 0 ] && [ "$n" = 2 ] &&
        { [ -z "$text" ] || [ "$(grep -c "^held: .*$text" err)" = 2 ]; }; then
        ok "$name"
    else
        not_ok "$name" "status $rc" "$(cat out err)"
    fi
}

# With this interval a thread releases the GIL only when it blocks.
blocks='import sys
sys.setswitchinterval(1000)'
running="thread [0-9]* '.*', which this has started, is still running"
for exe in $(pythons); do
    v=$(version "$exe")
    held "$v-sleeping_daemon_is_reported" '[1-9][0-9]*' "/libpython[^/]*: $running" \
        "$exe" "$blocks"'
import threading, time
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()'
    held "$v-daemon_that_waits_for_ever_is_reported" '[1-9][0-9]*' "$running" "$exe" "$blocks"'
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()'
    held "$v-daemon_in_a_system_call_is_reported" '[1-9][0-9]*' "$running" "$exe" "$blocks"'
import os, threading
r, w = os.pipe()
threading.Thread(target=os.read, args=(r, 1), daemon=True).start()'
    # The thread ends when it asks for the GIL again; from 3.14 on it hangs there.
    held "$v-spinning_daemon_does_no_harm" '[0-9]*' '' "$exe" '
import threading
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()'
    # A thread of the program that was in the context and has left it.
    held "$v-visitor_that_has_left_does_not_keep_the_context" 0 '' "$exe" '
import ctypes, os, threading
there = threading.Event()
callback = ctypes.CFUNCTYPE(None)(there.set)
ctypes.CFUNCTYPE(None, ctypes.c_void_p)(int(os.environ["VISIT"]))(
    ctypes.cast(callback, ctypes.c_void_p))
there.wait()
ctypes.CFUNCTYPE(None)(int(os.environ["GONE"]))()'
    # A thread of the program that never leaves the context.
    STAY=1 held "$v-visitor_inside_is_reported" '[1-9][0-9]*' \
        "thread [0-9]* '.*' of the program is still in it" "$exe" "$blocks"'
import ctypes, os, threading
there, (r, w) = threading.Event(), os.pipe()
def stay():
    there.set()
    os.read(r, 1)
callback = ctypes.CFUNCTYPE(None)(stay)
ctypes.CFUNCTYPE(None, ctypes.c_void_p)(int(os.environ["VISIT"]))(
    ctypes.cast(callback, ctypes.c_void_p))
there.wait()'
done
if has $system numpy; then
    # When the context ends the thread is most likely in a product, which does not need the GIL.
    held daemon_in_a_product_does_no_harm '[0-9]*' '' $system '
import numpy, threading
a, started = numpy.ones((1000, 1000)), threading.Event()
def multiply():
    while True:
        started.set()
        a @ a
threading.Thread(target=multiply, daemon=True).start()
started.wait()'
else
    echo "skip daemon_in_a_product_does_no_harm: $system has no numpy"
fi
