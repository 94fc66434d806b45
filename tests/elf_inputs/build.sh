#!/bin/bash
# Builds shared objects of every odd shape known to have broken ELF editors.  Each can test itself.
#
#   tests/elf_inputs/build.sh DIR [NAME...]
#
# Makes DIR/NAME.so, or DIR/NAME.skip with the reason why this machine cannot build it.  Makes
# DIR/<arch>/driver and DIR/<arch>/libextidep.so.1 for each kind of machine.
set -u

here=$(cd "$(dirname "$0")/../.." && pwd)
src=$here/testdata/src/elf_inputs
dir=$1
shift
only=" $* "
mkdir -p "$dir"
cd "$dir" || exit 1
log=$PWD/build.log
: >"$log"

have() {
    command -v "$1" >/dev/null
}

# gcc looks for lld under its plain name only.
mkdir -p ld
have ld.lld && ln -sf "$(command -v ld.lld)" ld/ld.lld

skip() {
    echo "$2" >"$1.skip"
    rm -f "$1.so"
}

# run NAME COMMAND...: a step of building NAME
run() {
    local name=$1
    shift
    [ ! -e "$name.skip" ] || return 1
    echo "$name: $*" >>"$log"
    "$@" >>"$log" 2>&1 && return
    skip "$name" "failed here: $(basename "$1") $(tail -n 1 "$log" | cut -c1-150)"
    return 1
}

wanted() {
    [ "$only" = "  " ] || [[ $only == *" $1 "* ]] || return 1
    rm -f "$1.so" "$1.skip"
}

needs() {
    local name=$1 tool
    shift
    for tool in "$@"; do
        have "$tool" || { skip "$name" "$tool is not installed"; return 1; }
    done
}

cflags='-O1 -g -fPIC'
map=-Wl,--version-script=$src/selftest.map

object() { # OUTPUT COMPILER FLAGS... SOURCE
    local out=$1
    shift
    [ -e "$out" ] || { echo "$*" >>"$log"; "$@" -c -o "$out" >>"$log" 2>&1; }
}

# The test's two halves, once per compiler and set of flags.
c_object() { object selftest.o gcc $cflags -DVERSIONED "$src/selftest.c"; }
cc_object() { object selftest_cc.o g++ $cflags "$src/selftest_cc.cc"; }

# dso NAME FLAGS...: C and C++ halves, linked by g++ with FLAGS
dso() {
    local name=$1
    shift
    wanted "$name" || return 0
    needs "$name" g++ && c_object && cc_object &&
        run "$name" g++ -shared -o "$name.so" selftest.o selftest_cc.o "$map" \
            -Wl,-soname,libt.so.1 -lm "$@"
}

# c_dso NAME FLAGS...: the C half only
c_dso() {
    local name=$1
    shift
    wanted "$name" || return 0
    c_object &&
        run "$name" gcc -shared -o "$name.so" selftest.o "$map" -Wl,-soname,libt.so.1 "$@" -lm
}

with_linker() { # NAME TOOL -fuse-ld FLAGS...
    local name=$1 tool=$2 ld=$3
    shift 3
    if have "$tool"; then
        dso "$name" -B"$PWD/ld" "-fuse-ld=$ld" "$@"
    elif wanted "$name"; then
        skip "$name" "$tool is not installed"
    fi
}

# after NAME BASE COMMAND...: a copy of BASE that COMMAND changes; % stands for it
after() {
    local name=$1 base=$2
    shift 2
    wanted "$name" || return 0
    if [ ! -e "$base.so" ]; then
        skip "$name" "built from $base: $(cat "$base.skip" 2>/dev/null)"
        return 0
    fi
    cp "$base.so" "$name.so"
    needs "$name" "$1" && run "$name" "${@//%/$name.so}"
}

support() { # ARCH COMPILER
    local arch=$1 cc=$2
    mkdir -p "$arch"
    have "$cc" || return 0
    "$cc" -O1 -o "$arch/driver" "$src/driver.c" -ldl >>"$log" 2>&1 || rm -f "$arch/driver"
    "$cc" -O1 -fPIC -shared -Wl,-soname,libextidep.so.1 -o "$arch/libextidep.so.1" "$src/dep.c" \
        >>"$log" 2>&1
}

