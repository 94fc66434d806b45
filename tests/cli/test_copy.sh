#!/bin/bash
# copy: the copies, their places, and when they are made again.
. "$(dirname "$0")/support.bash"
make_toy || { echo 'not ok toy: it cannot be built'; exit 1; }

soname() { readelf -dW "$1" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p'; }
needed() { readelf -dW "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

# copied NAME API EXTENSION: copies both into ctx and checks them against the originals.
copied() {
    local name=$1 api=$2 ext=$3 a e
    sha256sum "$api" "$ext" >sums
    rm -rf ctx
    run copy --libpython "$api" "$ext" ctx
    [ $rc = 0 ] && [ ! -s err ] && [ "$(wc -l <out)" = 2 ] &&
        grep -qF "$api -> $T/ctx/" out && grep -qF "$ext -> $T/ctx/" out
    say $? "${name}_prints_where_the_copies_are"
    a=$(sed -n '1s/.* -> //p' out)
    e=$(sed -n '2s/.* -> //p' out)
    sha256sum --quiet -c sums
    say $? "${name}_originals_are_untouched"
    [ "$(soname "$e")" = "$(basename "$e")" ] && [ "$(soname "$a")" != "$(soname "$api")" ]
    say $? "${name}_has_a_new_soname"
    needed "$ext" >before
    needed "$e" >after
    [ "$(head -n 1 after)" = "$(basename "$a")" ] && tail -n +2 after | paste before - |
        while read -r was is; do [ "$is" = "$was" ] || [ -f "ctx/$is" ] || exit 1; done
    say $? "${name}_needs_the_contexts_api_copy_first_and_else_the_same_or_copies"
    readelf -dW "$e" | grep -qE 'R(UN)?PATH.*\[\$ORIGIN'
    say $? "${name}_finds_it_beside_itself"
    strays "$api" "$a" || say 1 "${name}_api_bytes" 'bytes outside the edits differ'
    strays "$ext" "$e"
    say $? "${name}_bytes_outside_the_edits_are_the_originals"
    sound ctx
    say $? "${name}_directory_verifies"
    run verify "$e" --against "$ext"
    check "${name}_copy_verifies_against_its_original" 0 'a sound copy'
}

# Prints the sections in which the copy differs, except those that edits may touch.  An edit
# may overwrite headers, the dynamic section, string and symbol tables, hash tables, versions and
# notes, or use filler that no section covers.
strays() {
    cmp -l "$1" "$2" 2>/dev/null | awk '{ print $1 - 1 }' >offsets
    readelf -SW "$1" | sed -n 's/^ *\[ *[0-9]*\] //p' |
        awk '$2 != "NULL" && $2 != "NOBITS" { print $1, $4, $5 }' >sections
    bad=$(awk 'function hex(s,  i, v) { for (i = 1; i <= length(s); i++)
                   v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return v }
        FNR == NR { if ($1 !~ /^\.(dynamic|dynstr|dynsym|symtab|gnu\.hash|hash|gnu\.version.*|note.*)$/) {
                        name[++n] = $1; from[n] = hex($2); to[n] = from[n] + hex($3) } next }
        { for (i = 1; i <= n; i++) if ($1 >= from[i] && $1 < to[i]) print name[i], $1 }' \
        sections offsets | head -n 5)
    [ -z "$bad" ] || { printf '    %s\n' "$bad"; return 1; }
}

copied toy libtoyapi.so toyext.so
if [ -n "$DEBIAN_LIBPYTHON" ] && [ -n "$DEBIAN_NUMPY" ]; then
    copied numpy "$DEBIAN_LIBPYTHON" "$DEBIAN_NUMPY"
    size=$(stat -c %s "$DEBIAN_NUMPY")
    [ $(($(stat -c %s "$(sed -n '2s/.* -> //p' <(x copy "$DEBIAN_LIBPYTHON" "$DEBIAN_NUMPY" ctx))") - size)) -lt 65536 ]
    say $? numpy_grows_by_less_than_64_KiB
    x copy "$DEBIAN_NUMPY" ctx >out
    e=$(sed 's/.* -> //' out)
    LD_BIND_NOW= /usr/bin/python3 -S -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' "$e" 2>err
    say $? numpy_copy_loads
else
    skip numpy 'no numpy and libpython of the system'
fi

# An existing context needs no --libpython; up-to-date copies stay.
rm -rf ctx
x copy --libpython libtoyapi.so toyext.so ctx >first
cp toyext.so other.so
find ctx -type f -name '*.so*' -printf '%p %i %T@\n' | sort >before
run copy toyext.so ctx
find ctx -type f -name '*.so*' -printf '%p %i %T@\n' | sort >after
[ $rc = 0 ] && tail -n 1 first | cmp -s - out && cmp -s before after
say $? second_copy_reuses_the_first
run copy other.so toyext.so ctx
check two_files_into_an_old_directory 0 "^other.so -> $T/ctx/" "^toyext.so -> $T/ctx/"
[ "$(find ctx -name '*.so*' | wc -l)" = 3 ] && sound ctx
say $? copies_side_by_side
run copy --libpython "$T/libtoyapi.so" toyext.so ctx
check same_libpython_again 0
cp libtoyapi.so libanother.so
run copy --libpython libanother.so toyext.so ctx
check another_libpython_is_refused 1 'libanother.so|libtoyapi.so'
sound ctx
say $? another_libpython_leaves_the_directory_sound

# A FILE that is itself a copy stands for its source.
path=$(x copy toyext.so ctx | sed 's/.* -> //')
run copy "$path" ctx
check copy_of_a_copy 0 "-> $path\$"

# The same name and input give the same bytes.
x copy --name fixed --libpython libtoyapi.so toyext.so d1 >out 2>err
x copy --name fixed --libpython libtoyapi.so toyext.so d2 >>out 2>>err
[ "$(cd d1 && sha256sum -- *.so*)" = "$(cd d2 && sha256sum -- *.so*)" ]
say $? same_input_gives_the_same_bytes
run copy --name elsewise toyext.so d1
check name_must_be_the_directorys 1 'fixed'

run copy --json toyext.so other.so missing.so ctx
[ $rc = 1 ] && jq -e --arg t "$T" '.context.dir == $t + "/ctx" and (.context.name | length > 0)
    and .context.renamed == false and .api_library.source == $t + "/libtoyapi.so"
    and (.copies | map(.source)) == ["toyext.so", "other.so"]
    and (.copies | all(.copy | startswith($t + "/ctx/")))
    and (.errors | length) == 1 and .errors[0].code == "EXTI_E_IO"
    and .errors[0].file == "missing.so" and .errors[0].os_error == 2' out >/dev/null
say $? json_has_copies_and_errors
for f in $(jq -r '.copies[].copy' out); do [ -f "$f" ] || say 1 json_names_files_that_are_there; done

run copy --sync --name Ab-1_ --libpython libtoyapi.so toyext.so synced
check sync_and_name 0 'synced/.*Ab-1_'
grep -q '"Ab-1_"' synced/manifest.json
say $? name_is_in_the_manifest

run copy --rename --libpython libtoyapi.so toyext.so renamed
a=$(sed -n '1s/.* -> //p' out) e=$(sed -n '2s/.* -> //p' out)
[ $rc = 0 ] && ! nm -D "$a" | grep -qw Toy_Next && ! nm -D "$e" | grep -qw Toy_Next && sound renamed
say $? rename_gives_private_names
run copy other.so renamed
e=$(sed 's/.* -> //' out)
[ $rc = 0 ] && ! nm -D "$e" | grep -qw Toy_Next && sound renamed
say $? rename_is_kept_by_the_directory

# Paths.
run copy -- -- ctx
check a_file_called_dashes_that_is_missing 1 'extisolate: --: '
cp toyext.so -- --json
run copy -- --json ctx
check a_file_called_like_an_option 0 '^--json -> '
mkdir -p $'sp ace\nline'
cp toyext.so $'sp ace\nline/m od.so'
run copy --libpython libtoyapi.so $'sp ace\nline/m od.so' $'sp ace\nline/c tx'
check spaces_and_newlines 0 '^sp ace\\nline/m od.so -> /.*sp ace\\nline/c tx/'
sound $'sp ace\nline/c tx'
say $? spaces_and_newlines_verify
run copy --json $'sp ace\nline/m od.so' $'sp ace\nline/c tx'
[ -f "$(jq -r '.copies[0].copy' out)" ] && jq -e '.copies[0].source == "sp ace\nline/m od.so"' out >/dev/null
say $? spaces_and_newlines_in_json
long=$(printf 'x%.0s' $(seq 246)).so
cp toyext.so "$long"
run copy "$long" ctx
check longest_file_name 0
sound ctx
say $? longest_file_name_verifies
cp toyext.so $'by\377te.so'
run copy $'by\377te.so' ctx
check name_that_is_not_utf8_is_refused 1 'by\\xffte.so: its path is not UTF-8'
mkdir sub
run copy --libpython libtoyapi.so toyext.so sub/
check an_empty_directory_will_do 0 "$T/sub/"
ln -s toyext.so link.so
run copy --json link.so toyext.so ctx
[ "$(jq -r '.copies | map(.copy) | unique | length' out)" = 1 ]
say $? a_link_and_its_target_share_one_copy

# A source that has changed.
cp toyext.so changing.so
x copy changing.so ctx >first
sed 's/slot\[1\]++/slot[1] += 2/' toyext.c >changing.c
cc -shared -fPIC -O1 -g -o changing.so changing.c
run list ctx
check stale_copy_is_listed 0 '^  stale +.*changing.so$'
run verify ctx
check stale_copy_is_found 1 'changing'
run copy changing.so ctx
check stale_copy_is_replaced 0 '^changing.so -> '
run verify "$(sed 's/.* -> //' out)" --against changing.so
check replaced_copy_is_of_the_new_source 0
sound ctx
say $? replaced_copy_verifies
# Copies for programs keep their constructors; those for contexts withhold them.
withheld() { # FILE: true or false
    x inspect --json "$1" 2>>err | jq -r '.[0].flags.withheld'
}
rm -rf ctx
run copy --libpython libtoyapi.so toyext.so ctx
check for_programs_by_default 0 'toyext.so -> '
e=$(sed -n '2s/.* -> //p' out)
[ "$(withheld "$e")" = false ]
say $? copies_for_programs_keep_their_constructors
run copy --for contexts toyext.so ctx
check for_contexts_on_demand 0 'toyext.so -> '
[ "$(sed -n 's/^toyext.so -> //p' out)" = "$e" ] && [ "$(withheld "$e")" = true ] && sound ctx
say $? copies_for_contexts_withhold_them
run copy --for programs toyext.so ctx
[ "$rc" = 0 ] && [ "$(withheld "$e")" = false ] && sound ctx
say $? either_kind_can_be_made_again

# Copies for contexts leave code and constants to their originals, if there are so many.
cc -shared -fPIC -Wl,-z,separate-code -o large.so -x c - <<'C'
const char constants[40000] = "constant";
int code(void);
int code(void) { __asm__(".skip 40000, 0x90"); return 1; }
C
blocks() { stat -c %b "$1"; }
shared() { # DIR: of large.so's copy, as `list` says
    x list --json "$1" 2>>err | jq '.[0].copies[] | select(.source | endswith("/large.so")) | .shared_size'
}
copy_of_large() { sed -n 's/^large.so -> //p' out; }
rm -rf ctx
run copy --for contexts --libpython libtoyapi.so large.so ctx
check lean_copies_for_contexts 0 'large.so -> '
[ "$(blocks "$(copy_of_large)")" -lt "$(($(blocks large.so) / 2))" ] && [ "$(shared ctx)" -ge 80000 ] && sound ctx
say $? code_and_constants_are_left_out
run verify "$(copy_of_large)" --against large.so
check a_lean_copy_is_verified_with_its_directory 1 "is a lean copy, .*: extisolate verify $T/ctx"
run rewrite --id new.so "$(sed -n 's/^extisolate: \(.*\): is a lean.*/\1/p' err)" -o new.so
check a_lean_copy_is_not_rewritten 1 'is a lean copy, .*; rewrite that one'
[ ! -e new.so ]
say $? nothing_is_written_for_it
run list ctx
check list_says_what_is_shared 0 '^  STATE +SIZE +SHARED +COPY +SOURCE$' \
    '^  fresh +[0-9.]+ kB +8[0-9]\.[0-9] kB +.*large.so$' '^  fresh +[0-9.]+ kB +- .*libtoyapi'
run inspect large.so
check inspect_says_what_is_shared 0 '^  lean +yes: copies for contexts can map 8[0-9]{4} bytes of it$'
run copy --for contexts --full-copies large.so ctx
check full_copies_on_demand 0 'large.so -> '
[ "$(blocks "$(copy_of_large)")" -ge "$(blocks large.so)" ] && [ "$(shared ctx)" = 0 ] && sound ctx
say $? they_leave_out_nothing
run verify "$(copy_of_large)" --against large.so
check a_full_copy_is_verified_by_itself 0 'a sound copy'
run copy large.so ctx2 --libpython libtoyapi.so
[ "$(shared ctx2)" = 0 ]
say $? copies_for_programs_are_full

# By itself the API library's copy is one that was asked for.
rm -rf ctx
run copy --libpython libtoyapi.so libtoyapi.so ctx
check api_library_alone 0 "^libtoyapi.so -> $T/ctx/libtoyapi.so"
[ "$(wc -l <out)" = 1 ] && [ -f "$(sed 's/.* -> //' out)" ] && sound ctx
say $? api_library_alone_stays

run copy --for nobody toyext.so ctx
check unknown_users_are_refused 2 "--for takes contexts or programs, not 'nobody'"

finish
