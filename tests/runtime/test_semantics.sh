#!/bin/bash
# A program in a context has the output, tracebacks and exit status that the interpreter gives it.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1

mkdir app 'a pkg' pkg
cat >show.py <<'END'
"""doc"""
import sys, os
print(sys.argv, sys.orig_argv[1:] if hasattr(sys, "orig_argv") else None)
print(sys.path)
print(sys.executable, sys._base_executable, sys.prefix, sys.base_prefix, sys.exec_prefix)
print(__name__, __file__ if "__file__" in globals() else None, __doc__, __package__, __spec__)
print(type(__loader__).__name__ if not isinstance(__loader__, type) else __loader__.__name__)
print(sorted(globals()))
print(sys.flags, sys.getfilesystemencoding(), sys.stdout.encoding, sys.stdout.errors)
import locale
print(locale.setlocale(locale.LC_CTYPE), os.environ.get("LC_CTYPE"), hash("x") if "PYTHONHASHSEED"
      in os.environ else None, sys.warnoptions, os.fsencode("\\udce9"))
print(sys.modules["__main__"].__dict__ is globals())
END
cp show.py app/__main__.py
cp show.py pkg/__main__.py
cp show.py mod.py
touch pkg/__init__.py
(cd app && $system -c 'import zipfile; zipfile.ZipFile("../app.zip", "w").write("__main__.py")')
ln -s ../show.py 'a pkg/link.py'
cat >deep.py <<'END'
def f(n):
    if n:
        return f(n - 1)
    raise ValueError("deep")
try:
    f(2)
except ValueError as e:
    raise KeyError("chained") from e
END
cat >pkgexit.py <<'END'
import sys
sys.exit(*eval('(' + sys.argv[1] + ',)' if sys.argv[1] else '()'))
END
printf 'x = = 1\n' >syntax.py
printf '# -*- coding: latin-1 -*-\nprint("\351")\n' >latin.py
cat >hook.py <<'END'
import sys
def hook(t, v, tb):
    print("hook", t.__name__, v, tb.tb_lineno)
sys.excepthook = hook
1 / 0
END
cat >badhook.py <<'END'
import sys
sys.excepthook = lambda *a: {}["no"]
1 / 0
END
cat >exithook.py <<'END'
import sys
sys.excepthook = lambda *a: sys.exit(9)
1 / 0
END
cat >atexit_.py <<'END'
import atexit, threading, time
atexit.register(lambda: print("atexit", globals().get("__file__")))
said = threading.Event()
threading.Thread(target=lambda: (said.wait(), time.sleep(0.1), print("thread done"))).start()
print("main done")
said.set()
END
cat >daemon.py <<'END'
import threading, time
threading.Thread(target=lambda: time.sleep(60), daemon=True).start()
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()
print("main done")
END
cat >unflushed.py <<'END'
import sys, os
sys.stdout.write("x")
os.close(1)
END
cat >forked.py <<'END'
import atexit, os, sys, warnings
warnings.simplefilter("ignore")     # 3.12 and later warn of a fork in a process with threads
atexit.register(print, "atexit")
print("before")
pid = os.fork()
if pid != 0:
    print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
elif sys.argv[1] == "exits":
    sys.exit(7)
elif sys.argv[1] == "fails":
    raise ValueError("in the child")
END

# Code that the interpreter runs at its start, before the program.
mkdir start
cat >start/sitecustomize.py <<'END'
import os, sys
def refuse(event):
    def hook(e, args):
        if e == event:
            raise ValueError(e)
    sys.addaudithook(hook)
exec(os.environ["AT_START"])
END
cat >audit.py <<'END'
import sys
def hook(event, args):
    if event == "sys.excepthook":
        raise eval(sys.argv[1])
sys.addaudithook(hook)
1 / 0
END
cat >broken.py <<'END'
import sys
class Broken:
    def write(self, text): raise ValueError(text)
    def flush(self): raise ValueError
class Exit(SystemExit):
    code = property(lambda self: 1 / 0)
exec(sys.argv[1])
END

