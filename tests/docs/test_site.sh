#!/bin/bash
# The documentation's site is built without a warning, has each public function, and a bad link would be noticed.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT
python=/usr/bin/python3

if ! $python -c 'import furo, myst_parser, sphinx' 2>/dev/null; then
    echo "skip site: $python has no Sphinx with MyST and Furo: scripts/deps.sh docs"
    exit 0
fi
check() { # NAME STATUS: the last command's; its output is in $tmp/out
    if [ "$2" = 0 ]; then
        echo "ok $1"
    else
        echo "not ok $1"
        sed 's/^/    /' "$tmp/out" | tail -30
    fi
}

cp -r "$root/docs" "$root/include" "$root/examples" "$root"/*.md "$tmp"
build() { # NAME
    make -s -C "$root" html DOCS="$tmp/docs" HTML="$tmp/$1" >"$tmp/out" 2>&1
}
build html
check it_is_built_without_a_warning $?

sed -n 's/^EXTI_API .*[ *]\(exti[a-z]*_[a-z_]*\)(.*/\1/p' "$root"/include/*.h "$root"/include/*/*.h |
    LC_ALL=C sort >"$tmp/functions"
$python -m sphinx.ext.intersphinx "$tmp/html/objects.inv" |
    awk '/^[^\t]/ { of = $1 } of == "c:function" && /^\t/ { print $1 }' | LC_ALL=C sort >"$tmp/documented"
diff "$tmp/functions" "$tmp/documented" >"$tmp/out" && [ "$(wc -l <"$tmp/functions")" -gt 80 ]
check each_function_has_its_place $?
grep -q 'c.exti_code.EXTI_E_TRUST"' "$tmp/html/c-api.html" && grep -q 'c.extipy_code.EXTIPY_E_STATE"' "$tmp/html/c-api-python.html"
check each_code_has_its_place $?

$python -c 'import ast, sys
tree = ast.parse(open(sys.argv[1]).read())
print(*next(ast.literal_eval(n.value) for n in tree.body
            if isinstance(n, ast.Assign) and n.targets[0].id == "__all__"), sep="\n")' \
    "$root/bindings/python/src/extisolate/__init__.py" | LC_ALL=C sort >"$tmp/functions"
$python -m sphinx.ext.intersphinx "$tmp/html/objects.inv" |
    sed -n 's/^\textisolate\.\([A-Za-z_]*\) .*/\1/p' | LC_ALL=C sort -u >"$tmp/documented"
diff "$tmp/functions" "$tmp/documented" >"$tmp/out" && [ "$(wc -l <"$tmp/functions")" -gt 15 ]
check each_name_of_the_package_has_its_place $?

echo '[A page](nowhere.md) that is not there.' >>"$tmp/docs/limits.md"
! build broken && grep -q 'limits.md.*nowhere' "$tmp/out"
check a_link_to_nowhere_is_found $?
cp "$root/docs/limits.md" "$tmp/docs"
sed -i 's/^EXTI_API const char \*exti_version(/EXTI_API struct exti_unknown *exti_version(/' \
    "$tmp/include/extisolate.h"
! build broken && grep -q 'exti_unknown' "$tmp/out"
check a_type_that_no_header_declares_is_found $?
