# What the tests over other projects' suites share.
# shellcheck shell=bash disable=SC2034
. "$root/tests/runtime/lib.sh"
export EXTISOLATE=${EXTISOLATE:-${EXTI_BUILD:-$root/build}/extisolate}
# Importing hypothesis is enough to make a folder.
export HYPOTHESIS_STORAGE_DIRECTORY=$tmp/hypothesis
# `all` runs the suites whole and with every interpreter.
whole=
[ "${EXTI_SUITES:-}" != all ] || whole=1

alike() { nice -n 5 $system "$root/tests/suites/alike.py" "$@"; }
