#!/bin/bash
# The tree obeys tests/meta/rooms.py: no include and no reference leaves it, no files and no rooms form a circle.
# Each check has negative controls, which it must refuse.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
objects=${EXTI_BUILD:-$root/build}/obj
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

say() { # STATUS NAME
    if [ "$1" = 0 ]; then echo "ok $2"; else echo "not ok $2"; fi
}

# ---- includes --------------------------------------------------------------------------------------------

"$here/layers.py" "$root"
say $? includes_obey_the_rooms

control() { # NAME FILE INCLUDED MESSAGE: a tree with this one include is refused
    local tree=$tmp/$1 f
    for f in include/extisolate.h base/span.h base/os/fs.h elf/elf_format.h pe/pe_format.h elf/read/elf_open.h \
        elf/edit/elf_plan.h elf/check/elf_check.h pe/read/pe_file.h loader/image/inspect.h \
        loader/resolve/closure.h loader/store/store.h loader/track/module.h loader/load/open.h \
        loader/interpose/dl_calls.h loader/context/context.h runtime/run.h cli/cli.h; do
        mkdir -p "$tree/$(dirname "$f")"
        touch "$tree/$f"
    done
    mkdir -p "$tree/$(dirname "$2")"
    printf '#include <extisolate.h>\n' >"$tree/$2"
    if [ "$5" = known ] && ! "$here/layers.py" "$tree" >"$tmp/out"; then
        cat "$tmp/out"
        echo "not ok $1: refused before the bad include"
        return
    fi
    printf '  #  include "%s"\n' "$3" >>"$tree/$2"
    [ "$("$here/layers.py" "$tree")" = "$2$4" ]
    say $? "$1"
}

no() { # NAME FILE INCLUDED
    control "$1" "$2" "$3" ":2: must not include \"$3\"" known
}
no base_must_not_see_its_systems base/x.c base/os/fs.h
no base_must_not_see_the_loader base/os/x.c loader/store/store.h
no base_must_not_see_formats base/x.h elf/elf_format.h
no formats_must_not_see_the_loader elf/edit/x.c loader/image/inspect.h
no formats_must_not_see_each_other elf/read/x.c pe/read/pe_file.h
no formats_must_not_see_files pe/edit/x.c base/os/fs.h
no checkers_must_not_see_edits elf/check/x.c elf/edit/elf_plan.h
no edits_must_not_see_checkers elf/edit/x.c elf/check/elf_check.h
no readers_must_not_see_edits elf/read/x.c elf/edit/elf_plan.h
no the_loader_must_not_see_inside_a_format loader/image/x.c elf/read/elf_open.h
no the_store_must_not_see_formats loader/store/x.c elf/elf_format.h
no images_must_not_see_the_resolver loader/image/x.c loader/resolve/closure.h
no the_resolver_must_not_see_the_store loader/resolve/x.c loader/store/store.h
no the_store_must_not_see_what_is_loaded loader/store/x.c loader/track/module.h
no tracking_must_not_see_loading loader/track/x.c loader/load/open.h
no loading_must_not_see_what_copies_call loader/load/x.c loader/interpose/dl_calls.h
no interposed_calls_must_not_see_contexts loader/interpose/x.c loader/context/context.h
no the_loader_must_not_see_programs loader/context/x.c cli/cli.h
no runtimes_must_not_see_base runtime/x.c base/span.h
no runtimes_must_not_see_programs runtime/x.c cli/cli.h
no programs_must_not_see_the_loader cli/x.c loader/context/context.h
no api_tests_must_not_see_inside tests/api/x.c base/span.h
no the_public_header_stands_alone include/x.h base/span.h
no names_start_at_the_top base/x.c span.h
no no_way_around_by_dots cli/x.c cli/../base/span.h
control included_files_exist elf/read/x.c elf/read/gone.h ':2: "elf/read/gone.h" is not named from the top folder' known
control every_file_has_a_room loader/x.c base/span.h ': is in no room that tests/meta/rooms.py knows' unknown

# ---- references between objects ------------------------------------------------------------------------------

"$here/circles.py" "$objects"
say $? references_obey_the_rooms_and_form_no_circle

# Objects of one function each, NAME:CALLED.
planted() { # NAME EXPECTED OBJECT...
    local tree=$tmp/$1.obj spec stem called
    for spec in "${@:3}"; do
        stem=${spec%%:*} called=${spec#*:}
        mkdir -p "$tree/$(dirname "$stem")"
        printf 'void %s(void);\nvoid exti__%s(void)\n{\n    %s();\n}\n' "$called" "$(basename "$stem")" "$called" |
            ${CC:-cc} -x c -c -o "$tree/$stem.o" - || return
    done
    "$here/circles.py" "$tree" | grep -qxF "$2"
    say $? "$1"
}
planted circles_of_files_are_found 'circle of files: loader/load/a loader/load/b' \
    loader/load/a:exti__b loader/load/b:exti__a
planted circles_of_rooms_are_found 'circle of rooms: loader/load loader/track' \
    loader/load/a:exti__b loader/track/b:exti__c loader/load/c:unknown
planted references_upward_are_found 'loader/track/a must not use loader/load/b: exti__b' \
    loader/track/a:exti__b loader/load/b:unknown
planted references_past_the_public_header_are_found 'cli/a must not use loader/context/b: exti__b' \
    cli/a:exti__b loader/context/b:unknown
mkdir "$tmp/none"
"$here/circles.py" "$tmp/none" 2>"$tmp/err"
[ $? = 1 ] && grep -q 'has no objects' "$tmp/err"
say $? objects_have_to_be_there
