#!/bin/bash
# The tree obeys the layers, and tests/meta/layers.sh would notice if it did not.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

if "$here/layers.sh" "$root"; then echo "ok tree_obeys_layers"; else echo "not ok tree_obeys_layers"; fi

control() { # NAME FILE INCLUDED: a tree with this one include is refused
    local tree=$tmp/$1
    mkdir -p "$tree"/{base,loader,elf,pe,runtime,cli,tests/api,"$(dirname "$2")"}
    touch "$tree"/loader/ctx.h "$tree"/base/span.h "$tree"/{elf/elf_priv.h,elf/elf_format.h} \
        "$tree"/{pe/pe_priv.h,runtime/run.h,cli/cli.h}
    printf '#include <extisolate.h>\n' >"$tree/$2"
    if ! "$here/layers.sh" "$tree" >/dev/null; then
        echo "not ok $1: refused before the bad include"
        return
    fi
    printf '  #  include "%s"\n' "$3" >>"$tree/$2"
    if [ "$("$here/layers.sh" "$tree")" = "$2:2: $4" ]; then echo "ok $1"; else echo "not ok $1"; fi
}

no() { echo "must not include \"$1\""; }
control base_must_not_see_loader base/x.c loader/ctx.h "$(no loader/ctx.h)"
control base_must_not_see_formats base/x.h elf/elf_format.h "$(no elf/elf_format.h)"
control formats_must_not_see_loader elf/x.c loader/ctx.h "$(no loader/ctx.h)"
control formats_must_not_see_each_other elf/x.c pe/pe_priv.h "$(no pe/pe_priv.h)"
control loader_must_not_see_a_formats_inside loader/x.c elf/elf_priv.h "$(no elf/elf_priv.h)"
control loader_must_not_see_cli loader/x.c cli/cli.h "$(no cli/cli.h)"
control runtime_must_not_see_base runtime/x.c base/span.h "$(no base/span.h)"
control runtime_must_not_see_cli runtime/x.c cli/cli.h "$(no cli/cli.h)"
control cli_must_not_see_loader cli/x.c loader/ctx.h "$(no loader/ctx.h)"
control api_tests_must_not_see_inside tests/api/x.c base/span.h "$(no base/span.h)"
control names_start_at_the_top base/x.c span.h "$(no span.h)"
control no_way_around_by_dots cli/x.c cli/../loader/ctx.h "$(no cli/../loader/ctx.h)"
control included_files_exist elf/x.c elf/gone.h "\"elf/gone.h\" is not named from the top folder"
