# Shared by the tests that run other projects' suites.
# shellcheck shell=bash disable=SC2034
. "$root/tests/runtime/lib.sh"
export EXTISOLATE=${EXTISOLATE:-${EXTI_BUILD:-$root/build}/extisolate}
# hypothesis makes a folder as soon as it is imported.
export HYPOTHESIS_STORAGE_DIRECTORY=$tmp/hypothesis
# `all` runs the complete suites, with every interpreter.
whole=
[ "${EXTI_SUITES:-}" != all ] || whole=1

alike() { nice -n 5 $system "$root/tests/suites/alike.py" "$@"; }
