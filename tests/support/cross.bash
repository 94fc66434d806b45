# Sourced by tests that build for another system: gets the libraries that ours needs, from the
# distribution's sources.  The sourcing script defines skip(), which prints the reason and exits.
sources=${EXTI_BUILD:-$PWD/build}/sources

# Tests of a group run in parallel; one of them fetches for all.
while_locked() # COMMAND...
{
    mkdir -p "$sources"
    exec 6>"$sources.lock"
    flock 6
    "$@"
    exec 6>&-
}

# Gets $zig from the Python package index: a compiler with the headers and stubs of other systems.
get_zig() { while_locked fetch_zig; }

fetch_zig()
{
    local venv=${EXTI_BUILD:-$PWD/build}/zig
    zig="$venv/bin/python -m ziglang"
    export ZIG_GLOBAL_CACHE_DIR=$venv/cache ZIG_LOCAL_CACHE_DIR=$venv/cache
    $zig version >/dev/null 2>&1 && return
    mkdir -p "$venv"
    python3 -m venv "$venv" >"$venv.log" 2>&1 || skip "python3 -m venv does not work here"
    timeout 300 "$venv/bin/pip" install -q --disable-pip-version-check ziglang==0.15.1 \
        >"$venv.log" 2>&1 || skip "no ziglang to be had: $(tail -n 1 "$venv.log")"
}

# zig_cc TARGET FILE: makes FILE, a script that compiles for TARGET
zig_cc()
{
    printf '#!/bin/sh\nexec %s cc -target %s "$@"\n' "$zig" "$1" >"$2"
    chmod +x "$2"
}

# Gets the sources of the system's packages without changing its list of sources.
get_sources() { while_locked fetch_sources "$@"; } # PACKAGE...

fetch_sources()
{
    local apt=$sources.apt p missing=()
    for p in "$@"; do
        [ -d "$(echo "$sources/$p"-*/)" ] || missing+=("$p")
    done
    [ ${#missing[@]} != 0 ] || return 0
    command -v apt-get >/dev/null || skip "there is no apt-get to fetch the sources of $* with"
    rm -rf "$apt" "$sources.new"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$sources.new" "$sources"
    # shellcheck disable=SC2016
    apt-get indextargets --format 'deb-src $(REPO_URI) $(CODENAME) $(COMPONENT)' \
        'Created-By: Packages' 'Origin: Debian' | sort -u >"$apt/sources.list"
    (
        cd "$sources.new" || exit
        opts=(-q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
            -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=)
        timeout 300 apt-get "${opts[@]}" update &&
            timeout 300 apt-get "${opts[@]}" source --download-only "${missing[@]}" &&
            for t in *.orig.tar.*; do case $t in *.asc) ;; *) tar xf "$t" || exit ;; esac; done
    ) >"$apt/log" 2>&1 || skip "no sources to be had: $(tail -n 1 "$apt/log")"
    mv "$sources.new"/*/ "$sources"
    rm -rf "$sources.new"
}

compile_all() # OUT FLAGS... -- SOURCE...; with $cc
{
    local out=$1 flags=() f
    shift
    while [ "$1" != -- ]; do flags+=("$1"); shift; done
    shift
    mkdir -p "$out"
    for f in "$@"; do
        "$cc" -O2 -w -fvisibility=hidden "${flags[@]}" -c -o "$out/$(basename "$f" .c).o" "$f" ||
            return
    done
}

# Builds libjansson.a and libelf.a in DEPS, with their headers, using $cc, $ar and, for libelf,
# FLAGS.
build_libraries() # DEPS FLAGS...
{
    local deps=$1 jansson elf trees=()
    shift
    jansson=$(echo "$sources"/jansson-*/) elf=$(echo "$sources"/elfutils-*/)
    [ -f "$deps/libelf.a" ] && [ -f "$deps/libjansson.a" ] && return
    # From 0.192 on libelf keeps its trees in a library of elfutils' own.
    [ ! -f "$elf/lib/eu-search.c" ] || trees=("$elf/lib/eu-search.c")
    mkdir -p "$deps/include"
    : >"$deps/include/jansson_private_config.h"
    compile_all "$deps/jansson" -DHAVE_STDINT_H=1 -DHAVE_UNISTD_H -DUSE_URANDOM \
        -DUSE_WINDOWS_CRYPTOAPI -DHAVE_FCNTL_H \
        -DHAVE_OPEN -DHAVE_CLOSE -DHAVE_READ -DHAVE_ATOMIC_BUILTINS \
        -I"$deps/include" -I"$jansson/android" -I"$jansson/src" -- "$jansson"/src/*.c &&
        compile_all "$deps/elf" -std=gnu99 -D_GNU_SOURCE -DHAVE_CONFIG_H "$@" \
            -I"$elf/libelf" -I"$elf/lib" -idirafter "${BASH_SOURCE[0]%/*}/../.." -- \
            "$elf"/libelf/*.c "${trees[@]}" &&
        cp "$jansson"/src/jansson.h "$jansson"/android/jansson_config.h \
            "$elf"/libelf/{libelf,gelf,elf,nlist}.h "$deps/include" &&
        $ar rcs "$deps/libjansson.a" "$deps"/jansson/*.o &&
        $ar rcs "$deps/libelf.a" "$deps"/elf/*.o
}
