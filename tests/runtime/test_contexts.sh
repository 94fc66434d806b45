#!/bin/bash
# Contexts of one process share no state, work at the same time, and end as the interpreter does.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

# ---- separate state ----------------------------------------------------------

cat >ids.py <<'END'
import sys, json, decimal, extisolate
import _json, _decimal
things = [list, dict, type, sys.modules, sys, json, decimal.Decimal, _json.make_scanner,
          _decimal.getcontext(), None, (), 1, ""]
with open("ids.%d" % extisolate.index, "w") as f:
    print(*map(id, things), file=f)
import os, time
def all_have(what):     # so that all contexts are alive at once
    open("%s.%d" % (what, extisolate.index), "w").close()
    while not all(os.path.exists("%s.%d" % (what, i)) for i in range(3)):
        time.sleep(0.01)
json.changed = extisolate.index
assert (extisolate.count, len(extisolate.name) > 0) == (3, True)
with open("names", "a") as f:
    f.write(extisolate.name + "\n")
all_have("changed")
assert json.changed == extisolate.index
all_have("looked")
END
check three_contexts_run 0 timeout 1200 $run --python $system --contexts 3 ids.py
if [ "$(cat ids.? | tr ' ' '\n' | sort -u | wc -l)" = 39 ]; then
    ok contexts_share_no_objects
else
    not_ok contexts_share_no_objects "$(cat ids.?)"
fi
[ "$(sort -u names | wc -l)" = 3 ] && ok names_differ || not_ok names_differ "$(cat names)"

cat >c_globals.py <<'END'
import extisolate, os, sys, time
def wait(name):
    while not os.path.exists(name):
        time.sleep(0.01)
try:
    from numpy._core import multiarray
except ImportError:
    from numpy.core import multiarray
import ctypes
flag = ctypes.c_int.in_dll(ctypes.pythonapi, "Py_NoSiteFlag")
if extisolate.index == 0:
    before = multiarray._set_madvise_hugepage(True)
    multiarray._set_madvise_hugepage(not before)
    flag.value = 77
    open("changed", "w").close()
    wait("checked")
else:
    was = multiarray._set_madvise_hugepage(True)
    multiarray._set_madvise_hugepage(was)
    wait("changed")
    assert multiarray._set_madvise_hugepage(True) == was, "numpy's C global is shared"
    assert flag.value == 0, "libpython's C global is shared"
    open("checked", "w").close()
END
if has $system numpy; then
    check contexts_share_no_c_globals 0 timeout 1200 $run --python $system --contexts 2 c_globals.py
else
    echo "skip contexts_share_no_c_globals: $system has no numpy"
fi

# ---- the libraries of a context ----------------------------------------------

cat >own.py <<'END'
import ctypes, extisolate, importlib.util, json, os, sys, _ssl, _decimal, sqlite3, _ctypes
original = [m.__file__ for m in sys.modules.values()
            if (getattr(m, "__file__", None) or "").endswith(".so")]
assert len(original) > 3
for name, m in list(sys.modules.items()):
    if getattr(m, "__file__", None) in original:
        assert m.__file__ == importlib.util.find_spec(name).origin, name
        assert m.__spec__.origin == m.__loader__.path == m.__file__
api = ctypes.pythonapi
here = ctypes.cast(api.Py_IncRef, ctypes.c_void_p).value
maps = [line.split() for line in open("/proc/self/maps")]
loaded = {m[5] for m in maps if len(m) > 5 and int(m[2], 16) == 0}  # code and long data may be mapped
assert not loaded & set(original), loaded & set(original)
def ends(m):
    return [int(x, 16) for x in m[0].split("-")]
def home(address):
    name = end = None
    for m in maps:
        low, high = ends(m)
        # The copy's file has not all variables; those lie behind what it has.
        name = m[5] if len(m) > 5 else name if low == end else None
        end = high
        if low <= address < high:
            return name
