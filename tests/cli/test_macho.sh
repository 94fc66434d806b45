#!/bin/bash
# Mach-O files are copied, described and checked on any system.  tests/macho_inputs runs the copies.
. "$(dirname "$0")/support.bash"
make_toy || { echo 'not ok toy: it cannot be built'; exit 1; }

inputs=$(dirname "$EXTISOLATE")/macho_inputs
"$ROOT/tests/macho_inputs/build.sh" "$inputs" || { echo 'not ok inputs: they cannot be built'; exit 1; }
x64=$inputs/x86_64/chained arm=$inputs/arm64/chained fat=$inputs/fat/chained
api=$x64/libpystub.dylib
if [ ! -f "$api" ] || [ ! -f "$fat/ext.so" ]; then
    skip macho "$(cat "$inputs"/*/*/*.skip 2>/dev/null | head -n 1)"
    exit 0
fi

# ---- copy ----

run copy "$x64/ext.so" ctx
check libpython_must_be_named 1 'is a Mach-O file' '--libpython .*dylib'
[ ! -e ctx ]
say $? without_it_no_directory_is_made

run copy --rename --libpython "$api" "$x64/ext.so" ctx
check private_names_are_for_elf 1 'private names are for ELF'
[ ! -e ctx ]
say $? and_no_directory_is_made_for_them

run copy --libpython "$api" "$x64/ext.so" "$x64/dylib.so" ctx
check thin_files_are_copied 0 "$x64/ext.so -> .*/ctx/ext\..*\.so" 'looked up in every library: _PyOptional_Absent'
run copy --json "$x64/weak.so" ctx
check later_ones_need_no_libpython 0
[ "$(jq -r '.copies[0].carried_over | length' out)" = 0 ] &&
    [ "$(jq -r '.context.renamed' out)" = false ]
say $? and_json_tells_of_them
run copy "$arm/ext.so" ctx
check another_machine_is_refused 1 "$arm/ext.so" 'is for 64-bit arm64' 'for 64-bit x86-64'
run copy toyext.so ctx
check elf_in_a_context_of_macho_is_refused 1 'is ELF; the context.s API library is Mach-O, for x86-64'
run copy --libpython libtoyapi.so toyext.so elf
run copy "$x64/ext.so" elf
check macho_in_a_context_of_elf_is_refused 1 'is Mach-O; the context.s API library is ELF'
run copy "$x64/program" ctx
check a_program_is_refused 1 'x86_64/chained/program' 'MH_EXECUTE'

run copy "$fat/ext.so" ctx
check a_universal_file_keeps_its_slices 0 'copied unchanged: arm64'
copy=$(sed -n 's/.* -> \(.*\)/\1/p' out)
llvm-lipo "$copy" -verify_arch x86_64 arm64 >out 2>err
say $? lipo_finds_both
llvm-lipo "$copy" -thin arm64 -output thin.copy && llvm-lipo "$fat/ext.so" -thin arm64 -output thin.was &&
    cmp thin.copy thin.was
say $? what_was_carried_over_is_the_original
run copy --libpython "$fat/libpystub.dylib" "$fat/ext.so" "$arm/ext.so" both
check a_universal_libpython_serves_both 0
grep -q 'carried over' out
[ $? = 1 ]
say $? and_nothing_is_carried_over

# ---- the copies ----

run verify ctx both
check copies_are_sound 0 'ctx: .* all sound' 'both: .* all sound'
copy=$(ls ctx/ext.*.so | head -n 1)
llvm-otool -L ctx/dylib.*.so >out 2>err
grep -qE '^[[:space:]]/[0-9A-Za-z]{6,10} ' out && ! grep -q pystub out
say $? otool_sees_short_names_where_room_is_short
x copy "$x64/padmax.so" ctx >/dev/null 2>err
llvm-otool -L ctx/padmax.*.so >out 2>>err
grep -q "@loader_path/libpystub.dylib" out
say $? otool_sees_a_file_name_where_there_is_room

