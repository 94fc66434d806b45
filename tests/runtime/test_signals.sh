#!/bin/bash
# Signals of contexts: each has handlers and timers of its own, as a process has, and ends by a signal as
# the interpreter does.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

if [ "$sanitizer" = t ]; then
    echo "skip signals: the thread sanitizer delays signals to a forked child"
    exit
fi

# ---- handlers ----------------------------------------------------------------

cc -shared -fPIC -o sig.so -x c - <<'END'
#include <signal.h>
static volatile int got;
static void note(int sig) { got = sig; }
int set(int sig)
{
    struct sigaction a = {.sa_handler = note};
    return sigaction(sig, &a, 0);
}
int set_simply(int sig) { return signal(sig, note) == SIG_ERR ? -1 : 0; }
int last(void) { return got; }
END
cat >handlers.py <<'END'
import ctypes, extisolate, faulthandler, os, re, signal, subprocess, tempfile, time
got = []
for sig in signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGRTMIN:
    signal.signal(sig, lambda s, f: got.append(s))
    assert signal.getsignal(sig) is not signal.SIG_DFL
    os.kill(os.getpid(), sig)
    signal.raise_signal(sig)
    signal.pthread_kill(__import__("threading").get_ident(), sig)
    assert got == [sig] * 3, got
    got.clear()
# Native code has them as well.
library = ctypes.CDLL("./sig.so")
for f in library.set, library.set_simply:
    for sig in signal.SIGUSR2, signal.SIGHUP:
        assert f(sig) == 0
        os.kill(os.getpid(), sig)
        assert library.last() == sig
# Timers
signal.signal(signal.SIGALRM, lambda s, f: got.append(s))
signal.setitimer(signal.ITIMER_REAL, 0.05 * (1 + extisolate.index), 60)
begun = time.monotonic()
signal.pause()
while got != [signal.SIGALRM]:
    assert time.monotonic() < begun + 30, got
assert signal.getitimer(signal.ITIMER_REAL)[1] == 60
signal.alarm(0)
# Waiting
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)
assert signal.sigpending() == {signal.SIGUSR1}
assert signal.sigwait([signal.SIGUSR1]) == signal.SIGUSR1
with tempfile.TemporaryFile("w+") as f:
    faulthandler.register(signal.SIGUSR2, file=f)
    os.kill(os.getpid(), signal.SIGUSR2)
    f.seek(0)
    assert "most recent call first" in f.read()
END
for n in 1 3; do
    check "$n-contexts-have-handlers" 0 timeout 300 $run --python $system --contexts $n handlers.py
done
check faulthandler_from_the_environment 0 env PYTHONFAULTHANDLER=1 $run \
    --python $system --contexts 2 -c 'import faulthandler; assert faulthandler.is_enabled()'

cat >children.py <<'END'
import os, re, signal, subprocess
pipe = 1 << signal.SIGPIPE - 1
def child(**kw):
    out = subprocess.run(["cat", "/proc/self/status"], stdout=subprocess.PIPE, **kw).stdout.decode()
    return int(re.search(r"^SigIgn:\s*(\w+)", out, re.M).group(1), 16) & pipe
assert child() == 0
assert child(restore_signals=False) == pipe
assert child(preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL),
             restore_signals=False) == 0
pid = os.fork()
if pid == 0:
    signal.signal(signal.SIGUSR1, lambda *a: os._exit(4))
    os.kill(os.getpid(), signal.SIGUSR1)
    import time; time.sleep(600)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 4
pid = os.fork()
if pid == 0:
    os.kill(os.getpid(), signal.SIGTERM)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
r, w = os.pipe()
os.close(r)
try:
    os.write(w, b"x")
except BrokenPipeError:
    pass
END
check children_have_handlers_of_their_own 0 timeout 300 $run --python $system --contexts 2 children.py

# While one context runs a command, ^C is for the command and for the others.
cat >commands.py <<'END'
import extisolate, os, re, signal, subprocess, time
def ignored():
    status = open("/proc/self/status").read()
    return int(re.search(r"^SigIgn:\s*(\w+)", status, re.M).group(1), 16) & 1 << signal.SIGINT - 1
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)
if extisolate.index == 0:
    assert os.system("touch running; while [ ! -e done ]; do sleep 0.02; done; exit 3") == 3 << 8
    try:
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError
    except KeyboardInterrupt:
        pass
else:
    wait_for("running")
    assert not ignored()
    try:
        kill = subprocess.Popen(["kill", "-INT", str(os.getpid())]) # kept: __del__ ignores exceptions
        kill.wait()
        time.sleep(60)
        raise AssertionError
    except KeyboardInterrupt:
        open("done", "w").close()
END
check a_command_of_one_context_leaves_others_their_signals 0 timeout 100 $run --python $system \
    --contexts 2 commands.py

cat >waits.py <<'END'
import extisolate, os, subprocess, sys
def start(status):
    pid = os.fork()
    if pid == 0:
        os._exit(status)
    return pid
me = extisolate.index
for n in range(50):
    p = subprocess.Popen(["sh", "-c", "exit %d" % (me + 1)])    # it is waited for when it is deleted
    mine = {start(me + 1), p.pid,
            os.posix_spawn("/bin/sh", ["sh", "-c", "exit %d" % (me + 1)], os.environ)}
    for wait in os.wait, lambda: os.waitpid(-1, 0), lambda: os.wait3(0)[:2]:
        pid, status = wait()
        assert status == me + 1 << 8, (status, me)
        mine.remove(pid)
    try:
        os.wait()
        raise AssertionError
    except ChildProcessError:
        pass
