#!/bin/bash
# Single files are changed, checked and put in place; other tools read the results.
. "$(dirname "$0")/support.bash"

make_toy || { echo 'not ok toy: cannot be built'; exit 1; }
cc -shared -fPIC -o libdep.so -Wl,-soname,libdep.so.1 -x c - <<<'int dep; ' &&
    cc -shared -fPIC -Wl,--no-as-needed -Wl,-rpath,/old/place -o lib.so toyext.c libtoyapi.so libdep.so ||
    { echo 'not ok inputs: cannot be built'; exit 1; }
chmod 640 lib.so
cp -p lib.so was.so

# The dynamic strings, those of one kind in their order.
dynamic() {
    readelf -dW "$1" | sed -n 's/.*(\([A-Z]*\)).*\[\(.*\)\]/\1 \2/p' | grep -v ld-linux | sort -s -k1,1 | tr '\n' ' '
}
unchanged() { cmp lib.so was.so && [ "$(ls -A | grep -c '\.tmp\|^\.')" = 0 ]; }

# ---- ELF ----

run rewrite --id libnew.so.2 --add-needed liblast.so --add-needed-first libfirst.so --remove-needed libdep.so.1 \
    --replace-needed libtoyapi.so.1=libother.so --prepend-path '$ORIGIN' lib.so -o out.so
check all_edits_go_to_the_output 0 '^lib.so -> out.so$'
[ "$(dynamic out.so)" = "NEEDED libfirst.so NEEDED libother.so NEEDED libc.so.6 NEEDED liblast.so RUNPATH \$ORIGIN:/old/place \
SONAME libnew.so.2 " ]
say $? readelf_sees_them "$(dynamic out.so)"
unchanged
say $? and_the_file_is_as_it_was
run verify --against lib.so out.so
check and_the_result_verifies 0 'a sound copy'
run rewrite --add-needed a.so --replace-needed a.so=b.so --remove-needed b.so --add-needed c.so lib.so -o order.so
[ "$rc" = 0 ] && dynamic order.so | grep -q 'NEEDED c.so' && ! dynamic order.so | grep -q '[ab]\.so '
say $? edits_apply_in_the_order_given
run rewrite --set-path '' lib.so --output none.so
[ "$rc" = 0 ] && ! readelf -d none.so | grep -q PATH
say $? an_empty_path_removes_the_old
run rewrite --rename-symbol ext_step=another_name --rename-symbol absent=x lib.so -o renamed.so
[ "$rc" = 0 ] && nm -D renamed.so | grep -q ' T another_name$' && ! nm -D renamed.so | grep -q ext_step
say $? a_symbol_is_renamed

# ---- in the place of the file ----

ln lib.so hard.so
ln -s lib.so soft.so
run rewrite --id one.so lib.so
check without_output_the_file_is_replaced 0 '^lib.so -> lib.so$'
[ "$(stat -c '%a %u %g' lib.so)" = "$(stat -c '%a %u %g' was.so)" ] && dynamic lib.so | grep -q 'SONAME one.so' &&
    cmp hard.so was.so && ! cmp -s lib.so hard.so
say $? with_its_mode_and_owner_and_not_in_place
run rewrite --id two.so soft.so
[ "$rc" = 0 ] && [ -L soft.so ] && dynamic lib.so | grep -q 'SONAME two.so'
say $? a_link_to_it_stays_one
cp -p was.so lib.so

# ---- again and again ----

loads() { readelf -lW "$1" | grep -c '^ *LOAD'; }
cp was.so again.so
first=0
for i in $(seq 20); do
    run rewrite --id "name-of-edit-$i.so" --add-needed "libof-edit-$i.so" again.so
    [ "$rc" = 0 ] || break
    [ "$i" != 1 ] || first=$(stat -c %s again.so)
done
check twenty_edits_of_one_file_work 0
[ "$(loads again.so)" -le $(($(loads was.so) + 1)) ] && [ $(($(stat -c %s again.so) - first)) -lt 4096 ]
say $? and_add_one_program_header_and_no_page "$(loads was.so) $(loads again.so) $first $(stat -c %s again.so)"
dynamic again.so | grep -q 'libof-edit-1.so NEEDED libof-edit-2.so.*SONAME name-of-edit-20.so'
say $? with_all_that_was_asked_for
if command -v eu-elflint >/dev/null; then
    eu-elflint --gnu-ld was.so >before 2>&1
    eu-elflint --gnu-ld again.so >after 2>&1
    same eu_elflint_finds_nothing_new after before
else
    skip eu_elflint_finds_nothing_new 'there is no eu-elflint(1)'
