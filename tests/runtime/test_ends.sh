#!/bin/bash
# Ends of contexts: each ends alone, as a process does, by os._exit, exit of C code, exec and abort.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

# said NAME STATUS OUT COMMAND...: it ends with STATUS and prints OUT, a line for each word, in any order.
said() {
    local name=$1 want=$2 out=$3 rc
    shift 3
    timeout 300 "$@" >said 2>err </dev/null
    rc=$?
    if [ $rc = "$want" ] && [ "$(sort said | xargs)" = "$(echo "$out" | xargs -n 1 | sort | xargs)" ]; then
        ok "$name"
    else
        not_ok "$name" "status $rc, not $want" "$(tail -n 20 said err)"
    fi
}
three="$run --python $system --contexts 3"

# ---- os._exit ----------------------------------------------------------------

# The others go on for a while after one has ended, and can do all that they could before.
cat >others.py <<'END'
import atexit, os, subprocess, sys, threading, time
import extisolate
me = extisolate.index
def wait_for(name):
    end = time.monotonic() + 120
    while not os.path.exists(name):
        assert time.monotonic() < end, name
        time.sleep(0.01)
def go_on():
    time.sleep(0.1)
    assert os.system("exit 3") == 3 << 8
    assert subprocess.run(["sh", "-c", "exit 4"]).returncode == 4
    pid = os.fork()
    if pid == 0:
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
    t = threading.Thread(target=print, args=(f"thread-{me}",))
    t.start()
    t.join()
    import json, sqlite3
    print(f"lives-{me}")
END
cat >underscore.py <<'END'
from others import *
atexit.register(lambda: print(f"atexit-{me}", flush=True))
print(f"buffered-{me}")
if me == 1:
    try:
        open("gone-" + sys.argv[1], "w").close()
        os._exit(7)
    finally:
        print("finally")
wait_for("gone-" + sys.argv[1])
go_on()
END
outlive='buffered-0 buffered-2 thread-0 thread-2 lives-0 lives-2 atexit-0 atexit-2'
for python in $(pythons); do
    v=$(version "$python")
    said "os_exit_ends_one_context_alone $v" 7 "$outlive" $run --python "$python" --contexts 3 \
        underscore.py "$v"
done

cat >all.py <<'END'
import os, extisolate
print("lost")
os._exit((0, 3, 4)[extisolate.index])
END
said all_may_end_so_and_the_first_failure_counts 3 '' $three all.py
said control_one_program_is_the_process 3 '' $run --python $system -c 'import os; print(1); os._exit(3)'

cat >thread.py <<'END'
from others import *
if me == 1:
    threading.Thread(target=os._exit, args=(6,)).start()
    try:
        for n in range(10**9):
            if n % 1000 == 0:
                time.sleep(0.001)
    finally:
        print("finally", flush=True)
time.sleep(0.5)
go_on()
END
said other_threads_stop 6 'thread-0 thread-2 lives-0 lives-2' $three thread.py

cat >atexit_ends.py <<'END'
from others import *
if me == 1:
    atexit.register(os._exit, 9)
    sys.exit(0)
time.sleep(0.5)
go_on()
END
said an_atexit_function_may_end_it 9 'thread-0 thread-2 lives-0 lives-2' $three atexit_ends.py

cat >locks.py <<'END'
from others import *
import fcntl
f = open("locked", "a")
if me == 1:
    fcntl.lockf(f, fcntl.LOCK_EX)
    open("has-lock", "w").close()
    wait_for("asks")
    os._exit(0)
wait_for("has-lock")
open("asks", "w").close()
fcntl.lockf(f, fcntl.LOCK_EX)
print(f"has-{me}")
fcntl.lockf(f, fcntl.LOCK_UN)
END
said record_locks_are_dropped 0 'has-0 has-2' $three locks.py

timeout 100 "${run% run}" run --python $system --contexts 2 --prove -c \
    'import os, extisolate; extisolate.index and os._exit(0)' >out 2>err
rc=$?
[ $rc = 1 ] && grep -q 'context 1.*cannot be proven' err && ok what_has_ended_so_is_not_proven ||
    not_ok what_has_ended_so_is_not_proven $rc "$(cat out err)"

# ---- signals -------------------------------------------------------------------

# A context that has ended handles nothing: SIGTERM, which it handled, ends the rest.
cat >handled.py <<'END'
from others import *
import signal
if me == 1:
    signal.signal(signal.SIGTERM, lambda *a: print("handled", flush=True))
    open("ends", "w").close()
    os._exit(0)
wait_for("ends")
time.sleep(0.3)
if me == 0:
    open("ready", "w").close()
time.sleep(600)
END
$three handled.py >out 2>err &
pid=$!
while [ ! -e ready ] && kill -0 $pid; do sleep 0.05; done
kill -TERM $pid
wait $pid
rc=$?
[ $rc = 143 ] && [ ! -s out ] && ok what_has_ended_handles_no_signals ||
    not_ok what_has_ended_handles_no_signals $rc "$(cat out err)"

