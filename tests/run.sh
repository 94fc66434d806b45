#!/bin/bash
# Runs the tests of one group and keeps count.
#
#   tests/run.sh GROUP TEST...    run each; print a line per result and one for the group
#   tests/run.sh --sum DIR STATUS print what failed in all groups, then the closing line; STATUS is that of
#                                 the make which ran them, not 0 also where a group could not be built
#
# A test is a cmocka program, or anything that prints `ok NAME`, `not ok NAME` or
# `skip NAME: reason` on lines of their own.  A test that ends badly or says nothing has failed.
# EXTI_LABEL goes before the group's name, EXTI_WRAP before each program.  EXTI_JOBS tests run at a time,
# by default as many as there are processors.  EXTI_TEST=GLOB runs only the cases of cmocka programs whose
# names match.  From the time EXTI_UNTIL on, in seconds since 1970, tests are skipped.  How long each took
# is in the file `times` of the folder EXTI_RESULTS.
# A sanitizer writes its reports to a folder of the test's own below EXTI_REPORTS; any file there fails the
# test.
set -u -o pipefail

if [ "$1" = --sum ]; then
    cat "$2"/*.said 2>/dev/null
    cat "$2"/*.count 2>/dev/null | awk -v status="$3" '
        /^not ok / { print; next }
        { passed += $2; failed += $3; skipped += $4 }
        END { if (status && !failed) {
                  failed = 1
                  print "not ok make: see its lines with *** above"
              }
              printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped
              exit failed > 0 || NR == 0 }'
    exit
fi

logs=${EXTI_BUILD:-build}/logs
results=${EXTI_RESULTS:-build/results}
file_name() { printf %s "$1" | tr '/,' '--'; }

# cmocka lists its failures once more at the end of a group, hence `running`.  What a test said last
# before it was skipped is the reason.  "failed here" is what a tool that is here could not build: no reason.
results_of() {
    awk '
        /^\[=+\] (.*: )?Running/ { running = 1; next }
        /^\[=+\]/ { running = 0; next }
        /^\[ RUN +\]/ { said = ""; next }
        /^\[ +OK \]/ { if (running) print "ok " $4; next }
        /^\[ +(FAILED|ERROR) +\] [^-]/ { if (running) print "not ok " $4; next }
        /^\[ +SKIPPED +\]/ { if (running) print "skip " $4 ": " said; next }
        /^(ok|not ok|skip) [^ ]/ { print; next }
        { said = $0 }' "$1"
}

# Sanitizers' reports of this test only.
reports_of() { # GROUP-NAME
    local v all=${EXTI_REPORTS:-}
    [ -n "$all" ] || return
    reports=$all/$(file_name "$1")
    rm -rf "$reports" && mkdir -m 1777 "$reports" || exit
    for v in ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS LSAN_OPTIONS; do
        [ -z "${!v:-}" ] || export $v="${!v//"$all"/"$reports"}"
    done
}

run_one() { # GROUP TEST
    local group=$1 name=${2##*/} log rc said reports= start
    log=$logs/$(file_name "$group-$name.log")
    if [ "$(date +%s)" -ge "${EXTI_UNTIL:-9999999999}" ]; then
        echo "skip $group/$name: no time is left for it"
        return
    fi
    reports_of "$group-$name"
    start=$(date +%s%N)
    # Signals that a job in the background ignores, timeout of coreutils 9.10 leaves ignored.
    # shellcheck disable=SC2086
    { env --default-signal timeout -k 10 "${TEST_TIMEOUT:-3600}" ${EXTI_WRAP:-} "$2" >"$log" 2>&1 </dev/null; } \
        2>/dev/null
    rc=$?
    printf '%d.%03d %s/%s\n' $((($(date +%s%N) - start) / 1000000 / 1000)) \
        $((($(date +%s%N) - start) / 1000000 % 1000)) "$group" "$name" >>"$results/times"
    said=$(results_of "$log" | sed -E "s/^skip ([^ ]+: failed here: )/not ok \\1/; s#^(ok|not ok|skip) #&$group/$name: #")
    [ -z "$said" ] || printf '%s\n' "$said"
    if [ $rc = 124 ]; then
        echo "not ok $group: $name ran out of time"
    elif [ $rc -gt 128 ] || { [ $rc != 0 ] && ! grep -q '^not ok' <<<"$said"; }; then
        echo "not ok $group: $name ended with status $rc"
    elif [ -z "$said" ] && [ -z "${EXTI_TEST:-}" ]; then
        echo "not ok $group: $name gave no result"
    fi
    if [ -n "$reports" ] && [ -n "$(ls -A "$reports")" ]; then
        cat "$reports"/* >>"$log"
        echo "not ok $group: $name made a sanitizer report"
    fi
}

# The lines of a log that most likely tell the cause: up to the first failure, or to its end.
cause_in() { # LOG
    if grep -q -E '^not ok|^\[ +(FAILED|ERROR) +\] [^-]' "$1"; then
        grep -B 10 -m 1 -E '^not ok|^\[ +(FAILED|ERROR) +\] [^-]' "$1"
    else
        tail -n 10 "$1"
    fi
}

# What a test that is done has to say, in one piece.  The closing lines say the cause of a failure again:
# often nothing else of a run is kept.
tell_one() { # GROUP TEST
    local said log
    log=$logs/$(file_name "$1-${2##*/}.log")
    said=$(run_one "$1" "$2") || exit
    exec 9<"$results"
    flock 9
    printf '%s\n' "$said"
    if grep -q '^not ok' <<<"$said"; then
        tail -n 60 "$log" | sed 's/^/    /'
        printf '    (all of it: %s)\n' "$log"
        {
            printf '%s:\n' "$log"
            cause_in "$log" | cut -c -300 | sed 's/^/    /'
        } >>"$results/$(file_name "$1").said"
    fi
}

if [ "$1" = --one ]; then
    tell_one "$2" "$3"
    exit
fi

group=${EXTI_LABEL:-}$1
shift
mkdir -p "$logs" "$results"
# Tests run some of their programs as another user.
[ -z "${EXTI_REPORTS:-}" ] || { mkdir -p "$EXTI_REPORTS" && chmod 1777 "$EXTI_REPORTS"; } || exit
export CMOCKA_MESSAGE_OUTPUT=stdout
# With unbuffered output Python writes a line in pieces, between which another context's may come.
unset PYTHONUNBUFFERED
start=$SECONDS

tests_of_group() {
    local t

    [ $# != 0 ] || echo "not ok $group: it has no tests"
    for t in "$@"; do
        case $t in
        *.sh) [ -z "${EXTI_TEST:-}" ] || continue ;;&
        /*) printf '%s\0' "$t" ;;
        *) printf './%s\0' "$t" ;;
        esac
    done | xargs -0 -r -n 1 -P "${EXTI_JOBS:-$(nproc)}" "$0" --one "$group" ||
        echo "not ok $group: results were lost, by xargs' status $?"
}

rm -f "$results/$(file_name "$group").said"
tests_of_group "$@" | awk -v group="$group" -v counts="$results/$(file_name "$group").count" '
    { print; fflush() }
    /^ok / { passed++ }
    /^not ok / { failed++; bad = bad $0 "\n" }
    /^skip / { skipped++ }
    END { printf "%s%s %d %d %d\n", bad, group, passed, failed, skipped >counts
          printf "%s: %d passed, %d failed, %d skipped", group, passed, failed, skipped
          exit failed > 0 }'
rc=$?
printf ' (%d s)\n' $((SECONDS - start))
exit $rc
