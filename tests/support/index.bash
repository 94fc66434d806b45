# A virtual environment of the system's interpreter with what the package index has, and the sources of that; both
# stay in the folder $kept.  For scripts that have read tests/runtime/lib.sh.
# shellcheck shell=bash
mkdir -p "$kept" && kept=$(cd "$kept" && pwd) || exit
export PIP_CACHE_DIR=$kept/cache PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
venv=$kept/venv
python=$venv/bin/python

have_venv() {
    [ -x "$python" ] && return
    $system -m venv "$venv" >"$tmp/pip" 2>&1 && return
    rm -rf "$venv"
    echo "skip ${kept##*/}: no virtual environment: $(tail -n 1 "$tmp/pip")"
    return 1
}

sources=$kept/sources

# The source of an installed package, for tests that its wheel lacks.
have_source() { # PACKAGE
    local v
    [ -d "$sources/$1" ] && return
    v=$("$python" -c 'import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))' "$1")
    mkdir -p "$sources" "$tmp/$1" && timeout 900 "$python" -m pip download -q --no-deps --no-binary "$1" \
        -d "$tmp/$1" "$1==$v" >"$tmp/pip" 2>&1 &&
        tar -C "$tmp/$1" -xf "$tmp/$1"/*.tar.gz && mv "$tmp/$1"/*/ "$sources/$1"
}

# Whether the requirements are there, or can be had; $why says why not.  source:PACKAGE is its source.
have() { # REQUIREMENT...
    [ $# = 0 ] && return
    local key
    key=$kept/had-$(printf '%s ' "$@" | md5sum | cut -c -16)
    [ -e "$key" ] && return
    if get "$@"; then
        touch "$key"
    else
        why=$(grep -v '^\[notice' "$tmp/pip" | tail -n 1)
        return 1
    fi
}
get() {
    local word wheels=() sources_of=()
    for word in "$@"; do
        case $word in
        source:*) sources_of+=("${word#*:}") ;;
        *) wheels+=("$word") ;;
        esac
    done
    timeout 900 "$python" -m pip install -q --only-binary :all: --retries 1 "${wheels[@]}" >"$tmp/pip" 2>&1 || return
    for word in "${sources_of[@]}"; do
        have_source "$word" || return
    done
}
