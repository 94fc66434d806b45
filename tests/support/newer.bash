# CPythons that are newer than the system's: those of Debian's next release, unpacked with the C
# library that they need into a folder of the build's, where they run beside the system's.
# shellcheck shell=bash
newer=$(realpath -m "${EXTI_BUILD:-${root:?}/build}")/newer
newer_versions='3.14 3.15'
newer_extra=() # packages besides

# newer_unpack PACKAGE...: downloads what they need, checked by apt's signatures, and unpacks it
newer_unpack()
{
    local apt=$newer.apt deb
    rm -rf "$apt" "$newer.new"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$newer.new" || return
    : >"$apt/status" # nothing is installed, so all that is needed is downloaded
    # shellcheck disable=SC2016
    apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' \
        'Origin: Debian' | awk '$2 !~ /-/ { print "deb", $1, "testing main"; exit }' \
        >"$apt/sources.list"
    [ -s "$apt/sources.list" ] || { echo "apt knows no Debian release" && return 1; }
    local opts=(-q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o Debug::NoLocking=1
        -o Dir::State::Status="$apt/status" -o APT::Sandbox::User= -o Acquire::Retries=1)
    timeout 300 apt-get "${opts[@]}" update &&
        timeout 600 apt-get "${opts[@]}" -y --no-install-recommends --download-only install "$@" ||
        return
    for deb in "$apt"/cache/archives/*.deb; do
        dpkg-deb -x "$deb" "$newer.new" || return
    done
    rm -rf "$apt/cache" "$apt/lists"
}

# newer_program FILE OUT: a copy of the program that runs with the unpacked C library
newer_program()
{
    local libraries=$newer/usr/lib/$(uname -m)-linux-gnu
    # In one call, or the other way round, patchelf 0.18 makes a python3.14 whose segments overlap.
    cp "$1" "$2.new" && patchelf --force-rpath --set-rpath "$libraries" "$2.new" &&
        patchelf --set-interpreter "$(echo "$libraries"/ld-linux*.so.?)" "$2.new" && mv "$2.new" "$2"
}

newer_fetch()
{
    local version packages=()
    for version in $newer_versions; do
        [ -x "$newer/usr/bin/python$version" ] || break
    done
    [ -x "$newer/usr/bin/python$version" ] && return
    command -v apt-get >/dev/null || { echo "there is no apt-get" && return 1; }
    for version in $newer_versions; do packages+=("python$version" "libpython$version"); done
    newer_unpack "${packages[@]}" "${newer_extra[@]}" || return
    rm -rf "$newer"
    mv "$newer.new" "$newer" || return
    for version in $newer_versions; do
        newer_program "$newer/usr/bin/python$version" "$newer/usr/bin/python$version" || return
    done
}

newer_testsuites_fetch()
{
    local version packages=()
    [ -e "$newer.tests/done" ] && return
    for version in $newer_versions; do packages+=("libpython$version-testsuite"); done
    newer_unpack "${packages[@]}" || return
    rm -rf "$newer.tests"
    for version in $newer_versions; do
        mkdir -p "$newer.tests/$version" &&
            mv "$newer.new/usr/lib/python$version/test" "$newer.tests/$version/" || return
    done
    rm -rf "$newer.new"
    touch "$newer.tests/done"
}

# The package test of each, in the folder VERSION of $newer.tests; the reason on stderr if not.
newer_testsuites()
{
    (flock 8 && newer_testsuites_fetch) 8>"$newer.lock" >"$newer.log" 2>&1 && return
    tail -n 1 "$newer.log" >&2
    return 1
}

# Prints the interpreters; where they are not to be had, the reason on stderr as a skipped test.
newer_pythons()
{
    local version
    mkdir -p "$(dirname "$newer")"
    if ! (flock 8 && newer_fetch) 8>"$newer.lock" >"$newer.log" 2>&1; then
        echo "skip newer-pythons: $newer_versions cannot be had here: $(tail -n 1 "$newer.log")" >&2
        return
    fi
    for version in $newer_versions; do echo "$newer/usr/bin/python$version"; done
}
