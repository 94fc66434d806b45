#!/bin/bash
# The unit, API and isolation tests on arm64, and two contexts with numpy there.  qemu-user runs them in a tree
# of Debian's packages; the cross compiler builds them.  Skipped where that cannot be had.
set -u
cd "$(dirname "$0")/../.." || exit
build=${EXTI_BUILD:-build}
tree=$build/arm64-tree
log=$build/logs/arm64-tree.log
mkdir -p "$build/logs"

skip() { echo "skip arm64: $*"; exit 0; }
[ "$(uname -m)" = x86_64 ] || skip "this machine is no x86-64"
[ "$(id -u)" = 0 ] || skip "needs root, for chroot and binfmt_misc"
scripts/deps.sh arm64 >"$log" 2>&1 || skip "the packages of the emulator and the cross compiler are missing"
tests/arm64/tree.sh "$tree" >>"$log" 2>&1 || skip "the packages of arm64 cannot be had: $(tail -n 1 "$log")"
in_tree() { tests/arm64/in_tree.sh "$tree" "$@"; }
[ "$(in_tree uname -m 2>>"$log")" = aarch64 ] || skip "the kernel does not run arm64 code: $(tail -n 1 "$log")"

make_there() { in_tree make --no-print-directory -k WERROR=1 BUILD="$build/arm64" "$@"; }
if make_there -j"$(nproc)" all test-programs >>"$log" 2>&1; then
    echo "ok builds_without_warnings"
else
    echo "not ok builds_without_warnings"
    grep -E 'error|warning' "$log"
fi
make_there check-unit check-api check-isolation 2>&1 | grep -E '^(ok|not ok|skip|    )'

out=$(in_tree "$build/arm64/extisolate" run --contexts 2 --prove -c '
import numpy
print(int((numpy.arange(100.0).reshape(10, 10) @ numpy.eye(10)).sum()))' 2>&1)
if [ "$(grep -cx 4950 <<<"$out")" = 2 ] && [ "$(awk '$1 ~ /^[01]$/ && $4 == 0' <<<"$out" | wc -l)" = 2 ]; then
    echo "ok two_contexts_have_numpy_and_no_leaks"
else
    echo "not ok two_contexts_have_numpy_and_no_leaks"
    sed 's/^/    /' <<<"$out"
fi