END
check contexts_wait_for_their_own_children 0 timeout 100 $run --python $system --contexts 4 waits.py

# ---- ends ----------------------------------------------------------------------

# Starts a program, sends it signals once it has written N lines "ready", and prints what it wrote, sorted,
# and its status.
cat >drive.py <<'END'
import signal, subprocess, sys
signals, ready, *command = sys.argv[1:]
p = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
lines = []
for name in signals.split(","):
    for _ in range(int(ready)):
        line = p.stdout.readline()
        while line and line != "ready\n":
            lines.append(line)
            line = p.stdout.readline()
    p.send_signal(getattr(signal, name))
rest, _ = p.communicate(timeout=120)
print("".join(sorted(lines + rest.splitlines(True))), p.returncode, sep="")
END
cat >program.py <<'END'
import atexit, sys, time
atexit.register(lambda: sys.stdout.write("atexit\n"))
print("buffered")
try:
    print("ready", flush=True)
    time.sleep(600)
finally:
    print("finally")
END
ends() { # NAME SIGNALS CONTEXTS PROGRAM: as the interpreter, CONTEXTS times
    local n=$3 plain
    plain=$($system drive.py "$2" 1 $system "$4" 2>plain.err)
    $system drive.py "$2" "$n" $run --python $system --contexts "$n" "$4" >out 2>err
    for ((i = 0; i < n; i++)); do sed '$d' <<<"$plain"; done | sort | sed '/^$/d' >expected
    tail -n 1 <<<"$plain" >>expected
    if sed '/^$/d' out | cmp -s - expected &&
        [ "$(grep -c "^KeyboardInterrupt" err)" = $(($(grep -c "^KeyboardInterrupt" plain.err) * n)) ]; then
        ok "$1"
    else
        not_ok "$1" "$(cat out expected err)"
    fi
}
ends ctrl_c_of_one SIGINT 1 program.py
ends ctrl_c_of_three SIGINT 3 program.py
ends sigterm_of_three SIGTERM 3 program.py
cat >asyncio_program.py <<'END'
import asyncio, os, signal
async def main():
    stop = asyncio.Event()
    for sig in signal.SIGTERM, signal.SIGINT:
        asyncio.get_running_loop().add_signal_handler(sig, stop.set)
    print("ready", flush=True)
    await stop.wait()
    print("stopped")
asyncio.run(main())
END
ends asyncio_stops_by_sigterm SIGTERM 3 asyncio_program.py
ends asyncio_stops_by_ctrl_c SIGINT 3 asyncio_program.py
cat >patient.py <<'END'
import os, signal, time
n = 0
def stop(sig, frame):   # print is not reentrant
    global n
    n += 1
    os.write(1, b"asked %d\nready\n" % n)
signal.signal(signal.SIGINT, stop)
os.write(1, b"ready\n")
while n < 3:
    time.sleep(0.05)
END
ends a_handler_may_want_more_than_one SIGINT,SIGINT,SIGINT 2 patient.py

cat >one_handles.py <<'END'
import atexit, extisolate, signal, sys, time
me = extisolate.index
atexit.register(lambda: print(me, "atexit"))
done = []
if me == 0:
    signal.signal(signal.SIGTERM, lambda s, f: (done.append(s), print("0 handles it")))
end = time.monotonic() + 600
try:
    print("ready", flush=True)
    while not done and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)
finally:
    print(me, "finally")
END
said=$($system drive.py SIGTERM 3 $run --python $system --contexts 3 one_handles.py 2>err)
if [ "$(echo $said)" = "0 atexit 0 finally 0 handles it 1 atexit 1 finally 2 atexit 2 finally 143" ]; then
    ok a_context_that_handles_no_sigterm_ends_beside_one_that_does
else
    not_ok a_context_that_handles_no_sigterm_ends_beside_one_that_does "$said" "$(cat err)"
fi

cat >ends_itself.py <<'END'
import extisolate, os, signal, time
if extisolate.index == 1:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(600)
time.sleep(0.5)
print(extisolate.index, "lives")
END
said=$($system drive.py SIGURG 0 $run --python $system --contexts 3 ends_itself.py 2>err)
[ "$(echo $said)" = "0 lives 2 lives 143" ] && ok a_context_ends_itself_alone ||
    not_ok a_context_ends_itself_alone "$said" "$(cat err)"

# Programs begin as processors are free: most of these wait for that, and one may be about to.
said=$($system drive.py SIGTERM 1 $run --python $system --contexts $(($(nproc) + 10)) -c 'print("ready", flush=True)
while True: pass' 2>err | grep -v ready)
[ "$said" = -15 ] || [ "$said" = 143 ] && ok contexts_that_have_not_begun_end_by_a_signal_too ||
    not_ok contexts_that_have_not_begun_end_by_a_signal_too "$said" "$(cat err)"

# Nothing can be asked of a context without the module by which signals reach Python code.
mkdir start
echo 'import sys; sys.modules["_signal"] = None' >start/sitecustomize.py
said=$($system drive.py SIGTERM 2 env PYTHONPATH=start $run --python $system --contexts 2 -c 'import time
print("ready", flush=True)
time.sleep(600)' 2>err)
[ "$said" = -15 ] && ok without_the_signal_module_the_process_ends ||
    not_ok without_the_signal_module_the_process_ends "$said" "$(cat err)"
