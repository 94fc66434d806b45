#!/bin/bash
# Fetches real Mach-O files with the clients of the package indexes: macOS wheels, Node.js addons
# and CPython's library.
#
#   tests/macho_corpus/fetch.sh DIR
#
# Leaves DIR/files/<set>/<package>/... and DIR/libpython3.13.dylib for both machines.  If a set
# cannot be fetched, DIR/<set>.skip (or DIR/libpython.skip) gives the reason, and the next run tries
# again.  About 160 MB, once.
set -u

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1" || exit 1
python=/usr/bin/python3
arm64=(numpy==2.5.5 scipy==1.18.1 pandas==3.1.1 h5py==3.16.0 pillow==13.0.0 cryptography==50.0.2
    lxml==6.1.3 orjson==3.13.0 pyzmq==27.3.0 torchaudio==2.11.0 torchvision==0.29.2
    safetensors==0.8.0 tokenizers==0.23.3 sentencepiece==0.2.3)
x86_64=(numpy==2.5.5 h5py==3.16.0 pillow==13.0.0 safetensors==0.8.0 sentencepiece==0.2.2
    tokenizers==0.23.3)
# The first platform that fits is taken.  numpy for macOS 11 bundles OpenBLAS; for macOS 14 it does
# not.
arm64_platforms=(macosx_11_0_arm64 macosx_14_0_arm64 macosx_12_0_arm64 macosx_10_15_universal2
    macosx_10_13_universal2)
x86_64_platforms=(macosx_14_0_x86_64 macosx_10_13_x86_64 macosx_10_12_x86_64 macosx_10_9_x86_64)
npm=(@rollup/rollup-darwin-arm64@4.67.4 @rollup/rollup-darwin-x64@4.67.4
    @parcel/watcher-darwin-arm64@2.6.0 @parcel/watcher-darwin-x64@2.6.0
    lightningcss-darwin-arm64@1.33.0 lightningcss-darwin-x64@1.33.0 fsevents@2.3.3
    @img/sharp-darwin-arm64@0.35.5 @img/sharp-libvips-darwin-arm64@1.3.4
    @swc/core-darwin-arm64@1.16.18)
cpython=org.bytedeco:cpython:3.13.5-1.5.12:jar

# skip SET REASON
skip() {
    echo "$2" >"$1.skip"
}

last_word() {
    tail -n 1 "$1.log" | cut -c1-150
}

# A set gets its name when it is complete, and keeps only files that can be rewritten.
publish() {
    find "new/$1" -type f ! -name '*.so' ! -name '*.dylib' ! -name '*.node' -delete
    mkdir -p files
    rm -rf "files/$1"
    mv "new/$1" "files/$1"
    rm -f "$1.skip"
}

# download SET PLATFORM PACKAGE
download() {
    # shellcheck disable=SC2086
    timeout 180 $pip download -q --disable-pip-version-check --retries 1 --no-deps \
        --only-binary=:all: --python-version 3.13 --implementation cp --platform "$2" \
        -d "new/$1/wheels" "$3" >"$1.log" 2>&1
}

fetch_wheels() { # SET
    local set=$1 package platform wheel
    local -n packages=$1 platforms=$1_platforms
    [ ! -d "files/$set" ] || return 0
    [ -n "$pip" ] || { skip "$set" "pip is not installed (package python3-pip)"; return; }
    rm -rf "new/$set"
    mkdir -p "new/$set/wheels"
    for package in "${packages[@]}"; do
        for platform in "${platforms[@]}" none; do
            [ "$platform" != none ] ||
                { skip "$set" "$package cannot be had: $(last_word "$set")"; return; }
            ! download "$set" "$platform" "$package" || break
        done
    done
    for wheel in "new/$set"/wheels/*.whl; do
        package=${wheel##*/}
        $python -m zipfile -e "$wheel" "new/$set/${package%%-*}" || return
    done
    rm -r "new/$set/wheels"
    publish "$set"
}

fetch_addons() {
    local package name
    [ ! -d files/npm ] || return 0
    command -v npm >/dev/null || { skip npm "npm is not installed"; return; }
    rm -rf new/npm
    mkdir -p new/npm
    (cd new/npm && timeout 180 npm pack --silent "${npm[@]}") >npm.log 2>&1 ||
        { skip npm "an addon cannot be had: $(last_word npm)"; return; }
    for package in new/npm/*.tgz; do
        name=${package##*/}
        mkdir "new/npm/${name%.tgz}" && tar -xzf "$package" -C "new/npm/${name%.tgz}" || return
        rm "$package"
    done
    publish npm
}

fetch_libpython() {
    local machine
    [ ! -f libpython3.13.dylib ] || return 0
    command -v mvn >/dev/null || { skip libpython "mvn is not installed (package maven)"; return; }
    rm -rf new/libpython
    mkdir -p new/libpython
    for machine in arm64 x86_64; do
        timeout 300 mvn -q -B dependency:copy -Dartifact="$cpython:macosx-$machine" \
            -DoutputDirectory="$PWD/new/libpython" >libpython.log 2>&1 &&
            $python -m zipfile -e "new/libpython/"*"macosx-$machine.jar" "new/libpython/$machine" ||
            { skip libpython "CPython for $machine cannot be had: $(last_word libpython)"; return; }
    done
    llvm-lipo -create \
        new/libpython/*/org/bytedeco/cpython/*/libpython3.13.dylib \
        -output new/libpython3.13.dylib && mv new/libpython3.13.dylib . && rm -f libpython.skip
    rm -rf new/libpython
}

exec 9>.lock
flock 9
# A changed list of packages makes a new corpus.
cmp -s "$here/fetch.sh" fetched || rm -rf files libpython3.13.dylib
pip=
for p in $python python3; do
    $p -m pip --version >/dev/null 2>&1 && pip="$p -m pip" && break
done
fetch_wheels arm64
fetch_wheels x86_64
fetch_addons
fetch_libpython
cp "$here/fetch.sh" fetched
