#!/bin/bash
# Many processes in one directory, and processes killed at any moment.
. "$(dirname "$0")/support.bash"
make_toy || { echo 'not ok toy: it cannot be built'; exit 1; }
for i in $(seq 20); do cp toyext.so "e$i.so"; done

# Twenty processes at once create one directory: each copies one file of its own and one that all copy.
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

# Twenty processes copy the same files while another one replaces a source.
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
    grep -v '^  ' "err$i" | grep -qvE 'e1.so: (changed while it was|keeps changing on disk)' && bad=1
done
say $bad twenty_at_once_reuse_copies
run copy e1.so ctx
sound ctx
say $? reused_directory_is_sound

# Processes whose files all fail remove the new directory, and others create it again.
cp "$(type -P true)" program.so
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

# clean while others copy: any of them may fail, but the directory stays usable.
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

# again ROUND: after a process was killed, the directory can be listed, copied into and verified.  What
# it was writing at that moment stays until the directory is cleaned.
again() {
    if [ -e struck/manifest.json ] && ! x list struck >/dev/null 2>>err; then
        bad=1
        echo "    $1: the directory cannot be listed"
    fi
    x copy --libpython libtoyapi.so e*.so struck >out 2>err && x verify struck >verify 2>>err && return
    bad=1
    echo "    $1"
    cat verify
    return 1
}
# gone ROUND: the directory can be cleaned, and nothing is left
gone() {
    x clean struck >/dev/null 2>err && [ ! -e struck ] && return
    bad=1
    echo "    $1: cleaning leaves $(ls -A struck)"
    return 1
}

# Stopped in the middle of writing each copy: by the first byte past a limit.
rm -rf struck
sizes=()
for i in $(seq 20); do
    cp toyext.so "e$i.so"
    truncate -s "$((i * 64))k" "e$i.so"
    sizes+=($((i * 64)))
done
stopped=0
bad=0
for size in 8 "${sizes[@]}"; do
    (
        ulimit -f $((size == 8 ? 8 : size - 32))
        exec "$EXTISOLATE" copy --libpython libtoyapi.so e*.so struck
    ) >/dev/null 2>err </dev/null
    [ $? = 1 ] && grep -q 'File too large' err && stopped=$((stopped + 1))
    if [ -n "$(find struck -name '.exti-*' 2>/dev/null)" ]; then
        echo "    of $size KiB: a temporary file is left"
        bad=1
    fi
    again "of $size KiB" && gone "of $size KiB" || break
done
say $bad stopped_while_it_writes_then_repeated
[ $stopped = 21 ]
say $? it_was_stopped_while_it_writes "in $stopped of 21 rounds"

# Killed at random moments.
rounds=${EXTI_KILL_ROUNDS:-60}
bad=0
killed=0
for i in $(seq "$rounds"); do
    [ $((i % 5)) != 0 ] || [ ! -e struck ] || gone "round $i" || break
    [ $((i % 3)) != 0 ] || for j in 1 2 3; do cp "e$j.so" new.so && mv new.so "e$j.so"; done
    x copy --libpython libtoyapi.so e*.so struck >/dev/null 2>&1 </dev/null &
    pid=$!
    sleep "0.0$(printf %02d $((RANDOM % 40)))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $? != 137 ] || killed=$((killed + 1))
    again "round $i" || break
done
say $bad killed_at_any_moment_then_repeated
echo "    killed in $killed of $rounds rounds"
finish
