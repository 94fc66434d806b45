#!/bin/bash
# Builds every kind of Mach-O file that clang and ld64.lld can make here, and the loader that runs
# them.
#
#   tests/macho_inputs/build.sh DIR
#
# Fills DIR/<arch>/<fixups>/ with libpystub.dylib, which stands for libpython, NAME.so for each
# input, and the libraries that they need; <arch> is x86_64, arm64 or fat, <fixups> is chained or
# opcodes.
# For inputs that this machine cannot build, NAME.skip holds the reason.  DIR/<arch>/macho_load runs
# them.  Does nothing if DIR is newer than the sources.  Several tests may call it at once.
set -u

here=$(cd "$(dirname "$0")/../.." && pwd)
src=$here/testdata/src/macho
loader=$here/tests/macho_inputs/loader
mkdir -p "$1" && cd "$1" || exit 1
log=$PWD/build.log

exec 9>.lock
flock 9
if [ -f built ] &&
    [ -z "$(find "$src" "$loader" "$here/tests/macho_inputs/build.sh" -newer built -type f)" ]; then
    exit 0
fi
rm -rf built x86_64 arm64 fat
: >"$log"

have() {
    command -v "$1" >/dev/null
}

odd=$here/tests/macho_inputs/odd.py

# run FILE COMMAND...: one step of building FILE
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

# ---- the loader ----------------------------------------------------------------------------------

build_loader() { # ARCH COMPILER...
    local arch=$1
    shift
    run "$arch/macho_load" "$@" -iquote "$here" -I"$here/include" -std=c11 \
        -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -O1 -g -o "$arch/macho_load" \
        "$loader"/{macho_load,file,fixups,trie,lookup,map,host,check,unwind}.c -lpthread
}

# ---- inputs --------------------------------------------------------------------------------------

object() { # OUT SOURCE FLAGS...
    local out=$1 source=$2
    shift 2
    run "$out" clang -target "$arch-apple-macos11" -O1 -fno-stack-protector -fPIC \
        -I"$src" -c "$src/$source" -o "$out" "$@"
}

objects() { # of $arch
    object "$arch/pystub.o" pystub.c
    object "$arch/program.o" program.c
    object "$arch/ext.o" ext.c
    object "$arch/direct.o" ext.c -fno-plt
    object "$arch/far2.o" far.c -DFAR=40000
    object "$arch/far3.o" far.c -DFAR=0x123456789
    object "$arch/tlv.o" tlv.c
    object "$arch/weak.o" weak.cc -std=c++17 -fexceptions
    object "$arch/many.o" many.c
    object "$arch/frames.o" frames.c -fomit-frame-pointer
    object "$arch/helper.o" helper.c
    object "$arch/helped.o" helped.c
    for n in {1..20}; do
        object "$arch/extra$n.o" extra.c -DN="$n"
    done
}

link() { # OUT FLAGS...: the last platform given counts
    local out=$1
    shift
    run "$out" ld64.lld -arch "$arch" -platform_version macos 11.0 13.3 "$fixups" "$@" \
        "$src/libSystem.tbd" -o "$out"
}

bundle() { # NAME OBJECT FLAGS...: an extension as most are
    local name=$1 object=$2
    shift 2
    link "$dir/$name.so" -bundle -undefined dynamic_lookup "$arch/$object.o" "$@"
}

libraries() {
    link "$dir/libpystub.dylib" -dylib -install_name @rpath/libpystub.dylib "$arch/pystub.o"
    link "$dir/libumbrella.dylib" -dylib -install_name @rpath/libumbrella.dylib \
        -reexport_library "$dir/libpystub.dylib" -rpath @loader_path
    link "$dir/program" -execute -export_dynamic "$arch/program.o" "$arch/pystub.o"
    link "$dir/libhelper.dylib" -dylib -install_name @rpath/libhelper.dylib \
        -undefined dynamic_lookup "$arch/helper.o"
    extras=
    for n in {1..20}; do
        link "$dir/libextra$n.dylib" -dylib -install_name "@loader_path/libextra$n.dylib" \
            "$arch/extra$n.o"
        extras="$extras $dir/libextra$n.dylib"
    done
}

inputs() { # of $arch, with $fixups, into $dir
    mkdir -p "$dir"
    libraries
    bundle ext ext
    bundle direct direct
    bundle far2 far2
    bundle far3 far3
    bundle tlv tlv
    bundle weak weak "$src/libcxx.tbd"
    bundle explicit ext "$dir/libpystub.dylib" -rpath @loader_path
    bundle loader ext -bundle_loader "$dir/program"
    # shellcheck disable=SC2086
    bundle many many $extras
    bundle reexport ext
    bundle frames frames
    bundle flat ext -flat_namespace
    bundle pad0 ext -headerpad 0
    bundle pad0-weak weak "$src/libcxx.tbd" -headerpad 0
    bundle pad0-tlv tlv -headerpad 0
    bundle padmax ext -headerpad_max_install_names
    bundle init-offsets ext -init_offsets
    bundle unsigned ext -no_adhoc_codesign
    bundle signed ext -adhoc_codesign
    bundle helped helped "$dir/libhelper.dylib" -rpath @loader_path
    bundle dead-strip weak "$src/libcxx.tbd" -dead_strip
    bundle sdk-11 ext -platform_version macos 10.14 11.0
    bundle sdk-10.9 ext -platform_version macos 10.9 10.9
    [ $kind = opcodes ] ||
        run "$dir/pointers6.so" "$odd" pointers6 "$dir/unsigned.so" "$dir/pointers6.so"
    link "$dir/dylib.so" -dylib -install_name @rpath/dylib.so -undefined dynamic_lookup \
        "$arch/ext.o"
}

fat() { # NAME SOURCE...: $dir/NAME from the files of both machines
    local name=$1
    shift
    run "$dir/$name" llvm-lipo -create "$@" -output "$dir/$name"
}

# A slice that no linker here can make: a header and a few commands.
old_slice() { # OUT CPUTYPE CPUSUBTYPE LITTLE-ENDIAN
    cat >"$1.yaml" <<EOF
--- !mach-o
IsLittleEndian: $4
FileHeader:
  magic:           0xFEEDFACE
  cputype:         $2
  cpusubtype:      $3
  filetype:        0x00000008
  ncmds:           1
  sizeofcmds:      24
  flags:           0x00000085
LoadCommands:
  - cmd:             LC_UUID
    cmdsize:         24
    uuid:            00112233-4455-6677-8899-AABBCCDDEEFF
...
EOF
    run "$1" yaml2obj "$1.yaml" -o "$1"
}

fats() {
    local x=x86_64/$kind a=arm64/$kind name
    dir=fat/$kind
    mkdir -p "$dir"
    for name in libpystub.dylib libhelper.dylib ext.so weak.so tlv.so pad0.so helped.so; do
        fat "$name" "$x/$name" "$a/$name"
    done
    run "$dir/fat64.so" "$odd" fat64 "$dir/ext.so" "$dir/fat64.so"
    fat odd.so "$x/ext.so" "$a/ext.so" i386.slice ppc.slice
}

for arch in x86_64 arm64; do
    mkdir -p "$arch"
    objects
    for kind in chained opcodes; do
        dir=$arch/$kind
        fixups=-fixup_chains
        [ $kind = chained ] || fixups=-no_fixup_chains
        inputs
    done
done
build_loader x86_64 "${CC:-gcc}" -no-pie
build_loader arm64 aarch64-linux-gnu-gcc -static
old_slice i386.slice 0x7 0x3 true
old_slice ppc.slice 0x12 0x0 false
for kind in chained opcodes; do
    fats
done
touch built

