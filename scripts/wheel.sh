#!/bin/bash
# wheel.sh FOLDER OUT PYTHON...: builds the Python package by each PYTHON in a folder that manylinux.sh has made,
# and has auditwheel check and name the wheels.
set -eu
folder=$1 out=$2
shift 2
cd "$(dirname "$0")/.."

# Prints the interpreter's path, if it can build.
found() { # PYTHON
    command -v "$1" >/dev/null || { echo "there is no $1" >&2; return 1; }
    "$1" -m pip --version >/dev/null || { echo "$1 has no pip (Debian's package python3-pip)" >&2; return 1; }
    "$1" -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null ||
        { echo "$1 has no headers of C (Debian's package python3-dev)" >&2; return 1; }
    command -v "$1"
}

glibc=$(sed -n 's/.*linux-gnu\.\([0-9]*\)\.\([0-9]*\) .*/\1_\2/p' "$folder/bin/cc")
rm -rf "$out"
for python; do
    python=$(found "$python")
    rm -rf "$folder/dist"
    # The linker gets none of what CPython itself was linked with.  Debian's pyconfig.h names one in a folder
    # beside; whatever else is there comes after the headers of the older glibc.
    EXTISOLATE_BUILD=$folder CC=$folder/bin/cc LDSHARED="$folder/bin/cc -shared" CPPFLAGS='-idirafter /usr/include' \
        "$python" -m pip wheel -q --no-deps -w "$folder/dist" ./bindings/python
    PATH=$folder/venv/bin:$PATH auditwheel repair --plat "manylinux_${glibc}_$(uname -m)" -w "$out" "$folder"/dist/*.whl
done
ls "$out"
