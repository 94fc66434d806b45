#!/bin/bash
# Checks that the library's rules for packages are needed: without them the packages' work fails.
# test_debian.sh checks that it succeeds with them.  Also checks that the documentation's rules
# help.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/runtime/lib.sh
. "$here/../runtime/lib.sh"

# needed RULE NAME: work/NAME.py fails in a context without the rule.
needed() {
    local rc
    if ! $system "$here/drive.py" plain "$here/work/$2.py" >"$tmp/out" 2>&1; then
        echo "skip $1-is_needed: $2 does not work here: $(tail -n 1 "$tmp/out")"
        return
    fi
    printf '{"extisolate_quirks": 1, "disable": ["%s"]}' "$1" >"$tmp/without.json"
    mkdir "$tmp/$1"
    $run --python $system "$here/drive.py" turns "$here/work/$2.py" "$tmp/$1" >"$tmp/out" 2>&1 ||
        { not_ok "$1-is_needed" "$2 fails with it too" "$(tail "$tmp/out")" && return; }
    rm -rf "${tmp:?}/$1" && mkdir "$tmp/$1"
    (ulimit -c 0; timeout 600 $run --quirks "$tmp/without.json" --python $system "$here/drive.py" turns \
        "$here/work/$2.py" "$tmp/$1" || exit) >"$tmp/out" 2>&1
    rc=$?
    [ $rc != 0 ] && [ $rc != 124 ] && ok "$1-is_needed" ||
        not_ok "$1-is_needed" "$2 ends with status $rc without it" "$(tail "$tmp/out")"
}

# helps NAME OPTION...: with the options work/NAME.py succeeds in four contexts at once.
helps() {
    local name=$1
    shift
    if ! $system "$here/drive.py" plain "$here/work/$name.py" >"$tmp/out" 2>&1; then
        echo "skip $name-can_be_helped: it does not work here: $(tail -n 1 "$tmp/out")"
        return
    fi
    mkdir "$tmp/$name"
    timeout 600 $run --prove --contexts 4 "$@" --python $system "$here/drive.py" together \
        "$here/work/$name.py" "$tmp/$name" >"$tmp/out" 2>&1 && ok "$name-can_be_helped" ||
        not_ok "$name-can_be_helped" "$(tail "$tmp/out")"
}

needed llvm numba
helps gi --isolate 'libg*-2.0.so.0' --isolate 'libgirepository-*'
