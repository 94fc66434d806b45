#!/bin/bash
# Many processes in one directory, and processes killed at any moment.
. "$(dirname "$0")/support.bash"
make_toy || { echo 'not ok toy: it cannot be built'; exit 1; }
for i in $(seq 20); do cp toyext.so "e$i.so"; done

# Twenty at once into a directory that is not there yet: each copies one of its own and all the same.
pids=()
for i in $(seq 20); do
    x copy --libpython libtoyapi.so "e$i.so" toyext.so ctx >"out$i" 2>"err$i" </dev/null &
    pids+=($!)
done
bad=0
: >out
: >err
for i in $(seq 20); do
    wait "${pids[i - 1]}" || { bad=1; cat "err$i" >>err; }
done
say $bad twenty_at_once_into_a_new_directory
sound ctx
say $? twenty_at_once_leave_a_sound_directory
[ "$(x list --json ctx | jq '.[0].copies | length')" = 22 ] && [ "$(find ctx -name '*.so*' | wc -l)" = 22 ]
say $? twenty_at_once_lose_nothing
[ "$(sed -n 's/^toyext.so -> //p' out[0-9]* | sort -u | wc -l)" = 1 ]
say $? twenty_at_once_agree_on_the_shared_copy

# The same files again by twenty, while another replaces a source under them.
pids=()
for i in $(seq 20); do
    x copy e?.so e1?.so ctx >"out$i" 2>"err$i" </dev/null &
    pids+=($!)
done
for i in $(seq 10); do
    cp toyext.so e1.new && mv e1.new e1.so
done
bad=0
for i in $(seq 20); do
    wait "${pids[i - 1]}" && continue
    # The source may be caught in the act; a half-new copy may not come of it.
    cat "err$i" >>err
    grep -v '^  ' "err$i" | grep -qv 'e1.so: changed while it was' && bad=1
done
say $bad twenty_at_once_reuse_copies
run copy e1.so ctx
sound ctx
say $? reused_directory_is_sound

# Those whose files all fail take the new directory away again, and others begin it anew.
cp "$(command -v true)" program.so
run copy --libpython libtoyapi.so program.so unlucky
check a_program_is_refused_after_the_directory_is_made 1 'program.so'
[ ! -e unlucky ] && [ ! -s out ]
say $? and_leaves_no_directory_and_says_nothing_of_one
bad=0
: >err
for i in $(seq 30); do
    pids=()
    for j in 1 2 3; do x copy --libpython libtoyapi.so program.so unlucky >/dev/null 2>&1 </dev/null & done
    for j in 1 2 3; do
        x copy --libpython libtoyapi.so "e$j.so" unlucky >/dev/null 2>>err </dev/null &
        pids+=($!)
    done
    for p in "${pids[@]}"; do wait "$p" || bad=1; done
    wait
    sound unlucky || bad=1
    x clean unlucky >/dev/null 2>>err
    [ $bad = 0 ] || break
done
say $bad who_fails_takes_nothing_from_who_copies

# Cleaning while others copy: each may fail, but afterwards the directory can be copied into.
bad=0
for i in $(seq 15); do
    x copy --libpython libtoyapi.so toyext.so cleaned >/dev/null 2>>err
    x copy --libpython libtoyapi.so e?.so cleaned >/dev/null 2>>err </dev/null &
    for j in 1 2 3; do x clean cleaned >/dev/null 2>>err </dev/null; done
    wait
    if ! x copy --libpython libtoyapi.so toyext.so cleaned >out 2>err || ! sound cleaned; then
        bad=1
        find cleaned -printf '    %P %s\n'
        break
    fi
done
say $bad cleaning_meanwhile

# Killed at any moment.
rounds=${EXTI_KILL_ROUNDS:-60}
bad=0
killed=0
for i in $(seq "$rounds"); do
    [ $((i % 5)) != 0 ] || rm -rf struck
    [ $((i % 3)) != 0 ] || for j in 1 2 3; do cp "e$j.so" new.so && mv new.so "e$j.so"; done
    x copy --libpython libtoyapi.so e*.so struck >/dev/null 2>&1 </dev/null &
    pid=$!
    sleep "0.0$(printf %02d $((RANDOM % 40)))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? != 137 ] || killed=$((killed + 1))
    if [ -e struck/manifest.json ] && ! x list struck >/dev/null 2>>err; then
        bad=1
        echo "    round $i: the directory cannot be listed"
    fi
    if ! x copy --libpython libtoyapi.so e*.so struck >out 2>err || ! sound struck; then
        bad=1
        echo "    round $i"
        break
    fi
done
say $bad "killed_$([ $killed -gt 0 ] && echo at_any_moment || echo never)_then_repeated"
echo "    killed in $killed of $rounds rounds"
[ $killed -gt 0 ]
say $? some_were_killed_in_time
finish
