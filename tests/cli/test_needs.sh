#!/bin/bash
# copy and run: which of the libraries that a file needs are copied.
. "$(dirname "$0")/support.bash"
make_toy || { echo 'not ok toy: it cannot be built'; exit 1; }

library() { # SONAME TEXT [FLAG...]
    local name=$1
    printf '%s\n' "$2" >library.c
    shift 2
    cc -shared -fPIC -o "$name" library.c -Wl,-soname,"$name" -L. -Wl,-rpath,"$T" "$@"
}
library libleaf.so 'int leaf(void) { return 1; }'
library libmid.so 'int leaf(void); int mid(void) { return leaf(); }' -lleaf
library ext.so 'int mid(void); int ext(void) { return mid(); }' -lmid

copies() { (cd "$1" && ls) | sed -n 's/\..*\.so$/.so/p' | LC_ALL=C sort | tr '\n' ' '; }
api=libtoyapi.so

run copy --libpython "$api" ext.so ctx
[ $rc = 0 ] && [ "$(copies ctx)" = 'ext.so libleaf.so libmid.so ' ]
say $? libraries_come_along
run verify ctx
[ $rc = 0 ] && grep -q '4 copies, all sound' out
say $? they_are_sound
rm libleaf.so && library libleaf.so 'int leaf(void) { return 2; }'
run verify ctx
[ $rc = 1 ] && grep -q 'libleaf.*its source has changed since' out err
say $? a_changed_library_is_found
run copy ext.so ctx
[ $rc = 0 ] && run verify ctx && [ $rc = 0 ]
say $? it_is_copied_again

run copy --libpython "$api" --closure=none ext.so none
[ $rc = 0 ] && [ "$(copies none)" = 'ext.so ' ] && readelf -dW none/ext.*.so | grep -q '\[libmid.so\]'
say $? none_come_along_when_none_is_asked_for
run copy --libpython "$api" --closure=api ext.so api
[ $rc = 0 ] && [ "$(copies api)" = 'ext.so ' ]
say $? what_does_not_reach_the_api_stays_with_closure_api
run copy --libpython "$api" --share 'lib*' --isolate 'libm?d.so' ext.so some
[ $rc = 0 ] && [ "$(copies some)" = 'ext.so libmid.so ' ] &&
    readelf -dW some/libmid.*.so | grep -qF "[$T/libleaf.so]"
say $? the_last_rule_counts_and_what_is_shared_is_found
run copy --share 'lib*' --isolate 'libm?d.so' ext.so some
[ $rc = 0 ]
say $? the_same_choice_again
run copy --closure=none ext.so some
[ $rc = 1 ] && grep -q 'some: was made with --closure=all; omit --closure' err
say $? another_choice_is_refused
run copy ext.so some
[ $rc = 0 ] && [ "$(copies some)" = 'ext.so libmid.so ' ]
say $? a_directory_keeps_to_its_choice

# Names that are not UTF-8, which a manifest cannot hold.
mkdir "$(printf 'caf\xe9')" "$(printf 'caf\xea')"
for byte in e9 ea; do
    LD_LIBRARY_PATH=$(printf "$T/caf\\x$byte") run copy --libpython "$api" ext.so latin
    [ $rc = 0 ] && [ ! -s err ] && [ "$(copies latin)" = 'ext.so libleaf.so libmid.so ' ]
    say $? "folders_that_are_searched_may_have_any_name_$byte"
    cp latin/manifest.json $byte
done
[ "$(jq .resolution ea)" = $(($(jq .resolution e9) + 1)) ] && run verify latin && [ $rc = 0 ]
say $? and_are_told_apart
for option in share isolate; do
    run copy --libpython "$api" --$option 'libm*' --$option "$(printf 'caf\xe9*')" ext.so globs
    [ $rc = 1 ] && grep -q 'name 2 to share or isolate is not UTF-8' err && [ ! -e globs ]
    say $? "names_to_${option}_are_utf8"
done

for command in copy run; do
    run $command --closure=al ext.so ctx
    [ $rc = 2 ] && grep -q "extisolate $command: --closure takes all, api or none, not 'al'" err
    say $? "${command}_explains_closure"
    run $command --share= ext.so ctx
    [ $rc = 2 ] && grep -q "extisolate $command: --share takes a name like 'libfoo.so\*', not ''" err
    say $? "${command}_explains_share"
    run $command --isolate= ext.so ctx
    [ $rc = 2 ] && grep -q "extisolate $command: --isolate takes a name" err
    say $? "${command}_explains_isolate"
done

# ---- libraries found through the search path of a dependent: libtop has none ---------------
mkdir -p own/libs
top() { # TEXT
    rm -f own/libs/libtop.so
    (cd own/libs && printf '%s\n' "$1" >top.c && cc -shared -fPIC -o libtop.so top.c -Wl,-soname,libtop.so -L. -lbase)
}
(cd own/libs && printf 'int base(void) { return 1; }\n' >base.c &&
    cc -shared -fPIC -o libbase.so base.c -Wl,-soname,libbase.so)
top 'int base(void); int top(void) { return base(); }'
printf 'int base(void), top(void); void *PyInit_ext(void) { return base() + top() ? 0 : (void *)1; }\n' >own/ext.c
cc -shared -fPIC -o own/ext.abi3.so own/ext.c -Lown/libs -lbase -ltop -Wl,-rpath,'$ORIGIN/libs'

# Whether libtop's copy in a context needs the copy of libbase.
leads_on() { # CONTEXT
    (cd "$1" && set -- libbase.*.so && [ -e "$1" ] && readelf -dW libtop.*.so | grep -qF "[$1]")
}
run copy --libpython "$api" own/ext.abi3.so own/ctx
[ $rc = 0 ] && leads_on own/ctx
say $? a_library_is_found_by_way_of_its_user
top 'int base(void); int top(void) { return base() + 1; }'
run copy own/ext.abi3.so own/ctx
[ $rc = 0 ] && leads_on own/ctx && run verify own/ctx && [ $rc = 0 ]
say $? so_it_is_when_it_alone_has_changed
rm own/ctx/libtop.*.so
run copy own/ext.abi3.so own/ctx
[ $rc = 0 ] && leads_on own/ctx
say $? and_when_its_copy_is_gone
run copy-tree --libpython "$api" own tree
[ $rc = 0 ] && leads_on tree/0 && ! grep -q '^missing' out
say $? and_when_a_tree_has_it
rm tree/0/libtop.*.so
run copy-tree own tree
[ $rc = 0 ] && leads_on tree/0 && ! grep -q '^missing' out
say $? and_when_that_is_copied_again

mv own/libs/libbase.so own/elsewhere.so
run copy --libpython "$api" own/ext.abi3.so late
[ $rc = 0 ] && ! ls late/libbase.* >/dev/null 2>&1 && run copy own/ext.abi3.so late && [ $rc = 0 ]
say $? a_library_may_be_missing
mv own/elsewhere.so own/libs/libbase.so
run copy own/ext.abi3.so late
[ $rc = 0 ] && leads_on late && run verify late && [ $rc = 0 ]
say $? one_that_has_come_is_copied
(cd late && stat -c '%n %i %y' -- *.so) >before
run copy own/ext.abi3.so late
(cd late && stat -c '%n %i %y' -- *.so) >after
[ $rc = 0 ] && cmp -s before after
say $? and_then_all_is_up_to_date
