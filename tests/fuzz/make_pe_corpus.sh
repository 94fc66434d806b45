#!/bin/bash
# Rebuilds testdata/corpus/pe from testdata/src/pe with GNU ld and lld, and from the handmade
# files of hostile_pe.c.  Each file follows the four bytes that fuzz_pe.c reads.
#
#   tests/fuzz/make_pe_corpus.sh [DIR]
set -eu

here=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$here/testdata/corpus/pe}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
edits=8

"$here/tests/pe_inputs/build.sh" "$work/in"

count=0
keep() { # FOLDER NAME: one seed per kind of edit in turn
    [ -e "$work/in/$1/$2.dll" ] || { echo "$1/$2: not built here"; return 0; }
    printf "\\x$(printf %02x $((count % edits)))\\x11\\x22\\x01" >"$out/$1-$2"
    cat "$work/in/$1/$2.dll" >>"$out/$1-$2"
    count=$((count + 1))
}

for machine in x64 x86; do
    for name in python311 python3 ext stripped debug def; do
        keep "gnu-$machine" "$name"
    done
done
for machine in x64 x86 arm64; do
    for name in python311 python3 ext def debug release delayed; do
        keep "lld-$machine" "$name"
    done
done
for name in large low fixed merged; do
    keep lld-x64 "$name"
done

"${CC:-cc}" -std=c11 -iquote "$here" -I"$here/include" -o "$work/hostile" \
    "$here/tests/fuzz/hostile_pe.c"
"$work/hostile" "$out"
du -bsc "$out" | tail -n 1
