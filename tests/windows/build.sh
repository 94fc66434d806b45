#!/bin/bash
# Builds library and program for Windows, and their dependencies from the distribution's sources:
#
#   tests/windows/build.sh DIR [MACHINE]     MACHINE: x86_64 (default) or i686, by gcc; or
#                                            aarch64, by zig's clang
#
# into DIR: extisolate.exe, libextisolate.a and libextisolate-link.a, and libelf.a, libjansson.a, cmocka.o
# and headers in deps/. The result of `make install` is in installed/.  If this machine cannot build them,
# DIR/extisolate.skip says why; a failed build is an error.
set -u
dir=$1 machine=${2:-x86_64}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
mkdir -p "$dir"
rm -f "$dir/extisolate.skip"

skip()
{
    echo "$1" >"$dir/extisolate.skip"
    exit 0
}

# shellcheck source=tests/support/cross.bash
. "$root/tests/support/cross.bash"

exec 7>"$dir/lock"
flock 7
if [ "$machine" = aarch64 ]; then
    get_zig
    cc=$dir/zig-cc ar="$zig ar"
    zig_cc aarch64-windows-gnu "$cc"
else
    # This compiler has POSIX threads, which the sources need.
    cc=$machine-w64-mingw32-gcc-posix ar=$machine-w64-mingw32-ar
    command -v "$cc" >/dev/null || skip "there is no $cc (package gcc-mingw-w64-${machine/_/-}-posix)"
fi
unset MAKEFLAGS MAKELEVEL
# libelf.h needs types for users and groups.
types=(-Duid_t=unsigned -Dgid_t=unsigned)
build_cmocka()
{
    local from
    from=$(echo "$sources"/cmocka-*/)
    [ -f "$dir/deps/cmocka.o" ] && return
    cp "$from"/include/*.h "$dir/deps/include" &&
        "$cc" -O1 -w -D__USE_MINGW_ANSI_STDIO=1 -DHAVE_STDINT_H -DHAVE_INTTYPES_H -DHAVE_MALLOC_H -DHAVE_IO_H \
            -DHAVE_SIGNAL_H -DHAVE_STRUCT_TIMESPEC -DHAVE_CLOCK_GETTIME -I"$dir/deps/include" \
            -c -o "$dir/deps/cmocka.o" "$from/src/cmocka.c"
}

get_sources jansson elfutils cmocka
{
    rm -rf "$dir/installed"
    build_libraries "$dir/deps" "${types[@]}" -I"$here/include" -I"$root/tests/macos/include" &&
        build_cmocka &&
        make -C "$root" -j2 SYSTEM=Windows CC="$cc" AR="$ar" WERROR=1 BUILD="$dir/build" PKG_CONFIG=true \
            LIBELF_CFLAGS="-I$dir/deps/include ${types[*]}" LIBELF_LIBS="$dir/deps/libelf.a" \
            JANSSON_CFLAGS= JANSSON_LIBS="$dir/deps/libjansson.a" SAN= COV= CFLAGS='-O2 -g' DESTDIR="$dir/installed" PREFIX=/usr all install
} >"$dir/log" 2>&1 7>&- || { tail -n 40 "$dir/log"; exit 1; }
ln -f "$dir/build/${cc##*/}"/{libextisolate.a,libextisolate-link.a,extisolate.exe} "$dir"