mine = home(id(list))
assert "libpython" in mine, mine
assert "/%d/" % extisolate.index in mine, mine
# The interpreter's type objects are in the same copy.
address = lambda name: ctypes.addressof(ctypes.c_char.in_dll(api, name))
assert address("PyList_Type") == id(list)
places = [ends(m) for m in maps if m[5:] == [mine]]
assert min(places)[0] <= here < max(places)[1]
assert ctypes.CDLL(None).getpid() == os.getpid()
api.PyLong_FromLong.restype = ctypes.py_object
assert api.PyLong_FromLong(12345) == 12345
# A library opened with RTLD_GLOBAL is visible only in its context.
ctypes.CDLL(sqlite3.dbapi2.sqlite_version and _decimal.__file__, ctypes.RTLD_GLOBAL)
try:
    ctypes.CDLL("libnosuch.so.9")
except OSError as e:
    assert "libnosuch.so.9" in str(e), e
else:
    raise AssertionError
END
check pythonapi_is_the_contexts_own 0 $run --python $system --contexts 2 own.py
check pythonapi_is_the_contexts_own_when_renamed 0 $run --rename --python $system --contexts 2 \
    own.py

modules='json ssl sqlite3 decimal ctypes hashlib zlib bz2 lzma datetime array struct pickle socket'
for m in numpy lxml.etree; do
    has $system $m && modules="$modules $m" || echo "skip at_once_$m: $system has no $m"
done
cat >busy.py <<'END'
import importlib, sys, threading, time
for name in sys.argv[1:]:
    importlib.import_module(name)
import json, sqlite3, decimal, ctypes, hashlib, ssl, zlib
end = time.time() + 2
def work():
    n = 0
    while time.time() < end:
        n += 1
        assert json.loads(json.dumps({"a": [1.5, None, "x" * n]}))["a"][0] == 1.5
        db = sqlite3.connect(":memory:")
        db.execute("create table t(x)")
        db.executemany("insert into t values(?)", [(i,) for i in range(50)])
        assert db.execute("select sum(x) from t").fetchone() == (1225,)
        with decimal.localcontext() as c:
            c.prec = 30 + n % 5
            assert str(decimal.Decimal(1) / 3).startswith("0.3333")
        assert hashlib.sha256(b"x" * n).digest() != hashlib.sha256(b"y").digest()
        ssl.create_default_context()
        assert zlib.decompress(zlib.compress(b"z" * n)) == b"z" * n
        cb = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1)
        assert cb(n) == n + 1
        if "numpy" in sys.modules:
            import numpy as np
            a = np.arange(2500.0).reshape(50, 50)
            assert np.allclose(a @ np.eye(50), a)
            assert np.searchsorted(np.arange(100), 42) == 42
            np.linalg.inv(np.eye(20) * 2)
        if "lxml.etree" in sys.modules:
            from lxml import etree
            assert etree.fromstring("<a><b/></a>").xpath("count(//b)") == 1.0
            try:
                etree.fromstring("<a>")
            except etree.XMLSyntaxError:
                pass
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
END
# shellcheck disable=SC2086
check modules_work_at_once 0 $run --python $system --contexts 2 busy.py $modules
# shellcheck disable=SC2086
check modules_work_at_once_renamed 0 $run --rename --python $system --contexts 2 busy.py $modules
# shellcheck disable=SC2086
# Programs begin as processors are free, but not only then.
mkdir begun
check contexts_that_wait_busily_for_each_other_all_begin 0 timeout 600 $run --python $system \
    --contexts $(($(nproc) + 4)) -c 'import extisolate, os
open("begun/%d" % extisolate.index, "w").close()
while len(os.listdir("begun")) < extisolate.count: pass'
check four_contexts_at_once 0 $run --python $system --contexts 4 busy.py $modules

for exe in $(pythons); do
    v=$(version "$exe")
    # From 3.13 on a key's destructor sets the key again, up to the thread's very end.
    if [ "$sanitizer" = t ] && "$exe" -c 'import sys; sys.exit(sys.version_info < (3, 13))'; then
        echo "skip versions-$v: it uses locks after the thread sanitizer has left the thread"
        continue
    fi
    want=$(for m in json ssl sqlite3 ctypes decimal; do has "$exe" $m && echo $m; done)
    missing=$(for m in json ssl sqlite3 ctypes decimal; do has "$exe" $m || echo $m; done)
    [ -z "$missing" ] || echo "skip versions-$v-of-some: it has no $(echo $missing)"
    cat >versions.py <<END
import $(echo $want | tr ' ' ,), sys, extisolate, threading, asyncio, subprocess
assert "%d.%d.%d" % sys.version_info[:3] == "$v"
async def f():
    await asyncio.sleep(0.01)
    return 5
