#!/bin/bash
# Fetches real PE files with the clients of the package indexes: Windows wheels and Node.js addons,
# and CPython's library with its modules.  Also fetches delvewheel, to compare with.
#
#   tests/pe_corpus/fetch.sh DIR
#
# Leaves DIR/files/<set>/<package>/..., the sets at the same time, and DIR/delvewheel, a virtual
# environment.  If a set cannot be fetched, DIR/<set>.skip (or DIR/delvewheel.skip) gives the
# reason, and the next run tries again.  About 145 MB, once.
set -u

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1" || exit 1
python=/usr/bin/python3
x64=(numpy==2.4.6 pandas==3.1.1 cryptography==50.0.2 pywin32==312 pyzmq==27.3.0 orjson==3.13.0
    psutil==7.2.2)
x86=(lxml==6.1.3 grpcio==1.85.1 pillow==13.0.0 orjson==3.12.0 psutil==7.1.1)
arm64=(scipy==1.17.1 cryptography==46.0.3 pillow==13.0.0 pyzmq==27.3.0 orjson==3.13.0 psutil==7.2.2)
declare -A platform=([x64]=win_amd64 [x86]=win32 [arm64]=win_arm64)
npm=(@img/sharp-win32-x64@0.35.5 @parcel/watcher-win32-x64@2.6.0 @rollup/rollup-win32-x64-gnu@4.67.4
    @rollup/rollup-win32-x64-msvc@4.67.4 @rollup/rollup-win32-ia32-msvc@4.67.4
    @rollup/rollup-win32-arm64-msvc@4.67.4 lightningcss-win32-arm64-msvc@1.33.0)
delvewheel=(delvewheel==1.13.2 pefile==2024.8.26)
cpython=org.bytedeco:cpython:3.11.3-1.5.9:jar

# skip SET REASON
skip() {
    echo "$2" >"$1.skip"
}

last_word() {
    grep . "$1.log" | grep -v 'complete log' | tail -n 1 | cut -c1-150
}

# A set gets its name when it is complete, and keeps only libraries.
publish() {
    find "new/$1" -type f ! -name '*.pyd' ! -name '*.dll' ! -name '*.node' -delete
    find "new/$1" -type d -empty -delete
    mkdir -p files
    rm -rf "files/$1"
    mv "new/$1" "files/$1"
    rm -f "$1.skip"
}

fetch_wheels() { # SET
    local set=$1 wheel name
    local -n packages=$1
    [ ! -d "files/$set" ] || return 0
    $python -m pip --version >/dev/null 2>&1 ||
        { skip "$set" "pip is not installed (package python3-pip)"; return; }
    rm -rf "new/$set"
    mkdir -p "new/$set/wheels"
    timeout 240 $python -m pip download -q --disable-pip-version-check --retries 1 --no-deps \
        --only-binary=:all: --python-version 3.11 --implementation cp \
        --platform "${platform[$set]}" -d "new/$set/wheels" "${packages[@]}" >"$set.log" 2>&1 ||
        { skip "$set" "a wheel cannot be had: $(last_word "$set")"; return; }
    for wheel in "new/$set"/wheels/*.whl; do
        name=${wheel##*/}
        $python -m zipfile -e "$wheel" "new/$set/${name%%-*}" || return
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
    (cd new/npm && timeout 240 npm pack --loglevel=error --fetch-retries=1 \
        --fetch-retry-mintimeout=1000 "${npm[@]}") >npm.log 2>&1 ||
        { skip npm "an addon cannot be had: $(last_word npm)"; return; }
    for package in new/npm/*.tgz; do
        name=${package##*/}
        mkdir "new/npm/${name%.tgz}" && tar -xzf "$package" -C "new/npm/${name%.tgz}" || return
        rm "$package"
    done
    publish npm
}

# Each jar has CPython's library, its modules and, signed, what those need.
fetch_cpython() {
    local machine name
    [ ! -d files/cpython ] || return 0
    command -v mvn >/dev/null || { skip cpython "mvn is not installed (package maven)"; return; }
    rm -rf new/cpython
    mkdir -p new/cpython
    for machine in x86 x86_64; do
        name=x64
        [ $machine = x86_64 ] || name=x86
        timeout 300 mvn -q -B dependency:copy -Dartifact="$cpython:windows-$machine" \
            -DoutputDirectory="$PWD/new/cpython" >cpython.log 2>&1 &&
            $python -m zipfile -e "new/cpython/"*"windows-$machine.jar" new/cpython/jar &&
            mv "new/cpython/jar/org/bytedeco/cpython/windows-$machine" "new/cpython/$name" ||
            { skip cpython "CPython for $machine cannot be had: $(last_word cpython)"; return; }
        rm -r new/cpython/jar
    done
    publish cpython
}

fetch_delvewheel() {
    [ ! -x delvewheel/bin/delvewheel ] || return 0
    rm -rf delvewheel
    { $python -m venv delvewheel && timeout 120 delvewheel/bin/python -m pip install -q \
        --disable-pip-version-check --retries 1 "${delvewheel[@]}"; } >delvewheel.log 2>&1 ||
        { skip delvewheel "delvewheel cannot be had: $(last_word delvewheel)"
            rm -rf delvewheel
            return; }
    rm -f delvewheel.skip
}

exec 9>.lock
flock 9
# A changed list of packages makes a new corpus.
cmp -s "$here/fetch.sh" fetched || rm -rf files delvewheel
for set in x64 x86 arm64; do
    fetch_wheels $set &
done
fetch_addons &
fetch_cpython &
fetch_delvewheel &
wait
cp "$here/fetch.sh" fetched
