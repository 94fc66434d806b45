#!/bin/bash
# The unit, API and isolation tests on arm64, and two contexts with numpy there.  qemu-user runs them in
# a tree of Debian's packages; the cross compiler builds them.  Skipped where that cannot be had.
# EXTI_ARM64=core: in minutes, without the API's, and without what the Makefile has in LONG_EMULATED and
# FORK_EMULATED.
set -u
cd "$(dirname "$0")/../.." || exit
build=${EXTI_BUILD:-build}
tree=$build/arm64-tree
log=$build/logs/arm64-tree.log
jobs=${EXTI_JOBS:-$(nproc)}
mkdir -p "$build/logs"
if [ "${EXTI_ARM64:-}" = core ]; then
    # What waits for ever is to fail while the others still have time.
    settings=(EXTI_EMULATED=core EXTI_ROUNDS=10 TEST_TIMEOUT=120)
    # Where time runs out, it is for what is the same on each machine.
    programs=core-programs groups=(check-isolation check-unit)
else
    settings=()
    programs=test-programs groups=(check-unit check-api check-isolation)
fi

skip() { echo "skip arm64: $*"; exit 0; }
# Whether EXTI_UNTIL is nearer than that.
is_late() { # SECONDS
    [ $(($(date +%s) + $1)) -ge "${EXTI_UNTIL:-9999999999}" ]
}
said_last() { tail -n 1 "$log" | cut -c -200; }
[ "$(uname -m)" = x86_64 ] || skip "this machine is no x86-64"
[ "$(id -u)" = 0 ] || skip "needs root, for chroot and binfmt_misc"
is_late 240 && skip "no time is left for it: the tree and the build take minutes"
scripts/deps.sh arm64 >"$log" 2>&1 ||
    skip "the packages of the emulator and the cross compiler are missing: $(said_last)"
tests/arm64/tree.sh "$tree" >>"$log" 2>&1 ||
    skip "the packages of arm64 cannot be had: $(said_last)"
in_tree() { tests/arm64/in_tree.sh "$tree" "$@"; }
[ "$(in_tree uname -m 2>>"$log")" = aarch64 ] || skip "the kernel does not run arm64 code: $(said_last)"

make_there() {
    in_tree make --no-print-directory -k WERROR=1 BUILD="$build/arm64" EXTI_JOBS="$jobs" \
        ${EXTI_UNTIL:+EXTI_UNTIL="$EXTI_UNTIL"} "${settings[@]}" "$@"
}
if make_there -j"$jobs" all $programs >>"$log" 2>&1; then
    echo "ok builds_without_warnings"
else
    echo "not ok builds_without_warnings"
    grep -E 'error|warning' "$log"
fi
# make fails where a test has, and may fail by itself.
make_there "${groups[@]}" >"$log.tests" 2>&1
rc=$?
grep -E '^(ok|not ok|skip|    )' "$log.tests"
[ $rc = 0 ] || grep -q '^not ok' "$log.tests" ||
    echo "not ok tests_are_run: make ended with status $rc: $(tail -n 1 "$log.tests")"

out=$(timeout -k 10 300 tests/arm64/in_tree.sh "$tree" "$build/arm64/extisolate" run --contexts 2 --prove -c '
import numpy
print(int((numpy.arange(100.0).reshape(10, 10) @ numpy.eye(10)).sum()))' 2>&1)
if [ "$(grep -cx 4950 <<<"$out")" = 2 ] && [ "$(awk '$1 ~ /^[01]$/ && $4 == 0' <<<"$out" | wc -l)" = 2 ]; then
    echo "ok two_contexts_have_numpy_and_no_leaks"
else
    echo "not ok two_contexts_have_numpy_and_no_leaks"
    sed 's/^/    /' <<<"$out"
fi
