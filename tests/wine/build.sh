#!/bin/bash
# Builds what runs under wine on x86-64: the host program, and DLLs beyond those of tests/pe_inputs,
# which are in DIR/../pe_inputs.
#
#   tests/wine/build.sh DIR
#
# Leaves DIR/host.exe and DIR/NAME.dll, or DIR/NAME.skip with the reason.  Nothing is done when DIR
# is newer than the sources.  Safe when several tests call it at once.
set -u

here=$(cd "$(dirname "$0")/../.." && pwd)
src=$here/tests/wine/src
pe=$here/testdata/src/pe
mkdir -p "$1" && cd "$1" || exit 1
inputs=$(cd .. && pwd)/pe_inputs
"$here/tests/pe_inputs/build.sh" "$inputs"
log=$PWD/build.log

exec 9>.lock
flock 9
if [ -f built ] && [ "$inputs/built" -ot built ] &&
    [ -z "$(find "$src" "$here/tests/wine/build.sh" "$here/tests/wine/shape.py" -newer built -type f)" ]; then
    exit 0
fi
rm -f built ./*.dll ./*.exe ./*.skip
: >"$log"

mingw=x86_64-w64-mingw32

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

run host.exe $mingw-gcc -iquote "$here" -I"$here/include" -std=gnu11 -O1 -Wall -Wextra -Werror -D__USE_MINGW_ANSI_STDIO=1 -o host.exe \
    "$src/host.c" "$src/walk.c" "$src/python.c"
# Beside the program, where the loader finds DLLs that wine lacks.
run bcryptprimitives.dll $mingw-gcc -shared -static-libgcc -O1 -o bcryptprimitives.dll "$src/prng.c" \
    -ladvapi32

# ---- GNU ld --------------------------------------------------------------------------------------

gnu=$inputs/gnu-x64
run crt.dll $mingw-gcc -shared -static-libgcc -O1 -g -o crt.dll "$src/crt.c" "$gnu/libpython311.dll.a"

# dlltool's delay imports, which no directory lists.  Newer linkers make their slots read-only, although the
# first call writes them.
cat >late.def <<'D'
LIBRARY python311.dll
EXPORTS
    PyModule_Create2
    Py_BuildValue
D
sed -e '/PyLong_Type;/d' -e 's/ + PyLong_Type//' "$pe/ext.c" >late-ext.c
run hidden.dll $mingw-dlltool -d late.def -y libhidden.a &&
    run hidden.dll $mingw-gcc -shared -static-libgcc -O1 -o hidden.dll late-ext.c libhidden.a &&
    run hidden.dll "$here/tests/wine/shape.py" writable hidden.dll hidden.dll .idata

# ---- lld -----------------------------------------------------------------------------------------

cc=(clang --target=x86_64-pc-windows-msvc -O1 -ffreestanding -fno-stack-protector)
# link NAME INPUT...
link() {
    local name=$1
    shift
    run "$name.dll" lld-link /nologo /dll /nodefaultlib /Brepro /machine:x64 "/out:$name.dll" \
        "/implib:unused.lib" "$@"
}

cat >kernel32.def <<'D'
LIBRARY kernel32.dll
EXPORTS
    LoadLibraryExA
    GetProcAddress
D
run delayed.dll llvm-dlltool -m i386:x86-64 -d kernel32.def -l kernel32.lib &&
    run delayed.dll "${cc[@]}" -DDELAY_HELPER -c -o late-own.obj late-ext.c &&
    run delayed.dll "${cc[@]}" -c -o late.obj "$src/late.c" &&
    link delayed late-own.obj late.obj kernel32.lib "$inputs/lld-x64/python311.lib" \
        /delayload:python311.dll

# Delay imports of the stable ABI by ordinal.
sed 's/=[^ ]*//; s/@[0-9]*/& NONAME/' "$pe/python3.def" >numbers.def
run late3.dll llvm-dlltool -m i386:x86-64 -d numbers.def -l numbers.lib &&
    link late3 late-own.obj late.obj kernel32.lib numbers.lib /delayload:python3.dll

# A given number of sections, the linker's own included.
sections() { # NAME COUNT
    local i own
    own=$("$here/tests/wine/shape.py" sections ext-x64.dll) || return
    cp "$pe/ext.c" sections.c
    for ((i = own; i < $2; i++)); do
        printf '__attribute__((section(".s%d"))) API int filler%d = %d;\n' $i $i $i >>sections.c
    done
    run "$1.dll" "${cc[@]}" -c -o sections.obj sections.c &&
        link "$1" sections.obj "$inputs/lld-x64/python311.lib"
}
cp "$inputs/lld-x64/ext.dll" ext-x64.dll && sections sixteen 16 && sections most 96 && sections toomany 97
rm -f ./*.obj ./*.lib ./*.a unused.*
touch built