assert asyncio.run(f()) == 5
assert subprocess.run([sys.executable, "-c", "print(7)"], stdout=subprocess.PIPE).stdout == b"7\n"
assert "ctypes" not in sys.modules or ctypes.pythonapi.Py_IsInitialized() == 1
END
    check "versions-$v" 0 $run --python "$exe" --contexts 2 --prove versions.py
    check "versions-$v-renamed" 0 $run --rename --python "$exe" --contexts 2 --prove versions.py
done

cat >children.py <<'END'
import concurrent.futures as cf, multiprocessing as mp, hashlib, sys
def f(x):
    return hashlib.sha256(b"x" * x).hexdigest()
if __name__ == "__main__":
    for how in sys.argv[1:]:
        with mp.get_context(how).Pool(2) as p:
            assert p.map(f, range(5)) == list(map(f, range(5))), how
        with cf.ProcessPoolExecutor(2, mp_context=mp.get_context(how)) as p:
            assert list(p.map(f, range(5))) == list(map(f, range(5))), how
END
ways="fork spawn forkserver"
if [ "$sanitizer" = a ]; then
    ways="spawn forkserver"
    echo "skip forked_pools_of_two_contexts: the address sanitizer's allocator may be locked in a forked child"
fi
if why=$($system -c 'import multiprocessing; multiprocessing.Lock()' 2>&1); then
    check children_of_two_contexts 0 timeout 300 $run --python $system --contexts 2 children.py $ways
else
    echo "skip children_of_two_contexts: $system has no semaphores here: ${why##*$'\n'}"
fi

# A forked child has only the context that forked, and ends as a process does.
cat >forked.py <<'END'
import extisolate, os, subprocess, sys, threading, time, warnings
warnings.simplefilter("ignore")
# No other thread may load anything during the fork.
open("up.%d" % extisolate.index, "w").close()
while not os.path.exists("up.%d" % (1 - extisolate.index)):
    time.sleep(0.01)
