#!/bin/bash
# Input that cannot be copied gives an error with its path and exit code 1, and leaves nothing behind.
. "$(dirname "$0")/support.bash"
make_toy || { echo 'not ok toy: it cannot be built'; exit 1; }
x copy --libpython libtoyapi.so toyext.so ctx >out 2>err || { say 1 context_to_start_with; exit 1; }

listing() { find "$1" -mindepth 1 ! -name .lock -printf '%P %s %i\n' 2>/dev/null | sort; }

# bad NAME PATTERN FILE: copies FILE into an existing context, and into a new one.
bad() {
    local name=$1 pattern=$2 file=$3
    listing ctx >before
    run copy "$file" ctx
    check "$name" 1 "$pattern" "$(printf %s "$file" | sed 's/[][\.*^$+?(){}|]/\\&/g')"
    listing ctx >after
    cmp -s before after && sound ctx
    say $? "${name}_leaves_the_context_as_it_was"
    run copy --libpython libtoyapi.so "$file" new
    check "${name}_into_a_new_context" 1 "$pattern"
    [ ! -e new ]
    say $? "${name}_makes_no_directory"
    rm -rf new
}

size=$(stat -c %s toyext.so)
for n in 1 15 63 64 200 $((size / 2)); do
    head -c "$n" toyext.so >"cut$n.so"
    bad "truncated_to_$([ "$n" -le 200 ] && echo "$n" || echo half)" 'offset 0x|too small|bytes' "cut$n.so"
done
: >empty.so
bad empty_file 'empty' empty.so
echo 'just text' >text.so
bad text_file 'offset 0x0: .*' text.so

# corrupt NAME PATTERN OFFSET HEX: overwrites a field of the 64-bit header or of a table it refers to.
corrupt() {
    cp toyext.so "bad_$1.so"
    printf "$(printf %s "$4" | sed 's/../\\x&/g')" |
        dd of="bad_$1.so" bs=1 seek="$3" conv=notrunc status=none
    bad "corrupted_$1" "$2" "bad_$1.so"
}
corrupt magic 'offset 0x0' 0 7f454c47
corrupt class 'offset 0x' 4 09
corrupt byte_order 'offset 0x' 5 07
corrupt program_headers_past_the_end 'offset 0x' 32 ffffffffffffff7f
corrupt program_header_size 'offset 0x' 54 0100
dynamic=$(readelf -lW toyext.so | awk '$1 == "DYNAMIC" { print $2 }')
index=$(readelf -lW toyext.so | awk '/^  [A-Z_]+ +0x/ { n++ } $1 == "DYNAMIC" { print n - 1; exit }')
corrupt dynamic_segment_past_the_end 'offset 0x' $((64 + 56 * index + 8)) ffffffffffffff7f
strtab=$(readelf -dW toyext.so | awk '/^ 0x/ { n++ } /\(STRTAB\)/ { print n - 1 }')
corrupt string_table_past_the_end 'offset 0x|STRTAB' $((dynamic + 16 * strtab + 8)) ffffffffffffff7f
symtab=$(readelf -dW toyext.so | awk '/^ 0x/ { n++ } /\(SYMTAB\)/ { print n - 1 }')
corrupt symbol_table_past_the_end 'offset 0x|SYMTAB' $((dynamic + 16 * symtab + 8)) ffffffffffffff7f

# Valid files of the wrong kind.
echo 'int main(void) { return 0; }' >main.c
cc -O1 -pie -fPIE -o program main.c && bad executable 'offset 0x.* program .*not a shared object' program
cc -O1 -no-pie -o fixed main.c && bad executable_of_a_fixed_address 'offset 0x10: a fixed-address program' fixed
cc -O1 -static-pie -o static main.c 2>/dev/null && bad static_executable 'executable|program|dynamic' static
cc -c -fPIC -o object.so toyext.c && bad object_file 'ET_REL|relocatable|object' object.so
ar rc libtoy.a object.so && bad static_library 'offset 0x0: .*(ar|static|archive|library)' libtoy.a
objcopy --only-keep-debug toyext.so debug.so && bad debug_only_file 'debug' debug.so
if command -v i686-linux-gnu-gcc >/dev/null; then
    i686-linux-gnu-gcc -shared -fPIC -nostdlib -o i386.so toyext.c &&
        bad file_for_32_bit '32-bit' i386.so
else
    skip file_for_32_bit 'there is no i686-linux-gnu-gcc'
