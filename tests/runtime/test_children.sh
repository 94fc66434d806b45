#!/bin/bash
# What contexts start: processes of every kind, from four contexts at once, are as those that the
# interpreter starts, and can import the module extisolate.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

if [ "$sanitizer" = t ]; then
    echo "skip children: the thread sanitizer delays signals to a forked child"
    exit
fi

# ---- the module extisolate -----------------------------------------------------

mkdir start
cat >start/sitecustomize.py <<'END'
import extisolate, sys
sys.at_start = extisolate
END
check sitecustomize_imports_the_module 0 env PYTHONPATH="$tmp/start" $run --python $system --contexts 3 \
    -c 'import extisolate, sys; assert sys.at_start is extisolate and extisolate.count == 3
print("ok", extisolate.index)'
[ "$(sort "$tmp/out")" = $'ok 0\nok 1\nok 2' ] && ok the_module_has_its_number_at_the_start ||
    not_ok the_module_has_its_number_at_the_start "$(cat "$tmp/out")"

cat >imports.py <<'END'
import extisolate
import multiprocessing, os, subprocess, sys, warnings

def look(_=None):
    import extisolate
    return extisolate.index, extisolate.count

def child(code="", **env):
    code = "import extisolate as e; print(e.index, e.count, e.name, getattr(e, 'package', 0));" + code
    return subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True,
                          env={**os.environ, **env}).stdout

if __name__ == "__main__":
    warnings.simplefilter("ignore")     # 3.12 and later warn of a fork in a process with threads
    assert child() == "0 1 main 0\n"
    own = extisolate.index, extisolate.count
    for how in os.environ["POOLS"].split():
        expected = own if how == "fork" else (0, 1)
        with multiprocessing.get_context(how).Pool(2) as pool:
            assert set(pool.map(look, range(20))) == {expected}, how
    # A child that has the package itself.
    path = os.environ["PYTHONPATH"] + ":" + os.path.abspath("site")
    assert child("import extisolate.sub; print(e.sub)", PYTHONPATH=path) == "7 1 package 1\n" \
        "<module 'extisolate.sub' from '%s'>\n" % os.path.abspath("site/extisolate/sub.py")
END
mkdir -p site/extisolate
echo 'index, count, name, package = 7, 1, "package", 1' >site/extisolate/__init__.py
touch site/extisolate/sub.py
# A child forked while other threads allocate may wait for ever for the address sanitizer's allocator.
[ "$sanitizer" = a ] || fork=fork
check children_import_the_module 0 env POOLS="${fork:-} spawn forkserver" timeout 300 $run --python $system --contexts 3 imports.py
check children_find_the_package_first 0 env PYTHONPATH=site $run --python $system -c '
import os, subprocess, sys
assert os.environ["PYTHONPATH"] == "site"
code = "import extisolate; assert extisolate.package"
subprocess.run([sys.executable, "-c", code], check=True)'
check control_without_the_variable_there_is_none 0 $run --python $system -c '
import os, subprocess, sys
del os.environ["PYTHONPATH"]
done = subprocess.run([sys.executable, "-c", "import extisolate"], stderr=subprocess.PIPE)
assert b"No module named" in done.stderr, done'
for path in '' a:b; do
    check "the_variable_is_kept-$path" 0 env PYTHONPATH="$path" $run --python $system -c '
import os, sys
*given, folder = os.environ["PYTHONPATH"].split(":")
assert given == [p for p in sys.argv[1].split(":") if p]
assert os.listdir(folder) == ["extisolate.py"] and sys.path[-1] == folder' "$path"
done

check a_directory_that_is_kept_has_no_such_folder 0 $run --python $system --dir kept -c '
import os
assert os.environ["PYTHONPATH"].startswith(os.environ["TMPDIR"]) and os.listdir("kept") == ["0"]'
TMPDIR=/nowhere $run --python $system --dir kept -c 'import os; print("PYTHONPATH" in os.environ)' >out 2>err
[ $? = 0 ] && [ "$(cat out)" = False ] && grep -q 'cannot import extisolate: /nowhere: ' err &&
    ok without_a_private_folder_there_is_a_note || not_ok without_a_private_folder_there_is_a_note "$(cat out err)"
no_traces nothing_is_left

# ---- each way to start one -----------------------------------------------------------

cat >starts.py <<'END'
import os, signal, subprocess, sys

def run(*args, **kw):
    done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)
    assert not done.stderr, done
    return done.stdout

