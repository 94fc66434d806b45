#!/bin/bash
# Fetches DLLs from Microsoft's linker with the registries' own clients: CPython 3.11 with its
# library, wheels, and a Node.js addon.
#
#   tests/wine/fetch.sh DIR
#
# Leaves DIR/python, DIR/site and DIR/npm.  A set that cannot be fetched leaves DIR/<set>.skip with
# the reason, and is tried again next time.  About 60 MB, once.
set -u

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1" || exit 1
python=/usr/bin/python3
cpython=org.bytedeco:cpython:3.11.3-1.5.9:jar:windows-x86_64
# Later versions of numpy use complex functions that wine 8 lacks.
wheels=(numpy==1.23.5 lxml==6.1.3 markupsafe==3.0.4 pyyaml==6.0.3 cffi==2.1.1 cryptography==50.0.2)
addon=@img/sharp-win32-x64@0.35.5

skip() { # SET REASON
    echo "$2" >"$1.skip"
}

last_word() { # SET
    tail -n 1 "$1.log" | cut -c1-150
}

publish() { # SET: a set takes its name when it is whole
    mv "new/$1" "$1" && rm -f "$1.skip"
}

# The part of the standard library that an embedded interpreter needs, and its extension modules.
unpack_python() { # JAR
    $python - "$1" <<'P'
import sys
import zipfile

top = "org/bytedeco/cpython/windows-x86_64/"
left_out = ("test", "pip", "setuptools", "idlelib", "tkinter", "lib2to3", "ensurepip", "turtledemo")
jar = zipfile.ZipFile(sys.argv[1])
for member in jar.infolist():
    name = member.filename[len(top) :]
    folders = name.split("/")
    if not member.filename.startswith(top) or name.endswith("/") or folders[-1][-4:] == ".exe":
        continue
    if name == "python311.dll" or (folders[0] == "lib" and folders[1] not in left_out):
        member.filename = name
        jar.extract(member, "new/python")
P
}

fetch_python() {
    [ ! -d python ] || return 0
    command -v mvn >/dev/null || { skip python "mvn is not installed (package maven)"; return; }
    rm -rf new
    mkdir new
    timeout 300 mvn -q -B dependency:copy -Dartifact="$cpython" -DoutputDirectory="$PWD/new" \
        >python.log 2>&1 && unpack_python new/*.jar >>python.log 2>&1 ||
        { skip python "CPython cannot be had: $(last_word python)"; return; }
    compile new/python/lib
    publish python
}

# wine's Python writes no .pyc files; all 3.11 versions share one format.
compile() { # FOLDER
    [ "$($python -c 'import sys; print(*sys.version_info[:2])')" != '3 11' ] ||
        $python -m compileall -q --invalidation-mode unchecked-hash "$1" >/dev/null 2>&1
}

fetch_site() {
    local p pip='' wheel
    [ ! -d site ] || return 0
    for p in $python python3; do
        $p -m pip --version >/dev/null 2>&1 && pip="$p -m pip" && break
    done
    [ -n "$pip" ] || { skip site "pip is not installed (package python3-pip)"; return; }
    rm -rf new
    mkdir -p new/site
    # shellcheck disable=SC2086
    timeout 300 $pip download -q --disable-pip-version-check --retries 1 --no-deps \
        --only-binary=:all: --python-version 3.11 --implementation cp --abi cp311 --abi abi3 \
        --platform win_amd64 -d new/wheels "${wheels[@]}" >site.log 2>&1 ||
        { skip site "wheels cannot be had: $(last_word site)"; return; }
    for wheel in new/wheels/*.whl; do
        $python -m zipfile -e "$wheel" new/site || return
    done
    compile new/site
    publish site
}

fetch_npm() {
    [ ! -d npm ] || return 0
    command -v npm >/dev/null || { skip npm "npm is not installed"; return; }
    rm -rf new
    mkdir -p new/npm
    (cd new && timeout 180 npm pack --silent "$addon") >npm.log 2>&1 && tar -xzf new/*.tgz -C new/npm ||
        { skip npm "the addon cannot be had: $(last_word npm)"; return; }
    publish npm
}

exec 9>.lock
flock 9
# A new list of packages makes a new corpus.
cmp -s "$here/fetch.sh" fetched || rm -rf python site npm
fetch_python
fetch_site
fetch_npm
rm -rf new
cp "$here/fetch.sh" fetched