# ---- linkers and their options -------------------------------------------------------------------

linkers() {
    dso bfd
    with_linker gold ld.gold gold
    with_linker lld ld.lld lld
    with_linker mold mold mold
    dso norelro -Wl,-z,norelro
    dso bind-now -Wl,-z,now
    dso noseparate-code -Wl,-z,noseparate-code
    with_linker lld-separate ld.lld lld -Wl,-z,separate-loadable-segments
    with_linker lld-no-rosegment ld.lld lld -Wl,--no-rosegment
    dso based -Wl,-Ttext-segment=0x30000000
    dso page-2m -Wl,-z,max-page-size=0x200000
    with_linker gold-page-2m ld.gold gold -Wl,-z,max-page-size=0x200000
    dso page-64k -Wl,-z,max-page-size=65536
    dso hash-sysv -Wl,--hash-style=sysv
    dso hash-gnu -Wl,--hash-style=gnu
    dso hash-both -Wl,--hash-style=both
    dso no-spare -Wl,--spare-dynamic-tags=0
    dso execstack -Wl,-z,execstack
    dso no-build-id -Wl,--build-id=none
    dso relr -Wl,-z,pack-relative-relocs
    with_linker lld-relr ld.lld lld -Wl,--pack-dyn-relocs=relr
    with_linker lld-android-relocs ld.lld lld -Wl,--pack-dyn-relocs=android
    dso emit-relocs -Wl,-q
    dso nodelete -Wl,-z,nodelete
    dso rpath -Wl,-rpath,'$ORIGIN/lib:/opt/lib' -Wl,--disable-new-dtags
    dso runpath -Wl,-rpath,'$ORIGIN/lib:/opt/lib' -Wl,--enable-new-dtags
    dso own-init -Wl,-init,selftest_answer_1
    dso cet -Wl,-z,ibt,-z,shstk -Wl,--build-id
    dso filter -Wl,-F,libm.so.6
}

# ---- sources of their own ------------------------------------------------------------------------

# The library's name is also a version, the search path also a symbol: both are shared strings.
shared_strings() {
    wanted shared-strings || return 0
    sed 's/^ST_1/libt.so.1/; s/ST_1;/libt.so.1;/' "$src/selftest.map" >shared.map
    object shared.o gcc $cflags "$src/selftest.c" &&
        run shared-strings gcc -shared -o shared-strings.so shared.o \
            -Wl,--version-script=shared.map -Wl,-soname,libt.so.1 -Wl,-rpath,selftest_data -lm
}

small_bss() {
    wanted small-bss || return 0
    object small.o gcc $cflags -DBSS_SIZE=100 "$src/selftest.c" &&
        run small-bss gcc -shared -o small-bss.so small.o -lm
}

# No symbol versions, so that nothing shares the string of the library's name.
plain() {
    wanted plain || return 0
    object plain.o gcc $cflags "$src/selftest.c" &&
        run plain gcc -shared -o plain.so plain.o -Wl,-soname,libt.so.1 -lm
}

no_soname() {
    wanted no-soname || return 0
    c_object && run no-soname gcc -shared -o no-soname.so selftest.o "$map" -lm
}

# Sections with contents right behind the program headers.
gap_script() { # NAME SECTION
    wanted "$1" || return 0
    ld -shared --verbose | sed -n '/^====/,/^====/p' | grep -v '^====' |
        sed "s/^.*text-segment.*SIZEOF_HEADERS;/&\\n  $2 : { KEEP (*($2 $2.*)) }/" >"$1.ld"
    c_object && run "$1" gcc -shared -o "$1.so" selftest.o "$map" -Wl,-T,"$1.ld" -lm
}

many_sections() {
    wanted many-sections || return 0
    needs many-sections ld.lld || return 0
    awk 'BEGIN { for (i = 0; i < 66000; i++) printf ".section .s%d,\"a\"\n.byte 1\n", i }' >many.s
    c_object && object many.o gcc many.s &&
        run many-sections gcc -shared -B"$PWD/ld" -fuse-ld=lld -o many-sections.so selftest.o \
                many.o "$map" -lm
    rm -f many.s
}