victim=$(ls ctx/weak.*.so)
size=$(stat -c %s "$victim")
printf '\x90' | dd of="$victim" bs=1 seek=$((size / 2)) conv=notrunc status=none
run verify ctx
check a_changed_byte_is_found 1 'weak\..*\.so: offset 0x'
run copy "$x64/weak.so" ctx
run verify ctx
check another_copy_mends_it 0 'all sound'
run verify "$(ls ctx/weak.*.so)" --against "$x64/weak.so"
check one_copy_against_its_original 0 'a sound copy'
run verify "$(ls ctx/weak.*.so)" --against "$x64/tlv.so"
check another_original_is_found_out 1 'finding'
run verify "$(ls ctx/weak.*.so)" --against toyext.so
check an_elf_original_is_found_out 1 'is not ELF'

# An install name relative to the loader matches the end of the file's path.
mkdir -p placed/lib
cp "$api" placed/lib/libplaced.dylib
llvm-install-name-tool -id @loader_path/lib/libplaced.dylib placed/lib/libplaced.dylib &&
    cp placed/lib/libplaced.dylib placed/lib/elsewhere.dylib &&
    cp placed/lib/libplaced.dylib placed/libplaced.dylib
run verify placed/lib/libplaced.dylib --against placed/lib/elsewhere.dylib
check an_install_name_is_where_the_path_ends 0 'a sound copy'
for f in lib/elsewhere libplaced; do
    run verify placed/$f.dylib --against placed/lib/libplaced.dylib
    check "an_install_name_is_elsewhere_than_$(basename $f)" 1 "$f.dylib: dyld validSemanticsInstallName" \
        '@loader_path/lib/libplaced.dylib' '1 finding'
done

run list ctx
check list_names_them 0 'libpystub.dylib' 'fresh' 'API library'
run list --json ctx
[ "$(jq -r '.. | .edits? // empty | .bind_to // empty' out | sort -u | grep -c '^@loader_path/libpystub.dylib')" = 1 ]
say $? list_tells_what_they_are_bound_to

# ---- inspect ----

run inspect "$fat/ext.so"
check inspect_tells_of_each_architecture 0 'Mach-O, 2 architectures' 'x86-64, 64-bit, macOS 11.0, SDK 13.3' \
    'arm64, 64-bit' '1  /usr/lib/libSystem.B.dylib' 'bind to any library loaded \(flat\)' \
    'bytes for load commands' "ad hoc, a linker's"
run inspect "$copy"
check inspect_tells_where_a_copy_is_bound 0 'bind to @loader_path/libpystub.dylib|bind to /[0-9A-Za-z]{6}$'
run inspect --json "$fat/ext.so"
[ "$(jq -r '.[0].slices | map(.machine) | join(" ")' out)" = 'x86-64 arm64' ] &&
    [ "$(jq -r '.[0].slices[1].signature' out)" = linker ] &&
    [ "$(jq -r '.[0].slices[0].bindings.flat' out)" -gt 3 ]
say $? inspect_gives_json
run inspect "$x64/program"
check inspect_reads_programs_too 0 'Mach-O'
run inspect --libpython "$api" --symbols "$x64/ext.so"
check inspect_takes_a_libpython 0 '_Py'

# ---- what is needed ----

# references FILE...: the names of the libraries they need, without the system's
references() {
    local f
    for f in "$@"; do
        llvm-otool -L "$f" | sed -n '2,$s/^[[:space:]]*\([^ ]*\).*/\1/p' |
            grep -vFx "$(llvm-otool -D "$f" | sed -n 2p)"
    done | grep -v '^/usr/lib/' | sort -u
}

