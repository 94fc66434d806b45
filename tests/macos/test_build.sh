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

get_zig()
{
    [ -x "$build/venv/bin/python" ] && "$build/venv/bin/python" -m ziglang version >/dev/null 2>&1 && return
    python3 -m venv "$build/venv" >"$build/venv.log" 2>&1 || skip "python3 -m venv does not work here"
    timeout 300 "$build/venv/bin/pip" install -q --disable-pip-version-check ziglang==0.15.1 \
        >"$build/venv.log" 2>&1 || skip "no ziglang to be had: $(tail -n 1 "$build/venv.log")"
}

# The sources of the system's own packages, without touching its list of sources.
get_sources()
{
    local apt=$build/apt
    [ -d "$build/src" ] && return
    command -v apt-get >/dev/null || skip "there is no apt-get to fetch the sources of libelf with"
    rm -rf "$apt" "$build/src.new"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$build/src.new"
    # shellcheck disable=SC2016
    apt-get indextargets --format 'deb-src $(REPO_URI) $(CODENAME) $(COMPONENT)' \
        'Created-By: Packages' 'Origin: Debian' | sort -u >"$apt/sources.list"
    (
        cd "$build/src.new" || exit
        opts=(-q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
            -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=)
        timeout 300 apt-get "${opts[@]}" update &&
            timeout 300 apt-get "${opts[@]}" source --download-only jansson elfutils &&
            for t in *.orig.tar.*; do case $t in *.asc) ;; *) tar xf "$t" || exit ;; esac; done
    ) >"$build/apt.log" 2>&1 || skip "no sources to be had: $(tail -n 1 "$build/apt.log")"
    mv "$build/src.new" "$build/src"
}

compile_all() # OUT FLAGS... -- SOURCE...
{
    local out=$1 flags=() f
    shift
    while [ "$1" != -- ]; do flags+=("$1"); shift; done
    shift
    mkdir -p "$out"
    for f in "$@"; do
        "$cc" -O2 -w -fvisibility=hidden "${flags[@]}" -c -o "$out/$(basename "$f" .c).o" "$f" || return
    done
}

build_libraries() # into $deps
{
    local jansson elf
    jansson=$(echo "$build"/src/jansson-*/) elf=$(echo "$build"/src/elfutils-*/)
    [ -f "$deps/libelf.a" ] && [ -f "$deps/libjansson.a" ] && return
    mkdir -p "$deps/include"
    : >"$deps/include/jansson_private_config.h"
    compile_all "$deps/jansson" -DHAVE_STDINT_H=1 -DHAVE_UNISTD_H -DUSE_URANDOM -DHAVE_FCNTL_H \
        -DHAVE_OPEN -DHAVE_CLOSE -DHAVE_READ -DHAVE_ATOMIC_BUILTINS \
        -I"$deps/include" -I"$jansson/android" -I"$jansson/src" -- "$jansson"/src/*.c &&
        compile_all "$deps/elf" -std=gnu99 -D_GNU_SOURCE -D_DARWIN_C_SOURCE -DHAVE_CONFIG_H \
            -I"$here/include" -I"$elf/libelf" -I"$elf/lib" -- "$elf"/libelf/*.c &&
        cp "$jansson"/src/jansson.h "$jansson"/android/jansson_config.h \
            "$elf"/libelf/{libelf,gelf,elf,nlist}.h "$deps/include" &&
        $zig ar rcs "$deps/libjansson.a" "$deps"/jansson/*.o &&
        $zig ar rcs "$deps/libelf.a" "$deps"/elf/*.o
}

# What the library exports is what the version map names, neither more nor less, but for the linker's own.
exports_are_the_api()
{
    sed -n 's/^ *\(exti_[a-z_]*\);.*/\1/p' "$root/loader/extisolate.map" | sort >"$out/api"
    llvm-nm-16 --defined-only --extern-only "$1" | sed -n 's/.* [A-Z] _//p' | grep -v '^_' | sort >"$out/exports"
    diff "$out/api" "$out/exports"
}

needs_system_only()
{
    local bad
    bad=$(llvm-otool-16 -L "$1" | sed -n '2,$s/^[[:space:]]*\([^ ]*\).*/\1/p' |
        grep -v -e '^/usr/lib/libSystem' -e '^@rpath/libextisolate')
    [ -z "$bad" ] || { echo "needs $bad"; return 1; }
}

is_for() # FILE ARCH TYPE
{
    llvm-otool-16 -hv "$1" | grep -q "$2 .*$3" || { llvm-otool-16 -hv "$1"; return 1; }
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
    printf '#!/bin/sh\nexec %s cc -target %s-macos.%s "$@"\n' "$zig" "$1" "$oldest" >"$cc"
    chmod +x "$cc"
    if ! build_libraries >"$out/log" 2>&1; then
        say 1 "libraries_for_$1"
        return
    fi
    make -C "$root" -j2 all SYSTEM=Darwin CC="$cc" AR="$zig ar" WERROR=1 BUILD="$out/build" \
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
get_sources
zig="$build/venv/bin/python -m ziglang"
export ZIG_GLOBAL_CACHE_DIR=$build/cache ZIG_LOCAL_CACHE_DIR=$build/cache
unset MAKEFLAGS MAKELEVEL
build_for aarch64 ARM64
build_for x86_64 X86_64
