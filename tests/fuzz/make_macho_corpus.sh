#!/bin/bash
# Rebuilds testdata/corpus/macho from testdata/src/macho with clang and ld64.lld, and from the
# handmade files of hostile_macho.c.  Each file follows the four bytes that fuzz_macho.c reads.
#
#   tests/fuzz/make_macho_corpus.sh [DIR]
set -eu

here=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:-$here/testdata/corpus/macho}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
edits=10

"$here/tests/macho_inputs/build.sh" "$work/in"

count=0
keep() { # NAME FILE: one seed per kind of edit in turn
    [ -e "$work/in/$2" ] || { echo "$1: not built here"; return 0; }
    printf "\\x$(printf %02x $((count % edits)))\\x11\\x22\\x01" >"$out/$1"
    cat "$work/in/$2" >>"$out/$1"
    count=$((count + 1))
}

for kind in chained opcodes; do
    for name in ext weak tlv many pad0 loader explicit init-offsets dylib; do
        keep "$kind-$name" "x86_64/$kind/$name.so"
    done
    keep "$kind-arm64" "arm64/$kind/weak.so"
done
for name in far2 far3 pointers6; do
    keep "chained-$name" "x86_64/chained/$name.so"
done
for name in flat unsigned sdk-10.9; do
    keep "opcodes-$name" "x86_64/opcodes/$name.so"
done
keep fat fat/opcodes/ext.so

"${CC:-cc}" -std=c11 -iquote "$here" -I"$here/include" -o "$work/hostile" \
    "$here/tests/fuzz/hostile_macho.c"
"$work/hostile" "$out"
du -bsc "$out" | tail -n 1

