#!/bin/bash
# Wrong usage has an exit code of its own and a helpful message, and does nothing.
. "$(dirname "$0")/support.bash"

run
check no_command_is_usage 2 'missing command' 'commands:'
run --help
check help_lists_commands 0 'copy ' 'copy-tree' 'inspect' 'rewrite' 'verify' 'run ' 'list' 'clean' 'quirks' 'Exit status'
run -h
check short_help 0 'usage: extisolate'
run --version
check version 0 '^extisolate [0-9]+\.[0-9]+\.[0-9]+$'
run -V
check short_version 0 '^extisolate '
for word in cpoy inpsect verifiy lst claen hepl rnu quirk; do
    run $word
    check "near_miss_$word" 2 "unknown command '$word'; did you mean '[a-z]+'\?"
done
run frobnicate
check unknown_command 2 "unknown command 'frobnicate'; 'extisolate help' lists"
run $'co\npy\033[31m'
check unknown_command_is_printed_safely 2 'co\\npy\\x1b'
run help nonsense
check help_of_unknown_command 2 "unknown command 'nonsense'"
run help
check help_without_a_command 0 'commands:' 'Exit status'
run help help
check help_of_help 0 'usage'

for c in copy copy-tree inspect rewrite verify run list clean quirks; do
    run help $c
    cp out help.$c
    check "help_of_$c" 0 "^usage: extisolate $c" 'examples?:' '[Ee]xit'
    run $c --help
    same "help_and_--help_agree_on_$c" out help.$c
    run $c -h
    same "short_help_of_$c" out help.$c
    widest=$(awk '{ if (length > n) n = length } END { print n }' help.$c)
    [ "$widest" -le 100 ]
    say $? "help_of_${c}_fits_100_columns"
done

# These commands may create nothing.
mkdir empty
cd empty || exit 1
: >../x.so
for c in copy inspect rewrite verify list clean; do
    run $c
    check "${c}_without_arguments" 2 "extisolate $c: missing" "see 'extisolate help $c'"
    run $c --jsno
    check "${c}_unknown_option" 2 "unknown option '--jsno'"
    run $c -q
    check "${c}_unknown_short_option" 2 "unknown option '-q'"
    run $c ''
    check "${c}_empty_argument" 2 'argument 1 is empty'
done
run inspect --json -qx y
check unknown_option_in_a_group 2 "unknown option '-q'"
run inspect --jsno
check option_near_miss 2 "did you mean '--json'"
run inspect --json=yes x
check option_takes_no_value 2 "'--json' takes no value"
run copy x ctx --libpython
check option_needs_value 2 "'--libpython' needs a value"
run copy ../x.so
check copy_of_one_argument 2 "needs FILE and CTXDIR, got only '../x.so'"
run copy ../x.so ''
check copy_to_empty_directory_name 2 'argument 2 is empty'
run copy --libpython '' ../x.so ctx
check copy_with_empty_libpython 2 '--libpython is empty'
run copy --name '' ../x.so ctx
check copy_with_empty_name 2 "--name takes 1 to 32 .* not ''"
run copy --name a/b ../x.so ctx
check copy_with_a_name_that_is_none 2 "--name takes 1 to 32 .* not 'a/b'"
run copy --name "$(printf '%033d' 0)" ../x.so ctx
check copy_with_a_long_name 2 '--name takes 1 to 32'
run verify ../x.so
check verify_of_file_needs_against 2 "'../x.so' is a file, not a CTXDIR; to check one copy, add --against ORIGINAL"
run verify .. --against ../x.so
check verify_of_directory_against 2 'is a directory'
run verify a b --against ../x.so
check verify_of_two_files_against 2 'takes one FILE, not 2'
run verify ../x.so --against ''
check verify_against_empty 2 '--against is empty'
run copy-tree
check copy_tree_without_arguments 2 'needs DIR and CTXDIR'
run copy-tree a b c
check copy_tree_with_too_many 2 'takes one DIR and one CTXDIR'
run copy-tree '' ctx
check copy_tree_empty_argument 2 'is empty'
run copy-tree --contexts 0 . ctx
check copy_tree_of_no_context 2 '--contexts takes a number from 1'
run copy-tree --jobs many . ctx
check copy_tree_with_odd_jobs 2 '--jobs takes a number from 1'
run copy-tree --name 'a/b' . ctx
check copy_tree_with_an_odd_name 2 '--name takes 1 to 24'
run copy-tree --libpython '' . ctx
check copy_tree_with_empty_libpython 2 '--libpython is empty'
run copy-tree --closure=some . ctx
check copy_tree_with_an_odd_closure 2 '--closure takes'
run quirks ''
check quirks_empty_argument 2 'argument 1 is empty'
run quirks --quirks ''
check quirks_of_an_empty_name 2 '--quirks is empty'
run quirks --quirks
check quirks_option_needs_value 2 "'--quirks' needs a value"
run quirks --quriks x
check quirks_option_near_miss 2 "did you mean '--quirks'"
run run
check run_without_program 2 'nothing to run; give a SCRIPT, -c CODE or -m MODULE'
run run ''
check run_of_an_empty_script_name 2 "the SCRIPT's name is empty"
run run --jsno -c 1
check run_unknown_option 2 "unknown option '--jsno'"
run run --dir '' -c 1
check run_with_an_empty_dir 2 "--dir is empty: is a shell variable unset?"
run run --python '' -c 1
check run_with_an_empty_python 2 "--python is empty: is a shell variable unset?"
run run --quirks '' -c 1
check run_with_empty_quirks 2 '--quirks is empty'
run copy --quirks '' ../x.so ctx
check copy_with_empty_quirks 2 '--quirks is empty'
run run -c
check run_option_needs_value 2 "'-c' needs a value"
[ -z "$(ls -A)" ]
say $? wrong_usage_leaves_nothing
cd ..

