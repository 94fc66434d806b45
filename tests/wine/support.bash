# What the tests share that load copies with wine's loader.
. "$(dirname "${BASH_SOURCE[0]}")/../cli/support.bash"
. "$ROOT/tests/support/wine.bash"

build=$(dirname "$EXTISOLATE")
mine=$build/wine
gnu=$build/pe_inputs/gnu-x64
lld=$build/pe_inputs/lld-x64
rewrite=$build/tests/wine_rewrite
T=$(realpath "$T")
cd "$T" || exit 1
: >out >err

# begin TEST: or says why not, and ends the test
begin() {
    local why
    "$ROOT/tests/wine/build.sh" "$mine"
    [ ! -f "$mine/host.skip" ] || { skip "$1" "no host program: $(cat "$mine/host.skip")"; exit 0; }
    start_wine >why || { skip "$1" "$(cat why)"; exit 0; }
    trap 'finish_wine; clean_up' EXIT
}

# have NAME FILE...: whether these could be built; if not, NAME is skipped
have() {
    local f
    for f in "${@:2}"; do
        [ -f "$f" ] || { skip "$1" "$(cat "${f%.*}.skip" 2>/dev/null || echo "no $f")"; return 1; }
    done
}

# Runs the host; the commands are its standard input, what it prints goes to ./out.  It ends with a line of
# its own: where there is none at all wine may not have come up, which is told and tried once more.
host() {
    local rc commands
    commands=$(cat)
    timeout 1800 "$WINE" "$mine/host.exe" <<<"$commands" >"$T/out" 2>"$T/err" && [ -s "$T/out" ] && return
    rc=$?
    [ ! -s "$T/out" ] || return $rc
    echo "    wine printed nothing and ended with status $rc; once more"
    timeout 1800 "$WINE" "$mine/host.exe" <<<"$commands" >"$T/out" 2>"$T/err"
}

# try NAME COMMANDS EXPECTED: the host prints EXPECTED, no more and no less
try() {
    host <<<"$2"
    diff -u <(printf '%s\nend\n' "$3") out >diff
    say $? "$1" "$(cat diff)"
}

# context DIR LIBPYTHON FILE...: copies into a new context; the program's lines are in DIR.map
context() {
    mkdir -p "$1"
    "$EXTISOLATE" copy --libpython "$2" "${@:3}" "$1" >"$1.map" 2>"$T/err" || return
    api=$(find "$(realpath "$1")" -name 'p????????.dll')
    [ -n "$api" ]
}

# copy_of DIR FILE: FILE's copy in a context
copy_of() { sed -n "s|^.*/*$(basename "$2") -> ||p" "$1.map"; }