fi
if [ -n "$DEBIAN_NUMPY" ]; then
    cp "$DEBIAN_NUMPY" numpy.so
    for i in $(seq 20); do
        run rewrite --id "name-$i.so" --prepend-path "/place/of/edit-$i" numpy.so
        [ "$rc" = 0 ] || break
    done
    check numpy_too 0
    [ "$(loads numpy.so)" -le $(($(loads "$DEBIAN_NUMPY") + 1)) ]
    say $? with_one_program_header_more
else
    skip numpy_too 'there is no numpy of Debian'
fi

# ---- refusals ----

run rewrite --remove-needed libabsent.so --id x.so lib.so
check what_is_not_needed_cannot_be_removed 1 "lib.so: DT_NEEDED: there is no 'libabsent.so' to remove" 'allow-absent'
unchanged
say $? and_nothing_is_written
run rewrite --replace-needed libabsent.so=b.so lib.so -o no.so
check nor_replaced 1 "there is no 'libabsent.so' to replace"
[ ! -e no.so ]
say $? and_no_output_is_made
run rewrite --allow-absent --remove-needed libabsent.so --replace-needed libgone.so=b.so lib.so -o allowed.so
check unless_it_is_allowed 0
[ "$(dynamic allowed.so)" = "$(dynamic lib.so)" ]
say $? and_changes_nothing
echo precious >kept.so
run rewrite --id x.so /nowhere/lib.so -o kept.so
check a_missing_file_is_named 1 '/nowhere/lib.so: .*No such file'
run rewrite --id x.so toyext.c -o kept.so
check so_is_one_that_is_no_library 1 'toyext.c: offset 0x0: '
[ "$(cat kept.so)" = precious ]
say $? and_the_old_output_stays
mkdir dir
run rewrite --id x.so lib.so -o dir
check a_folder_is_not_replaced 1 'dir: '
run rewrite --id x.so lib.so -o missing/x.so
check nor_one_made 1 'missing/x.so: '

# ---- wrong usage ----

run rewrite lib.so -o x.so
check no_edit_is_usage 2 'nothing to change'
run rewrite --id x.so a.so b.so
check two_files_are_usage 2 'takes one FILE, not 2'
run rewrite --replace-needed a.so b.so lib.so
check the_pair_of_patchelf_is_usage 2 "--replace-needed takes OLD=NEW, not 'a.so'"
for pair in =b a= =; do
    run rewrite --rename-symbol "$pair" lib.so
    check "half_a_pair_${pair//=/-}_is_usage" 2 "--rename-symbol takes OLD=NEW, not '$pair'"
done
for option in id add-needed add-needed-first remove-needed prepend-path output; do
    run rewrite --id x.so --$option '' lib.so
    check "empty_${option}_is_usage" 2 "--$option is empty"
done
unchanged
say $? wrong_usage_does_nothing

# ---- JSON ----

run rewrite --json --id j.so --remove-needed libdep.so.1 lib.so -o json.so
check json_tells_the_result 0
[ "$(jq -c '[.source, .copy, .id, .needed[0:2], .errors]' out)" = \
    '["lib.so","json.so","j.so",["libtoyapi.so.1","libc.so.6"],[]]' ]
say $? as_it_is
run rewrite --json --remove-needed libabsent.so lib.so
check json_tells_failures 1 'there is no'
[ "$(jq -c '[.copy, .errors[0].code, .errors[0].file]' out)" = '[null,"EXTI_E_ARG","lib.so"]' ]
say $? by_code_and_file

# ---- Mach-O ----

