#!/bin/bash
# Rebuilds testdata/corpus/elf: tiny shared objects of several linkers, machines and shapes, and the
# handmade files of hostile_elf.c.  Each follows the four bytes that fuzz_elf.c reads.  Files that
# need missing tools are left out.
#
#   tests/fuzz/make_corpus.sh [DIR]
set -eu

here=$(cd "$(dirname "$0")/../.." && pwd)
src=$here/testdata/src/elf_inputs
out=${1:-$here/testdata/corpus/elf}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
edits=10

# A library for others to need, with versions and without.
printf 'int Py_three(int n) { return n; }\n' >"$work/dep.c"
printf 'V_1 { global: *; };\n' >"$work/dep.map"
mkdir "$work/ld"
if command -v ld.lld >/dev/null; then ln -s "$(command -v ld.lld)" "$work/ld/ld.lld"; fi

count=0
keep() { # NAME FILE: one seed per kind of edit in turn
    printf "\\x$(printf %02x $((count % edits)))\\x11\\x22\\x01" >"$out/$1"
    cat "$2" >>"$out/$1"
    count=$((count + 1))
}

seed() { # NAME COMPILER FLAGS...
    local name=$1 cc=$2
    shift 2
    command -v "$cc" >/dev/null || { echo "$name: $cc is not installed"; return 0; }
    "$cc" -shared -nostdlib -fPIC -o "$work/libm.so.6" "$work/dep.c" -Wl,-soname,libm.so.6 \
        -Wl,--version-script="$work/dep.map" -Wl,--build-id=none 2>/dev/null || return 0
    if ! "$cc" -shared -nostdlib -Os -fPIC -fno-asynchronous-unwind-tables -fno-stack-protector \
        -o "$work/$name" "$src/seed.c" -Wl,-soname,libf.so.1 -Wl,--build-id=none "$@" \
        "$work/libm.so.6" 2>"$work/log"; then
        echo "$name: $(tail -n 1 "$work/log")"
        return 0
    fi
    strip -R .comment -g "$work/$name" 2>/dev/null || :
    keep "$name" "$work/$name"
}

versions="-DVERSIONED -Wl,--version-script=$src/seed.map"
tiny='-Wl,-z,max-page-size=64,-z,noseparate-code'
small='-Wl,-z,noseparate-code'

for i in 0 1 2 3 4 5 6 7 8 9; do
    # shellcheck disable=SC2086
    seed "tiny-$i" gcc $tiny $versions
done
# shellcheck disable=SC2086
{
    seed bfd gcc -Wl,-rpath,'$ORIGIN/x:/lib' -DTLS
    seed bfd-small gcc $small $versions -Wl,--build-id
    seed bfd-note gcc $small -Wl,--build-id -Wl,--hash-style=both
    seed bfd-sysv gcc $small -Wl,--hash-style=sysv
    seed bfd-gnu gcc $small -Wl,--hash-style=gnu -Wl,--disable-new-dtags -Wl,-rpath,/old/path
    seed bfd-relr gcc $small -Wl,-z,pack-relative-relocs
    seed bfd-unique gcc $small -DUNIQUE -Wl,-z,nodelete
    seed bfd-relocs gcc $small -Wl,-q
    seed bfd-data gcc $small -DDATA
    seed lld-data gcc -B"$work/ld" -fuse-ld=lld -DDATA -Wl,-z,max-page-size=4096
    seed gold gcc -fuse-ld=gold -Wl,-z,max-page-size=64 $versions
    seed lld gcc -B"$work/ld" -fuse-ld=lld $versions -Wl,-z,max-page-size=4096
    seed lld-one gcc -B"$work/ld" -fuse-ld=lld -Wl,--no-rosegment,-z,norelro
    seed mold gcc -fuse-ld=mold $versions
    seed i686 i686-linux-gnu-gcc $small $versions
    seed s390x s390x-linux-gnu-gcc $small -Wl,--hash-style=both
    seed mips mips-linux-gnu-gcc $small -Wl,-z,max-page-size=64
    seed mips-xhash mips-linux-gnu-gcc $small -Wl,-z,max-page-size=64 -Wl,--hash-style=gnu
    seed riscv64 riscv64-linux-gnu-gcc $small
}
if command -v eu-strip >/dev/null; then
    cp "$work/bfd-note" "$work/sectionless" && eu-strip --strip-sections "$work/sectionless"
    keep sectionless "$work/sectionless"
fi
"${CC:-cc}" -std=c11 -iquote "$here" -I"$here/include" -o "$work/hostile" \
    "$here/tests/fuzz/hostile_elf.c"
"$work/hostile" "$out"
du -bsc "$out" | tail -n 1
