#!/bin/sh
# Builds the toy libraries in all flavours that the tests use:  build.sh OUT
# OUT/<flavour>/{libtoy.so.1,libtoydep.so,ext_a.so,ext_b.so,ext_dl.so,ext_dep.so,ext_missing.so}
# and ext_cxx.so if the compiler has C++.  OUT/flavours lists the flavours built.
# Does nothing if OUT is newer than the sources.  Several tests may run it at once.
set -eu
src=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)

exec 9>"$out/.lock"
flock 9
if [ -f "$out/flavours" ] && [ -z "$(find "$src" -newer "$out/flavours" -type f)" ]; then
    exit 0
fi

have() { command -v "$1" >/dev/null 2>&1; }

# flavour NAME CC CXX FLAGS [VERSION-SCRIPT]
flavour()
{
    d=$out/$1
    cc=$2
    cxx=$3
    flags="-O1 -g -fPIC -shared -I$src $4"
    mkdir -p "$d"
    $cc $flags ${5:+-Wl,--version-script=$5} -Wl,-soname,libtoy.so.1 "$src/toy.c" \
        -o "$d/libtoy.so.1" &
    $cc $flags -DNAME=a "$src/toy_ext.c" -o "$d/ext_a.so" &
    $cc $flags -DNAME=b "$src/toy_ext.c" -o "$d/ext_b.so"
    $cc $flags "$src/toy_dl.c" -o "$d/ext_dl.so" &
    $cc $flags -Wl,-soname,libtoydep.so "$src/toy_dep.c" -o "$d/libtoydep.so"
    $cc $flags "$src/toy_depext.c" -L"$d" -ltoydep '-Wl,-rpath,$ORIGIN' -o "$d/ext_dep.so" &
    $cc $flags "$src/toy_missing.c" -o "$d/ext_missing.so" &
    $cxx $flags -std=c++17 "$src/toy_cxxext.cc" -o "$d/ext_cxx.so"
    wait
    for f in libtoy.so.1 libtoydep.so ext_a.so ext_b.so ext_dl.so ext_dep.so ext_missing.so; do
        [ -f "$d/$f" ] || { echo "build.sh: $d/$f was not built" >&2 && exit 1; }
    done
    echo "$1" >>"$out/flavours.new"
}

rm -f "$out/flavours" "$out/flavours.new"
flavour gcc gcc g++ ""
flavour now gcc g++ "-Wl,-z,now -Wl,-z,relro"
flavour lazy gcc g++ "-Wl,-z,lazy -fno-plt"
flavour both gcc g++ "-Wl,--hash-style=both"
flavour sysv gcc g++ "-Wl,--hash-style=sysv"
flavour versioned gcc g++ "" "$src/toy.map"
flavour stripped gcc g++ "-s"
for v in "" -16; do
    if have clang$v && have ld.lld$v; then
        # Valgrind 3.19 cannot read this compiler's DWARF 5.
        flavour lld clang$v clang++$v "-gdwarf-4 --ld-path=$(command -v ld.lld$v)"
        break
    fi
done
have mold && flavour mold gcc g++ "-fuse-ld=mold"
have ld.gold && flavour gold gcc g++ "-fuse-ld=gold"

# An API whose name is too short for a private name.
gcc -O1 -g -fPIC -shared -Wl,-soname,libtoyshort.so.1 "$src/toy_short.c" -o "$out/libtoyshort.so.1"
gcc -O1 -g -fPIC -shared "$src/toy_shortext.c" -o "$out/ext_short.so"
# Threads and keys.
gcc -O1 -g -fPIC -shared "$src/toy_threads.c" -o "$out/ext_threads.so"
g++ -O1 -g -fPIC -shared -std=c++17 "$src/toy_cxxthreads.cc" -o "$out/ext_cxxthreads.so"
# The toy API inside a program or another library.
gcc -O1 -g -fPIC -shared -I"$src" -Wl,-soname,libtoyhost.so.1 "$src/toy_host.c" \
    -o "$out/libtoyhost.so.1"
mv "$out/flavours.new" "$out/flavours"