# Compares the output of a stock interpreter with ours, except for addresses, for the context's number before a
# traceback, and for the folder from which its children import extisolate.
same_as_stock() { # NAME EXE ARGS...
    local name=$1 exe=$2 rc1 rc2
    shift 2
    "$exe" "$@" >want.out 2>want.err </dev/null
    rc1=$?
    $run --python "$exe" "$@" >got.out 2>got.err </dev/null
    rc2=$?
    sed -i '/^context 0:$/d' got.err
    sed -i "s#, '[^',]*/extisolate-[^/]*/[^/]*/python'.\$#]#" got.out
    sed -i 's/ at 0x[0-9a-f]*/ at ADDRESS/' want.out got.out want.err got.err
    if [ $rc1 = $rc2 ] && cmp -s want.out got.out && cmp -s want.err got.err; then
        ok "$name"
    else
        not_ok "$name" "status $rc2, stock $rc1" "$(diff want.out got.out)" \
            "$(diff want.err got.err)"
    fi
}

with_environment() { # NAME EXE SETTINGS...
    local name=$1 exe=$2
    shift 2
    (export "$@" && same_as_stock "$name" "$exe" show.py a)
}

after_start() { # NAME EXE CODE ARGS...
    local name=$1 exe=$2
    export PYTHONPATH=$tmp/start AT_START=$3
    shift 3
    same_as_stock "$name" "$exe" "$@"
    unset PYTHONPATH AT_START
}

for exe in $(pythons); do
    v=$(version "$exe")
    same_as_stock "$v-script" "$exe" show.py a 'b c' -x --contexts
    same_as_stock "$v-script-by-path" "$exe" "$tmp/show.py"
    same_as_stock "$v-script-from-here" "$exe" ./app/../show.py
    same_as_stock "$v-script-by-link" "$exe" 'a pkg/link.py'
    same_as_stock "$v-code" "$exe" -c "$(cat show.py)" a -c
    same_as_stock "$v-module" "$exe" -m mod a -m
    same_as_stock "$v-package" "$exe" -m pkg a
    same_as_stock "$v-directory" "$exe" app a
    same_as_stock "$v-zip" "$exe" app.zip a
    same_as_stock "$v-no-module" "$exe" -m no.such.module
    same_as_stock "$v-module-fails" "$exe" -m deep
    same_as_stock "$v-uncaught-script" "$exe" deep.py
    same_as_stock "$v-uncaught-code" "$exe" -c "$(cat deep.py)"
    same_as_stock "$v-syntax-script" "$exe" syntax.py
    same_as_stock "$v-syntax-code" "$exe" -c 'x = = 1'
    same_as_stock "$v-source-encoding" "$exe" latin.py
    same_as_stock "$v-indented-code" "$exe" -c '
        import sys
        print(1)'
    same_as_stock "$v-no-main" "$exe" 'a pkg'
    rm -rf __pycache__
    "$exe" -m compileall -q show.py
    cp __pycache__/show.*.pyc "show-$v.pyc"
    same_as_stock "$v-bytecode" "$exe" "show-$v.pyc"
    for code in '' 0 3 -1 256 257 True None '"text"' '1, 2'; do
        same_as_stock "$v-exit($code)" "$exe" -c "import sys; sys.exit($code)"
        same_as_stock "$v-module-exit($code)" "$exe" -m pkgexit "$code"
    done
    same_as_stock "$v-raise-SystemExit" "$exe" -c 'raise SystemExit'
    same_as_stock "$v-hook" "$exe" hook.py
    same_as_stock "$v-failing-hook" "$exe" badhook.py
    same_as_stock "$v-exiting-hook" "$exe" exithook.py
    same_as_stock "$v-no-hook" "$exe" -c 'import sys; del sys.excepthook; 1/0'
    same_as_stock "$v-atexit-and-threads" "$exe" atexit_.py
    same_as_stock "$v-daemon-threads" "$exe" daemon.py
    for how in exits fails ends; do
        same_as_stock "$v-forked-child-$how" "$exe" forked.py $how
    done
    same_as_stock "$v-unflushed-output" "$exe" unflushed.py
    same_as_stock "$v-subclass-of-SystemExit" "$exe" -c 'class E(SystemExit): pass