mkdir w
cp "$x64"/{many,helped}.so "$x64"/lib{helper,extra*}.dylib w/
run copy --libpython "$api" w/many.so w/helped.so needs
check what_they_need_is_copied 0
ls needs/libextra*.dylib needs/libhelper.*.dylib >copies 2>err
[ "$(wc -l <copies)" = 21 ]
say $? "each_library_has_a_copy: $(wc -l <copies)"
references needs/*.so needs/*.dylib >names
bad=0
while read -r name; do
    case $name in
    @loader_path/*) [ -e "needs/${name#@loader_path/}" ] || bad=1 ;;
    *) llvm-otool -D needs/libpystub.* | grep -qFx "$name" || bad=1 ;;
    esac
done <names
[ "$(wc -l <names)" -ge 22 ]
say $((bad | $?)) "every_reference_leads_into_the_context: $(wc -l <names)"
cat copies | while read -r f; do llvm-otool -D "$f" | sed -n 2p; done >ids
[ "$(sort -u ids | grep -c '^/[0-9A-Za-z]*$')" = 21 ]
say $? each_has_an_install_name_of_its_own
run verify needs
check they_are_sound 0 'needs: 24 copies, all sound'

run copy --libpython "$api" --share 'libextra1*' w/many.so partly
check some_are_shared 0
references partly/many.*.so >names
[ "$(grep -cx "$T/w/libextra1[0-9]*.dylib" names)" = 11 ] && [ "$(grep -c '^@loader_path/libextra' names)" = 9 ]
say $? what_is_shared_is_named_by_its_path
run verify partly
check partly_shared_is_sound 0 'all sound'
run copy --libpython "$api" --closure api w/many.so w/helped.so api-only
check only_what_uses_libpython 0
[ "$(ls api-only/*.dylib | wc -l)" = 1 ] && ls api-only/libhelper.*.dylib >out
say $? is_copied_with_closure_api
run copy --libpython "$api" --closure none w/helped.so none
check none_is_copied 0
run copy w/many.so none
check and_the_directory_keeps_to_that 0
! ls none/*.dylib >out 2>err
say $? with_closure_none

# verify finds a reference that leads out of the context.
helped=$(ls needs/helped.*.so) helper=$(basename "$(ls needs/libhelper.*.dylib)")
for to in "$T/w/libhelper.dylib" @rpath/libhelper.dylib; do
    cp "$helped" was
    llvm-install-name-tool -change "@loader_path/$helper" "$to" "$helped" 2>err
    run verify needs
    check "a_way_out_by_$(basename "$(dirname "$to")")_is_found" 1 "needs $to, (the original|which is neither)"
    mv was "$helped"
done
llvm-install-name-tool -id @rpath/libhelper.dylib "needs/$helper" 2>err
run verify needs
check an_original_install_name_is_found 1 "has its original's install name, @rpath/libhelper.dylib"

# In a universal library each used slice refers to copies, and the others to the originals.
run copy --libpython "$arm/libpystub.dylib" "$fat/helped.so" second
check a_slice_before_the_one_used_is_carried_over 0 'copied unchanged: x86-64'
run verify second
check and_its_install_name_is_no_finding 0 'second: 3 copies, all sound'
run copy --libpython "$fat/libpystub.dylib" "$fat/helped.so" each
run verify each
check both_slices_have_names_of_their_own 0 'each: 3 copies, all sound'
helper=$(ls each/libhelper.*.dylib)
llvm-lipo "$helper" -thin x86_64 -output helper.x86_64
api_id=$(llvm-otool -D each/libpystub.* | grep -v ':$' | head -n 1)
for to in @rpath/libhelper.dylib "$api_id"; do
    [ "$to" = "$api_id" ] && whose=another_copy || whose=its_original
    llvm-lipo "$helper" -thin arm64 -output helper.arm64
    llvm-install-name-tool -id "$to" helper.arm64 2>err
    llvm-lipo -create helper.x86_64 helper.arm64 -output "$helper"
    run verify each
    check "a_later_slice_with_the_name_of_${whose}_is_found" 1 \
        "has (its original's install name, $to,|the install name of another copy, libpystub)"
done

rm w/libhelper.dylib
run copy --libpython "$api" w/helped.so missing
check a_missing_library_is_no_error 0
references missing/helped.*.so >names
grep -qx @rpath/libhelper.dylib names
say $? and_keeps_its_name
run verify missing
check nor_a_finding 0 'all sound'

# ---- bad input ----

for n in 4 31 32 200; do
    head -c "$n" "$x64/ext.so" >"cut$n.so"
    run copy "cut$n.so" ctx
    check "cut_to_${n}_bytes_is_refused" 1 "cut$n.so" 'offset 0x|bytes'
done
printf '\xce\xfa\xed\xfe' >old.so
head -c 400 /dev/zero >>old.so
run copy old.so ctx
check a_32_bit_file_is_refused 1 'old.so' '32-bit'
printf '\xca\xfe\xba\xbe\0\0\0\x34' >Java.class
run copy Java.class ctx
check a_java_class_is_told_apart 1 'a Java class'
run verify ctx
check none_of_it_did_any_harm 0 'all sound'

run clean ctx both
check clean_removes_them 0
[ ! -e ctx ] && [ ! -e both ]
say $? and_their_folders
finish
