#!/bin/bash
# Long use of the Python package by the system's CPython, with what its packages it has: EXTI_CALLS calls
# of each from a pool, and EXTI_INTERPRETERS interpreters one after the other.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/runtime/lib.sh
. "$here/../runtime/lib.sh"
