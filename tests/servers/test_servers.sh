#!/bin/bash
# Unmodified servers and task queues in four contexts of one process, each on its own port: they answer, also under
# load, and ^C and SIGTERM end them as they end the plain program: the same messages in the same order, the same
# status, in about the same time, and no process is left.  Packages stay in the build folder; without network they
# are skipped.  EXTI_SERVERS names cases (cases.py); EXTI_SERVERS_LOAD says for how many seconds each is loaded.
set -u
# shellcheck source=tests/servers/lib.sh
. "$(dirname "$0")/lib.sh"
have_venv || exit 0
export EXTI_SERVERS_PYTHON=$python EXTI_SERVERS_SOURCES=$sources PYTHONPATH=$here
while IFS= read -r line; do
    read -r -a words <<<"$line"
    if have "${words[@]:1}"; then
        "$system" "$here/drive.py" "${words[0]}"
    else
        echo "skip ${words[0]}: cannot be had here: $why"
    fi
done < <("$system" -c 'import cases
for case in cases.CASES:
    print(case.name, *case.needs)' | while read -r name needs; do
    # shellcheck disable=SC2053
    for wanted in ${EXTI_SERVERS:-'*'}; do [[ $name == $wanted ]] && echo "$name $needs"; done
done)
