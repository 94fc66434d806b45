#!/bin/bash
# `extisolate copy` makes two contexts of Mach-O files, which run as in test_macho_inputs: both in
# one process for each architecture, where two sets that are not rewritten would share their state.
. "$(dirname "$0")/../cli/support.bash"

inputs=$(dirname "$EXTISOLATE")/macho_inputs
check=$(dirname "$EXTISOLATE")/tests/macho_check
"$ROOT/tests/macho_inputs/build.sh" "$inputs" || exit 1

# copy_of CONTEXT FILE: the path of the copy in the context
copy_of() {
    jq -r --arg f "$2" '.copies[] | select(.source == $f) | .copy' "$1.json"
}

api_of() {
    jq -r .api_library.copy "$1.json"
}

# Sets `loader`, the command that loads files for a machine here; else fails and says why.
find_loader() {
    loader=("$inputs/$1/macho_load") why=
    if [ "$1" = arm64 ]; then
        loader=(qemu-aarch64 "${loader[@]}")
        command -v qemu-aarch64 >/dev/null || why='qemu-aarch64 is not installed'
    fi
    [ ! -e "$inputs/$1/macho_load.skip" ] || why=$(cat "$inputs/$1/macho_load.skip")
    [ -z "$why" ]
}

for arch in x86_64 arm64; do
    find_loader $arch || { skip "contexts_$arch" "$why"; continue; }
    for from in "$arch/chained" "$arch/opcodes" fat/chained fat/opcodes; do
        name=$arch-${from//\//-}
        files=("$inputs/$from"/{ext,weak,tlv,pad0}.so)
        calls=()
        for c in one two; do
            x copy --json --libpython "$inputs/$from/libpystub.dylib" "${files[@]}" "$T/$name-$c" \
                >"$c.json" 2>"$T/err"
            calls+=("$(api_of $c)")
            for f in "${files[@]}"; do
                calls+=("$(copy_of $c "$f")" :_ext_init :_ext_check :_ext_modules :_ext_own)
            done
            calls+=("$(api_of $c)" :_py_modules)
        done
        "${loader[@]}" "${calls[@]}" >"$T/out" 2>"$T/err"
        once="1 0 1 1 2 0 2 1 3 0 3 1 4 0 4 1 4 "
        [ "$(tr '\n' ' ' <"$T/out")" = "$once$once" ]
        say $? "contexts_${name}_are_apart"
        run verify "$T/$name-one"
        check "contexts_${name}_verify" 0
        mapfile -t copies < <(jq -r '.copies[].copy' one.json)
        "$check" --sound "$(api_of one)" "${copies[@]}" >"$T/out" 2>"$T/err" &&
            "$check" --bound "$(api_of one)" "@loader_path/$(basename "$(api_of one)")" \
                "${copies[@]}" >"$T/out" 2>"$T/err"
        say $? "contexts_${name}_bind_to_their_api_only"
    done
done

# A copy for contexts leaves its initialisers to extisolate, and is made again for programs.
for arch in x86_64 arm64; do
    find_loader $arch || continue
    for from in "$arch/chained" "$arch/opcodes" fat/chained; do
        name=${arch}_${from//\//_} ext=$inputs/$from/ext.so
        for who in contexts programs; do
            x copy --json --for $who --libpython "$inputs/$from/libpystub.dylib" "$ext" \
                "$T/$name-for" >for.json 2>"$T/err"
            copy=$(copy_of for "$ext")
            "${loader[@]}" "$(api_of for)" "$copy" :_ext_check + :_ext_check >"$T/out" 2>"$T/err"
            if [ $who = contexts ]; then
                [ "$(head -n 1 "$T/out")" -gt 0 ] && [ "$(tail -n 1 "$T/out")" = 0 ]
            else
                [ "$(tr '\n' ' ' <"$T/out")" = '0 0 ' ]
            fi
            say $? "initialisers_of_${name}_for_$who"
            x inspect --json "$copy" >"$T/inspect" 2>"$T/err"
            [ "$(jq '.[0].flags.withheld' "$T/inspect")" = \
                "$([ $who = contexts ] && echo true || echo false)" ]
            say $? "inspect_of_${name}_for_$who"
            run verify "$T/$name-for"
            check "verify_of_${name}_for_$who" 0
        done
    done
done

# A library that an extension needs is copied for each context; without that, both would share it.
for arch in x86_64 arm64; do
    find_loader $arch || continue
    for from in "$arch/chained" "$arch/opcodes" fat/chained fat/opcodes; do
        for closure in all none; do
            calls=()
            wanted='1 0 1 2 1 0 1 2 ' name=apart
            [ $closure = all ] || { wanted='1 1 2 1 3 4 ' name=shared; }
            for c in one two; do
                x copy --json --closure $closure --libpython "$inputs/$from/libpystub.dylib" \
                    "$inputs/$from/helped.so" "$T/$arch-${from//\//-}-$closure-$c" \
                    >"$c.json" 2>"$T/err"
                calls+=("$(api_of $c)" "$(copy_of $c "$inputs/$from/helped.so")" :_ext_init)
                [ $closure = none ] || calls+=(:_ext_check)
                calls+=(:_ext_own :_ext_own)
            done
            "${loader[@]}" "${calls[@]}" >"$T/out" 2>"$T/err"
            [ "$(tr '\n' ' ' <"$T/out")" = "$wanted" ]
            say $? "libraries_of_${arch}_${from//\//_}_are_$name"
        done
    done
done

# Each name that stays flat is listed once, in time linear in the number of names.
if command -v clang >/dev/null && command -v ld64.lld >/dev/null; then
    awk 'BEGIN { print ".data"; for (i = 0; i < 200000; i++) print ".quad _flat_" i }' >flat.s
    clang -target x86_64-apple-macos11 -c flat.s -o flat.o
    ld64.lld -arch x86_64 -platform_version macos 11.0 13.3 -bundle -undefined dynamic_lookup \
        -fixup_chains flat.o -o flat.so
    timeout 600 "$EXTISOLATE" copy --json --libpython "$inputs/x86_64/chained/libpystub.dylib" \
        flat.so "$T/flat" >flat.json 2>"$T/err"
    [ "$(grep -c '"_flat_[0-9]*"' flat.json)" = 200000 ]
    say $? many_flat_names_are_listed
else
    skip many_flat_names_are_listed "clang or ld64.lld is not installed"
fi

