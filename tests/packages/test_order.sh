#!/bin/bash
# The constructors of large closures run in the order in which ld.so runs those of the same copies:
# opencv, torch, PyQt5.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/runtime/lib.sh
. "$here/../runtime/lib.sh"
build=${EXTI_BUILD:-$root/build}
program=${EXTISOLATE:-$build/extisolate}
order=$build/tests/packages_order
soname=$($system -c 'import sysconfig; print(sysconfig.get_config_var("INSTSONAME"))')
libpython=$(/sbin/ldconfig -p | sed -n "s/.*$soname .*=> //p" | head -n 1)
libpython=$(realpath "$libpython")
site=/usr/lib/python3/dist-packages

# A program that needs nothing but the C library.
cat >"$tmp/plain.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!dlopen(argv[i], RTLD_NOW))
            return fprintf(stderr, "%s\n", dlerror());
    return 0;
}
END
cc -o "$tmp/plain" "$tmp/plain.c" || exit 1

# The originals in the order in which ld.so runs the constructors of copies for programs, which share
# libsqlite3 unless told otherwise.
plain() { # FILE
    "$program" copy --for programs --isolate 'libsqlite3*' --libpython "$libpython" "$1" "$tmp/ctx" >"$tmp/copied" || return
    LD_DEBUG=files LD_DEBUG_OUTPUT=$tmp/debug "$tmp/plain" \
        "$(sed -n "s|^$libpython -> ||p" "$tmp/copied")" "$(sed -n "s|^$(realpath "$1") -> ||p" "$tmp/copied")"
    "$program" list --json "$tmp/ctx" | $system -c '
import json, os, sys
original = {os.path.realpath(c["copy"]): c["source"] for d in json.load(sys.stdin) for c in d["copies"]}
for line in open(sys.argv[1]):
    _, init, path = line.partition("calling init: ")
    if init and os.path.realpath(path.strip()) in original:
        print(original[os.path.realpath(path.strip())])' "$tmp"/debug.*
    rm -rf "$tmp"/debug.* "$tmp/ctx"
}

for file in "$site"/numpy/*core/_multiarray_umath.*.so "$site"/cv2.*.so "$site"/torch/_C.cpython-*.so \
    "$site"/PyQt5/QtWidgets.abi3.so; do
    name=$(basename "$(dirname "$file")")/$(basename "$file" | cut -d. -f1)
    if [ ! -e "$file" ] || [ ! -e "$libpython" ]; then
        echo "skip $name: it is not installed"
        continue
    fi
    "$order" "$libpython" "$file" >"$tmp/ours" 2>"$tmp/err" || cat "$tmp/err"
    plain "$file" >"$tmp/theirs" 2>>"$tmp/err"
    if [ -s "$tmp/ours" ] && cmp -s "$tmp/ours" "$tmp/theirs"; then
        ok "$name: $(wc -l <"$tmp/ours") in order"
    else
        not_ok "$name" "$(diff "$tmp/ours" "$tmp/theirs" | head -20)" "$(tail -3 "$tmp/err")"
    fi
done