fi
if command -v s390x-linux-gnu-gcc >/dev/null; then
    s390x-linux-gnu-gcc -shared -fPIC -nostdlib -o s390x.so toyext.c &&
        bad file_for_another_machine '[sS]390' s390x.so
else
    skip file_for_another_machine 'there is no s390x-linux-gnu-gcc'
fi

# Paths that are not files.
bad missing_file 'No such file' missing.so
mkdir folder.so
bad directory 'directory|not a regular file' folder.so
bad device 'not a regular file|device' /dev/null
mkfifo pipe.so
bad pipe 'not a regular file|pipe' pipe.so
ln -s nowhere dangling.so
bad dangling_link 'No such file' dangling.so
ln -s loop.so loop.so
bad link_to_itself 'symbolic links' loop.so
bad name_of_300_characters 'name too long' "$(printf 'n%.0s' $(seq 300)).so"
cp toyext.so weird.cpython-399-x86_64-linux-gnu.so

# A bad file does not keep the others from being copied.
run copy toyext.so text.so missing.so ctx
check bad_among_good 1 '^toyext.so -> ' 'extisolate: text.so: offset 0x0: ' 'extisolate: missing.so: '

# An extension for another CPython.
cc -shared -fPIC -Wl,-soname,libpython3.98.so.1.0 -o libpython3.98.so.1.0 toyapi.c
x copy --libpython libpython3.98.so.1.0 toyext.so py398 >/dev/null 2>&1
listing py398 >before
run copy weird.cpython-399-x86_64-linux-gnu.so py398
check another_python 1 'weird.*is built for CPython 3.99, but the context.s libpython is 3.98' 'another CTXDIR'
listing py398 >after
cmp -s before after && sound py398
say $? another_python_leaves_the_context_as_it_was
run copy --libpython libpython3.98.so.1.0 weird.cpython-399-x86_64-linux-gnu.so new
check another_python_into_a_new_context 1 'is built for CPython 3.99'
[ ! -e new ]
say $? another_python_makes_no_directory

# Bad API libraries.
for f in text.so missing.so folder.so program cut200.so; do
    run copy --libpython "$f" toyext.so new
    check "libpython_that_is_$f" 1 "extisolate: (/.*/)?$f: "
    [ ! -e new ]
    say $? "libpython_that_is_${f}_makes_no_directory"
done

# Bad directories.
echo keep >file
run copy --libpython libtoyapi.so toyext.so file
check ctxdir_that_is_a_file 1 'extisolate: file: is a file, not a directory' 'FILE... CTXDIR'
[ "$(cat file)" = keep ]
say $? ctxdir_that_is_a_file_is_untouched
run copy --libpython libtoyapi.so toyext.so file/ctx
check ctxdir_below_a_file 1 'file/ctx'
run copy --libpython libtoyapi.so toyext.so no/such/ctx
check ctxdir_without_parents 1 'no/such' 'No such file'
[ ! -e no ]
say $? ctxdir_without_parents_makes_none
run copy --libpython libtoyapi.so toyext.so "$(printf 'd%.0s' $(seq 300))"
check ctxdir_of_300_characters 1 'name too long'
ln -s nowhere dangling
run copy --libpython libtoyapi.so toyext.so dangling
check ctxdir_that_is_a_dangling_link 1 'dangling'
# Another program's manifest.json is left alone.
mkdir theirs
echo '{"name": "My App"}' >theirs/manifest.json
for c in verify list clean 'copy --libpython libtoyapi.so toyext.so'; do
    # shellcheck disable=SC2086
    run $c theirs
    check "manifest_of_another_program_${c%% *}" 1 'extisolate: /?.*theirs'
done
[ "$(cat theirs/manifest.json)" = '{"name": "My App"}' ] && [ "$(ls theirs)" = manifest.json ]
say $? manifest_of_another_program_is_untouched

# A truncated manifest gives an error that names it; copying again repairs it.
x copy --name torn --libpython libtoyapi.so toyext.so torn >out 2>err
head -c 40 torn/manifest.json >cut && cp cut torn/manifest.json
for c in verify list clean; do
    run $c torn
    check "cut_manifest_$c" 1 'torn/manifest.json'
    cmp -s cut torn/manifest.json || say 1 "cut_manifest_${c}_leaves_it"
done
run copy --libpython libtoyapi.so toyext.so torn
[ $rc = 0 ] && sound torn && grep -q '"torn"' torn/manifest.json
say $? cut_manifest_is_made_anew

