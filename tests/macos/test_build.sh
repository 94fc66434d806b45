#!/bin/bash
# Builds library and program for macOS, both machines, with a cross compiler that brings the system's
# headers and stubs: zig, from the Python package index.  libelf and jansson are built from the
# distribution's sources.  Skipped aloud where these cannot be had.
set -u
build=${EXTI_BUILD:-$PWD/build}/macos
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
oldest=11.0 # the first macOS for arm64
mkdir -p "$build"

skip()
{
    echo "skip macos_build: $1"
    exit 0
}

# shellcheck source=tests/support/cross.bash
. "$root/tests/support/cross.bash"

# What the library exports is what the version map names, neither more nor less, but for the linker's own.
exports_are_the_api()
{
    sed -n 's/^ *\(exti_[a-z_]*\);.*/\1/p' "$root/loader/extisolate.map" | sort >"$out/api"
    llvm-nm --defined-only --extern-only "$1" | sed -n 's/.* [A-Z] _//p' | grep -v '^_' | sort >"$out/exports"
    diff "$out/api" "$out/exports"
}

needs_system_only()
{
    local bad
    bad=$(llvm-otool -L "$1" | sed -n '2,$s/^[[:space:]]*\([^ ]*\).*/\1/p' |
        grep -v -e '^/usr/lib/libSystem' -e '^@rpath/libextisolate')
    [ -z "$bad" ] || { echo "needs $bad"; return 1; }
}

is_for() # FILE ARCH TYPE
{
    llvm-otool -hv "$1" | grep -q "$2 .*$3" || { llvm-otool -hv "$1"; return 1; }
}

say()
{
    if [ "$1" = 0 ]; then echo "ok $2"; else cat "$out/log"; echo "not ok $2"; fi
}

build_for() # ZIG-ARCH MACH-O-ARCH
{
    out=$build/$1
    deps=$out/deps
    cc=$out/cc
    mkdir -p "$out"
    zig_cc "$1-macos.$oldest" "$cc"
    if ! build_libraries "$deps" -D_DARWIN_C_SOURCE -I"$here/include" >"$out/log" 2>&1; then
        say 1 "libraries_for_$1"
        return
    fi
    make -C "$root" -j2 all SYSTEM=Darwin CC="$cc" AR="$ar" WERROR=1 BUILD="$out/build" \
        PKG_CONFIG=true LIBELF_CFLAGS="-I$deps/include" LIBELF_LIBS="$deps/libelf.a" \
        JANSSON_CFLAGS= JANSSON_LIBS="$deps/libjansson.a" SAN= COV= CFLAGS='-O2 -g' \
        >"$out/log" 2>&1
    say $? "builds_for_$1"
    local made=$out/build
    { is_for "$made/extisolate" "$2" EXECUTE && needs_system_only "$made/extisolate"; } >"$out/log" 2>&1
    say $? "program_for_$1"
    { is_for "$made/libextisolate.dylib" "$2" DYLIB && needs_system_only "$made/libextisolate.dylib" &&
        exports_are_the_api "$made/libextisolate.dylib"; } >"$out/log" 2>&1
    say $? "library_for_$1"
}

get_zig
get_sources jansson elfutils
ar="$zig ar"
unset MAKEFLAGS MAKELEVEL
build_for aarch64 ARM64
# The other machine with all tests only.
[ -z "${EXTI_ALL:-}" ] || build_for x86_64 X86_64
