#!/bin/bash
# Runs the tests of one group and keeps count.
#
#   tests/run.sh GROUP TEST...    run each; print a line per result and one for the group
#   tests/run.sh --sum DIR        print the closing line over all groups
#
# A test is a cmocka program, or anything that prints `ok NAME`, `not ok NAME` or
# `skip NAME: reason` on lines of their own.  A test that ends badly or says nothing has failed.
# EXTI_LABEL goes before the group's name, EXTI_WRAP before each program.  Any file in the folder
# EXTI_REPORTS is a sanitizer's report, and the test that ran has failed.
set -u

if [ "$1" = --sum ]; then
    cat "$2"/* 2>/dev/null | awk '
        { passed += $2; failed += $3; skipped += $4 }
        END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
              exit failed > 0 || NR == 0 }'
    exit
fi

group=${EXTI_LABEL:-}$1
shift
logs=${EXTI_BUILD:-build}/logs
results=${EXTI_RESULTS:-build/results}
reports=${EXTI_REPORTS:-}
mkdir -p "$logs" "$results"
# Tests run some of their programs as another user.
[ -z "$reports" ] || { rm -rf "$reports" && mkdir -m 1777 "$reports"; } || exit
export CMOCKA_MESSAGE_OUTPUT=stdout
passed=0 failed=0 skipped=0
start=$SECONDS

# cmocka lists its failures once more at the end of a group, hence `running`.  What a test said last
# before it was skipped is the reason.
results_of() {
    awk '
        /^\[=+\] Running/ { running = 1; next }
        /^\[=+\]/ { running = 0; next }
        /^\[ RUN +\]/ { said = ""; next }
        /^\[ +OK \]/ { if (running) print "ok " $4; next }
        /^\[ +(FAILED|ERROR) +\] [^-]/ { if (running) print "not ok " $4; next }
        /^\[ +SKIPPED +\]/ { if (running) print "skip " $4 ": " said; next }
        /^(ok|not ok|skip) [^ ]/ { print; next }
        { said = $0 }' "$1"
}

fail() {
    printf 'not ok %s: %s\n' "$group" "$1"
    failed=$((failed + 1))
}

run_one() {
    local name=${1##*/} log before=$failed rc line
    log=$logs/$(printf %s "$group-$name.log" | tr '/,' '--')
    # shellcheck disable=SC2086
    { timeout -k 10 "${TEST_TIMEOUT:-3600}" ${EXTI_WRAP:-} "$1" >"$log" 2>&1 </dev/null; } 2>/dev/null
    rc=$?
    local seen=0
    while IFS= read -r line; do
        seen=$((seen + 1))
        case $line in
        ok*) passed=$((passed + 1)) line="ok $group/$name: ${line#ok }" ;;
        skip*) skipped=$((skipped + 1)) line="skip $group/$name: ${line#skip }" ;;
        *) failed=$((failed + 1)) line="not ok $group/$name: ${line#not ok }" ;;
        esac
        printf '%s\n' "$line"
    done < <(results_of "$log")
    if [ $rc = 124 ]; then
        fail "$name ran out of time"
    elif [ $rc -gt 128 ] || { [ $rc != 0 ] && [ $failed = "$before" ]; }; then
        fail "$name ended with status $rc"
    elif [ $seen = 0 ]; then
        fail "$name gave no result"
    fi
    if [ -n "$reports" ] && [ -n "$(ls -A "$reports")" ]; then
        cat "$reports"/* >>"$log"
        rm -f "$reports"/*
        fail "$name made a sanitizer report"
    fi
    if [ "$failed" != "$before" ]; then
        tail -n 60 "$log" | sed 's/^/    /'
        printf '    (all of it: %s)\n' "$log"
    fi
}

for t in "$@"; do
    case $t in
    /*) run_one "$t" ;;
    *) run_one "./$t" ;;
    esac
done
[ $# != 0 ] || fail "has no tests"
printf '%s: %d passed, %d failed, %d skipped (%d s)\n' "$group" $passed $failed $skipped \
    $((SECONDS - start))
printf '%s %d %d %d\n' "$group" $passed $failed $skipped >"$results/$(printf %s "$group" | tr '/,' '--')"
[ $failed = 0 ]