pid = os.fork()
if pid == 0:
    import _decimal
    alone = len(os.listdir("/proc/self/task")) == 1 and threading.active_count() == 1
    sys.exit(7 if alone and _decimal.Decimal(2) ** 2 == 4 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
assert subprocess.run([sys.executable, "-c", "raise SystemExit(3)"]).returncode == 3
assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", "raise SystemExit(4)"]) == 4
END
check forked_child_of_two_contexts 0 timeout 1200 $run --python $system --contexts 2 forked.py

# A module's thread-local variables fill the static TLS block.  The error names a remedy that works.
cat >tls.c <<'C'
__thread char block[1024] __attribute__((tls_model("initial-exec")));
int Py_IsInitialized(void);
int fill(void);
int fill(void) { return Py_IsInitialized() && ++block[0] == 1; }
C
cat >tls.py <<'END'
import ctypes, os, extisolate
try:
    print("fits", ctypes.CDLL(os.path.abspath("tls.so")).fill(), flush=True)
except OSError as e:
    assert "static TLS block" in str(e), e
    print("full", str(e).split("GLIBC_TUNABLES=")[1].split()[0], flush=True)
END
cc -shared -fPIC -o tls.so tls.c
$run --python $system --contexts 3 tls.py >out 2>err
value=$(sed -n 's/^full //p' out | sort -u)
if [ "$(grep -cx 'fits 1' out)" = 1 ] && [ "$(grep -c '^full ' out)" = 2 ] && [ -n "$value" ]; then
    ok full_static_tls_is_explained
else
    not_ok full_static_tls_is_explained "$(cat out err)"
fi
env GLIBC_TUNABLES="$value" $run --python $system --contexts 3 tls.py >out 2>err
if [ "$(grep -cx 'fits 1' out)" = 3 ] && [ "$(wc -l <out)" = 3 ]; then
    ok the_value_in_the_error_makes_room
else
    not_ok the_value_in_the_error_makes_room "$value" "$(cat out err)"
fi

# The host has a libpython in its global scope.
libpython=$($system -c 'import sysconfig as s, os
print(os.path.join(s.get_config_var("LIBDIR"), s.get_config_var("INSTSONAME")))')
if [ -f "$libpython" ]; then
    # The preloaded library is mapped too, so that own.py could find it in place of the copy.
    check host_with_a_libpython 0 env LD_PRELOAD="$libpython" $run --python $system --contexts 2 \
        own.py
    LD_PRELOAD="$libpython" $run --python $system --contexts 2 --prove busy.py >out 2>err
    rc=$?
    if [ $rc = 0 ] && [ "$(awk '$4 == 0 && $2 > 5' err | wc -l)" = 2 ]; then
        ok host_with_a_libpython_interposes_nothing
    else
        not_ok host_with_a_libpython_interposes_nothing "status $rc" "$(head -20 err)"
    fi
else
    echo "skip host_with_a_libpython: $libpython is not there"
fi

# ---- proof -------------------------------------------------------------------

# shellcheck disable=SC2086
$run --python $system --contexts 2 --prove busy.py $modules >out 2>err
rc=$?
if [ $rc = 0 ] && [ "$(awk '$4 == 0 && $2 > 5 && $3 > 1000' err | wc -l)" = 2 ]; then
    ok proof_is_clean
else
    not_ok proof_is_clean "status $rc" "$(head -40 err)"
fi
$run --python $system --contexts 2 --prove --json -c 'import json' >out 2>err
if [ "$(jq -r '[.[] | .index, .status, .proof.leaks] | @csv' out 2>/dev/null ||
    $system -c 'import json; print(*[x for r in json.load(open("out"))
        for x in (r["index"], r["status"], r["proof"]["leaks"])], sep=",")')" = 0,0,0,1,0,0 ]; then
    ok proof_as_json
else
    not_ok proof_as_json "$(cat out err)"
fi

# A module's slot for a function of libpython gets the address of another context's.
cat >leak.c <<'C'
void Py_IncRef(void *);
void *slot = (void *)Py_IncRef, *second = (void *)Py_IncRef;
C
cat >leak.py <<'END'
import ctypes, extisolate, os, time
library = ctypes.CDLL(os.path.abspath("leak.so"))
slot, second = (ctypes.c_void_p.in_dll(library, name) for name in ("slot", "second"))
with open("part.%d" % extisolate.index, "w") as f:
    f.write(str(slot.value))
os.rename("part.%d" % extisolate.index, "slot.%d" % extisolate.index)
while not os.path.exists("slot.%d" % (1 - extisolate.index)):
    time.sleep(0.01)
if extisolate.index == 0:
    slot.value = second.value = int(open("slot.1").read())
END
${CC:-cc} -shared -fPIC -o leak.so leak.c
timeout 1200 $run --python $system --contexts 2 --prove leak.py >out 2>err
rc=$?
if [ $rc = 1 ] && [ "$(awk '$1 ~ /^[01]$/ && NF == 5 { print $1, $4 }' err | sort)" = $'0 2\n1 0' ] &&
    [ "$(grep -c '0/leak\..*: its reference to Py_IncRef was captured by .*/1/libpython' err)" = 2 ]; then
    ok leaks_are_named_by_the_proof
else
    not_ok leaks_are_named_by_the_proof "status $rc" "$(cat out err)"
fi

# What the program does to threading, or in a forked child, does not keep its context from being proven.
for code in 'import threading; threading._shutdown = lambda: 1 / 0' 'import os
if os.fork() == 0:
    raise SystemExit(0)
os.wait()'; do
    $run --python $system --prove -c "$code" >out 2>err
    rc=$?
    proven=$(awk '$1 == 0 && NF == 5 && $4 == 0' err | wc -l)
    [ $rc = 0 ] && [ "$proven" = 1 ] || break
done
[ $rc = 0 ] && [ "$proven" = 1 ] && ok proof_in_spite_of_the_program ||
    not_ok proof_in_spite_of_the_program "$code: status $rc" "$(cat out err)"

# ---- the end of contexts -----------------------------------------------------

status_of() { # NAME WANT ARGS...
    local name=$1 want=$2 rc
    shift 2
    "$@" >out 2>err </dev/null
    rc=$?
    [ $rc = "$want" ] && ok "$name" || not_ok "$name" "status $rc, not $want" "$(tail -20 err)"
}
by_index='import sys, extisolate; sys.exit([0, 0, 7, 5][extisolate.index])'
status_of first_failing_context_gives_the_status 7 $run --contexts 4 -c "$by_index"
status_of message_exit_is_1 1 $run --contexts 2 -c 'import sys; sys.exit("why")'
[ "$(cat err)" = $'why\nwhy' ] && ok exit_message || not_ok exit_message "$(cat err)"
status_of interrupt_is_130 130 $run -c 'raise KeyboardInterrupt'

cat >fails.py <<'END'
import extisolate
def inner(n):
    if n == 0:
        raise ValueError("from context %d" % extisolate.index)
    inner(n - 1)
inner(40)
END
status_of uncaught_exception_is_1 1 $run --contexts 8 fails.py
cat >whole.py <<'END'
import re, sys
text = open("err").read()
parts = re.split(r"^context (\d+):\n", text, flags=re.M)
assert parts[0] == "", parts[0]
assert sorted(map(int, parts[1::2])) == list(range(8))
for n, body in zip(parts[1::2], parts[2::2]):
    assert body.startswith("Traceback (most recent call last):\n"), body
    assert body.endswith("ValueError: from context %s\n" % n), body
END
$system whole.py && ok tracebacks_are_whole_and_numbered ||
    not_ok tracebacks_are_whole_and_numbered "$(cat err)"

mkdir dirs
echo a file >dirs/1
$run --python $system --contexts 3 --dir dirs \
    -c 'import extisolate; print("ok", extisolate.index)' >out 2>err
rc=$?
if [ $rc = 1 ] && [ "$(sort out)" = $'ok 0\nok 2' ] && grep -q 'context 1.*dirs/1' err; then
    ok other_contexts_run_if_one_cannot_start
else
    not_ok other_contexts_run_if_one_cannot_start "status $rc" "$(cat out err)"
fi
PYTHONHOME=/nowhere $run --python $system --contexts 2 -c 'print(1)' >out 2>err
rc=$?
if [ $rc = 1 ] && [ ! -s out ] &&
    [ "$(grep -c 'context [01]: CPython .* did not start' err)" = 2 ]; then
    ok start_failure_is_an_error_of_each_context
else
    not_ok start_failure_is_an_error_of_each_context "status $rc" "$(cat out err)"
fi

cat >keys.c <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
__attribute__((constructor)) static void use_up(void)
{
    pthread_key_t key;
    while (strcmp(program_invocation_short_name, "extisolate") == 0 &&
           pthread_key_create(&key, 0) == 0)
        continue;
}
END
if ${CC:-cc} -shared -fPIC -o keys.so keys.c 2>err; then
    LD_PRELOAD=$tmp/keys.so $run --python $system --contexts 2 -c 'print(1)' >out 2>err
    rc=$?
    if [ $rc = 1 ] && [ ! -s out ] &&
        [ "$(grep -c 'context [01]: .* keys of the process are in use' err)" = 2 ]; then
        ok no_key_left_is_an_error
    else
        not_ok no_key_left_is_an_error "status $rc" "$(cat out err)"
    fi
else
    echo "skip no_key_left_is_an_error: $(head -1 err)"
fi

# Deep recursion in extensions works as in the main thread of a stock process, and 256 MB are enough.
cat >stack.py <<'END'
import ctypes
libc = ctypes.CDLL(None)
libc.pthread_self.restype = ctypes.c_void_p
attr, size = ctypes.create_string_buffer(256), ctypes.c_size_t()
assert libc.pthread_getattr_np(ctypes.c_void_p(libc.pthread_self()), attr) == 0
assert libc.pthread_attr_getstacksize(attr, ctypes.byref(size)) == 0
libc.pthread_attr_destroy(attr)
print(size.value >> 20)
END
sizes=
for kb in 1024 65536 1048576; do
    sizes="$sizes $(ulimit -s $kb && $run --python $system stack.py 2>&1)"
done
[ "$sanitizer" = t ] || # which sets a limit where there is none
    [ "$(ulimit -s unlimited && $run --python $system stack.py 2>&1)" = 8 ] || sizes="$sizes, not 8"
[ "$sizes" = ' 8 64 256' ] && ok a_contexts_stack_follows_the_limit ||
    not_ok a_contexts_stack_follows_the_limit "$sizes"

cat >daemons.py <<'END'
import threading, time, sys
def sleep():
    while True: time.sleep(0.001)
def spin():
    n = 0
    while True: n += 1
def blocked():
    threading.Event().wait()
for f in (sleep, spin, blocked) * 3:
    threading.Thread(target=f, daemon=True).start()
time.sleep(0.2)
END
for i in 1 2 3 4 5; do
    timeout 1200 $run --python $system --contexts 3 daemons.py >out 2>err
    rc=$?
    [ $rc = 0 ] || break
done
[ $rc = 0 ] && ok daemon_threads_do_not_disturb_the_end ||
    not_ok daemon_threads_do_not_disturb_the_end "status $rc" "$(cat err)"

# ---- the process ---------------------------------------------------------------

check no_child_of_the_library_is_seen 0 $run --python $system -c 'import os
try:
    os.wait()
except ChildProcessError:
    pass
else:
    raise AssertionError'

# Each context has to be at its program: what a signal interrupts before that is the start of an interpreter.
for sig in INT TERM HUP KILL; do
    rm -f started.*
    # A background job of a script ignores SIGINT, and the program would inherit that.
    $system -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])' $run --python $system --contexts 2 -c \
        'import extisolate, json, ssl, time; open(f"started.{extisolate.index}", "w"); time.sleep(600)' >out 2>err &
    pid=$!
    while [ ! -e started.0 -o ! -e started.1 ] && kill -0 $pid 2>/dev/null; do sleep 0.05; done
    kill -$sig $pid
    wait $pid 2>/dev/null
    rc=$?
    want=$((128 + $(kill -l $sig)))
    [ $rc = $want ] && ok "SIG$sig-ends-it" || not_ok "SIG$sig-ends-it" "status $rc, not $want" "$(cat err)"
    no_traces "SIG$sig-leaves-nothing"
