# Shared by tests/servers: a virtual environment of the system's interpreter, with what the index has.
# shellcheck shell=bash
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/runtime/lib.sh
. "$here/../runtime/lib.sh"
kept=${EXTI_BUILD:-$root/build}/servers
mkdir -p "$kept" && kept=$(cd "$kept" && pwd) || exit
export PIP_CACHE_DIR=$kept/cache PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
venv=$kept/venv
python=$venv/bin/python

have_venv() {
    [ -x "$python" ] && return
    $system -m venv "$venv" >"$tmp/pip" 2>&1 && return
    rm -rf "$venv"
    echo "skip servers: no virtual environment: $(tail -n 1 "$tmp/pip")"
    return 1
}

# Whether the requirements are there, or can be had; $why says why not.
have() { # REQUIREMENT...
    [ $# = 0 ] && return
    local key
    key=$kept/had-$(printf '%s ' "$@" | md5sum | cut -c -16)
    [ -e "$key" ] && return
    if timeout 900 "$python" -m pip install -q --only-binary :all: --retries 1 "$@" >"$tmp/pip" 2>&1; then
        touch "$key"
    else
        why=$(grep -v '^\[notice' "$tmp/pip" | tail -n 1)
        return 1
    fi
}
