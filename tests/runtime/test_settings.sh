#!/bin/bash
# Contexts of one process start with options of their own, set by the names of PyConfig, in every
# version; what is not set comes from the environment, as in the interpreter; and a start that fails
# says why.
. "$(dirname "$0")/lib.sh"
. "$root/tests/support/newer.bash"
cd "$tmp" || exit 1
settings=${EXTI_BUILD:-$root/build}/tests/settings
# CPython leaks, and its copies are unmapped when leaks are looked for; leaks.sh compares these.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
unset PYTHONHASHSEED PYTHONDEVMODE PYTHONTRACEMALLOC PYTHONUTF8 PYTHONINTMAXSTRDIGITS

# fails NAME TEXT COMMAND...: the first context does not start, and says TEXT
fails() {
    local name=$1 text=$2
    shift 2
    if "$@" >out 2>err </dev/null; then
        not_ok "$name" "it started"
    elif grep -q "^context 0: .*$text" out; then
        ok "$name"
    else
        not_ok "$name" "$(cat out err)"
    fi
}

# passes NAME COMMAND...: all contexts end with status 0
passes() {
    local name=$1
    shift
    if "$@" >out 2>err </dev/null && ! grep -qv '^context [0-9]* status 0$' out; then
        ok "$name"
    else
        not_ok "$name" "$(tail -n 20 out err)"
    fi
}

# With optimization_level 2 there is no assert.
cat >own.py <<'END'
import extisolate, os, sys, time
def check(name, got, want):
    if got != want:
        sys.exit("context %d: %s is %r, not %r" % (extisolate.index, name, got, want))
def all_have(what):     # so that both contexts are alive at once
    open("%s.%d" % (what, extisolate.index), "w").close()
    end = time.time() + 120
    while not all(os.path.exists("%s.%d" % (what, i)) for i in range(2)):
        check("time left", time.time() < end, True)
        time.sleep(0.01)
all_have("started")
i = extisolate.index
check("argv", sys.argv, ["-c", "a%d" % i, "b"])
check("orig_argv", getattr(sys, "orig_argv", ["-c"] * 2)[1], "-c")
check("path", sys.path[-1], "/own/%d" % i)
check("pycache_prefix", sys.pycache_prefix, "/cache/%d" % i)
check("utf8_mode", sys.flags.utf8_mode, i)
check("optimize", (sys.flags.optimize, __debug__), (2 * i, not i))
check("dev_mode", sys.flags.dev_mode, bool(i))
check("isolated", sys.flags.isolated, 1 - i)
check("hash", hash("seed"), int(os.environ["HASH_%d" % i]))
all_have("looked")
END

# The paths of EXE's standard library, between colons.
stdlib() { "$1" -c 'import sys; print(":".join(p for p in sys.path if p))'; }
hash_of() { PYTHONHASHSEED=$2 "$1" -c 'print(hash("seed"))'; }

own_options() { # NAME EXE
    local name=$1 exe=$2 paths
    paths=$(stdlib "$exe")
    rm -f started.* looked.*
    HASH_0=$(hash_of "$exe" 5) HASH_1=$(hash_of "$exe" 6) passes "$name" \
        timeout 600 "$settings" "$exe" "$(cat own.py)" \
        arg:=a0 arg:=b "list:module_search_paths=$paths:/own/0" int:utf8_mode=0 \
        text:pycache_prefix=/cache/0 int:isolated=1 int:use_hash_seed=1 int:hash_seed=5 -- \
        arg:=a1 arg:=b "list:module_search_paths=$paths:/own/1" int:utf8_mode=1 \
        text:pycache_prefix=/cache/1 int:optimization_level=2 int:dev_mode=1 \
        int:use_hash_seed=1 int:hash_seed=6
}

flags='import os, sys
want = eval(os.environ["WANT"])
have = {n: getattr(sys.flags, n) for n in want}
assert have == want, have'