done
$run --python $system --contexts 2 -c 'import json, os; os._exit(3)' >out 2>err
rc=$?
[ $rc = 3 ] && ok _exit_ends_the_process || not_ok _exit_ends_the_process "status $rc"
no_traces _exit_leaves_nothing
$run --python $system --contexts 2 -c 'import ssl, numpy' >out 2>err
[ -z "$(find "$tmp" -maxdepth 1 -name 'extisolate-*')" ] && ok end_leaves_nothing ||
    not_ok end_leaves_nothing
# Other files get the descriptors' numbers.  In one context, as another one may be reading a file.
check closed_descriptors_leave_the_copies 0 $run --python $system -c 'import os, time
os.closerange(3, 1024)
others = [os.open(os.devnull, os.O_RDWR) for _ in range(4)]
time.sleep(0.5)
import _json, ssl, numpy'
no_traces closed_descriptors_leave_nothing
out=$(timeout 1200 $run --python $system -c 'import subprocess
subprocess.Popen(["sleep", "3"]); print("done")')
[ "$out" = 'done' ] && ok output_ends_with_the_program || not_ok output_ends_with_the_program "$out"

# ---- directories and environments --------------------------------------------

rm -rf dirs
prog='import ssl, extisolate; print("ok", extisolate.name)'
$run --python $system --contexts 2 --dir dirs -c "$prog" >one 2>err1
stat -c '%i %n' dirs/*/* | sort >copies1
$run --python $system --contexts 2 --dir dirs -c "$prog" >two 2>err2
stat -c '%i %n' dirs/*/* | grep -v manifest | sort >copies2
if [ "$(sort one)" = "$(sort two)" ] && [ "$(wc -l <one)" = 2 ] &&
    [ "$(grep -v manifest copies1)" = "$(cat copies2)" ]; then
    ok kept_copies_are_used_again
else
    not_ok kept_copies_are_used_again "$(diff copies1 copies2)" "$(cat err1 err2)"
fi
# shellcheck disable=SC2086
status_of kept_copies_verify 0 ${run% run} verify dirs

if $system -m venv venv >out 2>&1; then
    echo 'here = "venv"' >"$(echo venv/lib/python3*/site-packages)/only_here.py"
    cat >venv.py <<'END'
import only_here, os, sys, ssl
assert sys.prefix == os.path.abspath("venv") != sys.base_prefix, sys.prefix
assert sys.executable == os.path.abspath("venv/bin/python"), sys.executable
assert only_here.__file__.startswith(sys.prefix)
END
    check venv 0 $run --python venv/bin/python --contexts 2 venv.py
    check venv_on_PATH 0 env PATH="$tmp/venv/bin:$PATH" $run --contexts 2 -c "$(cat venv.py | sed \
        's,"venv/bin/python"),"venv/bin/python3"),')"
else
    echo "skip venv: $(tail -1 out)"
fi
check contexts_divide_the_processors_for_blas 0 $run --contexts $(($(nproc) + 1)) -c 'import os
assert os.environ["OPENBLAS_NUM_THREADS"] == os.environ["OMP_NUM_THREADS"] == "1"'
check the_users_number_of_blas_threads_is_kept 0 env OMP_NUM_THREADS=3 \
    $run --contexts 2 -c 'import os
assert os.environ["OMP_NUM_THREADS"] == "3"'

cat >environment.py <<'END'
import ctypes, os, subprocess, sys, threading, time
try:
    from extisolate import count, index
except ImportError:
    index, count = 0, 1
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
def child():
    return subprocess.run("echo $EXTI_X $EXTI_Y", shell=True, stdout=subprocess.PIPE).stdout.decode()
mine = "%d x%d\n" % (index, index)
assert "EXTI_X" not in os.environ and child() == "\n"
os.environ["EXTI_X"] = str(index)
os.putenv("EXTI_Y", "x%d" % index)
open("env-set-%d" % index, "w").close()
while not all(os.path.exists("env-set-%d" % i) for i in range(count)):
    time.sleep(.01)
got = []
t = threading.Thread(target=lambda: got.append(libc.getenv(b"EXTI_X")))
t.start(), t.join()
assert got == [libc.getenv(b"EXTI_X")] == [b"%d" % index], got
assert child() == os.popen("echo $EXTI_X $EXTI_Y").read() == mine, (child(), mine)
assert os.system("test $EXTI_X = %d" % index) == 0
pid = os.fork()
if pid == 0:
    os.execlp("sh", "sh", "-c", "test $EXTI_X$EXTI_Y = %dx%d" % (index, index))
assert os.waitpid(pid, 0)[1] == 0
os.unsetenv("EXTI_Y")
del os.environ["EXTI_X"]
assert child() == "\n" and libc.getenv(b"EXTI_X") is None
END
check environment_by_itself 0 $system environment.py
rm -f env-set-*
check each_context_has_an_environment_of_its_own 0 $run --contexts 3 environment.py

cat >speak.py <<'END'
import locale, os, sys, threading, time
try:
    from extisolate import count, index
except ImportError:
    index, count = int(sys.argv[1]), 1
name, told = [("de_DE.UTF-8", "1.234,5 Mittwoch"), ("C.UTF-8", "1234.5 Wednesday")][index % 2]
assert locale.setlocale(locale.LC_ALL, name) == name == locale.setlocale(locale.LC_ALL)
open("spoke-%d" % index, "w").close()
while not all(os.path.exists("spoke-%d" % i) for i in range(count)):
    time.sleep(.01)
got = []
def tell():
    got.append(locale.format_string("%g", 1234.5, grouping=True) + time.strftime(" %A", (2000, 3, 1) + (0, 0, 0, 2, 61, 0)))
t = threading.Thread(target=tell)
t.start(), t.join(), tell()
assert got == [told, told], got
assert float("2.5") == 2.5 and "%.1f" % 2.5 == "2.5"
END
if localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 2>/dev/null; then
    export LOCPATH=$tmp
    check locale_by_itself 0 $system speak.py 0
    check another_locale_by_itself 0 $system speak.py 1
    rm -f spoke-*
    check each_context_has_a_locale_of_its_own 0 $run --contexts 3 speak.py
    unset LOCPATH
else
    echo "skip each_context_has_a_locale_of_its_own: no localedef, or not its sources"
fi

cat >zones.py <<'END'
import os, sys, time
try:
    from extisolate import count, index
except ImportError:
    index, count = int(sys.argv[1]), 1
tz = ["Europe/Berlin", "America/New_York", "<+1030>-10:30"][index]
os.environ["TZ"] = tz
time.tzset()
open("zone-%d" % index, "w").close()
while not all(os.path.exists("zone-%d" % i) for i in range(count)):
    time.sleep(.01)
h = []
for t in range(-2208988800, 4102444800, 7654321):
    tm = time.localtime(t)
    h.append((tuple(tm), tm.tm_zone, tm.tm_gmtoff, time.ctime(t), time.strftime("%c %Z %z", tm)))
    assert time.mktime(tm) == t, (t, tm)
h.append((time.tzname, time.timezone, time.daylight, time.altzone))
h.append(time.strftime("%Z", (2000, 7, 1) + (0, 0, 0, 5, 183, 1)))
told = "zone-told-%d" % index
if count == 1:
    open(told, "w").write(repr(h))
else:
    assert open(told).read() == repr(h)
END
for i in 0 1 2; do
    check "time_zone_${i}_by_itself" 0 $system zones.py $i
done
rm -f zone-[0-9]
check each_context_has_a_time_zone_of_its_own 0 $run --contexts 3 zones.py

# ---- refused commands --------------------------------------------------------

refused() { # NAME STATUS TEXT COMMAND...
    local name=$1 want=$2 text=$3 rc
    shift 3
    "$@" >out 2>err
    rc=$?
    if [ $rc = "$want" ] && grep -q -- "$text" err && [ ! -s out ]; then
        ok "$name"
    else
        not_ok "$name" "status $rc, not $want" "$(cat out err)"
    fi
}
refused no_program 2 'nothing to run' $run
refused no_such_script 2 'nosuch.py' $run nosuch.py
refused standard_input 2 'standard input' $run -
refused no_count 2 "not 'x'" $run --contexts x -c 1
refused zero_contexts 2 "not '0'" $run --contexts 0 -c 1
refused json_without_proof 2 'prove' $run --json -c 1
refused no_such_python 1 '/no/such/python' $run --python /no/such/python -c 1
refused no_such_python_says_what_would_do 1 '^  --python takes the path of a CPython, 3.9 or later$' \
    $run --python /no/such/python -c 1
refused not_a_python 1 'did not describe itself' $run --python /bin/echo -c 1
refused endless_answer 1 'did not describe itself' $run --python /usr/bin/yes -c 1
for old in "${HOME:-}"/.pyenv/versions/3.[678].*/bin/python3; do
    [ -x "$old" ] && refused "too_old_$(version "$old")" 1 \
        "CPython $(version "$old"); contexts need 3.9 or later" $run --python "$old" -c 1
done
minor=$($system -c 'import sys; print(sys.version_info[1])')
# Interpreters that say something else of themselves: of their library, and of their minor version.
says() { # FILE KEY VALUE
    cat >"$1" <<END
#!/bin/sh
$system "\$@" | sed -z 's#^$2=.*#$2=$3#'
END
    chmod +x "$1"
}
echo 'int nothing;' | cc -shared -fPIC -o nothing.so -x c -
says other_library.sh libpython "$tmp/nothing.so"
refused a_libpython_without_the_api 1 'context 0: .*Py' $run --python ./other_library.sh -c 1
says other_minor.sh minor $((minor == 9 ? 10 : 9))
refused a_libpython_of_another_layout 1 'the build is not a stock one' $run --python ./other_minor.sh -c 1
says static.sh libpython ''
refused no_shared_libpython 1 "package libpython3.$minor, .*--enable-shared" $run --python ./static.sh -c 1
# nixpkgs' pythons are wrapped, and what `site` runs tells them who they are.
$system -I -m venv --without-pip wrapped
echo 'import os, sys; sys.executable = os.environ.get("NIX_PYTHONEXECUTABLE", sys.executable)' \
    >"$(echo wrapped/lib/*/site-packages)/wrapped.pth"
ln -s python wrapped/bin/wrapper
says_executable() { env "$1" $run --python "$tmp/wrapped/bin/python" -c 'import sys; print(sys.executable)'; }
[ "$(says_executable "NIX_PYTHONEXECUTABLE=$tmp/wrapped/bin/wrapper")" = "$tmp/wrapped/bin/wrapper" ] &&
    [ "$(says_executable A=1)" = "$tmp/wrapped/bin/python" ] && ok wrapped_python || not_ok wrapped_python
for setting in PYTHONMALLOC=nonsense PYTHONUTF8=nonsense PYTHONHASHSEED=nonsense; do
    refused "$setting" 1 "context 0: CPython .* did not start: .*${setting%=*}" \
        env $setting $run --python $system -c 1
done
status_of help_is_0 0 $run --help
