#!/bin/bash
# Measures the claims about the speed and memory of extisolate.  `make bench` builds and runs this.
#
#   bench/run.sh [--json] [--quick] [copy|cli|parallel|memory|macho|pe|tree|embed|calls|links|contexts|servers|pools]
#
# The last three sections have tables of their own, in Markdown; with --json they are left out.
# bench/plot_contexts.py draws what `contexts` leaves in bench/contexts.json of the build folder.
#
# BUILD or EXTI_BUILD names the build folder, by default build/.  Files are written to TMPDIR, or if
# that is not set to the build folder, which is more often on a disk than /tmp.  Exit status: 0 if
# everything was measured, whatever the results; 1 if something could not be run.
set -eu
cd "$(dirname "$0")/.."
build=${BUILD:-${EXTI_BUILD:-build}}
cc=${CC:-cc}
args=()
for a; do
    if [ "$a" = --quick ]; then export BENCH_QUICK=1; else args+=("$a"); fi
done

die() { echo "bench: $*" >&2; exit 1; }
[ -x "$build/extisolate" ] && [ -f "$build/libextisolate.a" ] || die "$build is not built: run make"

# The system interpreter's numpy core extension, and its libpython.
BENCH_PYTHON=${BENCH_PYTHON:-/usr/bin/python3}
facts=$("$BENCH_PYTHON" -c '
import os, sysconfig
try:
    import numpy._core._multiarray_umath as m
except ImportError:
    import numpy.core._multiarray_umath as m
print(m.__file__)
v = sysconfig.get_config_var
names = [v("INSTSONAME"), v("LDLIBRARY")]
dirs = [v("LIBDIR"), os.path.join(v("LIBDIR"), v("MULTIARCH") or "")]
print(next((p for d in dirs for n in names for p in [os.path.join(d, n)]
            if ".so" in n and os.path.exists(p)), ""))') ||
    die "$BENCH_PYTHON with numpy is needed (apt-get install python3-numpy)"
{ read -r BENCH_EXTENSION && read -r BENCH_API; } <<<"$facts" || true
[ -n "$BENCH_API" ] || die "$BENCH_PYTHON has no shared libpython (apt-get install libpython3-dev)"

BENCH_DIR=$(mktemp -d "${TMPDIR:-$build}/bench-XXXXXX")
# Makes ext4 spread the folders over the disk, to places where little was deleted lately: see below.
chattr +T "$BENCH_DIR" 2>/dev/null || true
BENCH_MEMORY=
trap 'rm -rf "$BENCH_DIR" "$BENCH_MEMORY"' EXIT
# For measurements that make many files.  For minutes after someone has deleted many files, ext4
# takes longer to find an inode that was not freed just now than to write the file.
if [ "$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 ]; then
    BENCH_MEMORY=$(mktemp -d /dev/shm/bench-XXXXXX)
fi
BENCH_PROGRAM=$(realpath "$build/extisolate")
export BENCH_PYTHON BENCH_EXTENSION BENCH_API BENCH_DIR BENCH_MEMORY BENCH_PROGRAM

$cc -O2 -shared -fPIC -o "$BENCH_DIR/calls.so" bench/calls/calls.c

# Large enough to make the work done once per file negligible.
build_macho()
{
    local target='-target arm64-apple-macos11' here=$PWD link
    link='ld64.lld-16 -arch arm64 -platform_version macos 11.0 13.3 -dylib'
    command -v clang-16 ld64.lld-16 >/dev/null || return 0
    cd "$BENCH_DIR"
    head -c 20000000 /dev/urandom >filler
    printf '%s\n' '--- !tapi-tbd' 'tbd-version: 4' 'targets: [ arm64-macos ]' \
        "install-name: '/usr/lib/libSystem.B.dylib'" 'exports:' '  - targets: [ arm64-macos ]' \
        '    symbols: [ dyld_stub_binder ]' '...' >libSystem.tbd
    for f in large api; do
        # shellcheck disable=SC2086
        clang-16 $target -O1 -c -o $f.o "$here/bench/macho/$f.c"
    done
    $link -install_name @rpath/libapi.dylib api.o libSystem.tbd -o libapi.dylib
    $link -undefined dynamic_lookup -install_name @rpath/large.dylib large.o libSystem.tbd \
        -o large.dylib
    rm filler
    cd "$here"
}
build_macho

build_pe()
{
    local here=$PWD
    command -v clang-16 lld-link-16 >/dev/null || return 0
    cd "$BENCH_DIR"
    head -c 20000000 /dev/urandom >filler
    printf '%s\n' 'LIBRARY python311.dll' EXPORTS api_call >api.def
    clang-16 -target x86_64-windows-msvc -O1 -c -o large.obj "$here/bench/pe/large.c"
    lld-link-16 -dll -noentry -def:api.def -implib:api.lib -machine:x64 -out:api.dll \
        -force:unresolved >/dev/null 2>&1 || true
    lld-link-16 -dll -noentry -out:large.pyd large.obj api.lib
    rm filler
    cd "$here"
}
build_pe

# Real modules of CPython, numpy and pandas for Windows, and the names to change in each.
prepare_delvewheel()
{
    local corpus=$build/pe_corpus
    tests/pe_corpus/fetch.sh "$corpus"
    BENCH_DELVEWHEEL=$(cd "$build" && pwd)/pe_corpus/delvewheel/bin/python
    BENCH_PE_LIBRARY=$corpus/files/cpython/x64/python311.dll
    export BENCH_DELVEWHEEL BENCH_PE_LIBRARY
    [ -x "$BENCH_DELVEWHEEL" ] && [ -d "$corpus/files/x64" ] && [ -f "$BENCH_PE_LIBRARY" ] ||
        return 0
    find "$corpus/files/x64" "$corpus/files/cpython/x64" -name '*.pyd' -size -2M | sort |
        awk 'NR % 2' |
        /usr/bin/python3 tests/pe_corpus/jobs.py api "$BENCH_DIR/renamed" |
        grep -i 'python311\.dll=' | awk -F'\t' -v OFS='\t' '{ $3 = ""; print }' \
        >"$BENCH_DIR/pe_jobs"
}
for a in ${args[@]+"${args[@]}"} pe; do
    [ "$a" != --json ] || continue
    [ "$a" != pe ] || prepare_delvewheel
    break
done

mkdir -p "$build/bench"
# shellcheck disable=SC2046
$cc -std=c11 -O2 -Wall -Wextra -iquote . -I include -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE \
    -o "$build/bench/bench" bench/*.c "$build/libextisolate-python.a" "$build/libextisolate-link.a" \
    "$build/libextisolate.a" \
    $(pkg-config --cflags --libs libelf jansson nettle) -ldl -lpthread -lm

# What runs several CPythons besides: programs that are linked to the library, and newer CPythons where they can be had.
others()
{
    # shellcheck disable=SC2046
    $cc -O2 $("$BENCH_PYTHON" -c 'import sysconfig; print("-I" + sysconfig.get_path("include"))') \
        -o "$build/bench/python" bench/plain/python.c "$BENCH_API"
    $cc -O2 -o "$build/bench/dlmopen" bench/plain/dlmopen.c -ldl -lpthread
    local root=$PWD
    # shellcheck source=tests/support/newer.bash
    . tests/support/newer.bash
    BENCH_NEWER=$(newer_pythons | head -n 1)
    BENCH_PLAIN=$(realpath "$build/bench/python") BENCH_DLMOPEN=$(realpath "$build/bench/dlmopen")
    export BENCH_NEWER BENCH_PLAIN BENCH_DLMOPEN
}

# Pools of interpreters, threads and processes, by an environment with the package and those of
# Debian's CPython, and by newer CPythons where they can be had.
pools()
{
    local venv=$build/bench/venv packages=$build/bench/newer version
    scripts/deps.sh pools
    others
    /usr/bin/python3 -m venv --clear --system-site-packages "$venv"
    EXTISOLATE_BUILD=$(realpath "$build") "$venv/bin/python" -m pip install -q --no-deps \
        ./bindings/python
    version=${BENCH_NEWER##*python}
    [ -z "$BENCH_NEWER" ] || [ -d "$packages" ] ||
        "$venv/bin/python" -m pip install -q --target "$packages" --python-version "$version" \
            --platform "manylinux_2_28_$(uname -m)" --platform "manylinux_2_27_$(uname -m)" \
            --only-binary :all: numpy 2>"$build/bench/newer.log" || echo "bench: no numpy for CPython $version" >&2
    BENCH_NEWER_PACKAGES=$packages BENCH=$build/bench/bench
    export BENCH BENCH_NEWER_PACKAGES
    "$venv/bin/python" bench/pools.py
    echo
    "$venv/bin/python" -m pip install -q rpyc 2>"$build/bench/rpyc.log" || echo 'bench: no rpyc' >&2
    "$venv/bin/python" bench/proxies.py
}

# Contexts, processes and others that run as many CPythons.
contexts()
{
    others
    "$BENCH_PYTHON" bench/contexts.py --json "$build/bench/contexts.json"
}

servers()
{
    scripts/deps.sh servers
    others
    "$BENCH_PYTHON" bench/servers.py
}

only=
for a in ${args[@]+"${args[@]}"}; do [ "$a" = --json ] || only=$a; done
case "$only" in
contexts | servers | pools) ;;
*)
    [ -n "${BENCH_QUICK:-}" ] || printf 'extension: %s\nfiles in: %s (%s)\n' "$BENCH_EXTENSION" \
        "$BENCH_DIR" "$(stat -f -c %T "$BENCH_DIR")" >&2
    "$build/bench/bench" ${args[@]+"${args[@]}"}
    ;;
esac
case " ${args[*]-} " in
*' contexts '*) contexts ;;
*' servers '*) servers ;;
*' pools '*) pools ;;
'  ') contexts && echo && servers && echo && pools ;;
esac
