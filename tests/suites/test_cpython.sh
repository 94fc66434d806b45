#!/bin/bash
# CPython's own tests, in two contexts at once and in the interpreter itself: of extension modules, or with
# EXTI_SUITES=all of everything, for the system's interpreter and the newest one.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/suites/lib.sh"

modules='ctypes json sqlite3 decimal zlib hashlib'
# These tests wait more than they compute.
waiting='ssl threading'

# Left out of everything: what tests the tools of a checkout of CPython and its own runner of tests, distutils,
# which setuptools replaces, what runs for hours or needs another system, and what does not end in 3.11 itself.
left_out='regrtest tools peg_generator distutils idle gdb lib2to3 zipfile64 devpoll msilib ossaudiodev startfile winconsoleio
winreg winsound _xxsubinterpreters interpreters'
every_module() { # EXE
    "$1" -c 'import pkgutil, sys, test
found = {m.name for m in pkgutil.iter_modules(test.__path__) if m.name.startswith("test_")}
print(*sorted(found - {"test_" + name for name in sys.argv[1:]}))' $left_out
}

# Debian has the tests in a separate package, and what supports them in the library's; of both only these files
# are needed here, of the same version, which may be later than the interpreter's.  $tmp/debian becomes an
# environment of the system's interpreter in which it and its children find these files first.
with_debian_tests() {
    local python lib deb
    python=lib$(basename "$(readlink -f $system)")
    lib=$($system -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
    mkdir "$tmp/deb" "$tmp/tests"
    (cd "$tmp/deb" && { apt-get download -qq "$python-testsuite" "$python-stdlib" ||
        { apt-get update -qq && apt-get download -qq "$python-testsuite" "$python-stdlib"; }; }) >"$tmp/log" 2>&1 &&
        for deb in "$tmp"/deb/*.deb; do dpkg -x "$deb" "$tmp/deb" || return; done &&
        mkdir "$tmp/tests/ctypes" && cp -r "$tmp/deb$lib/test" "$tmp/tests" &&
        cp -r "$tmp/deb$lib/ctypes/test" "$tmp/tests/ctypes" &&
        $system -m venv --without-pip --system-site-packages "$tmp/debian" &&
        echo "import sys; sys.path.insert(0, '$tmp/tests')" \
            >"$(echo "$tmp"/debian/lib/*/site-packages)/tests.pth"
}

has_file() { "$1" -c "import importlib.util as u; assert u.find_spec('$2')" 2>/dev/null; }

has_all() {
    "$1" -c "
import ctypes, os
ctypes.__path__.append(os.environ.get('EXTI_SUITES_TESTS', '') + '/ctypes')
import $2" 2>/dev/null || has "$1" "$2"
}

suite() { # EXE MODULE
    local exe=$1 module=test.test_$2 label
    label=$(version "$exe")-$2
    has_file "$exe" "$module" || module=test.test_${2%3}
    if ! has_file "$exe" "$module"; then
        echo "skip $label: $exe has no test.test_$2"
    elif ! has_all "$exe" "$module"; then
        echo "skip $label: $exe was built without what $module imports"
    else
        alike "$label" "$exe" unittest "$module"
    fi
}

# The system's interpreter and the newest one.
chosen() { { pythons | head -n 1; pythons | tail -n 1; } | uniq; }

everything() { # EXE
    local m
    for m in $(every_module "$1"); do
        alike "$(version "$1")-${m#test_}" "$1" unittest "test.$m"
    done
}

for exe in $([ -z "$whole" ] && chosen || pythons); do
    unset EXTI_SUITES_TESTS
    of=$exe
    if ! has "$exe" test.test_json; then
        if [ "$exe" != $system ] || ! command -v apt-get >/dev/null || ! with_debian_tests; then
            echo "skip $(version "$exe"): $exe lacks CPython's tests, and they cannot be fetched"
            continue
        fi
        exe=$tmp/debian/bin/python
        export EXTI_SUITES_TESTS=$tmp/tests
    fi
    if [ -n "$whole" ] && chosen | grep -qxF "$of"; then
        everything "$exe"
        continue
    fi
    for m in $waiting; do
        suite "$exe" "$m" >"$tmp/said-$m" 2>&1 &
    done
    for m in $modules; do
        suite "$exe" "$m"
    done
    wait
    for m in $waiting; do
        cat "$tmp/said-$m"
    done
done
