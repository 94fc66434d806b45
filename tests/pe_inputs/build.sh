#!/bin/bash
# Builds DLLs of every shape that GNU ld and lld can produce here.
#
#   tests/pe_inputs/build.sh DIR
#
# Leaves DIR/<linker>-<machine>/NAME.dll, with <linker> gnu or lld and <machine> x64, x86 or arm64.
# What this machine cannot build has NAME.skip with the reason instead.  Nothing is done when DIR is
# newer than the sources.  Safe when several tests call it at once.
set -u

here=$(cd "$(dirname "$0")/../.." && pwd)
src=$here/testdata/src/pe
mkdir -p "$1" && cd "$1" || exit 1
log=$PWD/build.log

exec 9>.lock
flock 9
if [ -f built ] && [ -z "$(find "$src" "$here/tests/pe_inputs/build.sh" -newer built -type f)" ]; then
    exit 0
fi
rm -rf built gnu-* lld-*
: >"$log"


# run FILE COMMAND...: a step of building FILE
run() {
    local file=$1
    shift
    [ ! -e "${file%.*}.skip" ] || return 1
    echo "$file: $*" >>"$log"
    "$@" >>"$log" 2>&1 && return
    echo "failed here: $(basename "$1") $(tail -n 1 "$log" | cut -c1-150)" >"${file%.*}.skip"
    rm -f "$file"
    return 1
}

# ---- GNU ld --------------------------------------------------------------------------------------

build_gnu() { # MACHINE TRIPLE
    local d=gnu-$1 cc=$2-gcc
    # The run-time library would add hundreds of symbols that no test needs.
    local link=("$cc" -shared -O1 -nostdlib -Wl,--no-insert-timestamp -Wl,-e,0
        "-ffile-prefix-map=$here=." "-ffile-prefix-map=$PWD=.")
    mkdir -p "$d"
    run "$d/python311.dll" "${link[@]}" -o "$d/python311.dll" "$src/pystub.c" \
        -Wl,--out-implib,"$d/libpython311.dll.a" || return
    run "$d/ext.dll" "${link[@]}" -o "$d/ext.dll" "$src/ext.c" "$d/libpython311.dll.a"
    run "$d/stripped.dll" "${link[@]}" -s -o "$d/stripped.dll" "$src/ext.c" "$d/libpython311.dll.a"
    run "$d/debug.dll" "${link[@]}" -g -Wl,--build-id -o "$d/debug.dll" "$src/ext.c" \
        "$d/libpython311.dll.a"
    run "$d/def.dll" "${link[@]}" -s -o "$d/def.dll" "$src/ext.c" "$src/ext.def" \
        "$d/libpython311.dll.a"
    # Only forwarders.
    echo 'int nothing;' >"$d/nothing.c"
    run "$d/python3.dll" "${link[@]}" -s -o "$d/python3.dll" "$d/nothing.c" "$src/python3.def"
}

# ---- lld -----------------------------------------------------------------------------------------

build_lld() { # MACHINE TARGET
    local d=lld-$1
    local cc=(clang "--target=$2-pc-windows-msvc" -O1 -ffreestanding -fno-stack-protector
        "-ffile-prefix-map=$here=.")
    local link=(lld-link /nologo /dll /nodefaultlib /Brepro "/machine:$1")
    [ "$1" != x86 ] || link+=(/safeseh:no)
    mkdir -p "$d"
    echo 'int nothing;' >"$d/nothing.c"
    run "$d/python311.dll" "${cc[@]}" -c -o "$d/pystub.obj" "$src/pystub.c" &&
        run "$d/python311.dll" "${cc[@]}" -c -o "$d/ext.obj" "$src/ext.c" &&
        run "$d/python311.dll" "${cc[@]}" -c -o "$d/nothing.obj" "$d/nothing.c" &&
        run "$d/python311.dll" "${link[@]}" "/out:$d/python311.dll" "$d/pystub.obj" || return
    ext() { # NAME OPTION...
        local file=$d/$1.dll
        shift
        run "$file" "${link[@]}" "/out:$file" "/implib:$d/unused.lib" "$d/ext.obj" \
            "$d/python311.lib" "$@"
    }
    ext ext
    ext def "/def:$src/ext.def"
    ext debug /debug "/pdb:$d/debug.pdb" /pdbaltpath:debug.pdb /pdbsourcepath:.
    ext release /release
    ext wide /filealign:4096
    ext large /align:65536
    ext low /align:512
    [ "$1" = arm64 ] || ext fixed /fixed
    ext merged /merge:.rdata=.text
    run "$d/python3.dll" "${link[@]}" "/out:$d/python3.dll" /noentry "$d/nothing.obj" \
        "/implib:$d/python3.lib" "/def:$src/python3.def"
    # The stable ABI, by name and by ordinal.
    sed 's/=[^ ]*//; s/@[0-9]*/& NONAME/' "$src/python3.def" >"$d/numbers.def"
    local -A kind=([x64]=i386:x86-64 [x86]=i386 [arm64]=arm64)
    run "$d/abi3-numbers.dll" llvm-dlltool -m "${kind[$1]}" -d "$d/numbers.def" -l "$d/numbers.lib"
    for lib in python3 numbers; do
        run "$d/abi3-$lib.dll" "${link[@]}" "/out:$d/abi3-$lib.dll" "/implib:$d/unused.lib" "$d/ext.obj" \
            "$d/$lib.lib"
    done
    # Data cannot be delay-imported.
    sed -e '/PyLong_Type;/d' -e 's/ + PyLong_Type//' "$src/ext.c" >"$d/late.c"
    run "$d/delayed.dll" "${cc[@]}" -c -o "$d/late.obj" "$d/late.c" &&
        run "$d/delayed.dll" "${link[@]}" "/out:$d/delayed.dll" "/implib:$d/unused.lib" \
            "$d/late.obj" "$d/python311.lib" /delayload:python311.dll &&
        run "$d/numbers-late.dll" "${link[@]}" "/out:$d/numbers-late.dll" "/implib:$d/unused.lib" \
            "$d/late.obj" "$d/numbers.lib" /delayload:python3.dll
}

build_gnu x64 x86_64-w64-mingw32
build_gnu x86 i686-w64-mingw32
build_lld x64 x86_64
build_lld x86 i686
build_lld arm64 aarch64
rm -f ./*/*.obj ./*/*.c ./*/*.pdb ./*/*.def ./*/unused.*
touch built