inputs=$(dirname "$EXTISOLATE")/macho_inputs
if "$ROOT/tests/macho_inputs/build.sh" "$inputs" >/dev/null && [ -f "$inputs/arm64/chained/libhelper.dylib" ] &&
    command -v llvm-otool llvm-objdump >/dev/null; then
    for kind in arm64/chained x86_64/opcodes; do
        cp "$inputs/$kind/libhelper.dylib" "$inputs/$kind/helped.so" .
        old=$(llvm-otool -L helped.so | awk 'NR == 2 { print $1 }')
        run rewrite --id /new/libhelper.dylib libhelper.dylib
        [ "$rc" = 0 ] && [ "$(llvm-otool -D libhelper.dylib | tail -n 1)" = /new/libhelper.dylib ]
        say $? "otool_sees_the_new_id_of_$kind"
        run rewrite --replace-needed "$old=/new/libhelper.dylib" --add-needed /new/last.dylib --set-path /a:/b \
            helped.so -o helped2.so
        llvm-otool -L helped2.so | awk 'NR > 1 { print $1 }' >libs
        [ "$rc" = 0 ] && [ "$(head -n 1 libs)" = /new/libhelper.dylib ] && [ "$(tail -n 1 libs)" = /new/last.dylib ] &&
            [ "$(llvm-objdump --macho --rpaths helped2.so | tail -n 2 | tr '\n' ' ')" = '/a /b ' ]
        say $? "and_of_$kind/needed_libraries_and_paths" "$(cat libs)"
        run rewrite --remove-needed /absent.dylib helped.so
        check "what_$kind/does_not_need_cannot_be_removed" 1 "LC_LOAD_DYLIB: there is no '/absent.dylib' to remove"
        run rewrite --allow-absent --remove-needed /absent.dylib --id /x helped.so -o allowed.so
        check "unless_it_is_allowed_for_$kind" 0
        for i in $(seq 20); do
            run rewrite --add-needed "/new/libof-edit-$i.dylib" --prepend-path "/place/of/edit-$i" helped.so
            [ "$rc" = 0 ] || break
        done
        [ "$rc" = 0 ] && [ "$(llvm-otool -L helped.so | grep -c libof-edit)" = 20 ]
        say $? "twenty_edits_of_${kind}_work"
    done
    cp "$inputs/fat/chained/ext.so" fat.so
    run rewrite --allow-absent --remove-needed /absent.dylib --add-needed /new/fat.dylib fat.so
    [ "$rc" = 0 ] && [ "$(llvm-objdump --macho --arch=all --dylibs-used fat.so | grep -c /new/fat.dylib)" = 2 ]
    say $? universal_files_too
    run rewrite --remove-needed /absent.dylib fat.so
    check and_refusals_of_them 1 "there is no '/absent.dylib' to remove"
else
    skip mach_o "$(cat "$inputs"/*.skip 2>/dev/null | head -n 1)"
fi

# ---- PE ----

inputs=$(dirname "$EXTISOLATE")/pe_inputs
if "$ROOT/tests/pe_inputs/build.sh" "$inputs" >/dev/null && [ -f "$inputs/lld-x64/ext.dll" ]; then
    names() { llvm-readobj --coff-imports --coff-exports "$1" | awk '/^Import/ { on = 1 } on && /Name: / { print $2; on = 0 }'; }
    for kind in lld-x64 gnu-x86; do
        [ -f "$inputs/$kind/ext.dll" ] || continue
        cp "$inputs/$kind/ext.dll" "$inputs/$kind/python311.dll" .
        run rewrite --id new-name-that-is-rather-long.dll python311.dll
        [ "$rc" = 0 ] && llvm-objdump -p python311.dll | grep -q 'DLL name: new-name-that-is-rather-long.dll'
        say $? "objdump_sees_the_new_id_of_$kind"
        run rewrite --replace-needed python311.dll=new-name-that-is-rather-long.dll ext.dll -o out.dll
        [ "$rc" = 0 ] && names out.dll | grep -qx new-name-that-is-rather-long.dll && ! names out.dll | grep -q python311
        say $? "and_a_replaced_import_of_$kind" "$(names out.dll)"
        run rewrite --add-needed x.dll ext.dll
        check "imports_cannot_be_added_to_$kind" 1 "no library can be added .*'x.dll'"
        run rewrite --remove-needed python311.dll ext.dll
        check "nor_removed_from_$kind" 1 "no library can be removed .*'python311.dll'"
        run rewrite --allow-absent --remove-needed python311.dll ext.dll
        check "even_if_others_of_$kind/may_be_absent" 1 "no library can be removed .*'python311.dll'"
        run rewrite --replace-needed absent.dll=x.dll ext.dll
        check "what_$kind/does_not_import_cannot_be_replaced" 1 "imports: there is no 'absent.dll' to replace"
        run rewrite --allow-absent --remove-needed absent.dll --replace-needed absent.dll=x.dll ext.dll -o same.dll
        check "unless_it_is_allowed_for_$kind" 0
        cmp ext.dll same.dll
        say $? "which_changes_nothing_of_$kind"
        run rewrite --set-path /a ext.dll
        check "$kind/has_no_search_path" 1 'ext.dll: .*no search path'
        was=python311.dll
        for i in $(seq 20); do
            run rewrite --replace-needed "$was=name-of-edit-$i.dll" ext.dll
            was=name-of-edit-$i.dll
            [ "$rc" = 0 ] || break
        done
        [ "$rc" = 0 ] && names ext.dll | grep -qx name-of-edit-20.dll &&
            [ $(($(llvm-objdump -h ext.dll | wc -l) - $(llvm-objdump -h "$inputs/$kind/ext.dll" | wc -l))) -le 1 ]
        say $? "twenty_edits_of_${kind}_add_one_section_at_most"
    done
else
    skip pe "$(cat "$inputs"/*/*.skip 2>/dev/null | head -n 1)"
fi
finish
