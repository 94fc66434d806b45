#!/bin/bash
# Counters in databases that lock their files: four contexts of one process, two threads in each, lose as few
# updates as four processes do: none.  EXTI_ALL=1 takes all databases, kills writers in between, and
# prints both columns; otherwise SQLite inside an extension, in both journal modes, beside a copy of the distribution's.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/runtime/lib.sh
. "$here/../runtime/lib.sh"
kept=${EXTI_BUILD:-$root/build}/packages
mkdir -p "$kept" && kept=$(cd "$kept" && pwd) || exit
export PIP_CACHE_DIR=$kept/cache PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
count=$here/databases/count.py
times=${EXTI_TIMES:-$([ -n "${EXTI_ALL:-}" ] && echo 300 || echo 60)}
venv=$kept/venv-databases
python=$venv/bin/python

few='apsw:apsw:delete apsw:apsw:wal'
all='sqlite3::delete sqlite3::wal pysqlite3:pysqlite3-binary:delete pysqlite3:pysqlite3-binary:wal lmdb:lmdb: portalocker:portalocker: lockf::
duckdb:duckdb: plyvel:plyvel: h5py:h5py: gdbm::'
cases=$few
[ -z "${EXTI_ALL:-}" ] || cases="$few $all"

# Whether the package is there, or can be had.
have() { # KIND PACKAGE
    if [ "$1" = gdbm ]; then "$python" -c 'import dbm.gnu' 2>/dev/null; return; fi
    [ -z "$2" ] || "$python" -c "import $1" 2>/dev/null ||
        timeout 300 "$python" -m pip install -q --only-binary :all: --retries 1 "$2" >"$tmp/pip" 2>&1
}

total() { "$python" "$count" "$kind" "$1" -1; }

# Four writers at once by COMMAND, which is one process or four; the counter must be what they say.
together() { # NAME FILE
    local got said=$((4 * times))
    got=$(total "$2" 2>&1 | tail -n 1)
    if [ "$rc" = 0 ] && [ "$got" = $said ]; then
        ok "$1"
    else
        not_ok "$1" "the counter is $got, not $said; status $rc" "$(tail -n 5 "$tmp/err")"
    fi
}

contexts() { # FILE
    timeout 900 "${EXTISOLATE:-${EXTI_BUILD:-$root/build}/extisolate}" run --contexts 4 --python "$python" \
        "$count" "$kind" "$1" "$times" "$mode" >"$tmp/out" 2>"$tmp/err"
    rc=$?
}

processes() { # FILE
    local pids=() pid
    rc=0
    for _ in 1 2 3 4; do
        timeout 900 "$python" "$count" "$kind" "$1" "$times" "$mode" >>"$tmp/out" 2>>"$tmp/err" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || rc=1; done
}

# The last context by a copy of the distribution's library, the others by the extension's own.
mixed() { # FILE
    timeout 900 "${EXTISOLATE:-${EXTI_BUILD:-$root/build}/extisolate}" run --contexts 4 --python "$python" \
        -c '
import extisolate, runpy, sys
sys.argv = [sys.argv[1], "sqlite3" if extisolate.index == 3 else "apsw"] + sys.argv[2:]
runpy.run_path(sys.argv[0])' "$count" "$1" "$times" "$mode" >"$tmp/out" 2>"$tmp/err"
    rc=$?
}

# A process of four contexts dies while they write; then the database is whole, and open to others.
killed() { # FILE
    local pid
    "${EXTISOLATE:-${EXTI_BUILD:-$root/build}/extisolate}" run --contexts 4 --python "$python" \
        "$count" "$kind" "$1" 1000000 "$mode" >"$tmp/out" 2>"$tmp/err" &
    pid=$!
    sleep 8
    kill -9 $pid
    wait $pid 2>/dev/null
}

if [ ! -x "$python" ] && ! $system -m venv "$venv" >"$tmp/pip" 2>&1; then
    rm -rf "$venv"
    echo "skip databases: no virtual environment: $(tail -n 1 "$tmp/pip")"
    exit
fi
for case in $cases; do
    IFS=: read -r kind package mode <<<"$case"
    name=$kind${mode:+ $mode}
    if ! have "$kind" "$package"; then
        echo "skip $name: cannot be had here: $(grep -v '^\[notice' "$tmp/pip" 2>/dev/null | tail -n 1)"
        continue
    fi
    for who in contexts processes mixed killed; do
        [ $who != mixed ] || [ "$kind" = apsw ] || continue
        [ $who != killed ] || [ -n "${EXTI_ALL:-}" ] || continue
        file=$tmp/$kind.$mode.$who
        : >"$tmp/err"
        "$python" "$count" "$kind" "$file" 0 "$mode" 2>"$tmp/err" || { not_ok "$name: make" "$(cat "$tmp/err")"; continue; }
        case $who in
        contexts) contexts "$file"; together "$name: four contexts lose no update" "$file" ;;
        processes) processes "$file"; together "$name: four processes lose no update" "$file" ;;
        mixed) mixed "$file"; together "$name: contexts with different SQLites lose no update" "$file" ;;
        killed)
            killed "$file"
            before=$(total "$file" 2>&1 | tail -n 1)
            contexts "$file"
            after=$(total "$file" 2>&1 | tail -n 1)
            if [ $rc = 0 ] && [ "$after" = $((before + 4 * times)) ]; then
                ok "$name: killed contexts leave no lock and no damage"
            else
                not_ok "$name: killed contexts leave no lock and no damage" "$before, then $after" "$(tail -n 5 "$tmp/err")"
            fi
            ;;
        esac
        rm -rf "$file"*
    done
done
