# Shared by the tests of hosts: a folder $tmp of the test's own, and what each host must print.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
export LC_ALL=C.UTF-8
build=$(realpath "${EXTI_BUILD:-build}")
python=/usr/bin/python3
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

verdict() { # NAME, after the command it is about; tells what the log has of a failure
    if [ $? = 0 ]; then
        echo "ok $1"
    else
        echo "not ok $1"
        sed 's/^/    /' "$tmp/log" "$tmp/out" 2>/dev/null
    fi
}

skip_all() { # REASON NAME...
    local name
    for name in "${@:2}"; do
        echo "skip $name: $1"
    done
    exit 0
}

# Whether VERSION is MINIMUM or later.
at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

can_run() { "$python" -c 'import numpy, sysconfig
assert sysconfig.get_config_var("Py_ENABLE_SHARED")' 2>"$tmp/log"; }

# Runs a host: numpy in four contexts on a thread each, on memory that is changed where it is.
check_host() { # MEMORY COMMAND...
    local memory=$1 i
    shift
    "$@" "$python" >"$tmp/out" 2>"$tmp/log" && sed -E 's/numpy [0-9.]+ at 0x[0-9a-f]+/numpy/' "$tmp/out" |
        diff <(for i in 1 2 3 4; do
            printf 'context %d: numpy: sum %d, and the %s is [%d.0, %d.0, %d.0]\n' $((i - 1)) $((i * 6)) \
                "$memory" $i $((i * 2)) $((i * 3))
        done; yes 'closed: 0 files stay mapped' | head -n 4) - >>"$tmp/log"
    verdict host_calls_numpy_in_four_contexts
    [ "$(grep -o ' at 0x[0-9a-f]*' "$tmp/out" | sort -u | wc -l)" = 4 ]
    verdict each_context_has_a_numpy_of_its_own
    ! "$@" /nonexistent/python3 >"$tmp/out" 2>"$tmp/log" && grep -q '/nonexistent/python3: the interpreter cannot be run' "$tmp/log"
    verdict host_reports_a_failure
}
