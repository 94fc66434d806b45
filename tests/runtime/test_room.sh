#!/bin/bash
# Contexts for which a process has no room are refused before any is started, with what makes room.
. "$(dirname "$0")/lib.sh"
cd "$tmp" || exit 1
if [ -n "$sanitizer" ]; then
    echo "skip room: a sanitizer has mappings and address space of its own"
    exit
fi
begin='open("begun", "w")'

refused() { # NAME TEXT COMMAND...
    local name=$1 text=$2 rc
    shift 2
    "$@" >out 2>err
    rc=$?
    if [ $rc = 1 ] && [ ! -s out ] && [ ! -e begun ] && [ "$(wc -l <err)" = 1 ] && grep -q "$text" err &&
        [ -z "$(find . -name 'extisolate-*')" ]; then
        ok "$name"
    else
        not_ok "$name" "status $rc" "$(cat out err)"
    fi
}

most=$(($(cat /proc/sys/vm/max_map_count) / 20))
# shellcheck disable=SC2086
{
    if [ $most -lt 10000 ]; then # the most that --contexts takes
        refused too_many_mappings "run at most $most, or raise the limit: sysctl vm.max_map_count" \
            $run --python $system --contexts $((most + 1)) -c "$begin"
    else
        echo "skip too_many_mappings: this machine has mappings for $most contexts"
    fi
    refused too_many_for_the_address_space 'bytes of address space, .* run at most [0-9]*, or .* ulimit -v' \
        bash -c 'ulimit -s 8192 -v 2000000 && exec "$@"' bash $run --python $system --contexts 300 -c "$begin"
    if cp "${run% run}" run && chmod 755 . run && setpriv --reuid 65534 --clear-groups ./run --version >err 2>&1; then
        refused too_many_threads '30 threads, and a process may have 20: run at most 20, or .* ulimit -u' \
            bash -c 'ulimit -u 20 && exec "$@"' bash setpriv --reuid 65534 --clear-groups \
            ./run run --python $system --contexts 30 -c "$begin"
    else
        echo "skip too_many_threads: $(tail -n 1 err)"
    fi

    # Where packages would have no room, it says so, and goes on.
    n=$((most / 8 + 1))
    if [ $n -gt 500 ]; then
        echo "skip packages_without_room_are_noted: this machine has room for them in $((n - 1)) contexts"
    else
        $run --python $system --contexts $n -c 'print("run")' >out 2>err
        rc=$?
        if [ $rc = 0 ] && [ "$(grep -c '^run$' out)" = $n ] && [ "$(wc -l <err)" = 1 ] &&
            grep -q "note: if each of $n contexts imports .* sysctl vm.max_map_count=$((n * 160)) makes room" err; then
            ok packages_without_room_are_noted
        else
            not_ok packages_without_room_are_noted "status $rc" "$(tail -n 5 out err)"
        fi
    fi
    $run --python $system --contexts 2 -c 'print("run")' >out 2>err
    [ ! -s err ] && [ "$(wc -l <out)" = 2 ] && ok few_contexts_have_no_note || not_ok few_contexts_have_no_note "$(cat err)"
}