raise E(5)'
    for text in '' 'x' 'del __file__, __cached__'; do
        printf %s "$text" >bare
        same_as_stock "$v-script-without-an-ending-$text" "$exe" bare
    done
    after_start "$v-without-the-signal-module" "$exe" 'sys.modules["_signal"] = None' -c 'print(1)'
    same_as_stock "$v-code-that-is-no-text" "$exe" -c $'print("\351")'
    same_as_stock "$v-exit-with-a-great-number" "$exe" -c 'import sys; sys.exit(3 - 2 ** 40)'
    same_as_stock "$v-exit-without-a-code" "$exe" broken.py 'raise Exit("text")'
    same_as_stock "$v-exit-message-without-stderr" "$exe" broken.py 'sys.stderr = None; sys.exit("why")'
    same_as_stock "$v-exit-message-with-stderr-deleted" "$exe" broken.py 'del sys.stderr; sys.exit("why")'
    same_as_stock "$v-exit-message-to-a-broken-stderr" "$exe" broken.py \
        'sys.stderr = Broken(); sys.exit("why")'
    same_as_stock "$v-uncaught-without-stdout" "$exe" broken.py 'sys.stdout = None; 1 / 0'
    same_as_stock "$v-uncaught-with-a-broken-stdout" "$exe" broken.py 'sys.stdout = Broken(); 1 / 0'
    same_as_stock "$v-hook-forbidden" "$exe" audit.py 'RuntimeError("no")'
    same_as_stock "$v-hook-with-a-failing-audit" "$exe" audit.py 'ValueError("no")'
    # What the program is run with is refused, or missing.
    after_start "$v-code-refused" "$exe" 'refuse("cpython.run_command")' -c 'print(1)'
    after_start "$v-module-refused" "$exe" 'refuse("cpython.run_module")' -m mod
    after_start "$v-script-refused" "$exe" 'refuse("cpython.run_file")' show.py
    after_start "$v-directory-refused" "$exe" 'refuse("cpython.run_module")' app
    after_start "$v-module-without-runpy" "$exe" 'sys.modules["runpy"] = None' -m mod
    after_start "$v-module-with-another-runpy" "$exe" 'import runpy; del runpy._run_module_as_main' -m mod
    after_start "$v-code-without-linecache" "$exe" 'sys.modules["linecache"] = None' -c 'print(1)'
    # Settings that the interpreter takes from the environment.
    for setting in LC_ALL=C LC_ALL=POSIX LC_ALL= LC_ALL=xx_YY.UTF-8 'LC_ALL= LC_CTYPE=C' \
        'LC_ALL= LANG=C.UTF-8' 'LC_ALL= LANG=C PYTHONCOERCECLOCALE=0' 'LC_ALL=C PYTHONUTF8=0' 'LC_ALL=C PYTHONUTF8=' \
        PYTHONUTF8=1 PYTHONIOENCODING=latin-1:replace PYTHONPATH=/nowhere:app PYTHONSAFEPATH=1 \
        PYTHONNOUSERSITE=1 PYTHONOPTIMIZE=2 PYTHONDEVMODE=1 PYTHONHASHSEED=7 PYTHONUNBUFFERED=1 \
        PYTHONWARNINGS=error PYTHONDONTWRITEBYTECODE=1 PYTHONMALLOC=malloc PYTHONINSPECT=; do
        # shellcheck disable=SC2086
        with_environment "$v-environment-$setting" "$exe" $setting
    done
done

# What the interpreter begins with its own name, we begin with the context's.
refused_at_start() { # NAME STATUS MESSAGE CODE ARGS...
    local name=$1 want=$2 text=$3 rc
    export PYTHONPATH=$tmp/start AT_START=$4
    shift 4
    $run --python $system "$@" >out 2>err </dev/null
    rc=$?
    unset PYTHONPATH AT_START
    [ $rc = "$want" ] && [ ! -s out ] && grep -qF "$text" err && ok "$name" ||
        not_ok "$name" "status $rc, not $want" "$(cat out err)"
}
cp show.py gone.py
refused_at_start a_script_that_is_gone 2 "context 0: can't open file '$tmp/gone.py': [Errno 2] No such file" \
    'import os; os.remove("gone.py")' gone.py
refused_at_start a_directory_that_is_no_program 1 "context 0: '$tmp/app' is a directory, cannot continue" \
    'sys.path_hooks.clear(); sys.path_importer_cache.clear()' app
refused_at_start an_import_hook_that_fails 1 'ZeroDivisionError' \
    'sys.path_hooks.insert(0, lambda path: 1 / 0); sys.path_importer_cache.clear()' app
refused_at_start a_loader_that_is_missing 1 'import of _frozen_importlib_external halted' \
    'sys.modules["_frozen_importlib_external"] = None' show.py