from_environment() { # NAME EXE WANT NAME=VALUE... [-- SETTING...]
    local name=$1 exe=$2 want=$3 variables=()
    shift 3
    while [ $# != 0 ] && [ "$1" != -- ]; do variables+=("$1") && shift; done
    [ $# = 0 ] || shift
    passes "$name" env WANT="$want" "${variables[@]}" "$settings" "$exe" "$flags" "$@"
}

# From 3.14 on options are UTF-8, and what is no text in the locale is none.
no_text() { # NAME EXE MINOR SETTING
    if [ "$3" -lt 14 ]; then
        passes "$1" env LC_ALL=C.UTF-8 "$settings" "$2" 'x = 1' "$4"
    else
        fails "$1" 'not in the encoding of the locale' \
            env LC_ALL=C.UTF-8 "$settings" "$2" 'x = 1' "$4"
    fi
}

each_python() { # EXE
    local exe=$1 v minor home_message
    v=$(version "$exe")
    minor=${v#3.} minor=${minor%%.*}
    own_options "$v-own-options" "$exe"
    from_environment "$v-environment" "$exe" '{"dev_mode": True, "hash_randomization": 0}' \
        PYTHONDEVMODE=1 PYTHONHASHSEED=0
    from_environment "$v-isolated-from-environment" "$exe" \
        '{"dev_mode": False, "hash_randomization": 1, "ignore_environment": 1}' \
        PYTHONDEVMODE=1 PYTHONHASHSEED=0 -- int:isolated=1
    from_environment "$v-options-go-before-environment" "$exe" \
        '{"dev_mode": False, "hash_randomization": 0}' PYTHONDEVMODE=1 PYTHONHASHSEED=x -- \
        int:dev_mode=0 int:use_hash_seed=1 int:hash_seed=0
    [ "$minor" -lt 12 ] || from_environment "$v-environment-digits" "$exe" \
        '{"int_max_str_digits": 700}' PYTHONINTMAXSTRDIGITS=700
    [ "$minor" -lt 12 ] || fails "$v-wrong-digits" 'PYTHONINTMAXSTRDIGITS.*640' \
        env PYTHONINTMAXSTRDIGITS=5 "$settings" "$exe" 'print(1)'
    fails "$v-wrong-seed" 'PYTHONHASHSEED must be .*random.* or an integer.*4294967295' \
        env PYTHONHASHSEED=4294967296 "$settings" "$exe" 'print(1)'
    # The message is the interpreter's own.
    home_message=$(PYTHONHOME=/nowhere "$exe" -c 'print(1)' 2>&1 |
        sed -n 's/^Fatal Python error: //p')
    fails "$v-interpreters-message" "$v did not start: ${home_message:-none}" \
        env PYTHONHOME=/nowhere "$settings" "$exe" 'print(1)'
    fails "$v-unknown-option" "$v has no option \"no_such\"" \
        "$settings" "$exe" 'print(1)' int:no_such=1
    fails "$v-unknown-text" "$v has no option \"no_such\"" \
        "$settings" "$exe" 'print(1)' text:no_such=1
    fails "$v-unknown-list" "$v has no option \"no_such\"" \
        "$settings" "$exe" 'print(1)' list:no_such=a:b
    passes "$v-text-of-any-language" env PYTHONUTF8=1 LC_ALL=C.UTF-8 "$settings" "$exe" \
        'import sys; assert sys.argv[1] == "a\u00e4\u20ac\U0001f600", sys.argv' \
        arg:=$'a\u00e4\u20ac\U0001f600'
    passes "$v-arguments-that-are-no-text" env LC_ALL=C.UTF-8 "$settings" "$exe" \
        'import sys; assert sys.argv[1] == "\udcff", sys.argv' arg:=$'\xff'
    no_text "$v-options-that-are-no-text" "$exe" "$minor" text:pycache_prefix=$'/\xff'
    no_text "$v-lists-that-are-no-text" "$exe" "$minor" list:warnoptions=$'\xff'
    from_environment "$v-environment-of-no-effect" "$exe" \
        '{"dev_mode": False, "hash_randomization": 1}' \
        PYTHONDEVMODE= PYTHONHASHSEED=random PYTHONPERFSUPPORT=0 PYTHONTRACEMALLOC=
    fails "$v-seed-that-is-no-number" 'PYTHONHASHSEED must be' \
        env PYTHONHASHSEED=1x "$settings" "$exe" 'print(1)'
    [ "$minor" -lt 14 ] || passes "$v-indented-code" "$settings" "$exe" '    import sys
    assert sys.argv == ["-c"]'
    fails "$v-option-of-another-type" '\("argv" of this type\|argv: .* type is not int\)' \
        "$settings" "$exe" 'print(1)' int:argv=1
    fails "$v-value-out-of-range" 'verbose: .*out of' \
        "$settings" "$exe" 'print(1)' int:verbose=-1
}

for exe in $(pythons); do each_python "$exe"; done
newest=$(newer_pythons 2>&1)
if ! grep '^skip' <<<"$newest"; then
    newer_program "$settings" "$tmp/settings"
    settings=$tmp/settings
    for exe in $newest; do each_python "$exe"; done
fi
