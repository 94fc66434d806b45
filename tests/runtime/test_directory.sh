#!/bin/bash
# The current directory and umask of contexts: each has its own, as a process has, or shares the process's
# where the system allows no other.
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$tmp" || exit 1
mkdir 0 1 2 3

# Each context moves, does what depends on the directory in all ways, and holds that against where it should be.
cat >moves.py <<'END'
import extisolate, multiprocessing, os, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
top, forks, me = sys.argv[1], sys.argv[2] == "forks", str(extisolate.index)
mask = 0o11 * (extisolate.index + 1)

def wait_for_all(step):
    open(os.path.join(top, f"{step}-{me}"), "w").close()
    end = time.monotonic() + 100
    while not all(os.path.exists(os.path.join(top, f"{step}-{i}")) for i in range(extisolate.count)):
        assert time.monotonic() < end
        time.sleep(0.005)

def look(n=0):
    """What a thread sees, or a child."""
    name = f"made-{os.getpid()}-{threading.get_native_id()}-{n}"
    with open(name, "x"):
        pass
    mode = os.stat(name).st_mode & 0o777
    os.unlink(name)
    return os.path.basename(os.getcwd()), mode, open("whose").read(), os.path.basename(os.path.realpath("."))

def child():
    os.chdir("/")
    os.umask(0)

def send(pipe):
    pipe.send(look())

early = ThreadPoolExecutor(1)
early.submit(int).result()
assert os.path.samefile(os.getcwd(), top)
wait_for_all("begun")
os.chdir(me)
os.umask(mask)
with open("whose", "w") as f:
    f.write(me)
wait_for_all("moved")
expected = me, 0o666 & ~mask, me, me
fork = multiprocessing.get_context("fork")
for n in range(20):
    assert look() == expected, (look(), expected)
    assert early.submit(look, n).result() == expected
    with ThreadPoolExecutor(2) as late:
        assert set(late.map(look, range(8))) == {expected}
    shown = subprocess.run("pwd; umask; cat whose; echo; touch m; stat -c %a m; rm m", shell=True,
                           stdout=subprocess.PIPE, check=True).stdout.decode().split()
    assert os.path.basename(shown[0]) == me and int(shown[1], 8) == mask, shown
    assert shown[2] == me and int(shown[3], 8) == 0o666 & ~mask, shown
    assert subprocess.run(["pwd"], cwd="/", stdout=subprocess.PIPE).stdout == b"/\n"
    assert os.system(f'[ "$(cat whose)" = {me} ]') == 0
    assert os.popen("cat whose").read() == me
    for proc in "/proc/self", f"/proc/{os.getpid()}":
        assert os.readlink(f"{proc}/cwd") == os.getcwd() and open(f"{proc}/cwd/whose").read() == me
        assert os.path.realpath(f"{proc}/cwd/whose") == os.path.join(os.getcwd(), "whose")
    if forks:
        r, w = fork.Pipe(False)
        p = fork.Process(target=send, args=(w,))
        p.start()
        assert r.recv() == expected
        p.join()
        p = fork.Process(target=child)
        p.start()
        p.join()
        assert p.exitcode == 0
    if n % 5 == 0:      # a thread moves all of its context
        early.submit(os.chdir, "..").result()
        assert os.path.samefile(os.getcwd(), top) and os.path.exists("moves.py")
        early.submit(os.chdir, me).result()
wait_for_all("done")
assert os.umask(0) == mask
early.shutdown()
END
umask 022
# The sanitizer of gcc 12 forks while other threads have its allocator's locks, which a child that goes on in
# Python then waits for.
forks=forks
[ "$sanitizer" != a ] || forks=none
# shellcheck disable=SC2086
check four_contexts_have_directories_of_their_own 0 timeout 300 $run --python $system --contexts 4 moves.py "$tmp" $forks
grep -q 'share one' err && not_ok and_nothing_is_noted "$(cat err)" || ok and_nothing_is_noted

cat >shared.py <<'END'
import extisolate, os, sys, time
if extisolate.index == 0:
    os.chdir("1")
    open("moved", "w").close()
else:
    moved = os.path.join(sys.argv[1], "1", "moved")
    end = time.monotonic() + 100
    while not os.path.exists(moved):
        assert time.monotonic() < end
        time.sleep(0.01)
    sys.exit(0 if os.path.exists("moved") else 3)
END
check a_context_moves_no_other 3 timeout 200 $run --python $system --contexts 3 "$tmp/shared.py" "$tmp"

# ---- where the system refuses ----------------------------------------------------

cc -o without_unshare "$here/without_unshare.c"
if ! ./without_unshare true 2>err; then
    echo "skip a_refusal: $(cat err)"
    exit
fi
if ./without_unshare unshare --mount true 2>/dev/null; then
    not_ok control_the_filter_refuses
else
    ok control_the_filter_refuses
fi
rm 1/moved
check control_without_unshare_they_are_all_moved 0 timeout 200 ./without_unshare $run --python $system \
    --contexts 3 "$tmp/shared.py" "$tmp"
said="extisolate: note: the contexts share one current directory and umask: \
the context's threads cannot have a directory of their own (unshare): Operation not permitted"
[ "$(cat err)" = "$said" ] && ok a_refusal_is_noted_once || not_ok a_refusal_is_noted_once "$(cat err)"
check one_context_has_it_alone 0 timeout 100 ./without_unshare $run --python $system shared.py "$tmp"
[ -s err ] && not_ok of_which_nothing_is_noted "$(cat err)" || ok of_which_nothing_is_noted

# Contexts that are opened after another has moved all of them keep to the directory that was meant.
mkdir elsewhere
echo 'import os; os.chdir("/")' >leaves.py
check later_contexts_keep_to_a_relative_directory 0 timeout 300 taskset -c 0 "$PWD/without_unshare" $run \
    --python $system --contexts 12 --dir elsewhere "$tmp/leaves.py"
[ "$(find elsewhere -maxdepth 1 -mindepth 1 | wc -l)" = 12 ] && ok all_copies_are_there ||
    not_ok all_copies_are_there "$(ls elsewhere /)"