programs() {
    if wanted pie; then
        echo 'int main(void) { return 0; }' >main.c
        run pie gcc -pie -fPIE -o pie.so main.c
    fi
    if wanted static-pie; then
        echo 'int main(void) { return 0; }' >main.c
        run static-pie gcc -static-pie -fPIE -o static-pie.so main.c
    fi
    if wanted object-file; then
        c_object && cp selftest.o object-file.so
    fi
    if wanted archive; then
        c_object && rm -f archive.so && run archive ar rcs archive.so selftest.o
    fi
    if wanted empty; then
        : >empty.so
    fi
    if wanted truncated; then
        [ ! -e bfd.so ] || head -c 9000 bfd.so >truncated.so
    fi
}

# ---- other machines and C libraries --------------------------------------------------------------

cross() { # NAME ARCH COMPILER FLAGS...
    local name=$1 arch=$2 cc=$3
    shift 3
    wanted "$name" || return 0
    needs "$name" "$cc" || return 0
    [ -e "$arch/driver" ] || { skip "$name" "$cc cannot link programs here"; return 0; }
    run "$name" "$cc" $cflags -DVERSIONED -shared -o "$name.so" "$src/selftest.c" "$map" \
        -Wl,-soname,libt.so.1 "$@" -lm
}

machines() {
    support x86_64 gcc
    support musl musl-gcc
    support i686 i686-linux-gnu-gcc
    support s390x s390x-linux-gnu-gcc
    support mips mips-linux-gnu-gcc
    support riscv64 riscv64-linux-gnu-gcc
    support aarch64 aarch64-linux-gnu-gcc
    support arm arm-linux-gnueabihf-gcc
    if wanted musl; then
        needs musl musl-gcc &&
            run musl musl-gcc $cflags -shared -o musl.so "$src/selftest.c" -Wl,-soname,libt.so.1
    fi
    cross i686 i686 i686-linux-gnu-gcc
    cross s390x s390x s390x-linux-gnu-gcc
    cross s390x-sysv s390x s390x-linux-gnu-gcc -Wl,--hash-style=sysv
    cross mips mips mips-linux-gnu-gcc -Wl,--hash-style=sysv
    cross mips-xhash mips mips-linux-gnu-gcc -Wl,--hash-style=gnu
    cross riscv64 riscv64 riscv64-linux-gnu-gcc
    cross aarch64 aarch64 aarch64-linux-gnu-gcc
    cross arm arm arm-linux-gnueabihf-gcc
}

# ---- made odd afterwards -------------------------------------------------------------------------

made_odd() {
    gcc -O1 -o edit_elf "$src/edit_elf.c" >>"$log" 2>&1
    after patchelfed bfd patchelf --set-rpath /somewhere/long/enough/to/grow/the/string/table %
    after patchelfed-lld lld patchelf --set-rpath /somewhere/long/enough/to/grow/the/string/table %
    after sectionless bfd eu-strip --strip-sections %
    after sectionless-lld lld eu-strip --strip-sections %
    after stripped bfd strip %
    after renamed-section bfd \
        objcopy --rename-section .gnu.version_r=.gv --rename-section .dynstr=.ds %
    after unnamed bfd ./edit_elf unnamed %
    after lying bfd ./edit_elf lying %
    after move-headers bfd ./edit_elf move-headers %
    after swap-loads bfd ./edit_elf swap-loads %
    after no-stack bfd ./edit_elf no-stack %
    after xnum bfd ./edit_elf xnum %
    after empty-note bfd ./edit_elf empty-note %
    after align-0 bfd ./edit_elf align-0 %
    after odd-align bfd ./edit_elf odd-align %
    after debug-only bfd objcopy --only-keep-debug %
    after overlay bfd sh -c 'echo "PK at the end" | head -c 5000 >> %'
    if wanted bolted; then
        needs bolted llvm-bolt && [ -e emit-relocs.so ] &&
            run bolted llvm-bolt emit-relocs.so -o bolted.so
    fi
}

machines
linkers
c_dso rwx -Wl,-T,"$src/rwx.ld"
shared_strings
small_bss
plain
no_soname
gap_script gap-rodata .rodata
gap_script gap-init .init
many_sections
programs
made_odd
for name in "$@"; do
    [ -e "$name.so" ] || [ -e "$name.skip" ] || skip "$name" "not known to build.sh"
done