# ---- C -------------------------------------------------------------------------

cc -shared -fPIC -o ends.so -x c - <<'END'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void last(void) { printf("handler\n"); }
static void *end(void *status) { _exit((int)(long)status); }
void add(void) { atexit(last); }
void leave(int status) { printf("buffered\n"); exit(status); }
void leave_quickly(int status) { quick_exit(status); }
void leave_on_a_thread(int status)
{
    pthread_t t;
    pthread_create(&t, 0, end, (void *)(long)status);
    pthread_join(t, 0);
}
void leave_and_return(int status)
{
    pthread_t t;
    pthread_create(&t, 0, end, (void *)(long)status);
    pthread_detach(t);
}
int slow;
static void wait(void) { slow = 1; usleep(300000); }
void add_slow(void) { atexit(wait); }
void end_thread(void) { pthread_exit(0); }
void fail(void) { abort(); }
END
cat >native.py <<'END'
from others import *
import ctypes
library = ctypes.CDLL("./ends.so")
if me == 1:
    library.add()
    getattr(library, sys.argv[1])(5)
    while True:
        time.sleep(0.01)    # no longer than until it is noticed
time.sleep(0.5)
print(f"lives-{me}")
END
said exit_of_native_code_runs_its_handlers 5 'lives-0 lives-2 buffered handler' $three native.py leave
said quick_exit_of_native_code 5 'lives-0 lives-2' $three native.py leave_quickly
said exit_on_a_native_thread 5 'lives-0 lives-2' $three native.py leave_on_a_thread
said exit_on_a_native_thread_stops_python 5 'lives-0 lives-2' $three native.py leave_and_return
# One thread is in its exit handlers, and the other waits for it in exit, with the GIL.
cat >second.py <<'END'
from others import *
import ctypes
if me == 1:
    library = ctypes.CDLL("./ends.so")
    library.add_slow()
    threading.Thread(target=library.leave, args=(3,)).start()
    while not ctypes.c_int.in_dll(library, "slow").value:
        time.sleep(0.001)
    ctypes.PyDLL("./ends.so").leave(4)
time.sleep(0.5)
print(f"lives-{me}")
END
said two_threads_exit 3 'lives-0 lives-2 buffered buffered' $three second.py
# Its status is lost.
cat >leaves.py <<'END'
from others import *
import ctypes
if me == 1:
    ctypes.CDLL("./ends.so").end_thread()
time.sleep(0.5)
print(f"lives-{me}")
END
said pthread_exit_on_the_main_thread 1 'lives-0 lives-2' $three leaves.py
# By libffi, which is no copy.
said exit_through_ctypes 5 'lives-0 lives-2' $three -c '
import ctypes, extisolate, time
if extisolate.index == 1:
    ctypes.CDLL(None)._exit(5)
time.sleep(0.5)
print(f"lives-{extisolate.index}")'

# ---- exec ----------------------------------------------------------------------

cat >execs.py <<'END'
from others import *
import signal
if me == 1:
    os.environ["NAME"] = "value"
    r, w = os.pipe()
    os.set_inheritable(w, True)
    try:
        os.execv("/nowhere", ["x"])
    except FileNotFoundError:
        pass
    print("lost")
    os.execvp("sh", ["sh", "-c", f'echo $NAME-$1; echo piped >&{w}; {sys.argv[1]}', "sh", "word"])
time.sleep(0.5)
go_on()
END
lived='thread-0 thread-2 lives-0 lives-2'
said exec_ends_with_the_programs_status 4 "$lived value-word" $three execs.py 'exit 4'
said exec_ends_with_128_and_the_signal 143 "$lived value-word" $three execs.py 'kill -TERM $$'
said control_exec_of_one_program_is_the_processs 0 same $run --python $system -c '
import os
os.execv("/bin/sh", ["sh", "-c", "[ $$ = %d ] && echo same" % os.getpid()])'

# ---- abort ---------------------------------------------------------------------

aborts() { # NAME CODE PATTERN...
    local name=$1 rc pattern
    { timeout 100 $three -c "
import ctypes, extisolate, os, time
if extisolate.index == 2:
    $2
time.sleep(60)" >out 2>err; } 2>/dev/null
    rc=$?
    shift 2
    for pattern in 'extisolate: context 2: abort' "$@"; do
        grep -q "$pattern" err || rc="$rc, without $pattern"
    done
    [ "$rc" = 134 ] && ok "$name" || not_ok "$name" "$rc" "$(cat out err)"
}
aborts abort_names_the_context 'os.abort()' libpython
aborts abort_of_native_code_names_the_context 'ctypes.CDLL("./ends.so").fail()' ends
aborts a_fatal_error_names_the_context \
    'ctypes.pythonapi.Py_FatalError(b"told")' 'Fatal Python error.*told' libpython
no_traces no_folder_is_left
