#!/bin/bash
# Like test_debian.sh, for packages of the package index: manylinux wheels with their bundled
# libraries, in a virtual environment of each installed Python.  The distribution's Python gets all
# of them, the others every fourth; EXTI_PACKAGES_EVERYWHERE=1 gives all to each.  Packages are
# chosen as in test_debian.sh.  Downloads stay in the build folder; without network they are
# reported as skipped.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/runtime/lib.sh
. "$here/../runtime/lib.sh"
kept=${EXTI_BUILD:-$root/build}/packages
mkdir -p "$kept" && kept=$(cd "$kept" && pwd) || exit
export PIP_CACHE_DIR=$kept/cache PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

shared()
{
    "$1" -c 'import sys, sysconfig; sys.exit(not sysconfig.get_config_var("Py_ENABLE_SHARED"))'
}
requirement() { sed -n 's/^# pypi: //p' "$here/work/$1.py"; }

# Prints the NAMEs to test with Python number TURN.
wanted() { # TURN
    local work name n=0
    for work in "$here"/work/*.py; do
        name=$(basename "$work" .py)
        [ -n "$(requirement "$name")" ] || continue
        n=$((n + 1))
        [ "$1" = 0 ] || [ -n "${EXTI_PACKAGES_EVERYWHERE:-}" ] || [ $((n % 4)) = $(($1 % 4)) ] ||
            continue
        [[ $names_wanted = all || " $names_wanted " = *" $name "* ]] && echo "$name"
    done
}

# Installs the packages of the NAMEs and skips those without a wheel for this Python.  Prints the
# rest.
install() { # VENV VERSION NAME...
    local venv=$1 version=$2 name all=() have=()
    shift 2
    for name in "$@"; do all+=("$(requirement "$name")"); done
    local pip=("$venv/bin/python" -m pip install -q --only-binary :all: --retries 1)
    timeout 900 "${pip[@]}" "${all[@]}" >"$kept/log" 2>&1 && printf '%s\n' "$@" && return
    for name in "$@"; do
        if timeout 300 "${pip[@]}" "$(requirement "$name")" >"$kept/log" 2>&1; then
            echo "$name"
        else
            echo "skip $version/$name: cannot be had here:" \
                "$(grep -v '^\[notice' "$kept/log" | tail -n 1)" >&2
        fi
    done
}

names_wanted=${EXTI_PACKAGES:-$(tr '\n' ' ' <"$here/few.txt")}
turn=0
while IFS= read -r python; do
    shared "$python" || continue
    v=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    mapfile -t names < <(wanted $turn)
    [ ${#names[@]} = 0 ] || turn=$((turn + 1))
    venv=$kept/venv-$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
    if [ ! -x "$venv/bin/python" ] && ! "$python" -m venv "$venv" >"$kept/log" 2>&1; then
        rm -rf "$venv"
        echo "skip $v: no virtual environment: $(tail -n 1 "$kept/log")"
        continue
    fi
    mapfile -t names < <(install "$venv" "$v" "${names[@]}" 2>&3)
    [ ${#names[@]} = 0 ] && continue
    "$venv/bin/python" -B "$here/harness.py" "wheels $v" "$venv/bin/python" "${names[@]}"
done 3>&1 < <(pythons)