sh = "/bin/sh"
for n in range(10):
    r, w = os.pipe()
    print(run(sh, "-c", "echo $0 $N", env={"N": str(n)}))
    print(run(sh, "-c", "echo given >/dev/fd/%d; echo done" % w, pass_fds=[w]))
    print(os.read(r, 100))
    print(os.path.exists("/proc/self/fd/%d" % w))
    closed = "[ -e /proc/self/fd/%d ] && echo open || echo closed" % w
    print(run(sh, "-c", closed), run(sh, "-c", closed, close_fds=False))
    os.set_inheritable(w, True)
    print(run(sh, "-c", closed), run(sh, "-c", closed, close_fds=False))
    print(run(sh, "-c", "echo $N", preexec_fn=lambda: os.environ.update(N="9"), env=None))
    print(run(sh, "-c", "umask", preexec_fn=lambda: os.umask(0o27)))
    print(run(sh, "-c", "pwd", cwd="/"))
    same = "import os; print(os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid())"
    print(run(sys.executable, "-c", same, start_new_session=True), run(sys.executable, "-c", same))
    if sys.version_info >= (3, 11):
        print(run(sys.executable, "-c", same, process_group=0))
    if os.getuid() == 0:
        print(run(sh, "-c", "id -u; id -g; id -G", user=65534, group=65534, extra_groups=[1, 2]))
    try:
        run("/nowhere/program")
    except FileNotFoundError as e:
        print(e)
    try:
        run(sh, preexec_fn=lambda: 1 / 0)
    except subprocess.SubprocessError as e:
        print(e)
    p = subprocess.Popen([sh, "-c", "kill -9 $$"])
    print(p.wait())
    p = subprocess.Popen(["sleep", "60"])
    print(p.poll())
    p.terminate()
    print(p.wait(30), p.poll())
    with os.popen("echo popen $0; exit 3") as f:
        print(f.read())
    print(subprocess.getstatusoutput("echo said; exit 3"))
    pipe = os.popen("cat >/dev/null; exit 5", "w")
    pipe.write("x" * 100000)
    print(pipe.close() >> 8)
    print(os.system("exit 6") >> 8)
    print(os.spawnvpe(os.P_WAIT, "sh", ["sh", "-c", "exit $N"], {**os.environ, "N": "4"}))
    actions = [(os.POSIX_SPAWN_DUP2, w, 1), (os.POSIX_SPAWN_CLOSE, r)]
    pid = os.posix_spawn(sh, ["sh", "-c", "echo spawned"], os.environ, file_actions=actions, setpgroup=0,
                         setsigmask=[signal.SIGUSR1], setsigdef=[signal.SIGPIPE])
    print(os.waitpid(pid, 0)[1], os.read(r, 100))
    pid = os.posix_spawnp("sh", ["sh", "-c", "exit 8"], os.environ)
    print(os.waitid(os.P_PID, pid, os.WEXITED).si_status)
    pid, fd = os.forkpty()
    if pid == 0:
        os.execv(sh, ["sh", "-c", "tty >/dev/null && echo terminal"])
    line = os.read(fd, 100)
    while not line.endswith(b"\n"):  # it may come in pieces
        line += os.read(fd, 100)
    print(line, os.waitpid(pid, 0)[1])
    os.close(fd), os.close(r), os.close(w)
END
$system -W ignore starts.py >plain 2>&1 </dev/null
PYTHONWARNINGS=ignore timeout 300 $run --python $system --contexts 4 -c '
import contextlib, extisolate, runpy, sys
with open("got.%d" % extisolate.index, "w") as f, contextlib.redirect_stdout(f):
    runpy.run_path("starts.py")' 2>err
rc=$?
grep -q 'terminal' plain || not_ok control_the_interpreter_starts_them "$(cat plain)"
for i in 0 1 2 3; do
    cmp -s plain got.$i && [ $rc = 0 ] && ok "context_$i-starts_what_the_interpreter_does" ||
        not_ok "context_$i-starts_what_the_interpreter_does" "status $rc" "$(diff plain got.$i)" "$(tail -20 err)"
done

# ---- pools -------------------------------------------------------------------------

if ! why=$($system -c 'import multiprocessing; multiprocessing.Lock()' 2>&1); then
    echo "skip pools: $system has no semaphores here: ${why##*$'\n'}"
    exit
fi
cat >plain.c <<'END'
int plain;
END
cc -shared -fPIC -o plain.so plain.c
cat >pools.py <<'END'
import extisolate
import _ctypes, concurrent.futures, multiprocessing, os, sys, threading, time, warnings
warnings.simplefilter("ignore")

def square(n):
    return n * n

def disturb(done, failed):
    rounds = 0
    while not done.is_set():
        pid = os.fork()
        if pid == 0:
            os._exit(7)
        if os.waitpid(pid, 0)[1] != 7 << 8:
            failed.append(pid)
        _ctypes.dlclose(_ctypes.dlopen(os.path.abspath("plain.so"), 2))
        rounds += 1
    if rounds < 5:
        failed.append("rounds %d" % rounds)

def work(how, tasks, failed):
    with multiprocessing.get_context(how).Pool(2) as pool:
        if pool.map(square, range(tasks), 7) != [n * n for n in range(tasks)]:
            failed.append(how)
        pool.close()
        pool.join()
    with concurrent.futures.ProcessPoolExecutor(
            2, mp_context=multiprocessing.get_context(how)) as pool:
        if list(pool.map(square, range(tasks), chunksize=9)) != [n * n for n in range(tasks)]:
            failed.append("futures " + how)

if __name__ == "__main__":
    done, failed, tasks = threading.Event(), [], int(sys.argv[1])
    other = threading.Thread(target=disturb, args=(done, failed))
    other.start()
    try:
        for how in "fork", "spawn", "forkserver":
            work(how, tasks, failed)
    finally:
        done.set()
        other.join()
    assert not failed, failed
    print("ok", extisolate.index)
END
if [ "$sanitizer" = a ]; then
    echo "skip pools_of_all_kinds_in_four_contexts: the address sanitizer's allocator may be locked in a forked child"
else
    check pools_of_all_kinds_in_four_contexts 0 timeout 600 $run --python $system --contexts 4 pools.py 1000
    [ "$(sort "$tmp/out")" = $'ok 0\nok 1\nok 2\nok 3' ] || not_ok each_context_had_its_pools "$(cat "$tmp/out")"
fi