# The same for the other commands.
for c in list verify clean; do
    run $c missing
    check "${c}_of_a_missing_directory" 1 'extisolate: missing: ' 'No such file'
    run $c folder.so
    check "${c}_of_no_context" 1 'extisolate: folder.so: is not a context directory' 'extisolate copy'
    [ -d folder.so ]
    say $? "${c}_of_no_context_leaves_it"
done
run list file
check list_of_a_file 1 'extisolate: file: '
run clean file
check clean_of_a_file 1 'extisolate: file: '
[ -f file ]
say $? clean_of_a_file_leaves_it
for f in text.so cut200.so folder.so missing.so empty.so; do
    run inspect $f
    if [ -d $f ]; then
        check "inspect_of_$f" 0 'files +0 libraries'
    else
        check "inspect_of_$f" 1 "extisolate: $f: "
    fi
    run verify $f --against toyext.so
    [ $rc != 0 ] && grep -q "$f" out err
    say $? "verify_of_$f"
done
run verify toyext.so --against missing.so
check verify_against_a_missing_file 1 'missing.so'

# ---- tests that need root: rights, full and read-only file systems --------------------------------

if [ "$(id -u)" != 0 ] || ! command -v setpriv >/dev/null; then
    skip unreadable_file 'needs root and setpriv(1)'
else
    nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
    chmod 755 .
    cp "$EXTISOLATE" ./program.copy
    chmod 755 program.copy
    mkdir mine rooted
    chmod 777 mine
    cp toyext.so secret.so
    chmod 600 secret.so
    nobody ./program.copy copy --libpython libtoyapi.so secret.so mine/ctx >out 2>err
    rc=$?
    check unreadable_file 1 'extisolate: secret.so: .*Permission denied' 'check the permissions'
    [ ! -e mine/ctx ]
    say $? unreadable_file_makes_no_directory
    nobody ./program.copy copy --libpython libtoyapi.so toyext.so rooted/ctx >out 2>err
    rc=$?
    check unwritable_parent 1 'rooted/ctx.*Permission denied'
    nobody ./program.copy copy toyext.so libtoyapi.so ctx >out 2>err
    rc=$?
    [ $rc = 0 ] || [ $rc = 1 ]
    say $? context_of_another_user_is_no_crash
    cp toyext.so more.so
    listing ctx >before
    nobody ./program.copy copy more.so ctx >out 2>err
    rc=$?
    check unwritable_context 1 'ctx.*Permission denied'
    listing ctx >after
    cmp -s before after && sound ctx
    say $? unwritable_context_is_as_it_was
fi

mount_tmpfs() { mkdir -p "$1" && mount -t tmpfs -o "$2" none "$1" 2>/dev/null; }
if [ "$(id -u)" != 0 ] || ! mount_tmpfs small.mount size=96k; then
    skip no_space_left 'needs root and the right to mount'
    skip read_only_target 'needs root and the right to mount'
    finish
fi
for i in 1 2 3 4 5 6 7 8 9; do cp toyext.so "m$i.so"; done
run copy --libpython libtoyapi.so m?.so small.mount/ctx
check no_space_left 1 'No space left' 'free some space'
sound small.mount/ctx
say $? no_space_left_keeps_a_sound_context
grep -q '^m1.so -> ' out
say $? no_space_left_keeps_what_fitted
dd if=/dev/zero of=small.mount/fill bs=1k 2>/dev/null
run copy --libpython libtoyapi.so toyext.so small.mount/new
check no_space_for_a_new_context 1 'No space left'
[ -z "$(find small.mount/new -type f 2>/dev/null ! -name .lock)" ]
say $? no_space_for_a_new_context_leaves_nothing
umount small.mount

mount_tmpfs ro.mount size=1m
x copy --libpython libtoyapi.so toyext.so ro.mount/ctx >out 2>err
mount -o remount,ro ro.mount
listing ro.mount >before
run copy --libpython libtoyapi.so toyext.so ro.mount/new
check read_only_target 1 'Read-only file system' 'choose a writable CTXDIR'
run copy m1.so ro.mount/ctx
check read_only_context 1 'Read-only file system'
run clean ro.mount/ctx
check clean_of_a_read_only_context 1 'Read-only file system'
listing ro.mount >after
cmp -s before after && sound ro.mount/ctx
say $? read_only_context_is_as_it_was
umount ro.mount
finish
