#!/bin/bash
# Rebuilds testdata/corpus/ldcache: the caches that ldconfig makes of a few tiny libraries, in each
# of its formats.  Each follows the four bytes that fuzz_ldcache.c reads.  Files that need missing
# tools are left out.
#
#   tests/fuzz/make_ldcache_corpus.sh [DIR]
set -eu

here=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$here/testdata/corpus/ldcache}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
PATH=$PATH:/sbin:/usr/sbin
cd "$work"
echo 'int lib;' >lib.c

lib() { # COMPILER PATH
    command -v "$1" >/dev/null || { echo "$2: $1 is not installed"; return 0; }
    mkdir -p "l/$(dirname "$2")"
    "$1" -shared -nostdlib -fPIC -s -o "l/$2" lib.c -Wl,-soname,"$(basename "$2")"
}

count=0
keep() { # NAME FORMAT: one seed per kind of look-up in turn
    rm -f cache
    ldconfig -X -r "$work" -c "$2" -C /cache -f /conf 2>/dev/null
    printf "\\x$(printf %02x $((count % 8)))\\x11\\x22\\x01" >"$out/$1-$2"
    cat cache >>"$out/$1-$2"
    count=$((count + 1))
}

keep_all() {
    for format in new compat old; do keep "$1" "$format"; done
}

mkdir l
echo /l >conf
keep_all empty
lib gcc libleaf.so
keep_all one
lib gcc libleaf9.so.2
lib gcc libleaf10.so.2
lib i686-linux-gnu-gcc 32/libleaf.so
lib aarch64-linux-gnu-gcc 64/libleaf.so
printf '/l\n/l/32\n/l/64\n' >conf
keep_all several
for level in v2 v3 v4; do lib gcc "glibc-hwcaps/x86-64-$level/libleaf.so"; done
lib gcc glibc-hwcaps/other/libleaf9.so.2
keep_all hwcaps
du -bsc "$out" | tail -n 1