if [ -c /dev/full ]; then
    "$EXTISOLATE" --help >/dev/full 2>err
    rc=$?
    : >out
    check full_standard_output 1 'standard output: cannot write'
fi

make_toy || { echo "not ok toy: it cannot be built"; exit 1; }
library=$T/libtoyapi.so

# While it waits for the lock, what are its standard streams?
x copy --libpython "$library" toyext.so held >out 2>err
# Valgrind closes a file that gets the number of its own log.
if [[ $EXTISOLATE = */valgrind/* ]]; then
    skip closed_streams_are_not_taken_by_files 'valgrind lets no program have descriptor 2 anew'
else
python3 - held/.lock "$EXTISOLATE" >out 2>err <<'P'
import fcntl, os, subprocess, sys, time
lock = open(sys.argv[1], "r+")
fcntl.flock(lock, fcntl.LOCK_EX)
p = subprocess.Popen(["sh", "-c", 'exec "$0" clean held <&- >&- 2>&-', sys.argv[2]])
fds = f"/proc/{p.pid}/fd"
for _ in range(1000):
    try:
        open_files = {int(n): os.readlink(f"{fds}/{n}") for n in os.listdir(fds)}
    except FileNotFoundError:
        continue
    if any(f.endswith("held/.lock") for f in open_files.values()):
        break
    time.sleep(0.01)
fcntl.flock(lock, fcntl.LOCK_UN)
p.wait(60)
print(open_files)
sys.exit([open_files.get(n) for n in (0, 1, 2)] != ["/dev/null"] * 3)
P
say $? closed_streams_are_not_taken_by_files
fi
run inspect "$library" missing.so
! grep -q $'\033' out err
say $? no_colour_in_files
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
    TERM=xterm script -qec "'$EXTISOLATE' inspect '$library'" /dev/null >out </dev/null
    grep -q $'\033\[1m' out
    say $? colour_on_terminals
    NO_COLOR=1 TERM=xterm script -qec "'$EXTISOLATE' inspect '$library'" /dev/null >out </dev/null
    ! grep -q $'\033' out
    say $? NO_COLOR_is_honoured
    TERM=dumb script -qec "'$EXTISOLATE' inspect '$library'" /dev/null >out </dev/null
    ! grep -q $'\033' out
    say $? no_colour_on_dumb_terminals
else
    skip colour_on_terminals 'there is no script(1), or no terminal to be had'
fi

# A bar appears on a terminal once work takes more than a second: here it waits for the directory's lock,
# which is released when the bar has appeared.
if ! script -qec true /dev/null >/dev/null 2>&1 </dev/null || ! command -v flock >/dev/null; then
    skip progress_bar 'needs script(1), a terminal and flock(1)'
elif x copy --libpython libtoyapi.so toyext.so ctx >/dev/null; then
    copy="'$EXTISOLATE' copy toyapi.so toyext.so ctx"
    cp toyext.so toyapi.so
    exec 9>>ctx/.lock
    flock 9
    TERM=xterm script -qec "$copy" /dev/null >out </dev/null 9>&- &
    until grep -q 'copying \[' out || ! kill -0 $!; do sleep 0.1; done 2>/dev/null
    exec 9>&-
    wait
    grep -q 'copying \[' out && tail -c 20 out | grep -qv 'copying'
    say $? progress_bar_after_a_second
    begun=$(date +%s%N)
    TERM=xterm script -qec "$copy" /dev/null >out </dev/null
    took=$((($(date +%s%N) - begun) / 1000000))
    if [ $took -ge 1000 ] && grep -q 'copying' out; then
        skip no_progress_bar_before_that "it took $took ms here"
    else
        ! grep -q 'copying' out
        say $? no_progress_bar_before_that
    fi
    exec 9>>ctx/.lock
    flock 9
    x copy toyext.so ctx >out 2>err </dev/null 9>&- &
    sleep 2
    exec 9>&-
    wait $!
    [ $? = 0 ] && [ ! -s err ]
    say $? no_progress_bar_without_a_terminal
else
    say 1 progress_bar 'the toy context cannot be made'
fi
finish
