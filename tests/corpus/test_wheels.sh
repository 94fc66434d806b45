#!/bin/bash
# Extension modules that the distribution did not build: manylinux wheels with their bundled
# libraries.  Needs pip and the package index; otherwise it reports a skip.
set -u
build=${EXTI_BUILD:-$PWD/build}
wheels=$build/wheels
packages=(orjson lxml pydantic-core numpy)
test_modules=$build/tests/corpus/test_modules
python=/usr/bin/python3

version=$($python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
if [ -z "$version" ]; then
    echo "skip wheels: there is no $python"
    exit 0
fi
pip=
for p in $python python3; do
    $p -m pip --version >/dev/null 2>&1 && pip="$p -m pip" && break
done
if [ -z "$pip" ]; then
    echo "skip wheels: pip is not installed (package python3-pip)"
    exit 0
fi

fetch()
{
    rm -rf "$wheels/new"
    mkdir -p "$wheels/new"
    # shellcheck disable=SC2086
    timeout 180 $pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
        --python-version "$version" --implementation cp --platform manylinux2014_x86_64 \
        --platform manylinux_2_17_x86_64 --platform manylinux_2_28_x86_64 \
        -d "$wheels/new" "${packages[@]}" >"$wheels/log" 2>&1 || return 1
    for w in "$wheels"/new/*.whl; do
        mkdir -p "$w.d"
        $python -m zipfile -e "$w" "$w.d" || return 1
    done
    rm -rf "$wheels/unpacked"
    mv "$wheels/new" "$wheels/unpacked"
}

if [ ! -d "$wheels/unpacked" ] && ! fetch; then
    echo "skip wheels: they cannot be had here: $(tail -n 1 "$wheels/log")"
    exit 0
fi
if [ ! -x "$test_modules" ]; then
    echo "not ok wheels: $test_modules is not built"
    exit 1
fi
"$test_modules" "$wheels"/unpacked/*.whl.d
